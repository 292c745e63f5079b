//! Names inside a function: registers, variables and labels, by block.

use std::collections::HashMap;

use crate::ptx::code::Reg;
use crate::ptx::syntax::{Statement, StatementKind};
use crate::ptx::types::Type;

/// The meaning of a name inside a function.
#[derive(Debug, Clone)]
pub(super) enum Name {
    Register {
        ty: Type,
        slot: Option<Reg>,
    },
    /// A parameter of the kernel.
    Entry {
        offset: u32,
        size: u32,
    },
    /// A variable of the frame; `is_param` tells the parameter space from the local one.
    Frame {
        offset: u32,
        size: u32,
        is_param: bool,
    },
    Shared(u32),
    /// A register of several elements, which have slots one after the other.
    Vector {
        ty: Type,
        lanes: u8,
        first: Option<Reg>,
    },
    /// A variable in the global or constant space.
    Global(u32),
    /// The labels of an indirect branch.
    Targets(Vec<u32>),
    /// What an indirect call may call.
    Prototype,
}

#[derive(Debug, Default)]
struct Scope<'t> {
    id: u32,
    names: HashMap<&'t str, Name>,
    /// Registers declared by number.
    numbered: HashMap<&'t str, NumberedRegisters>,
    /// The end of the frame when the block began.
    frame_end: u32,
}

/// Registers declared by number.
#[derive(Debug, Clone, Copy)]
struct NumberedRegisters {
    ty: Type,
    count: u32,
    lanes: u8,
}

/// A register that no instruction has used yet.
pub(super) fn unused(ty: Type, lanes: u8) -> Name {
    if lanes > 1 { Name::Vector { ty, lanes, first: None } } else { Name::Register { ty, slot: None } }
}

/// The open blocks, the innermost last.
#[derive(Debug)]
pub(super) struct Scopes<'t> {
    open: Vec<Scope<'t>>,
    /// A vector register was declared.
    pub(super) has_vectors: bool,
    labels: HashMap<(u32, &'t str), u32>,
    opened: u32,
}

impl<'t> Scopes<'t> {
    /// Finds all labels, since branches may go forward. The second value lists labels that are
    /// defined twice.
    pub(super) fn new(body: &[Statement<'t>]) -> (Self, Vec<(u32, &'t str)>) {
        let mut labels = HashMap::new();
        let mut twice = Vec::new();
        let mut ids = vec![0_u32];
        let mut opened = 0;
        for statement in body {
            match statement.kind {
                StatementKind::Open => {
                    opened += 1;
                    ids.push(opened);
                }
                StatementKind::Close => {
                    ids.pop();
                }
                StatementKind::Label(name) => {
                    let index = labels.len() as u32;
                    if labels.insert((ids.last().copied().unwrap_or(0), name), index).is_some() {
                        twice.push((statement.line, name));
                    }
                }
                _ => {}
            }
        }
        (Scopes { open: vec![Scope::default()], has_vectors: false, labels, opened: 0 }, twice)
    }

    pub(super) fn label_count(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn open(&mut self, frame_end: u32) {
        self.opened += 1;
        self.open.push(Scope { id: self.opened, frame_end, ..Scope::default() });
    }

    /// The end of the frame when the block began.
    pub(super) fn close(&mut self) -> Option<u32> {
        self.open.pop().map(|block| block.frame_end)
    }

    /// False if the block already has that name.
    pub(super) fn define(&mut self, name: &'t str, what: Name) -> bool {
        self.open.last_mut().is_some_and(|block| block.names.insert(name, what).is_none())
    }

    /// Declares registers: one, or so many by number. False if the block already has that name.
    pub(super) fn define_registers(
        &mut self,
        name: &'t str,
        ty: Type,
        lanes: u8,
        count: Option<u32>,
    ) -> bool {
        self.has_vectors |= lanes > 1;
        let Some(count) = count else { return self.define(name, unused(ty, lanes)) };
        let range = NumberedRegisters { ty, count, lanes };
        self.open.last_mut().is_some_and(|block| block.numbered.insert(name, range).is_none())
    }

    /// The innermost meaning of a name. A numbered register is created at its first use.
    pub(super) fn find(&mut self, name: &'t str) -> Option<&mut Name> {
        let depth = self
            .open
            .iter()
            .rposition(|block| block.names.contains_key(name) || numbered(name, &block.numbered).is_some())?;
        let block = self.open.get_mut(depth)?;
        if !block.names.contains_key(name) {
            let NumberedRegisters { ty, lanes, .. } = numbered(name, &block.numbered)?;
            block.names.insert(name, unused(ty, lanes));
        }
        block.names.get_mut(name)
    }

    /// The number of the innermost label of that name.
    pub(super) fn label(&self, name: &str) -> Option<u32> {
        self.open.iter().rev().find_map(|block| self.labels.get(&(block.id, name)).copied())
    }
}

/// The register `%r7`, if `%r<8>` is declared.
fn numbered(name: &str, numbered: &HashMap<&str, NumberedRegisters>) -> Option<NumberedRegisters> {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.get(prefix.len()..)?;
    // The prefix itself may end in digits: `%a1` with `%a1<4>` declared is `%a10`. So each split is
    // tried.
    for split in 0..digits.len() {
        let number = digits.get(split..)?;
        if number.len() > 1 && number.starts_with('0') {
            continue;
        }
        let Some(&range) = name.get(..prefix.len() + split).and_then(|prefix| numbered.get(prefix)) else {
            continue;
        };
        if number.parse::<u32>().is_ok_and(|number| number < range.count) {
            return Some(range);
        }
    }
    None
}
