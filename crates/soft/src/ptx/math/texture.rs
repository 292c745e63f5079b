//! The arithmetic of textures: from coordinates to texels and weights, and from texels to numbers.

use super::rounding::{Format, NEAREST, narrow as round};
use super::value::F16;
use crate::ptx::texture::{AddressMode, TexelFormat};

/// Weights are multiples of 1/256.
const ONE: u32 = 256;
/// Sums of weighted singles and halves are made in units of this part of the last bit of the
/// largest texel.
const GUARD: i32 = 4;
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
    /// 8 bits of fraction, and up from the middle.
    pub(in crate::ptx) fn linear(x: f64, size: u32, mode: AddressMode) -> Taps {
        let fixed = cut(((x - 0.5).clamp(-FAR, FAR) * f64::from(ONE) + 0.5).floor());
        let first = fixed >> 8;
        Taps {
            at: [wrapped(first, size, mode), wrapped(first + 1, size, mode)],
            weight: (fixed & 255) as u32,
        }
    }
}

/// The weights in 1/256 of the texels of a sample, x first, then y, then z. Products of weights are
/// rounded to such parts, and all of a sample are 256 together.
pub(in crate::ptx) fn weights([x, y, z]: [Taps; 3]) -> [u32; 8] {
    let [near, far] = [ONE - z.weight, z.weight].map(|whole| {
        let second = product(whole, x.weight);
        [whole - second, second]
    });
    let along = [near[0], near[1], far[0], far[1]];
    let mut found = [0; 8];
    for (index, whole) in along.into_iter().enumerate() {
        // That of the first texel of x is rounded down from the middle.
        let second =
            if index & 1 == 0 { whole - product(whole, ONE - y.weight) } else { product(whole, y.weight) };
        let place = (index & 1) | (index & 2) << 1;
        for (place, weight) in [(place, whole - second), (place | 2, second)] {
            if let Some(found) = found.get_mut(place) {
                *found = weight;
            }
        }
    }
    found
}

/// The product of two weights, which is rounded up from the middle.
fn product(a: u32, b: u32) -> u32 {
    (a * b + ONE / 2) / ONE
}

/// The weighted sum of one channel of texels, each with its weight in 1/256: as [`widen`] returns
/// a channel.
pub(in crate::ptx) fn weighted_sum(format: TexelFormat, texels: &[(u32, u32)], reads_numbers: bool) -> u32 {
    let sum = |extended: fn(u32) -> i64| -> i64 {
        texels.iter().map(|(bits, weight)| extended(*bits) * i64::from(*weight)).sum()
    };
    let integer = |extended: fn(u32) -> i64| (sum(extended) + 128).div_euclid(256);
    let down = |extended: fn(u32) -> i64| sum(extended).div_euclid(256);
    let whole = |extended: fn(u32) -> i64| integer(extended) as f32;
    if !reads_numbers && !format.is_float() {
        return match format {
            TexelFormat::S8 => integer(|bits| i64::from(bits as i8)),
            TexelFormat::S16 => integer(|bits| i64::from(bits as i16)),
            // Their sums are rounded down.
            TexelFormat::S32 => down(|bits| i64::from(bits as i32)),
            TexelFormat::U8 => integer(|bits| i64::from(bits as u8)),
            TexelFormat::U16 => integer(|bits| i64::from(bits as u16)),
            _ => down(i64::from),
        } as u32;
    }
    match format {
        TexelFormat::F32 => {
            let singles = texels.iter().map(|(bits, weight)| (f64::from(f32::from_bits(*bits)), *weight));
            (aligned_sum(singles, 23) as f32).to_bits()
        }
        TexelFormat::F16 => {
            let halves = texels.iter().map(|(bits, weight)| (F16(*bits as u16).to_f64(), *weight));
            let sum = round(aligned_sum(halves, 10), Format::F16, NEAREST);
            widen(TexelFormat::F16, sum, true)
        }
        TexelFormat::U8 => (whole(|bits| i64::from(bits as u8) * 257) / 65535.0).to_bits(),
        TexelFormat::U16 => (whole(|bits| i64::from(bits as u16)) / 65535.0).to_bits(),
        TexelFormat::S8 => (whole(|bits| extended_byte(bits as i8)) / 32767.0).to_bits(),
        TexelFormat::S16 => (whole(|bits| i64::from(bits as i16).max(-32767)) / 32767.0).to_bits(),
        // These are read as integers.
        TexelFormat::U32 | TexelFormat::S32 => 0,
    }
}

/// A byte from -127 to 127 as a number from -32767 to 32767: the highest bits follow the lowest,
/// but those of -64.
fn extended_byte(byte: i8) -> i64 {
    let magnitude = i64::from(byte.unsigned_abs().min(127));
    (magnitude << 8 | magnitude << 1 | i64::from(magnitude > 64 || byte == 64)) * i64::from(byte.signum())
}

