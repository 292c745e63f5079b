//! Memory that a graph brings by itself, as the nodes of that graph use it.

use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeBounds;
use std::sync::Arc;

use cuda_sys::CUdeviceptr;

use super::allocation::Allocation;
use super::element::Element;
use super::placeholder::Placeholder;
use super::slice::Slice;
use crate::error::{Error, Result};

/// The memory of an allocation node, as the nodes of its graph use it. At each launch it is there
/// from that node on until the graph frees it.
///
/// Made by `Frontier::alloc` of cuda-graph. Nodes take it for their kernels, fills and copies. It
/// has no memory while the graph does not run, so using it on a stream does not compile:
///
/// ```compile_fail,E0277
/// # use cuda_handles::{GraphBuffer, Result, Stream};
/// # fn example(stream: &Stream, memory: &GraphBuffer<u32>) -> Result<()> {
/// stream.fill(memory, 0)?;
/// # Ok(())
/// # }
/// ```
///
/// Memory that a launch leaves comes out as a buffer of its own: `GraphExec::launch_with_outputs`.
pub struct GraphBuffer<T> {
    memory: Arc<Allocation>,
    len: usize,
    _elements: PhantomData<fn() -> T>,
}

/// A range of elements in a [`GraphBuffer`], borrowed. Small and `Copy`.
pub struct GraphSlice<'a, T>(Slice<'a, T>);

/// Memory that a node of a graph can use: whatever a stream can use, and the graph's own,
/// [`GraphBuffer`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that a node of a graph can use as elements of type `{T}`",
    label = "not memory for a node",
    note = "there are `&Buffer<T>`, `Slice<T>`, `&SharedHostBuffer<T>`, and memory of the graph itself: `&GraphBuffer<T>`, `GraphSlice<T>`"
)]
pub trait NodeMemory<'a, T> {
    /// The memory that the node uses. Only nodes of the same graph take a graph's own memory; other
    /// uses fail with [`Error::MemoryOfGraph`](crate::Error::MemoryOfGraph).
    fn operand(self) -> Slice<'a, T>;

    /// The graph parameter that stands for the memory, if one does.
    #[doc(hidden)]
    #[inline]
    fn placeholder(&self) -> Option<Placeholder> {
        None
    }
}

/// [`NodeMemory`] that stays the same in all launches: any except a graph parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that stays the same in all launches, with elements of type `{T}`",
    label = "not fixed memory",
    note = "there are `&Buffer<T>`, `Slice<T>`, `&SharedHostBuffer<T>`, and memory of the graph itself: `&GraphBuffer<T>`, `GraphSlice<T>`"
)]
pub trait FixedMemory<'a, T>: NodeMemory<'a, T> {}

impl<'a, T, M: Into<Slice<'a, T>>> FixedMemory<'a, T> for M {}

impl<'a, T> FixedMemory<'a, T> for &'a GraphBuffer<T> {}

impl<'a, T> FixedMemory<'a, T> for GraphSlice<'a, T> {}

impl<'a, T, M: Into<Slice<'a, T>>> NodeMemory<'a, T> for M {
    #[inline]
    fn operand(self) -> Slice<'a, T> {
        self.into()
    }
}

impl<'a, T> NodeMemory<'a, T> for &'a GraphBuffer<T> {
    #[inline]
    fn operand(self) -> Slice<'a, T> {
        self.as_slice().0
    }
}

impl<'a, T> NodeMemory<'a, T> for GraphSlice<'a, T> {
    #[inline]
    fn operand(self) -> Slice<'a, T> {
        self.0
    }
}

impl<T> GraphBuffer<T> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements, as of a type without a size.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address that it has at every launch.
    #[must_use]
    pub fn address(&self) -> CUdeviceptr {
        self.memory.address()
    }

    /// The allocation that nodes keep.
    #[must_use]
    pub fn allocation(&self) -> &Arc<Allocation> {
        &self.memory
    }

    /// All of it, borrowed.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> GraphSlice<'_, T> {
        GraphSlice(Slice::of(&self.memory, self.memory.address(), self.len))
    }

    /// A part of it, borrowed, by elements.
    ///
    /// # Errors
    /// The range does not lie in it ([`Bounds`](crate::Error::Bounds)).
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<GraphSlice<'_, T>> {
        self.as_slice().slice(range)
    }
}

impl<T: Element> GraphBuffer<T> {
    /// Memory of an allocation node as elements of a type.
    ///
    /// # Errors
    /// Its size is no multiple of the type's.
    #[doc(hidden)]
    pub fn of(memory: &Arc<Allocation>) -> Result<Self> {
        // The driver aligns such memory to 512 bytes.
        let (bytes, size, align) = (memory.bytes(), size_of::<T>(), align_of::<T>());
        let fits = size != 0 && bytes.is_multiple_of(size) && memory.address().is_multiple_of(align as u64);
        if !fits {
            return Err(Error::Cast { bytes, address: memory.address(), size, align });
        }
        Ok(Self { memory: Arc::clone(memory), len: bytes / size, _elements: PhantomData })
    }
}

impl<'a, T> GraphSlice<'a, T> {
    /// The number of elements.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        self.0.size_bytes()
    }

    /// The address of the first element, at every launch.
    #[must_use]
    pub fn address(self) -> CUdeviceptr {
        self.0.address()
    }

    /// A part of it, by elements.
    ///
    /// # Errors
    /// The range does not lie in it ([`Bounds`](crate::Error::Bounds)).
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        self.0.slice(range).map(Self)
    }

    /// The same memory for functions that take any slice, such as copies of rectangles and tensor
    /// maps. Only nodes of the same graph take it; other uses fail with
    /// [`Error::MemoryOfGraph`](crate::Error::MemoryOfGraph).
    #[must_use]
    pub fn as_operand(self) -> Slice<'a, T> {
        self.0
    }
}

impl<'a, T> GraphSlice<'a, T> {
    /// The same memory as elements of another type.
    ///
    /// # Errors
    /// As [`Slice::cast`].
    pub fn cast<U: Element>(self) -> Result<GraphSlice<'a, U>> {
        self.0.cast().map(GraphSlice)
    }
}

impl<T> Clone for GraphBuffer<T> {
    fn clone(&self) -> Self {
        Self { memory: Arc::clone(&self.memory), len: self.len, _elements: PhantomData }
    }
}

impl<T> Clone for GraphSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GraphSlice<'_, T> {}

impl<T> PartialEq for GraphBuffer<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

impl<T> Eq for GraphBuffer<T> {}

impl<T> fmt::Debug for GraphBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, address) = (core::any::type_name::<T>(), self.address());
        write!(formatter, "GraphBuffer<{name}>({address:#x}, {})", self.len)
    }
}

impl<T> fmt::Debug for GraphSlice<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, address) = (core::any::type_name::<T>(), self.address());
        write!(formatter, "GraphSlice<{name}>({address:#x}, {})", self.len())
    }
}
