//! Errors in PTX texts and faults of running kernels.

use std::fmt;

/// An error in a PTX text, found at load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PtxError {
    /// Line of the text, counted from 1.
    pub(crate) line: u32,
    /// The message.
    pub(crate) message: String,
}

/// After this many errors the rest of a text is not checked.
pub(super) const MOST_ERRORS: usize = 100;

/// The result of parsing a part of a text.
pub(super) type Parsed<T> = Result<T, PtxError>;

impl PtxError {
    pub(super) fn new(line: u32, message: impl Into<String>) -> Self {
        PtxError { line, message: message.into() }
    }
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptx line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for PtxError {}

/// The kinds of faults that the driver's result codes distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// An access outside every live allocation, or a write to read-only memory.
    IllegalAddress,
    /// An address that is not a multiple of the access size.
    MisalignedAddress,
    /// `trap` was executed.
    Trap,
    /// A device-side `assert` failed.
    Assert,
    /// An instruction whose operands have no defined meaning, such as a barrier that does not
    /// exist.
    IllegalInstruction,
    /// An indirect call or branch to something that is not a function or label.
    InvalidProgramCounter,
    /// A deadlock between threads.
    BarrierDivergence,
    /// Calls nested deeper than the stack of a thread allows.
    StackOverflow,
    /// A read of shared memory that no thread of the block has written.
    UnwrittenShared,
    /// Two accesses that nothing orders, one of them a write.
    Race,
    /// The launch does not match the kernel.
    LaunchFailed,
    /// The driver stopped the grid.
    Cancelled,
}

impl FaultKind {
    fn words(self) -> &'static str {
        match self {
            FaultKind::IllegalAddress => "illegal address",
            FaultKind::MisalignedAddress => "misaligned address",
            FaultKind::Trap => "trap",
            FaultKind::Assert => "failed assertion",
            FaultKind::IllegalInstruction => "illegal instruction",
            FaultKind::InvalidProgramCounter => "invalid program counter",
            FaultKind::BarrierDivergence => "deadlock",
            FaultKind::StackOverflow => "stack overflow",
            FaultKind::UnwrittenShared => "unwritten shared memory",
            FaultKind::Race => "data race",
            FaultKind::LaunchFailed => "impossible launch",
            FaultKind::Cancelled => "cancelled",
        }
    }
}

/// Why a grid stopped: which thread did what, and where in the PTX text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What happened.
    pub(crate) kind: FaultKind,
    /// Name of the kernel that was launched.
    pub(crate) kernel: String,
    /// Line of the PTX text, or 0 if no instruction is involved.
    pub(crate) line: u32,
    /// The file and line that the instruction was made from, if the text tells them.
    pub(crate) source: Option<Box<str>>,
    /// Index of the block.
    pub(crate) block: [u32; 3],
    /// Index of the thread in its block.
    pub(crate) thread: [u32; 3],
    /// The address, for memory faults.
    pub(crate) address: Option<u64>,
    /// The size of the access in bytes, for memory faults.
    pub(crate) size: Option<u32>,
    /// Whether the access was a write.
    pub(crate) write: bool,
    /// Details, such as the message of the memory.
    pub(crate) detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, "{} in kernel `{}`", self.kind.words(), self.kernel)?;
        if self.line != 0 {
            write!(f, " at ptx line {}", self.line)?;
        }
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        write!(f, ", block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")?;
        if let (Some(address), Some(size)) = (self.address, self.size) {
            let verb = if self.write { "write" } else { "read" };
            let s = if size == 1 { "" } else { "s" };
            write!(f, ": {verb} of {size} byte{s} at {address:#x}")?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
