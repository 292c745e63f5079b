//! Libraries by image: loaded once for all users in one context.

use std::sync::{Arc, Weak};

use super::image::Image;
use super::library::{Library, LibraryBox};
use crate::context::Context;
use crate::error::Result;
use crate::sync::{Lock, LockGuard, Rank};

struct LoadedImage {
    image: Image<'static>,
    /// The raw context: an owner of the library holds the context.
    context: usize,
    library: Weak<LibraryBox>,
}

impl LoadedImage {
    fn is_of(&self, context: &Context, image: Image<'static>) -> bool {
        self.context == context.as_raw().addr() && is_same(self.image, image)
    }
}

static SHARED: Lock<Vec<LoadedImage>> = Lock::new(Rank::SharedLibraries, Vec::new());

/// Nothing is dropped, and no driver called, under this lock.
fn shared() -> LockGuard<'static, Vec<LoadedImage>> {
    SHARED.lock()
}

impl Library {
    /// The library that was loaded from this image in this context, if it has an owner; otherwise
    /// loads it with the default options. Images are equal if their contents are. All users of the
    /// library share its kernels with their settings, such as
    /// [`Kernel::set_max_dynamic_shared_bytes`](crate::Kernel::set_max_dynamic_shared_bytes), and
    /// its [variables](Self::global).
    ///
    /// Kernels that [`kernel!`](https://docs.rs/cuda-launch/latest/cuda_launch/macro.kernel.html)
    /// declares are loaded by this. Threads that load an image at the same moment may each load it;
    /// all get the same library, and the others are unloaded by
    /// [`reaper::drain`](crate::reaper::drain).
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[doc(alias = "cuLibraryLoadData")]
    pub fn load_shared(context: &Context, image: Image<'static>) -> Result<Self> {
        context.ensure_usable()?;
        match find(context, image) {
            Some(known) => Ok(known),
            None => Ok(keep(Self::load(context, image)?, image)),
        }
    }
}

fn find(context: &Context, image: Image<'static>) -> Option<Library> {
    let known = known(&shared(), context, image);
    known.filter(|library| library.context() == context)
}

fn known(all: &[LoadedImage], context: &Context, image: Image<'static>) -> Option<Library> {
    let entry = all.iter().find(|entry| entry.is_of(context, image))?;
    entry.library.upgrade().map(Library)
}

/// Adds a library; returns the existing one if another thread was faster.
fn keep(library: Library, image: Image<'static>) -> Library {
    let context = library.context();
    let mut all = shared();
    let there = known(&all, context, image);
    if !there.as_ref().is_some_and(|there| there.context() == context) {
        all.retain(|entry| entry.library.strong_count() > 0 && !entry.is_of(context, image));
        let entry =
            LoadedImage { image, context: context.as_raw().addr(), library: Arc::downgrade(&library.0) };
        all.push(entry);
    }
    drop(all);
    // One of the two is dropped here, without the lock.
    there.filter(|there| there.context() == library.context()).unwrap_or(library)
}

fn is_same(one: Image<'static>, other: Image<'static>) -> bool {
    match (one, other) {
        (Image::Ptx(one), Image::Ptx(other)) => core::ptr::eq(one, other) || one == other,
        (Image::Binary(one), Image::Binary(other)) => core::ptr::eq(one, other) || one == other,
        (Image::Ptx(_), Image::Binary(_)) | (Image::Binary(_), Image::Ptx(_)) => false,
    }
}
