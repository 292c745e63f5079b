//! Values of other code that this library keeps, and drops for it.

use core::any::Any;
use core::fmt;
use core::mem::ManuallyDrop;
use std::sync::Arc;

use super::failure;

/// A value of any type that this library keeps for its user; a clone counts one reference.
///
/// A panic in the value's destructor never comes out of the drop of a `Kept`: it is reported to the
/// [hook](crate::reaper::set_hook), and the drop goes on. So it does no harm while a thread unwinds
/// either. If the caller keeps a reference of its own, such as a clone of the `Arc`, and drops that
/// last, the panic is the caller's. If two parts of one value panic in their destructors, Rust ends
/// the process.
#[derive(Clone)]
pub struct Kept(ManuallyDrop<Arc<dyn Any + Send + Sync>>);

impl Kept {
    /// Keeps a value.
    #[must_use]
    pub fn new(value: impl Any + Send + Sync) -> Self {
        Self::from(Arc::new(value) as Arc<dyn Any + Send + Sync>)
    }

    /// The value, with the references to it.
    #[must_use]
    pub fn as_arc(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.0
    }

    /// The value, if it is of this type.
    #[must_use]
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        (**self.0).downcast_ref()
    }

    /// The address of the value.
    #[must_use]
    pub fn as_ptr(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }
}

impl From<Arc<dyn Any + Send + Sync>> for Kept {
    fn from(value: Arc<dyn Any + Send + Sync>) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: it is dropped only here.
        failure::dropping("dropping a value that was kept", || unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Kept").field(&self.as_ptr()).finish()
    }
}
