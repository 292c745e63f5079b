//! The library's own kernels that set conditions to values.

use core::ffi::c_void;
use std::sync::Arc;

use cuda_handles::{Context, Kernel};
use cuda_launch::internal::{Accesses, Declaration};

use crate::error::Result;
use crate::own_kernels::{Own, OwnImage};

/// A kernel node to be added that sets a condition to a value.
pub(crate) struct SetKernel {
    pub(crate) own: Arc<Own>,
    pub(crate) kernel: Kernel,
    handle: u64,
    value: u32,
}

impl SetKernel {
    pub(crate) fn load(context: &Context, handle: u64, value: u32) -> Result<Self> {
        let own = Own::of(context, OwnImage::Conditions)?;
        Ok(Self { kernel: own.kernel("set_condition")?, own, handle, value })
    }

    /// The memory accesses of the kernel: none.
    pub(crate) fn accesses() -> Accesses {
        static SET: Declaration = Declaration {
            names: &["handle", "value"],
            memory: &[None, None],
            ends_alone: true,
            ..Declaration::NONE
        };
        Accesses::new(&SET)
    }

    /// Calls `call` with pointers to the arguments.
    pub(crate) fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        // The driver reads through these pointers and never writes.
        let mut pointers =
            [(&raw const self.handle).cast_mut().cast(), (&raw const self.value).cast_mut().cast()];
        call(pointers.as_mut_ptr())
    }
}
