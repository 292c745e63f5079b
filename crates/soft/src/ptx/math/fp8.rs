//! Conversions from and to floats of 8 bits and of 19 (`tf32`).

use super::rounding::{Format, NEAREST, ZERO, narrow};
use super::value::{Bf16, F16, Value};

/// The signed exponent, the bits of the fraction, and the greatest magnitude of an 8-bit format.
struct Small {
    fraction: u32,
    least: i32,
    greatest: u8,
}

const E4M3: Small = Small { fraction: 3, least: -6, greatest: 0x7e };
const E5M2: Small = Small { fraction: 2, least: -14, greatest: 0x7b };
const NAN: u8 = 0x7f;

const fn format<const E5: bool>() -> Small {
    if E5 { E5M2 } else { E4M3 }
}

/// 2 to the power of `exponent`, which is that of a normal number.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

/// The nearest number of the format, or the greatest one where that is too small.
fn nearest(x: f64, small: &Small) -> u8 {
    if x.is_nan() {
        return NAN;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(small.least);
    let steps = (x.abs() / power(exponent - small.fraction as i32)).round_ties_even();
    // The field of the exponent counts the hidden bit of the significand once more.
    let base = (exponent - small.least) as f64 * power(small.fraction as i32);
    let magnitude = (base + steps).min(f64::from(small.greatest)) as u8;
    sign | magnitude.min(small.greatest)
}

/// The value of an 8-bit float.
pub(in crate::ptx) fn value<const E5: bool>(bits: u8) -> f64 {
    let small = format::<E5>();
    let magnitude = u32::from(bits & 0x7f);
    let field = magnitude >> small.fraction;
    let fraction = magnitude & ((1 << small.fraction) - 1);
    let value = match (E5, field, fraction) {
        (false, 15, 7) => f64::NAN,
        (true, 31, 0) => f64::INFINITY,
        (true, 31, _) => f64::NAN,
        (_, 0, _) => f64::from(fraction) * power(small.least - small.fraction as i32),
        _ => {
            let significand = f64::from(fraction | (1 << small.fraction));
            significand * power(small.least + field as i32 - 1 - small.fraction as i32)
        }
    };
    if bits & 0x80 != 0 { -value } else { value }
}

fn relu_if(relu: bool, x: f64) -> f64 {
    if relu && (x < 0.0 || (x == 0.0 && x.is_sign_negative())) { 0.0 } else { x }
}

/// Two singles to two 8-bit floats; the first one is the upper.
pub(in crate::ptx) fn from_singles<const E5: bool, const RELU: bool>(a: u64, b: u64) -> u64 {
    let one = |x: u64| u64::from(nearest(relu_if(RELU, f32::get(x).into()), &format::<E5>()));
    (one(a) << 8) | one(b)
}

/// Two halves in a register to two 8-bit floats.
pub(in crate::ptx) fn from_halves<const E5: bool, const RELU: bool>(a: u64) -> u64 {
    let one = |x: u64| u64::from(nearest(relu_if(RELU, F16::get(x).to_f64()), &format::<E5>()));
    (one(a >> 16) << 8) | one(a)
}

/// Two 8-bit floats to two halves.
pub(in crate::ptx) fn to_halves<const E5: bool, const RELU: bool>(a: u64) -> u64 {
    let one = |x: u64| u64::from(narrow(relu_if(RELU, value::<E5>(x as u8)), Format::F16, NEAREST));
    (one(a >> 8) << 16) | one(a)
}

/// The mode of `.rna`: to nearest, ties away from zero.
pub(in crate::ptx) const AWAY: u8 = 4;

/// A single rounded to `tf32`, which keeps 10 bits of the fraction.
pub(in crate::ptx) fn tf32<const M: u8, const RELU: bool, const FINITE: bool>(a: u64) -> u64 {
    const LOST: u32 = (1 << 13) - 1;
    let bits = a as u32;
    let (sign, magnitude) = (bits & (1 << 31), bits & !(1 << 31));
    if magnitude > 0x7f80_0000 {
        return f32::NAN.put();
    }
    if RELU && sign != 0 {
        return 0;
    }
    let up = match M {
        ZERO => 0,
        AWAY => 0x1000,
        // Just below a half, and up to it where the last kept bit is odd.
        _ => 0x0fff + ((magnitude >> 13) & 1),
    };
    let rounded = if magnitude == 0x7f80_0000 { magnitude } else { (magnitude + up) & !LOST };
    let rounded = if FINITE { rounded.min(0x7f7f_e000) } else { rounded };
    u64::from(sign | rounded)
}

/// The greatest finite half of that sign for an infinite one.
pub(in crate::ptx) fn finite_f16(a: u64) -> u64 {
    if a & 0x7fff == 0x7c00 { F16(a as u16 - 1).put() } else { a }
}

/// The greatest finite brain float of that sign for an infinite one.
pub(in crate::ptx) fn finite_bf16(a: u64) -> u64 {
    if a & 0x7fff == 0x7f80 { Bf16(a as u16 - 1).put() } else { a }
}
