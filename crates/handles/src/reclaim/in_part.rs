//! Values that work on several devices may use.

use core::fmt;
use core::mem::ManuallyDrop;

use crate::context::Context;

/// A value that work in several contexts may use. If some of these are lost and others are not when
/// it is dropped, the value stays to the end of the process: nothing says when the work in the
/// others is over. Without contexts it is dropped like any other value.
pub struct UnlessLostInPart<V> {
    contexts: Box<[Context]>,
    value: ManuallyDrop<V>,
}

impl<V> UnlessLostInPart<V> {
    /// Of work in these contexts; none are given for work in one.
    #[must_use]
    pub fn new(contexts: Box<[Context]>, value: V) -> Self {
        Self { contexts, value: ManuallyDrop::new(value) }
    }
}

impl<V> Drop for UnlessLostInPart<V> {
    fn drop(&mut self) {
        let is_lost = |context: &Context| context.lost().is_some();
        if self.contexts.iter().any(is_lost) && !self.contexts.iter().all(is_lost) {
            return;
        }
        // SAFETY: this is the drop, so nothing uses the value afterwards.
        unsafe { ManuallyDrop::drop(&mut self.value) };
    }
}

impl<V> fmt::Debug for UnlessLostInPart<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UnlessLostInPart").field("contexts", &self.contexts).finish_non_exhaustive()
    }
}
