//! The parameter holder that borrows its memory: `Params`, `params!` and `KernelArg`.

use core::ffi::c_void;
use core::fmt;
use core::mem::MaybeUninit;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::{Allocation, Kernel, Stream};
use smallvec::SmallVec;

use crate::arguments::argument_order::ArgumentOrder;
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::holder::{Arguments, sealed};
use crate::arguments::last_launch::LastLaunch;
use crate::arguments::padding::Padding;
use crate::arguments::slot::ParameterSlot;
use crate::error::Result;

/// The most arguments that need no heap, if none is larger than a word.
const INLINE: usize = 16;

/// A word of packed values. Padding is not initialised.
pub(crate) type Word = MaybeUninit<u64>;
pub(crate) const WORD: usize = size_of::<Word>();

/// Packs the arguments of an untyped launch into a [`Params`]. Each is a [`KernelArg`].
///
/// A number keeps the width of its type: write `n as u32` where the kernel takes 32 bits.
///
/// ```
/// let params = cuda_launch::params![1_u32, 2.0_f32, [1_u8, 2, 3]];
/// assert_eq!(params.len(), 3);
/// ```
#[macro_export]
macro_rules! params {
    () => { $crate::Params::new() };
    ($($arg:expr),+ $(,)?) => {{
        let mut params = $crate::Params::new();
        $(params.push($arg);)+
        params
    }};
}

/// A value that can be an argument of an untyped launch.
///
/// - Scalars by their exact width: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, with the feature
///   `half` also `half::f16` and `half::bf16`, and arrays of them.
/// - `&Buffer<T>`, `&SharedHostBuffer<T>` and `Slice<'_, T>`: the kernel gets the device address of
///   the first element. Graph memory, `&GraphBuffer<T>` and `GraphSlice<'_, T>`, is for nodes of
///   its graph; a launch on a stream refuses it.
/// - [`ParamBytes`](crate::ParamBytes) for structs.
///
/// Other types do not compile. The width of `usize` depends on the target, so cast it to the width
/// that the kernel has:
///
/// ```compile_fail,E0277
/// let n: usize = 4;
/// cuda_launch::params![n];
/// ```
///
/// A kernel's `bool` is one byte; pass a `u8`:
///
/// ```compile_fail,E0277
/// cuda_launch::params![true];
/// ```
///
/// Host memory is no argument:
///
/// ```compile_fail,E0277
/// cuda_launch::params![String::from("text")];
/// ```
/// ```compile_fail,E0277
/// cuda_launch::params![&[1.0_f32, 2.0][..]];
/// ```
///
/// # Safety
/// [`add_to`](Self::add_to) adds exactly one argument. Memory whose address is in it stays valid
/// until `'a` ends, or the holder borrows its allocation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel",
    label = "not a kernel argument",
    note = "numbers need an exact width that the kernel shares (`u8` to `u64`, `i8` to `i64`, `f32`, `f64`): write `n as u32`",
    note = "device memory is given as `&buffer` or as a slice of one; structs as `ParamBytes`"
)]
pub unsafe trait KernelArg<'a> {
    /// Packs the value as the next argument of `params`.
    fn add_to(self, params: &mut Params<'a>);
}

/// A parameter holder that packs values inline and borrows buffers for `'a`.
///
/// Made by [`params!`](crate::params!). Up to 16 arguments of up to 8 bytes need no heap
/// allocation, and no reference count changes.
///
/// A buffer cannot be dropped while a holder borrows it:
///
/// ```compile_fail,E0505
/// # fn example(buffer: cuda_handles::Buffer<f32>) {
/// let params = cuda_launch::params![4_u32, &buffer];
/// drop(buffer);
/// assert_eq!(params.len(), 2);
/// # }
/// ```
#[derive(Clone)]
pub struct Params<'a> {
    /// Longer than the values in use, so that adding an argument is a comparison and a store.
    pub(crate) words: SmallVec<[Word; INLINE]>,
    /// The end of the bytes in use.
    pub(crate) end: usize,
    pub(crate) slots: SmallVec<[ParameterSlot; INLINE]>,
    pub(crate) allocations: SmallVec<[&'a Arc<Allocation>; INLINE]>,
    /// Which argument uses which allocation.
    pub(crate) order: ArgumentOrder,
    /// Which arguments may have padding.
    pub(crate) padding: Padding,
    /// The handles of conditions among the arguments. Boxed, as hardly any launch has one.
    pub(crate) handles: Option<Box<[ConditionalHandle]>>,
    pub(crate) last_launch: LastLaunch,
}

