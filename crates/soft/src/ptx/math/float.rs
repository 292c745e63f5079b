//! Floating-point arithmetic, correctly rounded in every mode.

use super::rounding::{self, DOWN, Format, NEAREST, direct, narrow, scaled_back, to_odd, two_sum};
use super::value::{Bf16, F16, Flushed, FlushedF16, Value};

/// A floating-point type. `M` is the rounding mode.
pub(in crate::ptx) trait Float: Value + PartialOrd {
    const NAN: Self;
    fn add<const M: u8>(self, other: Self) -> Self;
    fn mul<const M: u8>(self, other: Self) -> Self;
    fn div<const M: u8>(self, other: Self) -> Self;
    fn fma<const M: u8>(self, by: Self, plus: Self) -> Self;
    fn sqrt<const M: u8>(self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn is_negative(self) -> bool;
    fn one() -> Self;
}

/// Operations of double precision that keep what rounding would lose, for operands of at most 26
/// bits.
mod odd {
    use super::{to_odd, two_sum};

    #[inline(always)]
    pub(super) fn add(a: f64, b: f64) -> f64 {
        let (sum, lost) = two_sum(a, b);
        to_odd(sum, lost)
    }

    pub(super) fn div(a: f64, b: f64) -> f64 {
        let quotient = a / b;
        let rest = quotient.mul_add(-b, a);
        to_odd(quotient, if b < 0.0 { -rest } else { rest })
    }

    #[inline(always)]
    pub(super) fn fma(a: f64, b: f64, c: f64) -> f64 {
        // The product of two 24-bit numbers is exact.
        add(a * b, c)
    }

