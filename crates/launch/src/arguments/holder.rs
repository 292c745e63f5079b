//! What a launch and a kernel node take: either parameter holder.

use core::ffi::c_void;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::{Allocation, Kernel, Owner, Stream, WrongContext};
use smallvec::SmallVec;

use crate::arguments::access::{AccessRanges, Accesses};
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::slot::ParameterSlot;
use crate::error::{Error, Result};

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<A: sealed::Sealed> sealed::Sealed for &A {}

/// Either parameter holder, or a reference to one: what a launch and a kernel node take.
pub trait Arguments: sealed::Sealed {
    /// Where each argument lies, and its size.
    fn slots(&self) -> &[ParameterSlot];

    /// Whether the arguments have the number and the sizes that `kernel` takes. Makes no driver
    /// call.
    ///
    /// A driver below 12.4 does not tell a kernel's layout; then only a total that no kernel takes
    /// is refused.
    ///
    /// The kernel's layout comes from `cuKernelGetParamInfo`, CUDA 12.4.
    ///
    /// # Errors
    /// [`Error::WrongArguments`](crate::Error::WrongArguments) with the kernel's name, its layout
    /// and what differs.
    #[doc(alias = "cuKernelGetParamInfo")]
    fn check(&self, kernel: &Kernel) -> Result<()>;

    /// Whether the memory of all arguments is of the kernel's context. Makes no driver call.
    ///
    /// # Errors
    /// [`WrongContext`](cuda_handles::WrongContext) names the first argument whose memory is not.
    #[inline]
    fn check_memory(&self, kernel: &Kernel) -> Result<()> {
        ensure_memory_of(kernel, self)
    }

    /// Makes `stream` wait until the memory of all buffers can be used on it; see
    /// [`Allocation::ready_on`].
    ///
    /// # Errors
    /// Those of the driver. Buffers before the failing one stay usable on the stream.
    fn ready_on(&self, stream: &Stream) -> Result<()>;

    /// Calls `call` with an array of pointers to the values, valid during that call.
    fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R;

    /// Hands each allocation that the arguments use to `each`: nothing else is in a holder.
    fn each_allocation<'s>(&'s self, each: impl FnMut(&'s Arc<Allocation>));

    /// The argument that leads to the allocation of this index among those of
    /// [`each_allocation`](Self::each_allocation), for errors.
    fn name_of(&self, allocation: usize) -> Cow<'static, str>;

    /// The handles of conditions among the arguments, in their order; empty but for kernels that
    /// can only be nodes of a graph.
    #[inline]
    fn handles(&self) -> SmallVec<[ConditionalHandle; 1]> {
        SmallVec::new()
    }

    /// Whether there are handles of conditions among the arguments.
    #[inline]
    fn has_handles(&self) -> bool {
        false
    }

    /// What is declared of the memory that the kernel accesses: known of arguments that were
    /// prepared for a typed kernel.
    #[inline]
    fn accesses(&self) -> Accesses {
        Accesses::unknown()
    }

    /// What goes with the [`accesses`](Self::accesses) where they [are apart](Accesses::are_apart).
    fn access_ranges(&self) -> AccessRanges {
        AccessRanges::default()
    }

    /// Hands an owner of each thing that the arguments use to `each`.
    #[inline]
    fn each_owner(&self, mut each: impl FnMut(Owner)) {
        self.each_allocation(|allocation| each(Owner::Allocation(Arc::clone(allocation))));
    }
}

impl<A: Arguments> Arguments for &A {
    #[inline]
    fn slots(&self) -> &[ParameterSlot] {
        (**self).slots()
    }

    #[inline]
    fn check(&self, kernel: &Kernel) -> Result<()> {
        (**self).check(kernel)
    }

    #[inline]
    fn check_memory(&self, kernel: &Kernel) -> Result<()> {
        (**self).check_memory(kernel)
    }

    #[inline]
    fn ready_on(&self, stream: &Stream) -> Result<()> {
        (**self).ready_on(stream)
    }

    #[inline(always)]
    fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        (**self).with_pointers(call)
    }

    #[inline]
    fn each_allocation<'s>(&'s self, each: impl FnMut(&'s Arc<Allocation>)) {
        (**self).each_allocation(each);
    }

    fn name_of(&self, allocation: usize) -> Cow<'static, str> {
        (**self).name_of(allocation)
    }

    #[inline]
    fn handles(&self) -> SmallVec<[ConditionalHandle; 1]> {
        (**self).handles()
    }

    #[inline]
    fn has_handles(&self) -> bool {
        (**self).has_handles()
    }

    #[inline]
    fn accesses(&self) -> Accesses {
        (**self).accesses()
    }

    fn access_ranges(&self) -> AccessRanges {
        (**self).access_ranges()
    }
}

/// Whether the memory of all arguments is of the kernel's context.
///
/// # Errors
/// [`WrongContext`](cuda_handles::WrongContext) names the first argument whose memory is not.
#[inline]
pub(crate) fn ensure_memory_of(kernel: &Kernel, arguments: &(impl Arguments + ?Sized)) -> Result<()> {
    let mut is_same = true;
    arguments.each_allocation(|allocation| is_same &= kernel.context().is_same(allocation.context()));
    if is_same { Ok(()) } else { Err(wrong_memory(kernel, arguments)) }
}

#[cold]
fn wrong_memory(kernel: &Kernel, arguments: &(impl Arguments + ?Sized)) -> Error {
    let (mut index, mut first) = (0, None);
    arguments.each_allocation(|allocation| {
        if first.is_none() && !kernel.context().is_same(allocation.context()) {
            first = Some((index, allocation.context()));
        }
        index += 1;
    });
    let (index, found) = first.unwrap_or((0, kernel.context()));
    let what = format!("the memory of {} of kernel `{}`", arguments.name_of(index), kernel.name());
    let error = WrongContext::new(what, found, "the kernel", kernel.context());
    Error::Handles(error.advise(WrongContext::MEMORY).into())
}
