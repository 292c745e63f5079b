//! The library's own kernels, which set conditions.

use core::ffi::c_void;
use std::sync::{Arc, Weak};

use cuda_handles::internal::{Lock, Rank};
use cuda_handles::{Context, Image, Kernel, Library, Owner};
use cuda_launch::internal::{Accesses, Declaration};

use crate::error::Result;

/// The library of the kernels, loaded once per context for all graphs that use them.
#[derive(Debug)]
pub(crate) struct Own {
    library: Library,
    /// The kernels looked up so far.
    kernels: Lock<Vec<Kernel>>,
}

/// The libraries in use. Nodes and executables keep them loaded.
static LOADED: Lock<Vec<Weak<Own>>> = Lock::new(Rank::SetKernels, Vec::new());

impl Own {
    /// The library of a context. Its first use compiles it.
    pub(crate) fn of(context: &Context) -> Result<Arc<Self>> {
        context.ensure_usable()?;
        if let Some(own) = Self::loaded(context) {
            return Ok(own);
        }
        // Outside of the lock, since compiling takes a while. Loading it twice does no harm.
        let library = Library::load(context, Image::Ptx(include_str!("../../kernels/conditions.ptx")))?;
        let own = Arc::new(Self { library, kernels: Lock::new(Rank::SetKernelsOfContext, Vec::new()) });
        let mut loaded = LOADED.lock();
        loaded.retain(|library| library.strong_count() > 0);
        loaded.push(Arc::downgrade(&own));
        Ok(own)
    }

    fn loaded(context: &Context) -> Option<Arc<Self>> {
        // The clones are dropped after the lock: one of them may be the last.
        let loaded: Vec<Arc<Self>> = {
            let loaded = LOADED.lock();
            loaded.iter().filter_map(Weak::upgrade).collect()
        };
        loaded.into_iter().find(|own| own.library.context() == context)
    }

    /// A kernel of the library.
    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel> {
        let kernels = || self.kernels.lock();
        let found = kernels().iter().find(|kernel| kernel.name() == name).cloned();
        match found {
            Some(kernel) => Ok(kernel),
            None => {
                let kernel = self.library.kernel(name)?;
                kernels().push(kernel.clone());
                Ok(kernel)
            }
        }
    }

    /// The owner for a node with one of the kernels. While it lives, [`of`](Self::of) finds the
    /// library.
    pub(crate) fn owner(self: &Arc<Self>) -> Owner {
        Owner::shared(Arc::clone(self))
    }
}

/// A kernel node to be added that sets a condition to a value.
pub(crate) struct SetKernel {
    pub(crate) own: Arc<Own>,
    pub(crate) kernel: Kernel,
    handle: u64,
    value: u32,
}

impl SetKernel {
    pub(crate) fn load(context: &Context, handle: u64, value: u32) -> Result<Self> {
        let own = Own::of(context)?;
        Ok(Self { kernel: own.kernel("set_condition")?, own, handle, value })
    }

    /// The memory accesses of the kernel: none.
    pub(crate) fn accesses() -> Accesses {
        static SET: Declaration =
            Declaration { names: &["handle", "value"], memory: &[None, None], padded: &[], signature: None };
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
