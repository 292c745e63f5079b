//! The slot of an argument in a holder's packed values.

/// Offset and size of one argument in a holder's packed values, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterSlot {
    offset: u32,
    size: u32,
}

impl ParameterSlot {
    /// Sizes beyond 32 bits saturate. No kernel has such a parameter, so the size check refuses
    /// them.
    #[inline]
    pub(crate) const fn new(offset: usize, size: usize) -> Self {
        const fn narrow(value: usize) -> u32 {
            if value > u32::MAX as usize { u32::MAX } else { value as u32 }
        }
        Self { offset: narrow(offset), size: narrow(size) }
    }

    /// The offset of the argument's first byte from the first argument's.
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
