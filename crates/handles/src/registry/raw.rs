//! Raw driver handles that may go from thread to thread.

use core::fmt;

/// A raw handle of the driver. It is compared and moved about here, never dereferenced.
pub(crate) struct Raw<T>(*mut T);

// SAFETY: the driver's handles are names of objects that it guards itself; any thread may pass them
// to it.
unsafe impl<T> Send for Raw<T> {}
// SAFETY: as above; the wrapper is immutable.
unsafe impl<T> Sync for Raw<T> {}

impl<T> Raw<T> {
    pub(crate) fn new(raw: *mut T) -> Self {
        Self(raw)
    }

    #[inline]
    pub(crate) fn get(self) -> *mut T {
        self.0
    }

    /// The handle as a key of a map.
    pub(crate) fn key(self) -> usize {
        self.0.addr()
    }
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Raw<T> {}

impl<T> fmt::Debug for Raw<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:p}", self.0)
    }
}

/// Equality and hash by identity for a handle that is an `Arc` of its box.
macro_rules! identity {
    ($name:ident) => {
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                ::std::sync::Arc::ptr_eq(&self.0, &other.0)
            }
        }

        impl Eq for $name {}

        impl ::core::hash::Hash for $name {
            fn hash<H: ::core::hash::Hasher>(&self, state: &mut H) {
                ::std::sync::Arc::as_ptr(&self.0).hash(state);
            }
        }
    };
}

pub(crate) use identity;
