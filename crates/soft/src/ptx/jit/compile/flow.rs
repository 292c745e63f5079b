//! The control flow of a function: its straight lines, and the registers that are alive at the
//! start of each.

use super::operands::{Use, operands};
use crate::ptx::code::{Function, Inst, Reg};

/// Larger functions stay interpreted: the analysis takes a bit for each register and line.
const MOST_INSTRUCTIONS: usize = 1 << 14;
const MOST_BITS: usize = 1 << 25;
/// Registers are loaded at each entry and stored at each stop. A function with more of both spends
/// its time there, and compiling it takes long.
const MOST_MOVES: usize = 1 << 19;

/// How a straight line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Goes on at the next line.
    Falls,
    Jumps(usize),
    /// Jumps if the register is true (or false, if the flag is not set), or else falls.
    Branches(Reg, bool, usize),
    /// The interpreter executes the last instruction.
    Stops,
    Exits,
    Returns,
}

/// A straight line of instructions.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) start: usize,
    /// Behind its last instruction.
    pub(super) end: usize,
    pub(super) how: End,
    /// Whether a thread may resume here.
    pub(super) is_entry: bool,
    /// The registers alive at the start.
    pub(super) alive: Set,
    pub(super) is_reachable: bool,
}

/// The lines of a function.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) lines: Vec<Line>,
    /// The line that starts at an instruction, or `u32::MAX`.
    starts: Vec<u32>,
}

/// A set of registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Set {
        Set(vec![0; registers.div_ceil(64)])
    }

    fn insert(&mut self, register: Reg) {
        if let Some(word) = self.0.get_mut(register as usize / 64) {
            *word |= 1 << (register % 64);
        }
    }

    fn remove(&mut self, register: Reg) {
        if let Some(word) = self.0.get_mut(register as usize / 64) {
            *word &= !(1 << (register % 64));
        }
    }

    fn add(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Reg> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            (0..64).filter(move |bit| (word >> bit) & 1 == 1).map(move |bit| index as u32 * 64 + bit)
        })
    }
}

impl Flow {
    /// The flow of a function, where the interpreter executes each instruction that `stops` names.
    /// `None` if the function is too large, or not sound.
    pub(super) fn new(function: &Function, stops: &dyn Fn(&Inst) -> bool) -> Option<Flow> {
        let len = function.code.len();
        if len == 0 || len > MOST_INSTRUCTIONS {
            return None;
        }
        let (is_start, is_entry) = starts(function, stops)?;
        let mut flow = Flow { lines: Vec::new(), starts: vec![u32::MAX; len + 1] };
        let bounds: Vec<usize> = (0..len).filter(|&pc| is_start[pc]).collect();
        for (index, &start) in bounds.iter().enumerate() {
            let end = bounds.get(index + 1).copied().unwrap_or(len);
            let how = match function.code.get(end - 1)? {
                Inst::Jump { to } => End::Jumps(*to as usize),
                Inst::JumpIf { p, to } => End::Branches(*p, true, *to as usize),
                Inst::JumpUnless { p, to } => End::Branches(*p, false, *to as usize),
                Inst::Exit => End::Exits,
                Inst::Return => End::Returns,
                other if stops(other) => End::Stops,
                _ => End::Falls,
            };
            flow.starts[start] = index as u32;
            let alive = Set::new(function.template.len());
            let is_entry = is_entry[start];
            flow.lines.push(Line { start, end, how, is_entry, alive, is_reachable: is_entry });
        }
        let moving = flow.lines.iter().filter(|line| line.is_entry || line.how == End::Stops).count();
        let registers = function.template.len();
        if flow.lines.len() * registers > MOST_BITS || moving * registers > MOST_MOVES {
            return None;
        }
        flow.find_alive(function);
        flow.find_reachable();
        Some(flow)
    }

    /// The line that starts at an instruction.
    pub(super) fn line_at(&self, pc: usize) -> Option<usize> {
        self.starts.get(pc).filter(|&&line| line != u32::MAX).map(|&line| line as usize)
    }

    /// The lines that follow a line without a stop.
    fn next(&self, line: usize) -> [Option<usize>; 2] {
        let Some(found) = self.lines.get(line) else { return [None; 2] };
        match found.how {
            End::Jumps(to) => [self.line_at(to), None],
            End::Branches(_, _, to) => [self.line_at(to), self.line_at(found.end)],
            End::Falls => [self.line_at(found.end), None],
            End::Stops | End::Exits | End::Returns => [None; 2],
        }
    }