impl<'a> Params<'a> {
    /// A holder without arguments.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self {
            words: SmallVec::from_buf([Word::uninit(); INLINE]),
            end: 0,
            slots: SmallVec::new(),
            allocations: SmallVec::new(),
            order: ArgumentOrder::default(),
            padding: Padding::default(),
            handles: None,
            last_launch: LastLaunch::default(),
        }
    }

    /// Appends an argument.
    #[inline]
    pub fn push(&mut self, argument: impl KernelArg<'a>) {
        argument.add_to(self);
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The bytes of each argument as the kernel receives them. Padding is not initialised.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &[MaybeUninit<u8>]> {
        let bytes = self.words.as_ptr().cast::<MaybeUninit<u8>>();
        self.slots.iter().map(move |slot| {
            // SAFETY: every slot lies within the words; `MaybeUninit` bytes need not be
            // initialised.
            unsafe { core::slice::from_raw_parts(bytes.add(slot.offset()), slot.size()) }
        })
    }

    /// The allocations of the buffers among the arguments, in their order.
    #[must_use]
    pub fn allocations(&self) -> &[&'a Arc<Allocation>] {
        &self.allocations
    }

    /// Appends an argument of `size` bytes at the next multiple of `align`; returns its address.
    #[inline]
    fn grow(&mut self, size: usize, align: usize) -> *mut u8 {
        let offset = self.end.next_multiple_of(align);
        self.end = offset + size;
        if self.end > self.words.len() * WORD {
            self.lengthen();
        }
        self.slots.push(ParameterSlot::new(offset, size));
        self.last_launch = LastLaunch::default();
        // SAFETY: the words reach at least to the end of these bytes.
        unsafe { self.words.as_mut_ptr().cast::<u8>().add(offset) }
    }

    #[cold]
    fn lengthen(&mut self) {
        let words = self.end.div_ceil(WORD).max(2 * self.words.len());
        self.words.resize(words, Word::uninit());
    }

    /// Appends a value as an argument.
    #[inline]
    pub(crate) fn push_value<T: Copy>(&mut self, value: T) {
        let to = self.grow(size_of::<T>(), align_of::<T>());
        // SAFETY: there is room for a `T`; the words may be aligned to less than `T` is.
        unsafe { to.cast::<T>().write_unaligned(value) }
    }

    /// Appends the handle of a condition as an argument.
    pub(crate) fn push_handle(&mut self, handle: ConditionalHandle) {
        self.push_value(handle.as_raw());
        let before = self.handles.take().map(Vec::from).unwrap_or_default();
        self.handles = Some(before.into_iter().chain([handle]).collect());
    }

    /// Appends bytes as one argument.
    pub(crate) fn push_bytes(&mut self, bytes: &[MaybeUninit<u8>], align: usize) {
        self.padding.note(self.slots.len());
        let to = self.grow(bytes.len(), align);
        // SAFETY: there is room for the bytes, and the holder's memory does not overlap borrowed
        // memory.
        unsafe { to.cast::<MaybeUninit<u8>>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Borrows an allocation that the last argument uses.
    #[inline]
    pub(crate) fn borrow(&mut self, allocation: &'a Arc<Allocation>) {
        self.order.note_allocation(self.slots.len() + self.allocations.len());
        self.allocations.push(allocation);
        self.last_launch = LastLaunch::default();
    }
}

impl Default for Params<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Params<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Params")
            .field("slots", &self.slots)
            .field("allocations", &self.allocations.len())
            .finish()
    }
}

/// The address of the value in a slot.
#[inline]
pub(crate) fn pointer(base: *mut Word, slot: ParameterSlot) -> *mut c_void {
    base.cast::<u8>().wrapping_add(slot.offset()).cast()
}

#[cold]
fn many_pointers(base: *mut Word, slots: &[ParameterSlot]) -> Vec<*mut c_void> {
    slots.iter().map(|&slot| pointer(base, slot)).collect()
}

impl sealed::Sealed for Params<'_> {}

