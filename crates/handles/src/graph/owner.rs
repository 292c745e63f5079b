//! Anything that has to be kept alive, in one small type.

use core::any::Any;
use core::hash::{Hash, Hasher};
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

/// Owners are equal if they keep the same object alive.
impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Allocation(one), Self::Allocation(other)) => Arc::ptr_eq(one, other),
            (Self::Kernel(one), Self::Kernel(other)) => one == other,
            (Self::Event(one), Self::Event(other)) => one == other,
            (Self::Stream(one), Self::Stream(other)) => one == other,
            (Self::Context(one), Self::Context(other)) => one == other,
            (Self::ExternalSemaphore(one), Self::ExternalSemaphore(other)) => one == other,
            (Self::Other(one), Self::Other(other)) => core::ptr::addr_eq(one.as_ptr(), other.as_ptr()),
            // Each kind by itself, so that a new one has to be decided here.
            (
                Self::Allocation(_)
                | Self::Kernel(_)
                | Self::Event(_)
                | Self::Stream(_)
                | Self::Context(_)
                | Self::ExternalSemaphore(_)
                | Self::Other(_),
                _,
            ) => false,
        }
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Allocation(allocation) => Arc::as_ptr(allocation).hash(state),
            Self::Kernel(kernel) => kernel.hash(state),
            Self::Event(event) => event.hash(state),
            Self::Stream(stream) => stream.hash(state),
            Self::Context(context) => context.hash(state),
            Self::ExternalSemaphore(semaphore) => semaphore.hash(state),
            Self::Other(other) => other.as_ptr().addr().hash(state),
        }
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
