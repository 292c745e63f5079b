//! The library's own kernels, and where they are loaded.

use std::sync::{Arc, Weak};

use cuda_handles::internal::{Lock, Rank};
use cuda_handles::{Context, EntryWait, Image, Kernel, Library, Owner};

use crate::error::Result;

/// An image with kernels of this library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OwnImage {
    /// Kernels that set conditions.
    Conditions,
    /// Kernels that shaping puts in place of other nodes.
    Shaping,
}

impl OwnImage {
    fn ptx(self) -> Image<'static> {
        Image::Ptx(match self {
            Self::Conditions => include_str!("../kernels/conditions.ptx"),
            Self::Shaping => include_str!("../kernels/shaping.ptx"),
        })
    }
}

/// The kernels of an image, loaded once per context for all graphs that use them.
#[derive(Debug)]
pub(crate) struct Own {
    image: OwnImage,
    library: Library,
    /// The kernels looked up so far.
    kernels: Lock<Vec<Kernel>>,
}

/// The libraries in use. Nodes and executables keep them loaded.
static LOADED: Lock<Vec<Weak<Own>>> = Lock::new(Rank::SetKernels, Vec::new());

impl Own {
    /// The kernels of an image in a context. Their first use compiles them.
    pub(crate) fn of(context: &Context, image: OwnImage) -> Result<Arc<Self>> {
        context.ensure_usable()?;
        if let Some(own) = Self::loaded(context, image) {
            return Ok(own);
        }
        // Outside of the lock, since compiling takes a while. Loading it twice does no harm.
        let library = match image {
            OwnImage::Conditions => Library::load(context, image.ptx())?,
            OwnImage::Shaping => Library::load_waiting(context, image.ptx())?.library,
        };
        let own =
            Arc::new(Self { image, library, kernels: Lock::new(Rank::SetKernelsOfContext, Vec::new()) });
        let mut loaded = LOADED.lock();
        loaded.retain(|library| library.strong_count() > 0);
        loaded.push(Arc::downgrade(&own));
        Ok(own)
    }

    fn loaded(context: &Context, image: OwnImage) -> Option<Arc<Self>> {
        // The clones are dropped after the lock: one of them may be the last.
        let loaded: Vec<Arc<Self>> = {
            let loaded = LOADED.lock();
            loaded.iter().filter_map(Weak::upgrade).collect()
        };
        loaded.into_iter().find(|own| own.image == image && own.library.context() == context)
    }

    /// Whether the kernels wait for programmatic predecessors at their entry.
    pub(crate) fn waits_at_entry(&self) -> bool {
        self.library.entry_wait().is_some_and(EntryWait::is_waiting)
    }

    /// A kernel of the image.
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
