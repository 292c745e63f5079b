//! The library's own kernels, which set conditions.

use core::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cuda_handles::{Context, Image, Kernel, Library, Owner};
use cuda_launch::{Accesses, Declaration};

use crate::error::Result;

/// The image with the kernels, loaded once a context for all graphs that have nodes of them.
#[derive(Debug)]
pub(crate) struct Own {
    library: Library,
    /// Those that were asked for.
    kernels: Mutex<Vec<Kernel>>,
}

/// Those that are loaded: as long as a node, or an executable, keeps them.
static LOADED: Mutex<Vec<Weak<Own>>> = Mutex::new(Vec::new());

impl Own {
    /// Those of a context. The image is compiled at the first use.
    pub(crate) fn of(context: &Context) -> Result<Arc<Self>> {
        context.ensure_usable()?;
        if let Some(own) = Self::loaded(context) {
            return Ok(own);
        }
        // Without the lock: it takes a while, and two that are loaded at once are no harm.
        let library = Library::load(context, Image::Ptx(include_str!("../../kernels/conditions.ptx")))?;
        let own = Arc::new(Self { library, kernels: Mutex::default() });
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|one| one.strong_count() > 0);
        loaded.push(Arc::downgrade(&own));
        Ok(own)
    }

    fn loaded(context: &Context) -> Option<Arc<Self>> {
        // What is found comes out of the lock before it may be dropped.
        let loaded: Vec<Arc<Self>> = {
            let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.iter().filter_map(Weak::upgrade).collect()
        };
        loaded.into_iter().find(|own| own.library.context() == context)
    }

    /// A kernel of the image.
    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel> {
        let known = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().iter().find(|kernel| kernel.name() == name).cloned();
        match found {
            Some(kernel) => Ok(kernel),
            None => {
                let kernel = self.library.kernel(name)?;
                known().push(kernel.clone());
                Ok(kernel)
            }
        }
    }

    /// What a node with one of the kernels keeps, so that the image is found again.
    pub(crate) fn owner(self: &Arc<Self>) -> Owner {
        Owner::shared(Arc::clone(self))
    }
}

/// A node to be that gives a condition a value.
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

    /// What the kernel does with memory: nothing.
    pub(crate) fn accesses() -> Accesses {
        static SET: Declaration = Declaration { names: &["handle", "value"], memory: &[None, None] };
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
