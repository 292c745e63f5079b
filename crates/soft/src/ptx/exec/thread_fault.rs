//! A fault of a thread, before the position is added.

use crate::ptx::error::FaultKind;
use crate::ptx::memory::MemoryFault;

/// A fault without a position, which the block adds.
#[derive(Debug)]
pub(super) struct ThreadFault {
    pub(super) kind: FaultKind,
    /// Address, bytes and whether it was a write.
    pub(super) access: Option<(u64, u32, bool)>,
    /// The function and program counter behind the instruction, if the thread is elsewhere by now.
    pub(super) at: Option<(u32, usize)>,
    /// Offset in shared memory, of an access to it.
    pub(super) shared: Option<u64>,
    pub(super) detail: String,
}

pub(super) type Checked<T> = Result<T, Box<ThreadFault>>;

impl ThreadFault {
    #[cold]
    pub(super) fn new(kind: FaultKind, detail: impl Into<String>) -> Box<ThreadFault> {
        Box::new(ThreadFault { kind, access: None, at: None, shared: None, detail: detail.into() })
    }

    #[cold]
    pub(super) fn at(address: u64, bytes: u32, write: bool, fault: MemoryFault) -> Box<ThreadFault> {
        Box::new(ThreadFault {
            kind: fault.kind,
            access: Some((address, bytes, write)),
            at: None,
            shared: None,
            detail: fault.message,
        })
    }

    #[cold]
    pub(super) fn illegal(address: u64, bytes: u32, write: bool, detail: String) -> Box<ThreadFault> {
        Box::new(ThreadFault {
            kind: FaultKind::IllegalAddress,
            access: Some((address, bytes, write)),
            at: None,
            shared: None,
            detail,
        })
    }

    /// Not a fault: an access to shared memory that is valid and has to be checked further.
    #[cold]
    pub(super) fn unchecked(offset: u64) -> Box<ThreadFault> {
        let mut fault = ThreadFault::new(FaultKind::UnwrittenShared, "");
        fault.shared = Some(offset);
        fault
    }

    /// Whether it is [unchecked](Self::unchecked) and no fault.
    pub(super) fn is_unchecked(&self) -> bool {
        self.kind == FaultKind::UnwrittenShared && self.access.is_none()
    }

    #[cold]
    pub(super) fn misaligned(address: u64, bytes: u32, write: bool) -> Box<ThreadFault> {
        let detail = format!("the address is not a multiple of {bytes}");
        Box::new(ThreadFault {
            kind: FaultKind::MisalignedAddress,
            access: Some((address, bytes, write)),
            at: None,
            shared: None,
            detail,
        })
    }
}