    /// The registers alive behind the last instruction of a line.
    fn alive_behind(&self, index: usize, function: &Function) -> Set {
        let mut alive = Set::new(function.template.len());
        let Some(line) = self.lines.get(index) else { return alive };
        for next in self.next(index).into_iter().flatten() {
            alive.add(&self.lines[next].alive);
        }
        if line.how == End::Stops {
            match function.code.get(line.end - 1) {
                Some(Inst::Switch { list, len, .. }) => {
                    for to in function.lists.get(*list as usize..(*list + *len) as usize).unwrap_or(&[]) {
                        if let Some(next) = self.line_at(*to as usize) {
                            alive.add(&self.lines[next].alive);
                        }
                    }
                }
                Some(Inst::Trap) => {}
                _ => {
                    if let Some(next) = self.line_at(line.end) {
                        alive.add(&self.lines[next].alive);
                    }
                }
            }
        }
        alive
    }

    fn find_alive(&mut self, function: &Function) {
        let mut changes = true;
        while changes {
            changes = false;
            for index in (0..self.lines.len()).rev() {
                let mut alive = self.alive_behind(index, function);
                let (start, end) = (self.lines[index].start, self.lines[index].end);
                for inst in function.code[start..end].iter().rev() {
                    before(inst, function, &mut alive);
                }
                if self.lines[index].alive != alive {
                    self.lines[index].alive = alive;
                    changes = true;
                }
            }
        }
    }

    /// The registers alive in front of the last instruction of a line.
    pub(super) fn alive_at_stop(&self, index: usize, function: &Function) -> Set {
        let mut alive = self.alive_behind(index, function);
        if let Some(inst) = self.lines.get(index).and_then(|line| function.code.get(line.end - 1)) {
            before(inst, function, &mut alive);
        }
        alive
    }

    fn find_reachable(&mut self) {
        let mut todo: Vec<usize> = (0..self.lines.len()).filter(|&line| self.lines[line].is_entry).collect();
        while let Some(line) = todo.pop() {
            for next in self.next(line).into_iter().flatten() {
                if !std::mem::replace(&mut self.lines[next].is_reachable, true) {
                    todo.push(next);
                }
            }
        }
    }
}

/// From the registers alive behind an instruction to those alive in front of it.
fn before(inst: &Inst, function: &Function, alive: &mut Set) {
    let mut reads = [0; 16];
    let mut count = 0;
    let mut rest = Vec::new();
    operands(inst, function, &mut |how, register| match (how, reads.get_mut(count)) {
        (Use::Reads, Some(slot)) => {
            *slot = register;
            count += 1;
        }
        (Use::Reads, None) => rest.push(register),
        (Use::Writes, _) => alive.remove(register),
        (Use::MayWrite, _) => {}
    });
    reads.iter().take(count).chain(&rest).for_each(|&register| alive.insert(register));
}

/// Where lines start, and where threads may resume: at the entry, behind stops, and at targets of
/// backward jumps. `None` if a jump leads outside of the function.
fn starts(function: &Function, stops: &dyn Fn(&Inst) -> bool) -> Option<(Vec<bool>, Vec<bool>)> {
    let len = function.code.len();
    let (mut starts, mut entries) = (vec![false; len + 1], vec![false; len + 1]);
    starts[0] = true;
    entries[0] = true;
    let mut target = |pc: usize, to: u32, is_entry: bool| {
        *starts.get_mut(to as usize).filter(|_| (to as usize) < len)? = true;
        if is_entry || to as usize <= pc {
            entries[to as usize] = true;
        }
        Some(())
    };
    for (pc, inst) in function.code.iter().enumerate() {
        match *inst {
            Inst::Jump { to } => target(pc, to, false)?,
            Inst::JumpIf { to, .. } | Inst::JumpUnless { to, .. } => target(pc, to, false)?,
            Inst::Switch { list, len, .. } => {
                for to in function.lists.get(list as usize..(list + len) as usize)? {
                    target(pc, *to, true)?;
                }
            }
            Inst::Exit | Inst::Return => {}
            ref other if stops(other) => {
                if pc + 1 < len {
                    target(pc, pc as u32 + 1, true)?;
                }
            }
            _ => continue,
        }
        if pc + 1 < len {
            target(pc, pc as u32 + 1, false)?;
        }
    }
    Some((starts, entries))
}
