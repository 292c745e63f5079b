//! The host's view of memory that the device may be using.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::allocation::Allocation;
use super::element::Element;
use super::host::SharedHostBuffer;
use super::range::same_length;
use super::slice::Slice;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::sync::process;

/// Elements of pinned, registered or managed memory that is shared with the device, as a host
/// function sees them ([`Stream::host_with`](crate::Stream::host_with)), or any code of the host
/// ([`SharedHostBuffer::try_view`]).
///
/// There are no references to the elements, since the device may write them at any time: each is
/// read and written as a value. Reads and writes are ordered with the work of the device that is
/// ordered with the host function, and with no other work. An element of 1, 2, 4 or 8 bytes that is
/// aligned to its size is read or written as a whole; a larger one may be read half changed by work
/// that is not ordered with the read.
///
/// One party of the host at a time has views of an allocation, and one thread of it: two that read
/// and write the same bytes in units of different sizes would race, so a view is not `Sync`.
///
/// ```compile_fail,E0277
/// # fn example(view: &cuda_handles::HostView<u32>) {
/// std::thread::scope(|scope| drop(scope.spawn(|| view.to_vec())));
/// # }
/// ```
pub struct HostView<T> {
    allocation: Arc<Allocation>,
    start: NonNull<T>,
    len: usize,
}

// SAFETY: the memory is kept, and no element of it is in the view. It is not `Sync`: two threads
// could use it by atomic operations of different sizes, which is a race.
unsafe impl<T: Element> Send for HostView<T> {}
impl<T: Element> HostView<T> {
    /// A view of memory of `context`.
    pub(crate) fn new(context: &Context, slice: Slice<'_, T>) -> Result<Self> {
        let allocation = slice.allocation();
        context.ensure_same(allocation.context(), "the memory of a host function")?;
        let start = match allocation.host_start() {
            _ if slice.size_bytes() == 0 => NonNull::dangling(),
            Some(start) => {
                let offset = (slice.address() - allocation.address()) as usize;
                // In the allocation, and never null.
                NonNull::new(start.cast::<u8>().wrapping_add(offset).cast()).unwrap_or(NonNull::dangling())
            }
            None => return Err(Error::NotOnHost { kind: allocation.kind() }),
        };
        Ok(Self { allocation: Arc::clone(allocation), start, len: slice.len() })
    }

    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    /// Whether there is anything to look at.
    pub(crate) fn has_bytes(&self) -> bool {
        self.len * size_of::<T>() > 0
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An element; `None` behind the last.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<T> {
        if index >= self.len {
            return None;
        }
        let mut element = T::zeroed();
        // SAFETY: the element is in the memory; the other one is a variable.
        unsafe { read(self.start.add(index).as_ptr().cast(), (&raw mut element).cast(), size_of::<T>()) };
        Some(element)
    }

    /// Overwrites an element.
    ///
    /// # Errors
    /// There is none of that index.
    pub fn set(&self, index: usize, element: T) -> Result<()> {
        if index >= self.len {
            return Err(Error::Bounds { start: index, end: index.saturating_add(1), len: self.len });
        }
        // SAFETY: as above.
        unsafe { write((&raw const element).cast(), self.start.add(index).as_ptr().cast(), size_of::<T>()) };
        Ok(())
    }

    /// All elements, copied.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        let mut elements: Vec<T> = Vec::with_capacity(self.len);
        // SAFETY: the vector has room for so many, and all are written before its length is set.
        unsafe {
            read(self.start.as_ptr().cast(), elements.as_mut_ptr().cast(), self.len * size_of::<T>());
            elements.set_len(self.len);
        }
        elements
    }

    /// The elements in order, each read when it is asked for.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        (0..self.len).filter_map(|index| self.get(index))
    }

    /// Copies all elements to a slice.
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)).
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        same_length("the slice to read into", self.len, elements.len())?;
        // SAFETY: the slice has as many bytes.
        unsafe { read(self.start.as_ptr().cast(), elements.as_mut_ptr().cast(), size_of_val(elements)) };
        Ok(())
    }

    /// Overwrites all elements with a slice.
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)).
    pub fn copy_from_slice(&self, elements: &[T]) -> Result<()> {
        same_length("the slice to write", self.len, elements.len())?;
        // SAFETY: the slice has as many bytes.
        unsafe { write(elements.as_ptr().cast(), self.start.as_ptr().cast(), size_of_val(elements)) };
        Ok(())
    }
}

impl<T> fmt::Debug for HostView<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HostView<{}>({:p}, {})", core::any::type_name::<T>(), self.start, self.len)
    }
}

/// The unit in which bytes are moved next: as large as alignment and remaining size allow.
fn unit(address: usize, left: usize) -> usize {
    [8, 4, 2].into_iter().find(|&size| address.is_multiple_of(size) && size <= left).unwrap_or(1)
}

