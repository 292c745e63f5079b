//! Anything that has to be kept alive, in one small type.

use core::any::Any;
use std::sync::Arc;

use crate::context::Context;
use crate::destroy::Kept;
use crate::interop::ExternalSemaphore;
use crate::memory::{Allocation, Buffer, SharedHostBuffer, Slice};
use crate::module::Kernel;
use crate::stream::{Event, Stream};

/// Keeps something alive that a graph or a parameter holder uses. Three words; a clone counts one
/// reference.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Owner {
    /// Memory that the device can use, of any kind.
    Allocation(Arc<Allocation>),
    /// A kernel, and with it its library.
    Kernel(Kernel),
    /// An event.
    Event(Event),
    /// A stream.
    Stream(Stream),
    /// A context.
    Context(Context),
    /// A semaphore of another interface.
    ExternalSemaphore(ExternalSemaphore),
    /// Any other value; see [`Owner::other`].
    Other(Kept),
}

impl Owner {
    /// An owner of any value. A panic in the value's destructor never comes out of a drop; see
    /// [`Kept`].
    pub fn other(value: impl Any + Send + Sync) -> Self {
        Self::Other(Kept::new(value))
    }

    /// An owner of a value that others have as well.
    pub fn shared<T: Any + Send + Sync>(value: Arc<T>) -> Self {
        Self::Other(Kept::from(value as Arc<dyn Any + Send + Sync>))
    }
}

impl<T> From<&Buffer<T>> for Owner {
    fn from(buffer: &Buffer<T>) -> Self {
        Self::Allocation(Arc::clone(buffer.allocation()))
    }
}

impl<T> From<&SharedHostBuffer<T>> for Owner {
    fn from(buffer: &SharedHostBuffer<T>) -> Self {
        Self::from(buffer.as_buffer())
    }
}

impl<T> From<Slice<'_, T>> for Owner {
    fn from(slice: Slice<'_, T>) -> Self {
        Self::Allocation(Arc::clone(slice.allocation()))
    }
}

impl From<&Arc<Allocation>> for Owner {
    fn from(allocation: &Arc<Allocation>) -> Self {
        Self::Allocation(Arc::clone(allocation))
    }
}

impl From<Arc<dyn Any + Send + Sync>> for Owner {
    fn from(other: Arc<dyn Any + Send + Sync>) -> Self {
        Self::Other(Kept::from(other))
    }
}

macro_rules! from_handle {
    ($($handle:ident),*) => { $(
        impl From<&$handle> for Owner {
            fn from(handle: &$handle) -> Self {
                Self::$handle(handle.clone())
            }
        }

        impl From<$handle> for Owner {
            fn from(handle: $handle) -> Self {
                Self::$handle(handle)
            }
        }
    )* };
}

from_handle!(Kernel, Event, Stream, Context, ExternalSemaphore);
