//! The arithmetic of textures: from coordinates to texels and weights, and from texels to numbers.

use super::rounding::{Format, NEAREST, narrow as round};
use super::value::F16;
use crate::ptx::texture::{AddressMode, TexelFormat};

/// Weights are multiples of 1/256.
const ONE: f64 = 256.0;
/// Coordinates beyond this are cut off, so that sums of indices do not overflow.
const FAR: f64 = (1_u64 << 40) as f64;

/// The texels that a sample takes along one dimension. `None` is the border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Taps {
    pub(in crate::ptx) at: [Option<u32>; 2],
    /// The weight of the second texel in 1/256; the first one has the rest.
    pub(in crate::ptx) weight: u32,
}

impl Taps {
    /// The only texel of a dimension that is not there.
    pub(in crate::ptx) const SINGLE: Taps = Taps { at: [Some(0); 2], weight: 0 };

    /// The texel that holds the coordinate.
    pub(in crate::ptx) fn nearest(x: f64, size: u32, mode: AddressMode) -> Taps {
        Taps { at: [wrapped(cut(x.floor()), size, mode); 2], weight: 0 }
    }

    /// The two texels whose centres enclose the coordinate. The distance to the first is rounded to
    /// 8 bits of fraction.
    pub(in crate::ptx) fn linear(x: f64, size: u32, mode: AddressMode) -> Taps {
        let fixed = cut(((x - 0.5).clamp(-FAR, FAR) * ONE).round_ties_even());
        let first = fixed >> 8;
        Taps {
            at: [wrapped(first, size, mode), wrapped(first + 1, size, mode)],
            weight: (fixed & 255) as u32,
        }
    }

    /// The texels with a weight.
    pub(in crate::ptx) fn weighted(self) -> impl Iterator<Item = (Option<u32>, f64)> {
        let weights = [256 - self.weight, self.weight];
        self.at.into_iter().zip(weights).filter(|(_, w)| *w > 0).map(|(at, w)| (at, f64::from(w) / ONE))
    }
}

/// A whole number of moderate size.
fn cut(x: f64) -> i64 {
    x.clamp(-FAR * ONE, FAR * ONE) as i64
}

/// The texel that an index stands for.
fn wrapped(index: i64, size: u32, mode: AddressMode) -> Option<u32> {
    let size = i64::from(size.max(1));
    let inside = match mode {
        AddressMode::Wrap => index.rem_euclid(size),
        AddressMode::Clamp => index.clamp(0, size - 1),
        AddressMode::Mirror => {
            let there = index.rem_euclid(2 * size);
            there.min(2 * size - 1 - there)
        }
        AddressMode::Border if (0..size).contains(&index) => index,
        AddressMode::Border => return None,
    };
    u32::try_from(inside).ok()
}

/// A channel as a sample returns it: the bits of a single, or a sign- or zero-extended integer.
pub(in crate::ptx) fn widen(format: TexelFormat, bits: u32, reads_numbers: bool) -> u32 {
    let number = |value: i32, most: f32| (value as f32 / most).max(-1.0).to_bits();
    match format {
        TexelFormat::F32 | TexelFormat::U32 | TexelFormat::S32 => bits,
        TexelFormat::F16 => (F16(bits as u16).to_f64() as f32).to_bits(),
        TexelFormat::U8 if reads_numbers => number(i32::from(bits as u8), 255.0),
        TexelFormat::U16 if reads_numbers => number(i32::from(bits as u16), 65535.0),
        TexelFormat::S8 if reads_numbers => number(i32::from(bits as i8), 127.0),
        TexelFormat::S16 if reads_numbers => number(i32::from(bits as i16), 32767.0),
        TexelFormat::U8 => u32::from(bits as u8),
        TexelFormat::U16 => u32::from(bits as u16),
        TexelFormat::S8 => i32::from(bits as i8) as u32,
        TexelFormat::S16 => i32::from(bits as i16) as u32,
    }
}

