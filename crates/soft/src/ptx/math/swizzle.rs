//! Swizzles of shared memory: the patterns that spread the rows of a matrix over the banks.

/// A pattern over 2, 4 or 8 units of 16 bytes. Which unit of a group an address lies in is changed
/// by which row of 128 bytes it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Swizzle {
    /// The number of changed bits: 0 for none.
    bits: u32,
}

impl Swizzle {
    /// The swizzle of a tensor map (`CUtensorMapSwizzle`), if it has units of 16 bytes.
    pub(in crate::ptx) fn of_map(number: u8) -> Option<Swizzle> {
        (number <= 3).then_some(Swizzle { bits: number.into() })
    }

    /// The swizzle of a matrix descriptor of `wgmma`.
    pub(in crate::ptx) fn of_descriptor(descriptor: u64) -> Swizzle {
        Swizzle { bits: (4 - (descriptor >> 62) as u32) % 4 }
    }

    /// The bytes of a group of units.
    pub(in crate::ptx) fn width(self) -> usize {
        16 << self.bits
    }

    /// Where the content of an address lies.
    pub(in crate::ptx) fn apply(self, address: usize) -> usize {
        let mask = (1 << self.bits) - 1;
        address ^ ((address >> 7 & mask) << 4)
    }
}