/// A weighted sum of numbers with so many bits behind the point. Bits of a texel that are far below
/// those of the largest texel are cut off first.
fn aligned_sum(texels: impl Iterator<Item = (f64, u32)> + Clone, bits: i32) -> f64 {
    let largest = texels.clone().fold(0.0, |largest: f64, (texel, _)| largest.max(texel.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return texels.map(|(texel, weight)| texel * f64::from(weight) / f64::from(ONE)).sum();
    }
    let exponent = (largest.to_bits() >> 52) as i32 - 1023;
    let grain = f64::powi(2.0, exponent - bits - GUARD);
    texels.map(|(texel, weight)| (texel / grain).trunc() * grain * f64::from(weight) / f64::from(ONE)).sum()
}

/// The bits of a channel that a border of that colour has.
pub(in crate::ptx) fn border_channel(format: TexelFormat, colour: f32, reads_numbers: bool) -> u32 {
    let part = |least: f32, most: f32| (colour.clamp(least, 1.0) * most).round_ties_even() as i32 as u32;
    match format {
        TexelFormat::F16 => half(colour.to_bits()),
        TexelFormat::U8 if reads_numbers => part(0.0, 255.0),
        TexelFormat::U16 if reads_numbers => part(0.0, 65535.0),
        TexelFormat::S8 if reads_numbers => part(-1.0, 127.0),
        TexelFormat::S16 if reads_numbers => part(-1.0, 32767.0),
        _ => colour.to_bits(),
    }
}

/// A whole number of moderate size.
fn cut(x: f64) -> i64 {
    x.clamp(-FAR * f64::from(ONE), FAR * f64::from(ONE)) as i64
}

/// The texel that an index stands for.
fn wrapped(index: i64, size: u32, mode: AddressMode) -> Option<u32> {
    let is_empty = size == 0;
    let size = i64::from(size.max(1));
    let inside = match mode {
        AddressMode::Wrap => index.rem_euclid(size),
        AddressMode::Clamp => index.clamp(0, size - 1),
        AddressMode::Mirror => {
            let there = index.rem_euclid(2 * size);
            there.min(2 * size - 1 - there)
        }
        AddressMode::Border if (0..size).contains(&index) && !is_empty => index,
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
        assert_eq!(linear(1.5 + 2.0 / 1024.0).weight, 1);
        assert_eq!(linear(1.5 + 3.0 / 1024.0).weight, 1);
        assert_eq!(linear(-0.25), Taps { at: [Some(0), Some(0)], weight: 64 });
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300] {
            assert!(linear(x).at.iter().all(Option::is_some), "{x}");
        }
    }

    /// As an H200 answered.
    #[test]
    fn products_of_weights_are_rounded_to_parts_of_256() {
        let of = |parts: [u32; 3]| weights(parts.map(|weight| Taps { at: [Some(0); 2], weight }));
        assert_eq!(of([60, 28, 0])[..4], [175, 53, 21, 7]);
        assert_eq!(of([3, 1, 0])[..4], [252, 3, 1, 0]);
        assert_eq!(of([22, 64, 0])[..4], [176, 16, 58, 6]);
        assert_eq!(of([7, 60, 0]), [191, 5, 58, 2, 0, 0, 0, 0]);
        assert_eq!(of([255, 128, 1]), [1, 127, 0, 127, 0, 0, 0, 1]);
        assert_eq!(of([128, 128, 1]), [64, 64, 63, 64, 0, 0, 0, 1]);
        assert_eq!(of([128, 60, 77]), [68, 69, 21, 21, 29, 30, 9, 9]);
        assert_eq!(of([7, 60, 128]), [95, 3, 29, 1, 95, 3, 29, 1]);
        assert_eq!(of([13, 7, 7]), [230, 13, 6, 0, 7, 0, 0, 0]);
        assert_eq!(of([129, 213, 60]), [16, 17, 81, 82, 5, 5, 25, 25]);
        assert_eq!(of([100, 254, 255]), [0, 0, 1, 0, 1, 1, 154, 99]);
    }

    #[test]
    fn sums_of_weighted_texels() {
        let sum = |format, texels: &[(u32, u32)]| f32::from_bits(weighted_sum(format, texels, true));
        assert_eq!(sum(TexelFormat::U8, &[(7, 216), (255, 40)]), 11758.0 / 65535.0);
        assert_eq!(sum(TexelFormat::S8, &[(7, 256)]), 1806.0 / 32767.0);
        assert_eq!(sum(TexelFormat::S8, &[(7, 136), (0xff, 120)]), 839.0 / 32767.0);
        assert_eq!(sum(TexelFormat::U16, &[(0x2e66, 216), (0x3555, 40)]), 12155.0 / 65535.0);
        assert_eq!(sum(TexelFormat::F16, &[(0x7000, 8), (0xc7b3, 248)]), 248.75);
        assert_eq!(sum(TexelFormat::F16, &[(0x7000, 88), (0xc7b3, 168)]), 2812.0);
        assert_eq!(weighted_sum(TexelFormat::S8, &[(0x6f, 148), (0xa4, 108)], false), 25);
        assert_eq!(
            weighted_sum(TexelFormat::U32, &[(0xa46f_3a05, 64), (0x3f40_0000, 192)], false),
            0x588b_ce81
        );
        let singles = [0.1_f32, 1.0 / 3.0, 1e6, -7.7].map(f32::to_bits);
        let sum = |weights: [u32; 4]| {
            let texels: Vec<_> = singles.into_iter().zip(weights).filter(|(_, weight)| *weight > 0).collect();
            f32::from_bits(weighted_sum(TexelFormat::F32, &texels, false))
        };
        assert_eq!(sum([0, 72, 184, 0]), 718_750.06);
        assert_eq!(sum([55, 198, 1, 2]), 3_906.467_5);
        assert_eq!(sum([43, 211, 0, 2]), 0.231_380_22);
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
