//! Warp-wide operations.

use super::thread_fault::{Checked, ThreadFault};
use crate::ptx::code::{Reg, WarpOp};
use crate::ptx::error::FaultKind;
use crate::ptx::math::float;

/// A lane that waits for other lanes.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarpWait {
    op: WarpOp,
    /// The member mask. Without one, the lanes at the same instruction take part.
    members: Option<u32>,
    a: u64,
    b: u32,
    c: u32,
    d: Reg,
    p: Reg,
    pc: usize,
    function: u32,
}

impl WarpWait {
    /// The wait of a warp instruction with these operands, of the thread `linear`.
    #[inline]
    pub(super) fn new(
        op: WarpOp,
        linear: u32,
        [a, b, c, mask]: [Reg; 4],
        [d, p]: [Reg; 2],
        registers: &[u64],
        (function, pc): (u32, usize),
    ) -> Checked<WarpWait> {
        let get = |register: Reg| registers.get(register as usize).copied();
        let (members, lane) = (get(mask).map(|mask| mask as u32), linear % 32);
        let [a, b, c] = [a, b, c].map(|register| get(register).unwrap_or(0));
        if let Some(mask) = members
            && (mask >> lane) & 1 == 0
        {
            let detail = format!("lane {lane} is not in its own member mask {mask:#010x}");
            return Err(ThreadFault::new(FaultKind::IllegalInstruction, detail));
        }
        Ok(WarpWait { op, members, a, b: b as u32, c: c as u32, d, p, pc, function })
    }

    /// Whether two lanes wait for the same operation.
    fn joins(&self, other: &WarpWait) -> bool {
        self.op == other.op
            && self.members == other.members
            && (self.members.is_some() || (self.pc == other.pc && self.function == other.function))
    }

    /// The number of a matrix instruction in its function.
    pub(super) fn matrix(&self) -> Option<u32> {
        match self.op {
            WarpOp::Matrix(number) => Some(number),
            _ => None,
        }
    }

    /// The function and the position behind the instruction.
    pub(super) fn place(&self) -> (u32, usize) {
        (self.function, self.pc)
    }

    /// Describes the member mask, for errors.
    pub(super) fn describe(&self) -> String {
        match self.members {
            _ if self.matrix().is_some() => "for all 32 lanes of the warp".into(),
            Some(mask) => format!("for lanes {mask:#010x} of the warp"),
            None => "for the warp".into(),
        }
    }
}

/// The waits of the lanes of a warp.
pub(super) type Lanes = [Option<WarpWait>; 32];

/// A group of lanes that can be released. `live` are the lanes that have not ended. `idle` means
/// that no lane of the warp can run: then groups without a mask are complete.
pub(super) fn complete_group(lanes: &Lanes, live: u32, idle: bool) -> Option<u32> {
    let mut seen = 0_u32;
    for (index, wait) in lanes.iter().enumerate() {
        let Some(wait) = wait else { continue };
        if (seen >> index) & 1 == 1 {
            continue;
        }
        let group = lanes.iter().enumerate().fold(0_u32, |group, (other, each)| {
            group | (u32::from(each.is_some_and(|each| each.joins(wait))) << other)
        });
        seen |= group;
        let is_complete = match wait.members {
            Some(mask) => mask & live & !group == 0,
            // Matrices are spread over the whole warp.
            None if wait.matrix().is_some() => group == u32::MAX,
            None => idle,
        };
        if is_complete {
            return Some(group);
        }
    }
    None
}

/// Whether a group of lanes sees what its lanes have written. Shuffles, votes and the like move
/// registers alone.
pub(super) fn orders_memory(lanes: &Lanes, group: u32) -> bool {
    let first = lanes.get(group.trailing_zeros() as usize).and_then(Option::as_ref);
    first.is_some_and(|wait| wait.op == WarpOp::Sync)
}

/// Registers and their new values.
pub(super) type Writes = [(Reg, u64); 2];

