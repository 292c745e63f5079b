//! Parameters that are handles of conditions.

use core::fmt;

use crate::arguments::access::Memory;
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::stored::StoredArguments;
use crate::kernel::condition::Scope;
use crate::kernel::parameter::{Argument, FixedArgument, Parameter, sealed};

impl sealed::Sealed for ConditionalHandle {}

impl Parameter for ConditionalHandle {
    type Value<'a> = Self;
    type Packed = u64;
    type View<'s> = ();

    const IS_HANDLE: bool = true;

    #[inline]
    fn packed(value: &Self) -> u64 {
        value.as_raw()
    }

    #[inline]
    fn view(_: &Self, _: &Scope) {}

    #[inline]
    fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
        None
    }

    fn type_name() -> String {
        "ConditionalHandle".to_owned()
    }

    fn read(stored: &StoredArguments, position: usize) -> Option<Self> {
        stored.handle(position)
    }

    #[inline]
    fn handle(value: &Self) -> Option<ConditionalHandle> {
        Some(*value)
    }

    fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{name} = condition {}", value.number())
    }
}

impl FixedArgument<'_, ConditionalHandle> for ConditionalHandle {}

impl Argument<'_, ConditionalHandle> for ConditionalHandle {
    #[inline]
    fn value(self) -> Self {
        self
    }
}
