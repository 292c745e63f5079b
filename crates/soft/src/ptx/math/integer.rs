//! Integer arithmetic.

use super::value::Value;

/// An integer type.
pub(in crate::ptx) trait Int: Value + Ord {
    const BITS: u32;
    fn wide(self) -> i128;
    fn from_wide(wide: i128) -> Self;
    fn wrapping_add(self, other: Self) -> Self;
    fn wrapping_sub(self, other: Self) -> Self;
    fn wrapping_mul(self, other: Self) -> Self;
    fn wrapping_neg(self) -> Self;
    /// `None` for a zero divisor.
    fn divide(self, by: Self) -> Option<Self>;
    fn remainder(self, by: Self) -> Option<Self>;
    fn shift_right(self, by: u32) -> Self;
    fn saturating_add(self, other: Self) -> Self;
    fn saturating_sub(self, other: Self) -> Self;
}

macro_rules! int {
    ($($t:ident),*) => {$(
        impl Int for $t {
            const BITS: u32 = $t::BITS;
            #[inline(always)]
            fn wide(self) -> i128 { i128::from(self) }
            #[inline(always)]
            fn from_wide(wide: i128) -> Self { wide as $t }
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self { $t::wrapping_add(self, other) }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self { $t::wrapping_sub(self, other) }
            #[inline(always)]
            fn wrapping_mul(self, other: Self) -> Self { $t::wrapping_mul(self, other) }
            #[inline(always)]
            fn wrapping_neg(self) -> Self { $t::wrapping_neg(self) }
            #[inline(always)]
            fn divide(self, by: Self) -> Option<Self> { (by != 0).then(|| self.wrapping_div(by)) }
            #[inline(always)]
            fn remainder(self, by: Self) -> Option<Self> { (by != 0).then(|| self.wrapping_rem(by)) }
            #[inline(always)]
            fn shift_right(self, by: u32) -> Self { self >> by.min($t::BITS - 1) }
            #[inline(always)]
            fn saturating_add(self, other: Self) -> Self { $t::saturating_add(self, other) }
            #[inline(always)]
            fn saturating_sub(self, other: Self) -> Self { $t::saturating_sub(self, other) }
        }
    )*};
}
int!(u8, i8, u16, i16, u32, i32, u64, i64);

#[inline(never)]
pub(in crate::ptx) fn add<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).wrapping_add(T::get(b)).put()
}
pub(in crate::ptx) fn add_sat<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).saturating_add(T::get(b)).put()
}
#[inline(never)]
pub(in crate::ptx) fn sub<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).wrapping_sub(T::get(b)).put()
}
pub(in crate::ptx) fn sub_sat<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).saturating_sub(T::get(b)).put()
}
#[inline(never)]
pub(in crate::ptx) fn mul<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).wrapping_mul(T::get(b)).put()
}
pub(in crate::ptx) fn mul_hi<T: Int>(a: u64, b: u64) -> u64 {
    T::from_wide(product::<T>(a, b) >> T::BITS).put()
}
/// Bits 32 to 63 of the product.
pub(in crate::ptx) fn mul_upper_word<T: Int>(a: u64, b: u64) -> u64 {
    T::from_wide(product::<T>(a, b) >> 32).put()
}
/// The whole product of types of up to 32 bits.
#[inline(never)]
pub(in crate::ptx) fn mul_wide<T: Int>(a: u64, b: u64) -> u64 {
    (T::get(a).wide() as i64).wrapping_mul(T::get(b).wide() as i64) as u64
}
#[inline(never)]
pub(in crate::ptx) fn mad<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    T::get(a).wrapping_mul(T::get(b)).wrapping_add(T::get(c)).put()
}
pub(in crate::ptx) fn mad_hi<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    add::<T>(mul_hi::<T>(a, b), c)
}
pub(in crate::ptx) fn mad_hi_sat<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    add_sat::<T>(mul_hi::<T>(a, b), c)
}
#[inline(never)]
pub(in crate::ptx) fn mad_wide<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    mul_wide::<T>(a, b).wrapping_add(c)
}

/// The product modulo 2^128: exact, or for two large unsigned numbers exact in its lower 128 bits.
fn product<T: Int>(a: u64, b: u64) -> i128 {
    T::get(a).wide().wrapping_mul(T::get(b).wide())
}

