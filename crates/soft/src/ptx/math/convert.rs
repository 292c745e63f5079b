//! `cvt`: conversions between all types.

use super::float::{relu, saturate};
use super::rounding::{DOWN, Format, NEAREST, UP, ZERO, narrow};
use super::value::{Bf16, F16, Flushed, Value, flush};
use crate::ptx::types::Type;

/// How a conversion rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) enum Round {
    /// To the destination's format: one of the modes of [`super::rounding`].
    Float(u8),
    /// To an integer (which may stay a float): one of the modes of [`super::rounding`].
    Integer(u8),
}

/// A conversion, as `cvt` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Conversion {
    pub(in crate::ptx) from: Type,
    pub(in crate::ptx) to: Type,
    pub(in crate::ptx) round: Round,
    pub(in crate::ptx) flush: bool,
    pub(in crate::ptx) saturate: bool,
    pub(in crate::ptx) relu: bool,
}

/// Converts a register.
pub(in crate::ptx) fn convert(how: Conversion, x: u64) -> u64 {
    match (how.from.is_float(), how.to.is_float()) {
        (false, false) => integer_to_integer(integer(how.from, x), how),
        (false, true) => finish(integer_to_float(integer(how.from, x), how), how),
        (true, false) => float_to_integer(float(how.from, x, how.flush), how),
        (true, true) => finish(float_to_float(x, how), how),
    }
}

/// The value of an integer register.
fn integer(ty: Type, x: u64) -> i128 {
    match ty {
        Type::S8 => i128::from(x as i8),
        Type::S16 => i128::from(x as i16),
        Type::S32 => i128::from(x as i32),
        Type::S64 => i128::from(x as i64),
        _ => i128::from(truncate(ty, x)),
    }
}

fn truncate(ty: Type, x: u64) -> u64 {
    if ty.bits() >= 64 { x } else { x & ((1 << ty.bits()) - 1) }
}

/// The value of a float register, exactly.
fn float(ty: Type, x: u64, flushed: bool) -> f64 {
    match ty {
        Type::F64 => f64::get(x),
        Type::F16 => F16::get(x).to_f64(),
        Type::Bf16 => Bf16::get(x).to_f64(),
        _ if flushed => Flushed::get(x).0.into(),
        _ => f32::get(x).into(),
    }
}

/// Least and greatest value of an integer type.
fn limits(ty: Type) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn integer_to_integer(x: i128, how: Conversion) -> u64 {
    let (least, greatest) = limits(how.to);
    let x = if how.saturate { x.clamp(least, greatest) } else { x };
    extend(how.to, x as u64)
}

/// Extends the low bits of `x` by the rules of the type.
fn extend(ty: Type, x: u64) -> u64 {
    integer(ty, x) as u64
}

fn integer_to_float(x: i128, how: Conversion) -> u64 {
    let mode = mode(how);
    let magnitude = x.unsigned_abs() as u64;
    let negative = x < 0;
    if how.to == Type::F64 {
        return rounded_integer(magnitude, negative, mode).to_bits();
    }
    // More bits than a double holds: keep a sticky last bit.
    let excess = 11_u32.saturating_sub(magnitude.leading_zeros());
    let kept = magnitude >> excess;
    let sticky = u64::from(kept << excess != magnitude);
    let odd = (kept | sticky) as f64 * f64::from(1_u32 << excess);
    from_odd(if negative { -odd } else { odd }, how.to, mode)
}

/// An integer as a double, rounded by mode.
fn rounded_integer(magnitude: u64, negative: bool, mode: u8) -> f64 {
    let excess = 11_u32.saturating_sub(magnitude.leading_zeros());
    let kept = magnitude >> excess;
    let lost = kept << excess != magnitude;
    let value = match mode {
        NEAREST => magnitude as f64,
        DOWN if negative && lost => (kept + 1) as f64 * f64::from(1_u32 << excess),
        UP if !negative && lost => (kept + 1) as f64 * f64::from(1_u32 << excess),
        _ => kept as f64 * f64::from(1_u32 << excess),
    };
    if negative { -value } else { value }
}

fn from_odd(odd: f64, to: Type, mode: u8) -> u64 {
    match to {
        Type::F64 => odd.to_bits(),
        Type::F16 => u64::from(narrow(odd, Format::F16, mode)),
        Type::Bf16 => u64::from(narrow(odd, Format::BF16, mode)),
        _ => u64::from(narrow(odd, Format::F32, mode)),
    }
}

fn mode(how: Conversion) -> u8 {
    match how.round {
        Round::Float(mode) => mode,
        Round::Integer(_) => NEAREST,
    }
}

fn to_integral(x: f64, mode: u8) -> f64 {
    match mode {
        ZERO => x.trunc(),
        DOWN => x.floor(),
        UP => x.ceil(),
        _ => x.round_ties_even(),
    }
}

fn float_to_integer(x: f64, how: Conversion) -> u64 {
    if x.is_nan() {
        // Which integer stands for NaN depends on the widths, as the specification lists.
        let is_wide = how.from == Type::F64 || how.to.bits() == 64;
        return if is_wide { extend(how.to, 1 << (how.to.bits() - 1)) } else { 0 };
    }
    let rounding = match how.round {
        Round::Float(mode) | Round::Integer(mode) => mode,
    };
    let (least, greatest) = limits(how.to);
    let value = (to_integral(x, rounding) as i128).clamp(least, greatest);
    extend(how.to, value as u64)
}

fn float_to_float(x: u64, how: Conversion) -> u64 {
    let value = float(how.from, x, how.flush);
    match how.round {
        Round::Integer(mode) => from_odd(to_integral(value, mode), how.to, NEAREST),
        Round::Float(mode) if how.from != how.to => from_odd(value, how.to, mode),
        Round::Float(_) if how.from == Type::F32 && how.flush => u64::from(flush(f32::get(x)).to_bits()),
        Round::Float(_) => truncate(how.to, x),
    }
}

/// Flushing, saturation and `.relu` of a float result.
fn finish(x: u64, how: Conversion) -> u64 {
    let x = if how.flush && how.to == Type::F32 { u64::from(flush(f32::get(x)).to_bits()) } else { x };
    if !how.saturate && !how.relu {
        return x;
    }
    let function = match (how.to, how.saturate) {
        (Type::F64, true) => saturate::<f64>,
        (Type::F64, false) => relu::<f64>,
        (Type::F16, true) => saturate::<F16>,
        (Type::F16, false) => relu::<F16>,
        (Type::Bf16, true) => saturate::<Bf16>,
        (Type::Bf16, false) => relu::<Bf16>,
        (_, true) => saturate::<f32>,
        (_, false) => relu::<f32>,
    };
    function(x)
}

/// `cvt` between integers without saturation.
#[inline(never)]
pub(in crate::ptx) fn extend_from<S: Value, D: Value>(x: u64) -> u64 {
    D::get(S::get(x).put()).put()
}
#[inline(never)]
pub(in crate::ptx) fn i32_to_f32(x: u64) -> u64 {
    (x as i32 as f32).put()
}
#[inline(never)]
pub(in crate::ptx) fn u32_to_f32(x: u64) -> u64 {
    (x as u32 as f32).put()
}
#[inline(never)]
pub(in crate::ptx) fn i32_to_f64(x: u64) -> u64 {
    f64::from(x as i32).put()
}
#[inline(never)]
pub(in crate::ptx) fn f32_to_f64(x: u64) -> u64 {
    f64::from(f32::get(x)).put()
}
#[inline(never)]
pub(in crate::ptx) fn f64_to_f32(x: u64) -> u64 {
    (f64::get(x) as f32).put()
}
