//! Which argument leads to which allocation, for errors.

use std::borrow::Cow;

/// The order in which arguments and allocations were added to a holder: one bit each, set for an
/// allocation. An allocation belongs to the last argument before it. Only the first 64 are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArgumentOrder(u64);

impl ArgumentOrder {
    /// Notes an allocation that is number `at` among arguments and allocations together.
    #[inline]
    pub(crate) fn note_allocation(&mut self, at: usize) {
        self.0 |= if at < 64 { 1 << at } else { 0 };
    }

    /// The position of the argument, from 0, that leads to the allocation of this index.
    fn argument_of(self, allocation: usize) -> Option<usize> {
        let at = (0..64_usize).filter(|at| self.0 & 1 << at != 0).nth(allocation)?;
        at.checked_sub(allocation + 1)
    }

    /// The name, in errors, of the argument that leads to the allocation of this index.
    pub(crate) fn name_of(self, allocation: usize) -> Cow<'static, str> {
        match self.argument_of(allocation) {
            Some(position) => format!("argument {}", position + 1).into(),
            None => "an argument".into(),
        }
    }
}