    pub(super) fn sqrt(a: f64) -> f64 {
        let root = a.sqrt();
        to_odd(root, root.mul_add(-root, a))
    }
}

/// An exact zero sum of different signs is -0 when rounding down, +0 otherwise.
#[inline(always)]
fn zero_sum<const M: u8>(sum: f64, a: f64, b: f64) -> f64 {
    if M == DOWN && sum == 0.0 && a.is_sign_negative() != b.is_sign_negative() { -0.0 } else { sum }
}

#[inline(always)]
fn to_f32<const M: u8>(odd: f64) -> f32 {
    if M == NEAREST { odd as f32 } else { f32::from_bits(narrow(odd, Format::F32, M)) }
}

impl Float for f32 {
    const NAN: Self = f32::NAN;
    #[inline(always)]
    fn add<const M: u8>(self, other: Self) -> Self {
        if M == NEAREST {
            return self + other;
        }
        let (a, b) = (f64::from(self), f64::from(other));
        to_f32::<M>(zero_sum::<M>(odd::add(a, b), a, b))
    }
    #[inline(always)]
    fn mul<const M: u8>(self, other: Self) -> Self {
        if M == NEAREST { self * other } else { to_f32::<M>(f64::from(self) * f64::from(other)) }
    }
    #[inline(always)]
    fn div<const M: u8>(self, other: Self) -> Self {
        if M == NEAREST { self / other } else { to_f32::<M>(odd::div(self.into(), other.into())) }
    }
    #[inline(always)]
    fn fma<const M: u8>(self, by: Self, plus: Self) -> Self {
        let (a, b, c) = (f64::from(self), f64::from(by), f64::from(plus));
        to_f32::<M>(zero_sum::<M>(odd::fma(a, b, c), a * b, c))
    }
    #[inline(always)]
    fn sqrt<const M: u8>(self) -> Self {
        if M == NEAREST { f32::sqrt(self) } else { to_f32::<M>(odd::sqrt(self.into())) }
    }
    #[inline(always)]
    fn neg(self) -> Self {
        -self
    }
    #[inline(always)]
    fn abs(self) -> Self {
        f32::abs(self)
    }
    fn is_negative(self) -> bool {
        self.is_sign_negative()
    }
    fn one() -> Self {
        1.0
    }
}

impl Float for Flushed {
    const NAN: Self = Flushed(f32::NAN);
    #[inline(always)]
    fn add<const M: u8>(self, other: Self) -> Self {
        Flushed(Float::add::<M>(self.0, other.0))
    }
    #[inline(always)]
    fn mul<const M: u8>(self, other: Self) -> Self {
        Flushed(Float::mul::<M>(self.0, other.0))
    }
    #[inline(always)]
    fn div<const M: u8>(self, other: Self) -> Self {
        Flushed(Float::div::<M>(self.0, other.0))
    }
    #[inline(always)]
    fn fma<const M: u8>(self, by: Self, plus: Self) -> Self {
        Flushed(Float::fma::<M>(self.0, by.0, plus.0))
    }
    #[inline(always)]
    fn sqrt<const M: u8>(self) -> Self {
        Flushed(Float::sqrt::<M>(self.0))
    }
    fn neg(self) -> Self {
        Flushed(-self.0)
    }
    fn abs(self) -> Self {
        Flushed(self.0.abs())
    }
    fn is_negative(self) -> bool {
        self.0.is_sign_negative()
    }
    fn one() -> Self {
        Flushed(1.0)
    }
}

impl Float for f64 {
    const NAN: Self = f64::NAN;
    #[inline(always)]
    fn add<const M: u8>(self, other: Self) -> Self {
        if M == NEAREST {
            return self + other;
        }
        let (sum, lost) = two_sum(self, other);
        zero_sum::<M>(finite::<M>(sum, lost, self.is_finite() && other.is_finite()), self, other)
    }
    #[inline(always)]
    fn mul<const M: u8>(self, other: Self) -> Self {
        let product = self * other;
        if M == NEAREST {
            return product;
        }
        if product.abs() < TINY && self != 0.0 && other != 0.0 {
            // The smaller factor has room to grow.
            let (small, large) = if self.abs() < other.abs() { (self, other) } else { (other, self) };
            let small = small * SCALE;
            let product = small * large;
            return scaled_back(product, small.mul_add(large, -product), M);
        }
        let lost = self.mul_add(other, -product);
        finite::<M>(product, lost, self.is_finite() && other.is_finite())
    }
    #[inline(always)]
    fn div<const M: u8>(self, other: Self) -> Self {
        let quotient = self / other;
        if M == NEAREST {
            return quotient;
        }
        let lost = |quotient: f64, dividend: f64, divisor: f64| {
            let rest = quotient.mul_add(-divisor, dividend);
            if divisor < 0.0 { -rest } else { rest }
        };
        if self.abs() < TINY && self != 0.0 && other.is_finite() && other.abs() > TINY {
            let dividend = self * SCALE;
            let quotient = dividend / other;
            return scaled_back(quotient, lost(quotient, dividend, other), M);
        }
        if quotient.abs() < TINY && self != 0.0 && other.is_finite() {
            // Both are large: the divisor can be made smaller without loss.
            let divisor = other / SCALE;
            let quotient = self / divisor;
            return scaled_back(quotient, lost(quotient, self, divisor), M);
        }
        let all_finite = self.is_finite() && other.is_finite() && other != 0.0;
        finite::<M>(quotient, lost(quotient, self, other), all_finite)
    }
    #[inline(always)]
    fn fma<const M: u8>(self, by: Self, plus: Self) -> Self {
        let near = self.mul_add(by, plus);
        if M == NEAREST {
            return near;
        }
        let product = self * by;
        let product_lost = self.mul_add(by, -product);
        let (sum, sum_lost) = two_sum(product, plus);
        let lost = (sum - near) + sum_lost + product_lost;
        let all_finite = self.is_finite() && by.is_finite() && plus.is_finite();
        zero_sum::<M>(finite::<M>(near, lost, all_finite), product, plus)
    }
    #[inline(always)]
    fn sqrt<const M: u8>(self) -> Self {
        if M != NEAREST && self > 0.0 && self < TINY {
            // The root of 2^-512 is exact, and no root is tiny itself.
            let (large, root) = (self * SCALE, (self * SCALE).sqrt());
            return direct(root, root.mul_add(-root, large), M) * ROOT_OF_SCALE.recip();
        }
        let root = f64::sqrt(self);
        if M == NEAREST { root } else { direct(root, root.mul_add(-root, self), M) }
    }
    #[inline(always)]
    fn neg(self) -> Self {
        -self
    }
    #[inline(always)]
    fn abs(self) -> Self {
        f64::abs(self)
    }
    fn is_negative(self) -> bool {
        self.is_sign_negative()
    }
    fn one() -> Self {
        1.0
    }
}

/// 2^512 and its root.
const SCALE: f64 = f64::from_bits((1023 + 512) << 52);
const ROOT_OF_SCALE: f64 = f64::from_bits((1023 + 256) << 52);
/// 2^-900: below, what an operation loses may be too small for a double, so that operands are
/// scaled up first.
const TINY: f64 = f64::from_bits((1023 - 900) << 52);

/// Rounds a double by `M`, where finite operands that overflow count as having lost towards zero.
fn finite<const M: u8>(near: f64, lost: f64, operands_are_finite: bool) -> f64 {
    if near.is_infinite() && operands_are_finite { direct(near, -near, M) } else { direct(near, lost, M) }
}

macro_rules! small_float {
    ($t:ident, $format:expr) => {
        impl $t {
            pub(in crate::ptx) fn from_odd<const M: u8>(odd: f64) -> Self {
                $t(narrow(odd, $format, M) as u16)
            }
        }
        impl Float for $t {
            const NAN: Self = $t(0x7fff);
            fn add<const M: u8>(self, other: Self) -> Self {
                Self::from_odd::<M>(odd::add(self.to_f64(), other.to_f64()))
            }
            fn mul<const M: u8>(self, other: Self) -> Self {
                Self::from_odd::<M>(self.to_f64() * other.to_f64())
            }
            fn div<const M: u8>(self, other: Self) -> Self {
                Self::from_odd::<M>(odd::div(self.to_f64(), other.to_f64()))
            }
            fn fma<const M: u8>(self, by: Self, plus: Self) -> Self {
                Self::from_odd::<M>(odd::fma(self.to_f64(), by.to_f64(), plus.to_f64()))
            }
            fn sqrt<const M: u8>(self) -> Self {
                Self::from_odd::<M>(odd::sqrt(self.to_f64()))
            }
            fn neg(self) -> Self {
                $t(self.0 ^ 0x8000)
            }
            fn abs(self) -> Self {
                $t(self.0 & 0x7fff)
            }
            fn is_negative(self) -> bool {
                self.0 & 0x8000 != 0
            }
            fn one() -> Self {
                Self::from_odd::<{ rounding::NEAREST }>(1.0)
            }
        }
    };
}
small_float!(F16, Format::F16);
small_float!(Bf16, Format::BF16);

impl Float for FlushedF16 {
    const NAN: Self = FlushedF16(<F16 as Float>::NAN);
    fn add<const M: u8>(self, other: Self) -> Self {
        FlushedF16(Float::add::<M>(self.0, other.0))
    }
    fn mul<const M: u8>(self, other: Self) -> Self {
        FlushedF16(Float::mul::<M>(self.0, other.0))
    }
    fn div<const M: u8>(self, other: Self) -> Self {
        FlushedF16(Float::div::<M>(self.0, other.0))
    }
    fn fma<const M: u8>(self, by: Self, plus: Self) -> Self {
        FlushedF16(Float::fma::<M>(self.0, by.0, plus.0))
    }
    fn sqrt<const M: u8>(self) -> Self {
        FlushedF16(Float::sqrt::<M>(self.0))
    }
    fn neg(self) -> Self {
        FlushedF16(self.0.neg())
    }
    fn abs(self) -> Self {
        FlushedF16(self.0.abs())
    }
    fn is_negative(self) -> bool {
        self.0.is_negative()
    }
    fn one() -> Self {
        FlushedF16(F16::one())
    }
}

#[inline(never)]
pub(in crate::ptx) fn add<T: Float, const M: u8>(a: u64, b: u64) -> u64 {
    T::get(a).add::<M>(T::get(b)).put()
}
#[inline(never)]
pub(in crate::ptx) fn sub<T: Float, const M: u8>(a: u64, b: u64) -> u64 {
    T::get(a).add::<M>(T::get(b).neg()).put()
}
#[inline(never)]
pub(in crate::ptx) fn mul<T: Float, const M: u8>(a: u64, b: u64) -> u64 {
    T::get(a).mul::<M>(T::get(b)).put()
}
#[inline(never)]
pub(in crate::ptx) fn div<T: Float, const M: u8>(a: u64, b: u64) -> u64 {
    T::get(a).div::<M>(T::get(b)).put()
}
pub(in crate::ptx) fn rcp<T: Float, const M: u8>(a: u64) -> u64 {
    T::one().div::<M>(T::get(a)).put()
}
#[inline(never)]
pub(in crate::ptx) fn fma<T: Float, const M: u8>(a: u64, b: u64, c: u64) -> u64 {
    T::get(a).fma::<M>(T::get(b), T::get(c)).put()
}
#[inline(never)]
pub(in crate::ptx) fn sqrt<T: Float, const M: u8>(a: u64) -> u64 {
    T::get(a).sqrt::<M>().put()
}
#[inline(never)]
pub(in crate::ptx) fn neg<T: Float>(a: u64) -> u64 {
    T::get(a).neg().put()
}
#[inline(never)]
pub(in crate::ptx) fn abs<T: Float>(a: u64) -> u64 {
    T::get(a).abs().put()
}

/// The smaller one; a NaN loses against a number, and -0 is below +0.
#[inline(never)]
pub(in crate::ptx) fn min<T: Float>(a: u64, b: u64) -> u64 {
    lesser(T::get(a), T::get(b)).put()
}
/// The larger one; a NaN loses against a number, and -0 is below +0.
#[inline(never)]
pub(in crate::ptx) fn max<T: Float>(a: u64, b: u64) -> u64 {
    lesser(T::get(a).neg(), T::get(b).neg()).neg().put()
}
/// As [`min`], but a NaN wins.
pub(in crate::ptx) fn min_nan<T: Float>(a: u64, b: u64) -> u64 {
    if either_nan::<T>(a, b) { T::NAN.put() } else { min::<T>(a, b) }
}
/// As [`max`], but a NaN wins.
pub(in crate::ptx) fn max_nan<T: Float>(a: u64, b: u64) -> u64 {
    if either_nan::<T>(a, b) { T::NAN.put() } else { max::<T>(a, b) }
}

fn either_nan<T: Float>(a: u64, b: u64) -> bool {
    T::get(a).partial_cmp(&T::get(b)).is_none()
}

fn lesser<T: Float>(a: T, b: T) -> T {
    let number = |x: &T| x.partial_cmp(x).is_some();
    if !number(&a) {
        return if number(&b) { b } else { T::NAN };
    }
    let a_is_less = a < b || (a == b && a.is_negative());
    if !number(&b) || a_is_less { a } else { b }
}

/// As `$of` of the magnitudes, with the product of the signs.
macro_rules! with_signs {
    ($($name:ident, $of:ident;)*) => {$(
        pub(in crate::ptx) fn $name<T: Float>(a: u64, b: u64) -> u64 {
            let (a, b) = (T::get(a), T::get(b));
            let result = T::get($of::<T>(a.abs().put(), b.abs().put()));
            let is_number = result.partial_cmp(&result).is_some();
            (if is_number && a.is_negative() != b.is_negative() { result.neg() } else { result }).put()
        }
    )*};
}
with_signs! {
    min_signs, min;
    max_signs, max;
    min_nan_signs, min_nan;
    max_nan_signs, max_nan;
}

/// Clamped to 0..=1; NaN becomes 0.
pub(in crate::ptx) fn saturate<T: Float>(a: u64) -> u64 {
    let (x, zero) = (T::get(a), T::get(0));
    (if x > T::one() {
        T::one()
    } else if x > zero {
        x
    } else {
        zero
    })
    .put()
}

/// Negative results become 0, NaN stays.
pub(in crate::ptx) fn relu<T: Float>(a: u64) -> u64 {
    let (x, zero) = (T::get(a), T::get(0));
    (if x < zero || (x == zero && x.is_negative()) { zero } else { x }).put()
}

/// `b` with the sign of `a`, bit by bit: a NaN stays what it is.
pub(in crate::ptx) fn copysign<const SIGN: u64>(a: u64, b: u64) -> u64 {
    (a & SIGN) | (b & (SIGN - 1))
}
