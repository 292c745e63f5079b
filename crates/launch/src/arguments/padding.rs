//! Which arguments may have padding.

/// The arguments of a holder that may have padding: one bit each, the last one for all arguments
/// from there on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Padding(u64);

impl Padding {
    #[inline(always)]
    fn bit(argument: usize) -> u64 {
        1 << argument.min(u64::BITS as usize - 1)
    }

    /// Notes that an argument may have padding.
    pub(crate) fn note(&mut self, argument: usize) {
        self.0 |= Self::bit(argument);
    }

    /// Whether an argument may have padding.
    #[inline(always)]
    pub(crate) fn may_be_in(self, argument: usize) -> bool {
        self.0 & Self::bit(argument) != 0
    }
}
