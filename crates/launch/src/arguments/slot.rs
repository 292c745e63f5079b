//! Where arguments lie in a holder.

/// Where one argument lies in a holder's values, and its size; both in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterSlot {
    offset: u32,
    size: u32,
}

impl ParameterSlot {
    /// Sizes beyond 32 bits become ones that no kernel has; the check refuses them.
    #[inline]
    pub(crate) const fn new(offset: usize, size: usize) -> Self {
        const fn narrow(value: usize) -> u32 {
            if value > u32::MAX as usize { u32::MAX } else { value as u32 }
        }
        Self { offset: narrow(offset), size: narrow(size) }
    }

    /// The argument's first byte, counted from that of the first argument.
    #[must_use]
    pub fn offset(self) -> usize {
        self.offset as usize
    }

    /// The argument's size in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        self.size as usize
    }

    pub(crate) fn end(self) -> usize {
        self.offset() + self.size()
    }
}