impl Arguments for Params<'_> {
    #[inline]
    fn slots(&self) -> &[ParameterSlot] {
        &self.slots
    }

    #[inline]
    fn check(&self, kernel: &Kernel) -> Result<()> {
        self.last_launch.check_sizes(kernel, &self.slots)
    }

    #[inline]
    fn may_be_padded(&self, argument: usize) -> bool {
        self.padding.may_be_in(argument)
    }

    #[inline]
    fn ready_on(&self, stream: &Stream) -> Result<()> {
        self.last_launch.ready_on(stream, self.allocations.iter().copied())
    }

    #[inline(always)]
    fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        // The driver reads through these pointers and never writes.
        let base = self.words.as_ptr().cast_mut();
        let mut inline = [const { MaybeUninit::<*mut c_void>::uninit() }; INLINE];
        for (to, &slot) in inline.iter_mut().zip(&self.slots) {
            to.write(pointer(base, slot));
        }
        let mut many;
        let pointers = if self.slots.len() > INLINE {
            many = many_pointers(base, &self.slots);
            many.as_mut_ptr()
        } else {
            // The loop has written a pointer for each argument.
            inline.as_mut_ptr().cast()
        };
        // One call site: with two, the closure and its captures would be spilled to memory.
        call(pointers)
    }

    #[inline]
    fn each_allocation<'s>(&'s self, each: impl FnMut(&'s Arc<Allocation>)) {
        self.allocations.iter().copied().for_each(each);
    }

    fn name_of(&self, allocation: usize) -> Cow<'static, str> {
        self.order.name_of(allocation)
    }

    fn handles(&self) -> SmallVec<[ConditionalHandle; 1]> {
        self.handles.iter().flat_map(|handles| handles.iter().copied()).collect()
    }

    #[inline]
    fn has_handles(&self) -> bool {
        self.handles.is_some()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::arguments::kernel_arg::ParamBytes;

    pub(crate) fn bytes(params: &Params<'_>) -> Vec<Vec<u8>> {
        // SAFETY: only for arguments without padding.
        let byte = |byte: &MaybeUninit<u8>| unsafe { byte.assume_init() };
        params.values().map(|value| value.iter().map(byte).collect()).collect()
    }

    fn layout(params: &Params<'_>) -> Vec<(usize, usize)> {
        params.slots().iter().map(|slot| (slot.offset(), slot.size())).collect()
    }

    #[test]
    fn scalars_keep_their_width_and_alignment() {
        let params = params![1_u8, -2_i64, 3_u16, 1.5_f32, [7_u32, 8, 9], 4_i8, 2.5_f64];
        assert_eq!(layout(&params), [(0, 1), (8, 8), (16, 2), (20, 4), (24, 12), (36, 1), (40, 8)]);
        let mut expected: Vec<Vec<u8>> = vec![
            vec![1],
            (-2_i64).to_ne_bytes().to_vec(),
            3_u16.to_ne_bytes().to_vec(),
            1.5_f32.to_ne_bytes().to_vec(),
        ];
        expected.push([7_u32, 8, 9].iter().flat_map(|value| value.to_ne_bytes()).collect());
        expected.extend([vec![4], 2.5_f64.to_ne_bytes().to_vec()]);
        assert_eq!(bytes(&params), expected);
    }

    #[test]
    fn no_arguments() {
        let params = params![];
        assert!(params.is_empty() && params.values().len() == 0);
        assert!(params.into_owned().is_empty());
    }

    #[test]
    fn sixteen_words_stay_inline_and_more_go_on() {
        let mut params = Params::new();
        (0..16_u64).for_each(|value| params.push(value));
        assert!(!params.words.spilled() && !params.slots.spilled());
        (16..100_u64).for_each(|value| params.push(value));
        let expected: Vec<Vec<u8>> = (0..100_u64).map(|value| value.to_ne_bytes().to_vec()).collect();
        assert_eq!(bytes(&params), expected);
    }

    #[test]
    fn structs_go_as_bytes() {
        #[repr(C, align(16))]
        #[derive(Clone, Copy)]
        struct Wide([f32; 4]);
        let wide = Wide([1.0, 2.0, 3.0, 4.0]);
        // SAFETY: there are no addresses in it.
        let params = params![1_u8, unsafe { ParamBytes::of(&wide) }];
        assert_eq!(layout(&params), [(0, 1), (16, 16)]);
        let expected: Vec<u8> = wide.0.iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert_eq!(bytes(&params)[1], expected);
    }
}