/// The bits of a channel that a formatted store of `value` writes: integers are cut off to the
/// nearest that the format has.
pub(in crate::ptx) fn narrow(format: TexelFormat, value: u32) -> u32 {
    let signed = value as i32;
    match format {
        TexelFormat::F32 | TexelFormat::U32 | TexelFormat::S32 => value,
        TexelFormat::F16 => half(value),
        TexelFormat::U8 => value.min(u8::MAX.into()),
        TexelFormat::U16 => value.min(u16::MAX.into()),
        TexelFormat::S8 => signed.clamp(i8::MIN.into(), i8::MAX.into()) as u32,
        TexelFormat::S16 => signed.clamp(i16::MIN.into(), i16::MAX.into()) as u32,
    }
}

/// The bits of a single as those of a half.
pub(in crate::ptx) fn half(single: u32) -> u32 {
    round(f64::from(f32::from_bits(single)), Format::F16, NEAREST)
}

/// The face of a cube that a direction hits, and the coordinates there, from 0 to 1.
pub(in crate::ptx) fn cube_face([x, y, z]: [f64; 3]) -> (u32, [f64; 2]) {
    let [along_x, along_y, along_z] = [x.abs(), y.abs(), z.abs()];
    let (face, s, t, major) = if along_x >= along_y && along_x >= along_z {
        if x >= 0.0 { (0, -z, -y, along_x) } else { (1, z, -y, along_x) }
    } else if along_y >= along_z {
        if y >= 0.0 { (2, x, z, along_y) } else { (3, x, -z, along_y) }
    } else if z >= 0.0 {
        (4, x, -y, along_z)
    } else {
        (5, -x, -y, along_z)
    };
    (face, [s, t].map(|c| (c / major + 1.0) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_outside_by_mode() {
        let of = |mode| [-5, -4, -1, 0, 3, 4, 7, 8].map(|index| wrapped(index, 4, mode));
        assert_eq!(of(AddressMode::Wrap), [3, 0, 3, 0, 3, 0, 3, 0].map(Some));
        assert_eq!(of(AddressMode::Clamp), [0, 0, 0, 0, 3, 3, 3, 3].map(Some));
        assert_eq!(of(AddressMode::Mirror), [3, 3, 0, 0, 3, 3, 0, 0].map(Some));
        assert_eq!(of(AddressMode::Border), [None, None, None, Some(0), Some(3), None, None, None]);
    }

    #[test]
    fn weights_have_eight_bits_of_fraction() {
        let linear = |x| Taps::linear(x, 4, AddressMode::Clamp);
        assert_eq!(linear(1.5), Taps { at: [Some(1), Some(2)], weight: 0 });
        assert_eq!(linear(1.75), Taps { at: [Some(1), Some(2)], weight: 64 });
        assert_eq!(linear(1.5 + 1.0 / 1024.0).weight, 0);
        assert_eq!(linear(1.5 + 3.0 / 1024.0).weight, 1);
        assert_eq!(linear(-0.25), Taps { at: [Some(0), Some(0)], weight: 64 });
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300] {
            assert!(linear(x).at.iter().all(Option::is_some), "{x}");
        }
    }

    #[test]
    fn integers_as_numbers() {
        let number = |format, bits| f32::from_bits(widen(format, bits, true));
        assert_eq!([0, 255, 51].map(|bits| number(TexelFormat::U8, bits)), [0.0, 1.0, 0.2]);
        assert_eq!([0x80, 0x81, 0x7f].map(|bits| number(TexelFormat::S8, bits)), [-1.0, -1.0, 1.0]);
        assert_eq!(number(TexelFormat::U16, 0xffff), 1.0);
        assert_eq!(number(TexelFormat::S16, 0x8000), -1.0);
        assert_eq!(widen(TexelFormat::S8, 0x80, false), -128_i32 as u32);
        assert_eq!(f32::from_bits(widen(TexelFormat::F16, 0x3c00, false)), 1.0);
    }

    #[test]
    fn directions_hit_faces() {
        for (face, direction) in [
            (0, [2.0, 0.0, 0.0]),
            (1, [-2.0, 0.0, 0.0]),
            (2, [0.0, 3.0, 0.0]),
            (3, [0.0, -3.0, 0.0]),
            (4, [0.0, 0.0, 1.0]),
            (5, [0.0, 0.0, -1.0]),
        ] {
            assert_eq!(cube_face(direction), (face, [0.5; 2]));
        }
    }
}
