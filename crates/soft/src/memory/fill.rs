//! Fills of linear memory: described at the call, executed by the stream.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use cuda_sys::CUresult;

use super::access::access_bytes;
use super::memory_kind::Accept;
use crate::device::loss::Loss;
use crate::driver::result_code::{Answer, INVALID_VALUE};

/// A fill of one or two dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub(crate) element: u32,
    /// Elements of a row.
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Fill {
    /// The bytes from the first to the last that it writes; `None` if they exceed the address
    /// space.
    fn checked_reach(&self) -> Option<usize> {
        let row = self.width.checked_mul(self.element as usize)?;
        self.pitch.checked_mul(self.height.checked_sub(1)?)?.checked_add(row)
    }

    /// As `check` computed it. A captured fill is not checked and may exceed all memory.
    fn reach(&self) -> usize {
        self.checked_reach().unwrap_or(usize::MAX)
    }

    pub(crate) fn is_aligned(&self) -> bool {
        self.address.is_multiple_of(u64::from(self.element))
    }

    /// The rules for a memset node. Calls with nothing to do return before.
    pub(crate) fn check(&self, accept: Accept) -> Answer {
        let element = u64::from(self.element);
        let sizes = matches!(self.element, 1 | 2 | 4) && self.width > 0 && self.height > 0;
        if !sizes || !self.address.is_multiple_of(element) {
            return Err(INVALID_VALUE);
        }
        let row = self.width.checked_mul(self.element as usize).ok_or(INVALID_VALUE)?;
        if self.height > 1 && (self.pitch < row || !(self.pitch as u64).is_multiple_of(element)) {
            return Err(INVALID_VALUE);
        }
        let reach = self.checked_reach().ok_or(INVALID_VALUE)?;
        if accept.is_there(self.address, reach) { Ok(()) } else { Err(INVALID_VALUE) }
    }

    pub(crate) fn run(&self, lost_as: CUresult) -> Result<(), Loss> {
        let accessed = access_bytes(self.address, self.reach(), true).map_err(|description| {
            let text = format!("a fill writes {} bytes at {:#x}: {description}", self.reach(), self.address);
            Loss::new(lost_as, text)
        })?;
        for y in 0..self.height {
            for x in 0..self.width {
                let offset = y * self.pitch + x * self.element as usize;
                // SAFETY: inside the reach that was found in one allocation; aligned to the
                // element, as was checked at the call.
                unsafe {
                    let to = accessed.host.add(offset);
                    match self.element {
                        1 => AtomicU8::from_ptr(to).store(self.value as u8, Ordering::Relaxed),
                        2 => AtomicU16::from_ptr(to.cast()).store(self.value as u16, Ordering::Relaxed),
                        _ => AtomicU32::from_ptr(to.cast()).store(self.value, Ordering::Relaxed),
                    }
                }
            }
        }
        Ok(())
    }
}
