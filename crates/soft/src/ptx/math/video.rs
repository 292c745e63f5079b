//! The video instructions: parts of words, taken as signed 64-bit numbers.

/// The low `BITS` bits of `a >> shift`, sign- or zero-extended.
pub(in crate::ptx) fn part<const BITS: u32, const SIGNED: bool>(a: u64, shift: u64) -> u64 {
    let up = 64 - BITS;
    let field = (a >> (shift & 63)) << up;
    if SIGNED { ((field as i64) >> up) as u64 } else { field >> up }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident, $a:ident, $b:ident, $result:expr;)*) => {$(
        $(#[$doc])*
        pub(in crate::ptx) fn $name(a: u64, b: u64) -> u64 {
            let ($a, $b) = (a as i64, b as i64);
            ($result) as u64
        }
    )*};
}
operations! {
    add, a, b, a.wrapping_add(b);
    sub, a, b, a.wrapping_sub(b);
    abs_diff, a, b, a.wrapping_sub(b).wrapping_abs();
    min, a, b, a.min(b);
    max, a, b, a.max(b);
    /// The average, where a half is rounded away from zero.
    average, a, b, {
        let sum = a.wrapping_add(b);
        if sum >= 0 { sum.wrapping_add(1) >> 1 } else { sum >> 1 }
    };
    shl_clamp, a, b, shifted(a, b.clamp(0, 32) as u32);
    shl_wrap, a, b, shifted(a, b as u32 & 31);
    shr_clamp, a, b, a >> b.clamp(0, 32);
    shr_wrap, a, b, a >> (b & 31);
}

/// A part of a word shifted left by at most 32. Too large a result keeps its sign and its low word,
/// which is 0.
fn shifted(a: i64, by: u32) -> i64 {
    const LOW: i64 = u32::MAX as i64;
    let result = i128::from(a) << by;
    i64::try_from(result).unwrap_or(if a < 0 { i64::MIN } else { i64::MAX & !LOW })
}

/// Clamps a number to `BITS` bits.
pub(in crate::ptx) fn clamp<const BITS: u32, const SIGNED: bool>(a: u64) -> u64 {
    let (least, greatest) =
        if SIGNED { (-(1_i64 << (BITS - 1)), (1_i64 << (BITS - 1)) - 1) } else { (0, (1_i64 << BITS) - 1) };
    (a as i64).clamp(least, greatest) as u64
}

/// `word` with the low `BITS` bits of `a` at `shift`.
pub(in crate::ptx) fn merge<const BITS: u32>(a: u64, word: u64, shift: u64) -> u64 {
    let mask = (1_u64 << BITS) - 1;
    let shift = shift & 31;
    u64::from(((word & !(mask << shift)) | ((a & mask) << shift)) as u32)
}

/// How `vmad` changes the signs of its sources, adds one, and scales.
#[derive(Debug, Clone, Copy)]
pub(in crate::ptx) struct Mad {
    pub(in crate::ptx) negate_product: bool,
    pub(in crate::ptx) negate_c: bool,
    pub(in crate::ptx) plus_one: bool,
    pub(in crate::ptx) is_signed: bool,
    pub(in crate::ptx) saturate: bool,
    pub(in crate::ptx) scale: u8,
}

impl Mad {
    /// As the last source of [`mad`].
    pub(in crate::ptx) fn bits(self) -> u64 {
        let flag = |flag: bool, at: u32| u64::from(flag) << at;
        flag(self.negate_product, 0)
            | flag(self.negate_c, 1)
            | flag(self.plus_one, 2)
            | flag(self.is_signed, 3)
            | flag(self.saturate, 4)
            | (u64::from(self.scale) << 8)
    }
}

/// `a * b + c`, as [`Mad::bits`] says.
pub(in crate::ptx) fn mad(a: u64, b: u64, c: u64, how: u64) -> u64 {
    let is = |at: u32| (how >> at) & 1 == 1;
    let is_signed = is(3);
    let mut product = i128::from(a as i64).wrapping_mul(i128::from(b as i64));
    let mut c = c as u32;
    let mut low = i128::from(is(2));
    if is(2) {
    } else if is(0) {
        product = !product;
        low = 1;
    } else if is(1) {
        c = !c;
        low = 1;
    }
    let c = if is_signed { i128::from(c as i32) } else { i128::from(c) };
    let result = ((product + c + low) >> ((how >> 8) & 31)) as i64;
    let result = match (is(4), is_signed) {
        (false, _) => result,
        (true, true) => result.clamp(i32::MIN.into(), i32::MAX.into()),
        // The scaled sum is a number of 64 bits without a sign.
        (true, false) => (result as u64).min(u32::MAX.into()) as i64,
    };
    u64::from(result as u32)
}
