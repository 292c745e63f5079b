//! Logic and bit fields.

use super::integer::Int;
use super::value::Value;

#[inline(never)]
pub(in crate::ptx) fn and(a: u64, b: u64) -> u64 {
    a & b
}
#[inline(never)]
pub(in crate::ptx) fn or(a: u64, b: u64) -> u64 {
    a | b
}
#[inline(never)]
pub(in crate::ptx) fn xor(a: u64, b: u64) -> u64 {
    a ^ b
}
#[inline(never)]
pub(in crate::ptx) fn not(a: u64) -> u64 {
    !a
}
/// The negation of a predicate.
#[inline(never)]
pub(in crate::ptx) fn not_pred(a: u64) -> u64 {
    a ^ 1
}
pub(in crate::ptx) fn cnot<T: Int>(a: u64) -> u64 {
    u64::from(T::get(a).wide() == 0)
}
/// `a` if `c` is not negative, otherwise `b`. The next two are for floats.
pub(in crate::ptx) fn select_by_sign(a: u64, b: u64, c: u64) -> u64 {
    if c as i32 >= 0 { a } else { b }
}
pub(in crate::ptx) fn select_by_float(a: u64, b: u64, c: u64) -> u64 {
    if f32::get(c) >= 0.0 { a } else { b }
}
pub(in crate::ptx) fn select_by_float_flushed(a: u64, b: u64, c: u64) -> u64 {
    if super::value::flush(f32::get(c)) >= 0.0 { a } else { b }
}

#[inline(never)]
pub(in crate::ptx) fn popc32(a: u64) -> u64 {
    u64::from((a as u32).count_ones())
}
pub(in crate::ptx) fn popc64(a: u64) -> u64 {
    u64::from(a.count_ones())
}
#[inline(never)]
pub(in crate::ptx) fn clz32(a: u64) -> u64 {
    u64::from((a as u32).leading_zeros())
}
pub(in crate::ptx) fn clz64(a: u64) -> u64 {
    u64::from(a.leading_zeros())
}
pub(in crate::ptx) fn brev32(a: u64) -> u64 {
    u64::from((a as u32).reverse_bits())
}
pub(in crate::ptx) fn brev64(a: u64) -> u64 {
    a.reverse_bits()
}

/// The position of the highest bit that is not a sign bit, or all ones. `SHIFT` returns the left
/// shift that brings it to the top instead.
pub(in crate::ptx) fn bfind<T: Int, const SHIFT: bool>(a: u64) -> u64 {
    let x = T::get(a).wide();
    let x = (if x < 0 { !x } else { x }) as u64;
    if x == 0 {
        return u64::from(u32::MAX);
    }
    let position = 63 - x.leading_zeros();
    u64::from(if SHIFT { T::BITS - 1 - position } else { position })
}

/// Extracts `len` bits from `pos` on; signed types extend the field's top bit.
pub(in crate::ptx) fn bfe<T: Int>(a: u64, pos: u64, len: u64) -> u64 {
    let (pos, len) = (pos as u32 & 0xff, len as u32 & 0xff);
    let x = T::get(a).wide();
    if len == 0 {
        return 0;
    }
    let top = (pos + len - 1).min(T::BITS - 1);
    let sign = T::from_wide(-1).wide() < 0 && (x >> top) & 1 == 1;
    let field = if pos >= T::BITS { 0 } else { (x as u128 & low_bits(T::BITS)) >> pos };
    let kept = if pos >= T::BITS { 0 } else { top + 1 - pos };
    let field = field & low_bits(kept);
    let field = if sign { field | !low_bits(kept.min(len)) } else { field };
    T::from_wide(field as i128).put()
}

/// Puts the low `len` bits of `a` into `b` at `pos`.
pub(in crate::ptx) fn bfi<T: Int>(a: u64, b: u64, pos: u64, len: u64) -> u64 {
    let (pos, len) = (pos as u32 & 0xff, len as u32 & 0xff);
    if pos >= T::BITS {
        return T::get(b).put();
    }
    let mask = low_bits(len.min(T::BITS)) << pos;
    let field = (u128::from(a) << pos) & mask;
    T::from_wide(((u128::from(b) & !mask) | field) as i128).put()
}

fn low_bits(count: u32) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

/// Ones from bit `a` on, `b` of them; `WRAP` takes both modulo 32.
pub(in crate::ptx) fn bmsk<const WRAP: bool>(a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    let (a, b) = if WRAP { (a & 31, b & 31) } else { (a.min(32), b.min(32)) };
    u64::from((low_bits(b) << a) as u32)
}

