//! Products of matrices as tensor cores compute them.
//!
//! Products of narrow floats are exact, and their sum is computed in double precision and rounded
//! once: to nearest, for singles as for halves. A GPU keeps fewer bits while it sums, and
//! truncates. Its results differ from these by at most a few units in the last place of the largest
//! term (for 8-bit floats, of a format with 13 bits after the point). Integers are exact. Double
//! precision is a chain of fused operations along the sum, as on a GPU.

use super::float::fma;
use super::fp8;
use super::rounding::{Format, NEAREST, narrow};
use super::value::{Bf16, F16, Value};
use crate::ptx::code::matrix::{BitOp, Element, Product};

/// The value of an element, from the low bits of a register. Every type fits into a double.
pub(in crate::ptx) fn decode(element: Element, bits: u64) -> f64 {
    match element {
        Element::F16 => F16::get(bits).to_f64(),
        Element::Bf16 => Bf16::get(bits).to_f64(),
        Element::Tf32 => f64::from(f32::from_bits(bits as u32 & !0x1fff)),
        Element::F32 => f64::from(f32::from_bits(bits as u32)),
        Element::F64 => f64::from_bits(bits),
        Element::E4m3 => fp8::value::<false>(bits as u8),
        Element::E5m2 => fp8::value::<true>(bits as u8),
        Element::S8 => f64::from(bits as i8),
        Element::U8 => f64::from(bits as u8),
        Element::S4 => f64::from((bits << 4) as i8 >> 4),
        Element::U4 => f64::from(bits as u8 & 15),
        Element::S32 => f64::from(bits as i32),
        Element::Bits => f64::from(bits as u32),
    }
}

/// The bits of a result.
fn encode(element: Element, value: f64, saturates: bool) -> u64 {
    match element {
        Element::F16 => narrow(value, Format::F16, NEAREST).into(),
        Element::F64 => value.to_bits(),
        Element::S32 if saturates => u64::from(value as i32 as u32),
        // The sum is far below 2^53, so it is exact.
        Element::S32 => u64::from(value as i64 as u32),
        _ => (value as f32).put(),
    }
}

/// The product of `a` and `b`, whose elements lie row after row, plus `c`: the bits of each
/// element.
pub(in crate::ptx) fn product(how: &Product, a: &[f64], b: &[f64], c: &[f64]) -> Vec<u64> {
    let (n, k) = (how.shape.n as usize, how.shape.k as usize);
    let mut sums = c.to_vec();
    for (row, sums) in a.chunks_exact(k).zip(sums.chunks_exact_mut(n)) {
        for (&a, b) in row.iter().zip(b.chunks_exact(n)) {
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum = match how.a {
                    Element::F64 => {
                        f64::from_bits(fma::<f64, NEAREST>(a.to_bits(), b.to_bits(), sum.to_bits()))
                    }
                    Element::Bits => *sum + f64::from(ones(how.bits, a as u32, b as u32)),
                    _ => *sum + a * b,
                };
            }
        }
    }
    sums.into_iter().map(|sum| encode(how.d, sum, how.saturates)).collect()
}

fn ones(op: BitOp, a: u32, b: u32) -> u32 {
    match op {
        BitOp::Xor => (a ^ b).count_ones(),
        BitOp::And => (a & b).count_ones(),
    }
}
