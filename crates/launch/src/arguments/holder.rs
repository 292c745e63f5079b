//! The trait of parameter holders, which launches and kernel nodes take.

use core::ffi::c_void;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::{Allocation, Kernel, Owner, Stream};
use smallvec::SmallVec;

use crate::arguments::access::{AccessRanges, Accesses};
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::slot::ParameterSlot;
use crate::error::{Error, Result};

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<A: sealed::Sealed> sealed::Sealed for &A {}

/// Arguments of a launch or a kernel node: [`Params`](crate::Params),
/// [`OwnedParams`](crate::OwnedParams), the [`Prepared`](crate::Prepared) arguments of a typed
/// kernel, or a reference to one of them.
pub trait Arguments: sealed::Sealed {
    /// The offset and the size of each argument.
    fn slots(&self) -> &[ParameterSlot];

    /// Checks number and sizes of the arguments against the parameters of `kernel`. Makes no driver
    /// call: the kernel knows its parameters since it was loaded, from `cuKernelGetParamInfo` (CUDA
    /// 12.4). With an older driver only a total size that no kernel takes is refused.
    ///
    /// # Errors
    /// [`Error::WrongArguments`] with the kernel's name, its parameters and the differences.
    #[doc(alias = "cuKernelGetParamInfo")]
    fn check(&self, kernel: &Kernel) -> Result<()>;

    /// Checks that the memory of all arguments belongs to the kernel's context, or to one to whose
    /// memory it has access. Makes no driver call for memory of the kernel's context.
    ///
    /// # Errors
    /// [`WrongContext`](cuda_handles::WrongContext) names the first argument out of reach; or the
    /// driver refuses to say what a pool permits.
    #[inline]
    fn check_memory(&self, kernel: &Kernel) -> Result<()> {
        ensure_memory_of(kernel, self)
    }

    /// Whether the value of the argument of this index may have padding, whose bytes are not
    /// initialised.
    #[doc(hidden)]
    fn may_be_padded(&self, argument: usize) -> bool;

    /// Makes `stream` wait until the memory of all buffers is ready for use on it; see
    /// [`Allocation::ready_on`].
    ///
    /// # Errors
    /// The driver's. The buffers before the failing one stay usable on the stream.
    #[doc(hidden)]
    fn ready_on(&self, stream: &Stream) -> Result<()>;

    /// Calls `call` with an array of pointers to the values, valid until it returns.
    #[doc(hidden)]
    fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R;

    /// Passes each allocation that the arguments use to `each`.
    #[doc(hidden)]
    fn each_allocation<'s>(&'s self, each: impl FnMut(&'s Arc<Allocation>));

    /// The name, in errors, of the argument that uses the allocation of this index in the order of
    /// [`each_allocation`](Self::each_allocation).
    #[doc(hidden)]
    fn name_of(&self, allocation: usize) -> Cow<'static, str>;

    /// The handles of conditions among the arguments, in their order. A kernel that takes one can
    /// only be a node of a graph.
    #[doc(hidden)]
    #[inline]
    fn handles(&self) -> SmallVec<[ConditionalHandle; 1]> {
        SmallVec::new()
    }

    /// Whether an argument is the handle of a condition.
    #[doc(hidden)]
    #[inline]
    fn has_handles(&self) -> bool {
        false
    }

    /// The memory accesses that the kernel declares; unknown unless the arguments were prepared for
    /// a typed kernel.
    #[doc(hidden)]
    #[inline]
    fn accesses(&self) -> Accesses {
        Accesses::unknown()
    }

    /// The ranges of [`accesses`](Self::accesses) that [are apart](Accesses::are_apart).
    #[doc(hidden)]
    fn access_ranges(&self) -> AccessRanges {
        AccessRanges::default()
    }

    /// Passes an owner of each allocation that the arguments use to `each`.
    #[doc(hidden)]
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
    fn may_be_padded(&self, argument: usize) -> bool {
        (**self).may_be_padded(argument)
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

/// Checks that the memory of all arguments belongs to the kernel's context, or to one to whose
/// memory it has access.
///
/// # Errors
/// [`WrongContext`](cuda_handles::WrongContext) names the first argument out of reach; or the
/// driver refuses to say what a pool permits.
#[inline]
pub(crate) fn ensure_memory_of(kernel: &Kernel, arguments: &(impl Arguments + ?Sized)) -> Result<()> {
    let mut is_same = true;
    arguments.each_allocation(|allocation| is_same &= kernel.context().is_same(allocation.context()));
    if is_same { Ok(()) } else { ensure_reach(kernel, arguments) }
}

#[cold]
fn ensure_reach(kernel: &Kernel, arguments: &(impl Arguments + ?Sized)) -> Result<()> {
    let (mut index, mut first) = (0, None);
    arguments.each_allocation(|allocation| {
        if first.is_none() {
            match allocation.is_reachable_from(kernel.context()) {
                Ok(true) => {}
                Ok(false) => first = Some(Ok((index, allocation))),
                Err(error) => first = Some(Err(error)),
            }
        }
        index += 1;
    });
    let Some((index, allocation)) = first.transpose()? else { return Ok(()) };
    let what = format!("the memory of {} of kernel `{}`", arguments.name_of(index), kernel.name());
    Err(Error::Handles(allocation.out_of_reach(what, "the kernel", kernel.context()).into()))
}
