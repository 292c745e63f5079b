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
    form: Form,
    library: Weak<LibraryBox>,
}

/// How an image was loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    AsItIs,
    /// By [`Library::load_waiting`], whatever came of it.
    Waiting,
}

impl LoadedImage {
    fn is_of(&self, context: &Context, image: Image<'static>, form: Form) -> bool {
        self.context == context.as_raw().addr() && self.form == form && is_same(self.image, image)
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
        match find(context, image, Form::AsItIs) {
            Some(known) => Ok(known),
            None => Ok(keep(Self::load(context, image)?, image, Form::AsItIs)),
        }
    }

    /// As [`load_shared`](Self::load_shared), but loads by [`load_waiting`](Self::load_waiting).
    /// [`entry_wait`](Self::entry_wait) tells whether the kernels wait. The library is another one
    /// than that of `load_shared`, with variables of its own.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[doc(alias = "cuLibraryLoadData")]
    #[doc(alias = "griddepcontrol")]
    pub fn load_waiting_shared(context: &Context, image: Image<'static>) -> Result<Self> {
        context.ensure_usable()?;
        match find(context, image, Form::Waiting) {
            Some(known) => Ok(known),
            None => Ok(keep(Self::load_waiting(context, image)?.library, image, Form::Waiting)),
        }
    }
}

fn find(context: &Context, image: Image<'static>, form: Form) -> Option<Library> {
    let known = known(&shared(), context, image, form);
    known.filter(|library| library.context() == context)
}

fn known(all: &[LoadedImage], context: &Context, image: Image<'static>, form: Form) -> Option<Library> {
    let entry = all.iter().find(|entry| entry.is_of(context, image, form))?;
    entry.library.upgrade().map(Library)
}

/// Adds a library; returns the existing one if another thread was faster.
fn keep(library: Library, image: Image<'static>, form: Form) -> Library {
    let context = library.context();
    let mut all = shared();
    let there = known(&all, context, image, form);
    if !there.as_ref().is_some_and(|there| there.context() == context) {
        all.retain(|entry| entry.library.strong_count() > 0 && !entry.is_of(context, image, form));
        let entry = LoadedImage {
            image,
            context: context.as_raw().addr(),
            form,
            library: Arc::downgrade(&library.0),
        };
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
