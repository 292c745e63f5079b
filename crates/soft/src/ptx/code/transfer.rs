//! Asynchronous copies, and the barriers in shared memory (`mbarrier`) that count their bytes.

use super::{AtomicOp, AtomicType, NONE, Reg, Space};

/// An address operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Pointer {
    pub(in crate::ptx) space: Space,
    pub(in crate::ptx) base: Reg,
    pub(in crate::ptx) offset: i32,
}

impl Pointer {
    /// Stands for a missing operand.
    pub(in crate::ptx) const NONE: Pointer = Pointer { space: Space::Shared, base: NONE, offset: 0 };
}

/// An operation on an `mbarrier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum MbarrierOp {
    Init,
    Invalidate,
    ExpectBytes,
    CompleteBytes,
    Arrive(Arrival),
    /// The flag tells whether the phase is given by its parity, not by a state.
    Wait {
        by_parity: bool,
    },
}

/// How a thread arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Arrival {
    /// Later phases expect as many arrivals less.
    pub(in crate::ptx) drops: bool,
    /// The operand is a number of bytes to expect, not of arrivals.
    pub(in crate::ptx) expects_bytes: bool,
    /// The phase may end by it.
    pub(in crate::ptx) may_complete: bool,
}

/// What a bulk copy does with each element at its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Reduction {
    pub(in crate::ptx) op: AtomicOp,
    pub(in crate::ptx) ty: AtomicType,
}

/// A field of a tensor map; some have one for each dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum MapField {
    Address,
    /// One less than the rank.
    Rank,
    BoxSize(u8),
    Size(u8),
    Stride(u8),
    Step(u8),
    ElementType,
    Interleave,
    Swizzle,
    Fill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum AsyncOp {
    /// `cp.async` of so many bytes; `size` of them come from the source.
    Copy {
        bytes: u32,
    },
    CommitCopies,
    /// Waits until at most `most` groups of copies are left.
    WaitCopies {
        most: u64,
    },
    /// `cp.async.wait_all`: also for copies without a group.
    WaitAllCopies,
    /// Arrives at a barrier when the copies so far have ended; the flag tells whether the phase
    /// expects one arrival more.
    ArriveAfterCopies {
        expects_more: bool,
    },
    Mbarrier(MbarrierOp),
    /// `cp.async.bulk` to shared memory, with an `mbarrier`.
    BulkLoad(Option<Reduction>),
    /// `cp.async.bulk` to global memory, in a group.
    BulkStore(Option<Reduction>),
    /// `cp.async.bulk.tensor` to shared memory, with an `mbarrier`. The coordinates are registers
    /// in the lists.
    TensorLoad {
        rank: u8,
        list: u32,
    },
    /// `cp.async.bulk.tensor` to global memory, in a group.
    TensorStore {
        rank: u8,
        list: u32,
        reduction: Option<AtomicOp>,
    },
    /// `st.async` and `red.async`: as many values of registers in the lists, with an `mbarrier`.
    Send {
        list: u32,
        count: u8,
        bytes: u8,
        reduction: Option<Reduction>,
    },
    /// `tensormap.replace`.
    ReplaceField(MapField),
    /// `tensormap.cp_fenceproxy`.
    CopyMap,
    CommitBulk,
    /// Waits until at most `most` groups of bulk copies are left, or have read their sources.
    WaitBulk {
        most: u64,
        reads: bool,
    },
}

/// An asynchronous instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct AsyncInst {
    pub(in crate::ptx) op: AsyncOp,
    pub(in crate::ptx) to: Pointer,
    pub(in crate::ptx) from: Pointer,
    pub(in crate::ptx) barrier: Pointer,
    pub(in crate::ptx) d: Reg,
    /// A number of bytes or arrivals, or a phase.
    pub(in crate::ptx) size: Reg,
    /// Set if the source is not read (`ignore-src`).
    pub(in crate::ptx) ignores: Reg,
}

impl AsyncInst {
    /// An instruction without operands.
    pub(in crate::ptx) const fn new(op: AsyncOp) -> AsyncInst {
        let (none, pointer) = (NONE, Pointer::NONE);
        AsyncInst { op, to: pointer, from: pointer, barrier: pointer, d: none, size: none, ignores: none }
    }
}
