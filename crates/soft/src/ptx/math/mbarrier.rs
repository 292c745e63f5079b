//! The 64 bits of an `mbarrier`, whose format PTX leaves open.

const COUNT: u64 = (1 << 20) - 1;
/// The most arrivals, and the most bytes in either direction.
pub(in crate::ptx) const MOST: u32 = (1 << 20) - 1;
const PHASE: u64 = 1 << 63;
/// Set in every barrier that was initialised.
const VALID: u64 = 1 << 62;
const BYTES_WIDTH: u32 = 22;

/// The state of an `mbarrier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Mbarrier {
    /// The parity of the number of phases that have ended.
    pub(in crate::ptx) is_odd: bool,
    /// The arrivals that later phases expect.
    pub(in crate::ptx) expected: u32,
    /// The arrivals that this phase still waits for.
    pub(in crate::ptx) pending: u32,
    /// The bytes that this phase still waits for.
    pub(in crate::ptx) bytes: i32,
}

impl Mbarrier {
    /// The barrier with these bits; `None` if it was not initialised.
    pub(in crate::ptx) fn from_bits(bits: u64) -> Option<Mbarrier> {
        if bits & VALID == 0 {
            return None;
        }
        let bytes = (bits as u32) << (32 - BYTES_WIDTH);
        Some(Mbarrier {
            is_odd: bits & PHASE != 0,
            expected: ((bits >> (BYTES_WIDTH + 20)) & COUNT) as u32,
            pending: pending_count(bits) as u32,
            bytes: bytes as i32 >> (32 - BYTES_WIDTH),
        })
    }

    pub(in crate::ptx) fn bits(self) -> u64 {
        let phase = if self.is_odd { PHASE } else { 0 };
        let bytes = self.bytes as u32 as u64 & ((1 << BYTES_WIDTH) - 1);
        let (expected, pending) = (u64::from(self.expected) & COUNT, u64::from(self.pending) & COUNT);
        phase | VALID | expected << (BYTES_WIDTH + 20) | pending << BYTES_WIDTH | bytes
    }

    /// Begins the next phase if this one waits for nothing more.
    pub(in crate::ptx) fn advance(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.is_odd = !self.is_odd;
            self.pending = self.expected;
        }
    }
}

/// `mbarrier.pending_count` of a state.
pub(in crate::ptx) fn pending_count(state: u64) -> u64 {
    (state >> BYTES_WIDTH) & COUNT
}

/// Whether a state is of the odd phase.
pub(in crate::ptx) fn is_odd(state: u64) -> bool {
    state & PHASE != 0
}
