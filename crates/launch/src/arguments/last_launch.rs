//! The kernel and the stream of a holder's last launch, which save the checks of the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_handles::{Allocation, Kernel, Stream};

use crate::arguments::size_check;
use crate::arguments::slot::ParameterSlot;
use crate::error::Result;

/// The kernel and the stream of a holder's last launch, by their numbers; 0 before the first.
#[derive(Debug, Default)]
pub(crate) struct LastLaunch {
    /// The kernel whose parameters the arguments fit. Neither changes.
    kernel: AtomicU64,
    /// The stream on which all allocations are ready. They stay ready: the holder keeps them alive,
    /// and a stream waits for an allocation once.
    stream: AtomicU64,
}

impl Clone for LastLaunch {
    fn clone(&self) -> Self {
        let copy = |number: &AtomicU64| AtomicU64::new(number.load(Ordering::Relaxed));
        Self { kernel: copy(&self.kernel), stream: copy(&self.stream) }
    }
}

impl LastLaunch {
    /// Checks number and sizes of the arguments, unless the last launch was of the same kernel.
    #[inline]
    pub(crate) fn check_sizes(&self, kernel: &Kernel, slots: &[ParameterSlot]) -> Result<()> {
        if self.kernel.load(Ordering::Relaxed) != kernel.id() {
            size_check::check(kernel, slots)?;
            self.kernel.store(kernel.id(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes `stream` wait for the allocations, unless the last launch was on the same stream.
    #[inline]
    pub(crate) fn ready_on<'a>(
        &self,
        stream: &Stream,
        mut allocations: impl Iterator<Item = &'a Arc<Allocation>>,
    ) -> Result<()> {
        if self.stream.load(Ordering::Relaxed) != stream.id() {
            allocations.try_for_each(|allocation| allocation.ready_for_kernel(stream))?;
            self.stream.store(stream.id(), Ordering::Relaxed);
        }
        Ok(())
    }
}
