//! The parameter holder that owns its memory: `OwnedParams`.

use core::ffi::c_void;
use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_handles::{Allocation, Kernel, Stream};
use smallvec::SmallVec;

use crate::arguments::argument_order::ArgumentOrder;
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::holder::{Arguments, sealed};
use crate::arguments::last_launch::LastLaunch;
use crate::arguments::padding::Padding;
use crate::arguments::params::{Params, WORD, Word, pointer};
use crate::arguments::slot::ParameterSlot;
use crate::error::Result;

/// A parameter holder that owns the memory it uses. Made once by [`Params::into_owned`], it is
/// launched many times, on any thread.
///
/// It remembers the kernel and the stream of its last launch: the next launch of the same kernel on
/// the same stream repeats no check.
#[derive(Debug)]
pub struct OwnedParams {
    values: Values,
    slots: Vec<ParameterSlot>,
    allocations: Vec<Arc<Allocation>>,
    order: ArgumentOrder,
    padding: Padding,
    handles: Vec<ConditionalHandle>,
    last_launch: LastLaunch,
}

impl OwnedParams {
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

    /// The allocations of the buffers among the arguments, in their order.
    #[must_use]
    pub fn allocations(&self) -> &[Arc<Allocation>] {
        &self.allocations
    }
}

/// The packed values, with a pointer to each.
struct Values {
    pointers: Vec<*mut c_void>,
    /// The pointers lead here, so this is never resized.
    _words: Vec<Word>,
}

// SAFETY: the pointers lead into the words beside them, which nothing writes.
unsafe impl Send for Values {}
// SAFETY: as above.
unsafe impl Sync for Values {}

impl Values {
    fn new(mut words: Vec<Word>, slots: &[ParameterSlot]) -> Self {
        let base = words.as_mut_ptr();
        Self { pointers: slots.iter().map(|&slot| pointer(base, slot)).collect(), _words: words }
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Values").field(&self.pointers.len()).finish()
    }
}

impl Params<'_> {
    /// Converts into a holder that owns the memory it uses, for launches that repeat.
    #[must_use]
    pub fn into_owned(self) -> OwnedParams {
        OwnedParams {
            allocations: self.allocations.iter().map(|&allocation| Arc::clone(allocation)).collect(),
            order: self.order,
            padding: self.padding,
            values: Values::new(self.words[..self.end.div_ceil(WORD)].to_vec(), &self.slots),
            slots: self.slots.into_vec(),
            handles: self.handles.map(Vec::from).unwrap_or_default(),
            last_launch: self.last_launch,
        }
    }
}

impl sealed::Sealed for OwnedParams {}

impl Arguments for OwnedParams {
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
        self.last_launch.ready_on(stream, self.allocations.iter())
    }

    #[inline(always)]
    fn with_pointers<R>(&self, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
        // The driver reads the array and never writes it.
        call(self.values.pointers.as_ptr().cast_mut())
    }

    #[inline]
    fn each_allocation<'s>(&'s self, each: impl FnMut(&'s Arc<Allocation>)) {
        self.allocations.iter().for_each(each);
    }

    fn name_of(&self, allocation: usize) -> Cow<'static, str> {
        self.order.name_of(allocation)
    }

    fn handles(&self) -> SmallVec<[ConditionalHandle; 1]> {
        self.handles.iter().copied().collect()
    }

    #[inline]
    fn has_handles(&self) -> bool {
        !self.handles.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::params::tests::bytes;
    use crate::params;

    fn read(arguments: impl Arguments) -> Vec<Vec<u8>> {
        let sizes: Vec<usize> = arguments.slots().iter().map(|slot| slot.size()).collect();
        arguments.with_pointers(|pointers| {
            let value = |(index, size): (usize, &usize)| {
                // SAFETY: there is a pointer to as many bytes as the slot says for each argument.
                unsafe { core::slice::from_raw_parts((*pointers.add(index)).cast::<u8>(), *size).to_vec() }
            };
            sizes.iter().enumerate().map(value).collect()
        })
    }

    #[test]
    fn pointers_lead_to_the_values_of_both_holders() {
        let mut params = params![1_u8, 2_u64, [3_u16; 5]];
        (0..40_u32).for_each(|value| params.push(value));
        let expected = bytes(&params);
        assert_eq!(read(&params), expected);
        let owned = params.into_owned();
        assert_eq!(read(&owned), expected);
        let moved = Box::new(owned);
        assert_eq!(read(&*moved), expected);
    }

    #[test]
    fn few_arguments_survive_becoming_owned() {
        let owned = params![1_u8, 2_u64].into_owned();
        assert_eq!(read(owned), [vec![1], 2_u64.to_ne_bytes().to_vec()]);
    }

    #[test]
    fn both_holders_can_change_threads() {
        fn send<T: Send + Sync>() {}
        send::<Params<'static>>();
        send::<OwnedParams>();
    }
}
