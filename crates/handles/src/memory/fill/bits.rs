//! Fill values.

use cuda_sys::CUdeviceptr;

use crate::error::{Error, Result};
use crate::memory::Element;

/// A value that the device can repeat.
#[derive(Debug, PartialEq)]
pub(crate) enum Bits {
    One(u8),
    Two(u16),
    Four(u32),
}

impl Bits {
    /// The bits of a value of 1, 2 or 4 bytes; the caller asserts the size.
    pub(crate) fn of<T: Element>(value: &T) -> Self {
        let mut word = [0; 4];
        word.iter_mut().zip(bytemuck::bytes_of(value)).for_each(|(to, from)| *to = *from);
        match (size_of::<T>(), word) {
            (1, [a, ..]) => Self::One(a),
            (2, [a, b, ..]) => Self::Two(u16::from_ne_bytes([a, b])),
            (_, word) => Self::Four(u32::from_ne_bytes(word)),
        }
    }

    /// The value itself, if memory that starts here can be filled with it.
    pub(crate) fn at(self, address: CUdeviceptr) -> Result<Self> {
        let align = match self {
            Self::One(_) => 1,
            Self::Two(_) => 2,
            Self::Four(_) => 4,
        };
        if address.is_multiple_of(align) { Ok(self) } else { Err(Error::Unaligned { address, align }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_start_where_their_values_may() {
        assert_eq!(Bits::Four(1).at(8), Ok(Bits::Four(1)));
        assert_eq!(Bits::One(1).at(7), Ok(Bits::One(1)));
        assert_eq!(Bits::Two(1).at(7), Err(Error::Unaligned { address: 7, align: 2 }));
    }

    #[test]
    fn fill_values_by_size() {
        assert_eq!(Bits::of(&7_u8), Bits::One(7));
        assert_eq!(Bits::of(&-1_i16), Bits::Two(0xffff));
        assert_eq!(Bits::of(&1.0_f32), Bits::Four(0x3f80_0000));
        assert_eq!(Bits::of(&[1_u8, 2]), Bits::Two(u16::from_ne_bytes([1, 2])));
    }
}