/// The quotient; a zero divisor gives all ones, as GPUs do.
#[inline(never)]
pub(in crate::ptx) fn div<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).divide(T::get(b)).unwrap_or(T::from_wide(-1)).put()
}
/// The remainder; a zero divisor gives the dividend.
#[inline(never)]
pub(in crate::ptx) fn rem<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).remainder(T::get(b)).unwrap_or(T::get(a)).put()
}
#[inline(never)]
pub(in crate::ptx) fn min<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).min(T::get(b)).put()
}
#[inline(never)]
pub(in crate::ptx) fn max<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).max(T::get(b)).put()
}
#[inline(never)]
pub(in crate::ptx) fn neg<T: Int>(a: u64) -> u64 {
    T::get(a).wrapping_neg().put()
}
#[inline(never)]
pub(in crate::ptx) fn abs<T: Int>(a: u64) -> u64 {
    let x = T::get(a);
    if x.wide() < 0 { x.wrapping_neg().put() } else { x.put() }
}
/// `c + |a - b|`
pub(in crate::ptx) fn sad<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    let distance = if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
    distance.wrapping_add(T::get(c)).put()
}
pub(in crate::ptx) fn relu_min<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).min(T::get(b)).max(T::from_wide(0)).put()
}
pub(in crate::ptx) fn relu_max<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).max(T::get(b)).max(T::from_wide(0)).put()
}

/// The 48-bit product of the low 24 bits.
fn product24<T: Int>(a: u64, b: u64) -> i64 {
    let low = |x: u64| {
        let x = (x as u32) << 8;
        if T::from_wide(-1).wide() < 0 { i64::from(x as i32 >> 8) } else { i64::from(x >> 8) }
    };
    low(a).wrapping_mul(low(b))
}
pub(in crate::ptx) fn mul24_lo<T: Int>(a: u64, b: u64) -> u64 {
    T::from_wide(i128::from(product24::<T>(a, b))).put()
}
/// Bits 16 to 47 of the product.
pub(in crate::ptx) fn mul24_hi<T: Int>(a: u64, b: u64) -> u64 {
    T::from_wide(i128::from(product24::<T>(a, b) >> 16)).put()
}
pub(in crate::ptx) fn mad24_lo<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    add::<T>(mul24_lo::<T>(a, b), c)
}
pub(in crate::ptx) fn mad24_hi<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    add::<T>(mul24_hi::<T>(a, b), c)
}

pub(in crate::ptx) fn mad24_hi_sat<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    add_sat::<T>(mul24_hi::<T>(a, b), c)
}

/// Shifts by more than the width give zero.
#[inline(never)]
pub(in crate::ptx) fn shl<T: Int>(a: u64, by: u64) -> u64 {
    let by = by as u32;
    if by >= T::BITS { 0 } else { T::from_wide((T::get(a).wide()) << by).put() }
}
/// Shifts by more than the width give zero or all sign bits.
#[inline(never)]
pub(in crate::ptx) fn shr<T: Int>(a: u64, by: u64) -> u64 {
    let (x, by) = (T::get(a), by as u32);
    if by >= T::BITS && x.wide() >= 0 { 0 } else { x.shift_right(by).put() }
}

/// The sum with a carry in, and the carry out.
#[inline(always)]
pub(in crate::ptx) fn carrying_add(a: u64, b: u64, carry: bool, is_wide: bool) -> (u64, bool) {
    if is_wide {
        let (sum, first) = a.overflowing_add(b);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (sum, first | second)
    } else {
        let sum = u64::from(a as u32) + u64::from(b as u32) + u64::from(carry);
        (u64::from(sum as u32), sum >> 32 != 0)
    }
}

/// Four products of bytes, or two of a half-word and a byte, added to `c`. Signedness by sign of
/// `A` and `B`.
pub(in crate::ptx) fn dp4a<const A: bool, const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    let mut sum = c as u32;
    for byte in 0..4 {
        let product = byte_of::<A>(a, byte).wrapping_mul(byte_of::<B>(b, byte));
        sum = sum.wrapping_add(product as u32);
    }
    u64::from(sum)
}
/// `HIGH` picks the upper two bytes of `b`.
pub(in crate::ptx) fn dp2a<const A: bool, const B: bool, const HIGH: bool>(a: u64, b: u64, c: u64) -> u64 {
    let mut sum = c as u32;
    for index in 0..2 {
        let half = (a >> (16 * index)) as u16;
        let half = if A { i32::from(half as i16) } else { i32::from(half) };
        let byte = byte_of::<B>(b, index + 2 * u32::from(HIGH));
        sum = sum.wrapping_add(half.wrapping_mul(byte) as u32);
    }
    u64::from(sum)
}
fn byte_of<const SIGNED: bool>(x: u64, index: u32) -> i32 {
    let byte = (x >> (8 * index)) as u8;
    if SIGNED { i32::from(byte as i8) } else { i32::from(byte) }
}

/// Clamps a signed word to an integer type of `BITS` bits.
pub(in crate::ptx) fn clamp_to<const BITS: u32, const SIGNED: bool>(a: u64) -> u64 {
    let x = i64::from(a as i32);
    let (least, greatest) =
        if SIGNED { (-(1 << (BITS - 1)), (1 << (BITS - 1)) - 1) } else { (0, (1 << BITS) - 1) };
    x.clamp(least, greatest) as u64
}