/// Moves bytes by atomic operations on one side, in the largest units that there are room and
/// alignment for.
macro_rules! move_bytes {
    ($shared:expr, $bytes:expr, $one:ident) => {{
        let mut done = 0;
        while done < $bytes {
            let size = unit($shared.addr() + done, $bytes - done);
            // Words go on to the end: that is most of it.
            let end = if size == 8 { $bytes - ($bytes - done) % 8 } else { done + size };
            while done < end {
                match size {
                    8 => $one!(AtomicU64, u64, done),
                    4 => $one!(AtomicU32, u32, done),
                    2 => $one!(AtomicU16, u16, done),
                    _ => $one!(AtomicU8, u8, done),
                }
                done += size;
            }
        }
    }};
}

/// Reads bytes that the device may be writing.
///
/// # Safety
/// Both places have that many bytes. No Rust code writes the source meanwhile, and nothing else
/// uses the destination.
unsafe fn read(from: *mut u8, to: *mut u8, bytes: usize) {
    macro_rules! one {
        ($atomic:ident, $word:ty, $done:expr) => {
            // SAFETY: the caller's promise; `unit` has found the atomic aligned.
            unsafe {
                let word = $atomic::from_ptr(from.add($done).cast()).load(Ordering::Relaxed);
                to.add($done).cast::<$word>().write_unaligned(word);
            }
        };
    }
    move_bytes!(from, bytes, one);
}

/// Writes bytes that the device may be using.
///
/// # Safety
/// As [`read`], the other way round.
unsafe fn write(from: *const u8, to: *mut u8, bytes: usize) {
    macro_rules! one {
        ($atomic:ident, $word:ty, $done:expr) => {
            // SAFETY: as above.
            unsafe {
                let word = from.add($done).cast::<$word>().read_unaligned();
                $atomic::from_ptr(to.add($done).cast()).store(word, Ordering::Relaxed);
            }
        };
    }
    move_bytes!(to, bytes, one);
}

/// No other code views the memory as long as this lives.
#[derive(Debug)]
pub(crate) struct Viewing<'a>(&'a AtomicBool);

impl Allocation {
    /// The right to view host memory, unless other code has it, or this is not host memory.
    pub(crate) fn try_view(&self) -> Option<Viewing<'_>> {
        let flag = self.view_flag()?;
        let taken = flag.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Made only then: its drop gives the right back.
        taken.is_ok().then(|| Viewing(flag))
    }
}

impl Drop for Viewing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A view of shared memory for any code of the host; see [`SharedHostBuffer::try_view`].
#[derive(Debug)]
pub struct SharedView<'b, T> {
    view: HostView<T>,
    _viewing: Viewing<'b>,
}

impl<T> Deref for SharedView<'_, T> {
    type Target = HostView<T>;

    fn deref(&self) -> &HostView<T> {
        &self.view
    }
}

impl<T: Element> SharedHostBuffer<T> {
    /// A view of the elements while the device may be using them, such as a counter that a running
    /// kernel writes. Makes no driver call. `None` while a host function, or other host code, views
    /// memory of the same allocation, and in a forked child.
    ///
    /// Does not wait: writes of the device may be visible or not until the work that wrote them is
    /// known to be done.
    ///
    /// A host function with this memory ([`Stream::host_with`](crate::Stream::host_with)) that is
    /// due meanwhile is **not called**: use the view and drop it.
    #[must_use]
    pub fn try_view(&self) -> Option<SharedView<'_, T>> {
        if process::is_forked() {
            return None;
        }
        let slice = self.as_slice();
        let view = HostView::new(slice.allocation().context(), slice).ok()?;
        Some(SharedView { view, _viewing: slice.allocation().try_view()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_moved_in_the_largest_units() {
        assert_eq!(
            [unit(0, 8), unit(4, 8), unit(2, 8), unit(1, 8), unit(8, 7), unit(8, 3)],
            [8, 4, 2, 1, 4, 2]
        );
    }

    #[test]
    fn bytes_arrive_wherever_they_lie() {
        let source: Vec<u8> = (0..64).collect();
        for (from, to, bytes) in [(0, 0, 64), (1, 0, 63), (3, 1, 20), (4, 2, 7), (7, 7, 1), (5, 5, 0)] {
            let (mut shared, mut copy) = (vec![0_u8; 64], vec![0_u8; 64]);
            // SAFETY: all ranges lie in the vectors.
            unsafe {
                write(source.as_ptr().add(from), shared.as_mut_ptr().add(to), bytes);
                read(shared.as_mut_ptr().add(to), copy.as_mut_ptr().add(from), bytes);
            }
            assert_eq!(shared[to..to + bytes], source[from..from + bytes]);
            assert_eq!(copy[from..from + bytes], source[from..from + bytes]);
        }
    }
}