/// Zero- or sign-extends the low `b` bits; `WRAP` takes `b` modulo 32.
pub(in crate::ptx) fn szext<const SIGNED: bool, const WRAP: bool>(a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    let b = if WRAP { b & 31 } else { b.min(32) };
    let field = a & low_bits(b) as u32;
    let negative = SIGNED && b > 0 && (a >> (b - 1)) & 1 == 1;
    u64::from(if negative { field | !(low_bits(b) as u32) } else { field })
}

/// Shifts the pair of `b` (high) and `a` (low) left and takes the high word.
#[inline(never)]
pub(in crate::ptx) fn shf_left<const WRAP: bool>(a: u64, b: u64, c: u64) -> u64 {
    let pair = (b << 32) | u64::from(a as u32);
    u64::from(((u128::from(pair) << funnel::<WRAP>(c)) >> 32) as u32)
}
/// Shifts the pair of `b` (high) and `a` (low) right and takes the low word.
#[inline(never)]
pub(in crate::ptx) fn shf_right<const WRAP: bool>(a: u64, b: u64, c: u64) -> u64 {
    let pair = (b << 32) | u64::from(a as u32);
    u64::from((pair >> funnel::<WRAP>(c)) as u32)
}
fn funnel<const WRAP: bool>(c: u64) -> u32 {
    if WRAP { c as u32 & 31 } else { (c as u32).min(32) }
}

/// Any function of three bits, by its truth table.
#[inline(never)]
pub(in crate::ptx) fn lop3(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let mut out = 0;
    for row in 0..8_u64 {
        if (table >> row) & 1 == 1 {
            let pick = |x: u64, bit: u64| if (row >> bit) & 1 == 1 { x } else { !x };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    u64::from(out as u32)
}

/// Picks four bytes out of eight by the nibbles of `c`; the top bit of a nibble repeats the byte's
/// sign.
pub(in crate::ptx) fn prmt(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [0, 1, 2, 3].map(|index| (c >> (4 * index)) as u32 & 15))
}
/// The named selections of `prmt`: `f4e`, `b4e`, `rc8`, `ecl`, `ecr`, `rc16`.
pub(in crate::ptx) fn prmt_mode<const MODE: u8>(a: u64, b: u64, c: u64) -> u64 {
    let n = c as u32 & 3;
    let nibbles = [0_u32, 1, 2, 3].map(|index| match MODE {
        0 => n + index,
        1 => (n + 8 - index) & 7,
        2 => n,
        3 => n.max(index),
        4 => n.min(index),
        _ => 2 * (n & 1) + (index & 1),
    });
    permute(a, b, nibbles)
}
fn permute(a: u64, b: u64, nibbles: [u32; 4]) -> u64 {
    let pair = u64::from(a as u32) | (b << 32);
    let mut out = 0;
    for (index, nibble) in nibbles.into_iter().enumerate() {
        let byte = (pair >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 };
        out |= u64::from(byte) << (8 * index);
    }
    out
}

/// Position of the `offset`-th set bit of `mask`, counted from bit `base` up or (negative offset)
/// down.
pub(in crate::ptx) fn fns(mask: u64, base: u64, offset: u64) -> u64 {
    let (mask, base, offset) = (mask as u32, (base as u32).min(32), offset as i32);
    let is_set = |bit: &u32| (mask >> bit) & 1 == 1;
    let wanted = offset.unsigned_abs().saturating_sub(1) as usize;
    let found = match offset {
        0 => (base < 32 && is_set(&base)).then_some(base),
        1.. => (base..32).filter(is_set).nth(wanted),
        _ => (0..=base.min(31)).rev().filter(is_set).nth(wanted),
    };
    u64::from(found.unwrap_or(u32::MAX))
}

/// A field's place in a register, as the source operand of [`field`] and [`insert`].
pub(in crate::ptx) fn field_spec(shift: u32, width: u32) -> u64 {
    u64::from(shift | (width << 8))
}
/// The field of `a` that `spec` names.
#[inline(never)]
pub(in crate::ptx) fn field(a: u64, spec: u64) -> u64 {
    (a >> (spec & 63)) & (low_bits((spec >> 8) as u32) as u64)
}
/// `a` with the low bits of `b` in the field that `spec` names, which must be 0 in `a`.
#[inline(never)]
pub(in crate::ptx) fn insert(a: u64, b: u64, spec: u64) -> u64 {
    a | ((b & low_bits((spec >> 8) as u32) as u64) << (spec & 63))
}
