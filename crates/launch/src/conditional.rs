//! The handle of a condition as a parameter of kernels and as an argument.

use core::fmt;

use crate::access::Memory;
use crate::condition::Scope;
use crate::handle::ConditionalHandle;
use crate::parameter::{Argument, Parameter, sealed};
use crate::params::{KernelArg, Params};

impl sealed::Sealed for ConditionalHandle {}

impl Parameter for ConditionalHandle {
    type Value<'a> = Self;
    type Packed = u64;
    type Known<'s> = ();

    const IS_HANDLE: bool = true;

    #[inline]
    fn packed(value: &Self) -> u64 {
        value.as_raw()
    }

    #[inline]
    fn known(_: &Self, _: &Scope) {}

    #[inline]
    fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
        None
    }

    #[inline]
    fn handle(value: &Self) -> Option<ConditionalHandle> {
        Some(*value)
    }

    fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{name} = condition {}", value.number())
    }
}

impl Argument<'_, ConditionalHandle> for ConditionalHandle {
    #[inline]
    fn value(self) -> Self {
        self
    }
}

// SAFETY: one value, and no address.
unsafe impl<'a> KernelArg<'a> for ConditionalHandle {
    fn add_to(self, params: &mut Params<'a>) {
        params.push_handle(self);
    }
}