/// The result of a complete group for lane `lane`.
pub(super) fn outcome(lanes: &Lanes, group: u32, lane: u32, wait: &WarpWait) -> Writes {
    let members = || (0..32_u32).filter(move |index| (group >> index) & 1 == 1);
    let value = |index: u32| lanes.get(index as usize).and_then(Option::as_ref).map_or(0, |wait| wait.a);
    let narrow = |index: u32| value(index) as u32;
    let same = |mask: u64| {
        members()
            .filter(|&index| value(index) & mask == wait.a & mask)
            .fold(0, |all, index| all | (1_u64 << index))
    };
    let all_same = |mask: u64| same(mask) == u64::from(group);
    let (low, whole) = (u64::from(u32::MAX), u64::MAX);
    let signed = |index: u32| narrow(index) as i32;
    let (d, p) = match wait.op {
        WarpOp::Sync | WarpOp::Matrix(_) => (0, 0),
        WarpOp::ActiveMask => (u64::from(group), 0),
        WarpOp::ShuffleUp | WarpOp::ShuffleDown | WarpOp::ShuffleXor | WarpOp::ShuffleIndex => {
            let (source, is_inside) = shuffle_source(wait, lane);
            // The value of a lane that does not take part is undefined. Its own is the least
            // surprising.
            let source = if (group >> source) & 1 == 1 { source } else { lane };
            (value(source), u64::from(is_inside))
        }
        WarpOp::VoteAll => (u64::from(members().all(|index| value(index) & 1 == 1)), 0),
        WarpOp::VoteAny => (u64::from(members().any(|index| value(index) & 1 == 1)), 0),
        WarpOp::VoteUniform => (u64::from(members().all(|index| value(index) & 1 == wait.a & 1)), 0),
        WarpOp::VoteBallot => (members().fold(0, |all, index| all | ((value(index) & 1) << index)), 0),
        WarpOp::MatchAny32 => (same(low), 0),
        WarpOp::MatchAny64 => (same(whole), 0),
        WarpOp::MatchAll32 if all_same(low) => (u64::from(group), 1),
        WarpOp::MatchAll64 if all_same(whole) => (u64::from(group), 1),
        WarpOp::MatchAll32 | WarpOp::MatchAll64 => (0, 0),
        WarpOp::ReduceAdd => (u64::from(members().map(narrow).fold(0, u32::wrapping_add)), 0),
        WarpOp::ReduceMinU => (members().map(narrow).min().unwrap_or(0).into(), 0),
        WarpOp::ReduceMaxU => (members().map(narrow).max().unwrap_or(0).into(), 0),
        WarpOp::ReduceMinS => ((members().map(signed).min().unwrap_or(0) as u32).into(), 0),
        WarpOp::ReduceMaxS => ((members().map(signed).max().unwrap_or(0) as u32).into(), 0),
        WarpOp::ReduceAnd => (members().map(narrow).fold(u32::MAX, |all, x| all & x).into(), 0),
        WarpOp::ReduceOr => (members().map(narrow).fold(0, |all, x| all | x).into(), 0),
        WarpOp::ReduceXor => (members().map(narrow).fold(0, |all, x| all ^ x).into(), 0),
        WarpOp::ReduceFloat { is_max, abs, nan } => {
            let f = match (is_max, nan) {
                (false, false) => float::min::<f32>,
                (false, true) => float::min_nan::<f32>,
                (true, false) => float::max::<f32>,
                (true, true) => float::max_nan::<f32>,
            };
            let each = |index: u32| if abs { float::abs::<f32>(value(index)) } else { value(index) };
            (members().map(each).reduce(f).unwrap_or(0), 0)
        }
        WarpOp::Elect => {
            let leader = group.trailing_zeros();
            (u64::from(leader), u64::from(leader == lane))
        }
    };
    [(wait.d, d), (wait.p, p)]
}

/// The lane that a shuffle reads, and whether it lies within the lane's segment.
fn shuffle_source(wait: &WarpWait, lane: u32) -> (u32, bool) {
    let by = wait.b & 31;
    let clamp = wait.c & 31;
    let segment = (wait.c >> 8) & 31;
    let last = (lane & segment) | (clamp & !segment);
    let first = lane & segment;
    let (source, is_inside) = match wait.op {
        WarpOp::ShuffleUp => {
            let source = lane as i32 - by as i32;
            (source as u32, source >= last as i32)
        }
        WarpOp::ShuffleDown => (lane + by, lane + by <= last),
        WarpOp::ShuffleXor => (lane ^ by, lane ^ by <= last),
        _ => {
            let source = first | (by & !segment);
            (source, source <= last)
        }
    };
    if is_inside { (source & 31, true) } else { (lane, false) }
}
