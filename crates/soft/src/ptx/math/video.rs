//! The video instructions: parts of words, taken as signed 64-bit numbers.
//!
//! GPUs since Maxwell have no such instructions: assemblers translate them into others, and some
//! results differ from the text of the PTX manual. These are the results of the assembler.

/// The low word of a number.
const LOW: u64 = u32::MAX as u64;

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
    /// The average, where a half is rounded away from zero.
    average, a, b, {
        let sum = a.wrapping_add(b);
        if sum >= 0 { sum.wrapping_add(1) >> 1 } else { sum >> 1 }
    };
    shl_clamp, a, b, a << b.clamp(0, 32);
    shl_wrap, a, b, a << (b & 31);
    shr_clamp, a, b, a >> b.clamp(0, 32);
    shr_wrap, a, b, a >> (b & 31);
    min_signed, a, b, a.min(b);
    max_signed, a, b, a.max(b);
    min_unsigned, a, b, (a as u64).min(b as u64);
    max_unsigned, a, b, (a as u64).max(b as u64);
}

/// The low word as a signed number.
pub(in crate::ptx) fn word(a: u64) -> u64 {
    part::<32, true>(a, 0)
}

/// Saturates to an unsigned word. Only negative numbers count as out of range.
pub(in crate::ptx) fn saturate_unsigned(a: u64) -> u64 {
    (a as i64).max(0) as u64
}

/// Saturates to `BITS` bits, fewer than a word has. A negative number is above the range.
pub(in crate::ptx) fn saturate_part<const BITS: u32, const SIGNED: bool>(a: u64) -> u64 {
    let greatest = if SIGNED { (1_u64 << (BITS - 1)) - 1 } else { (1_u64 << BITS) - 1 };
    a.min(greatest)
}

/// Saturates what a shift gives to a word. Bits above the lowest 34 are lost before that.
pub(in crate::ptx) fn saturate_shifted<const SIGNED: bool>(a: u64) -> u64 {
    clamp::<32, SIGNED>((((a << 30) as i64) >> 30) as u64)
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
    ((word & !(mask << shift)) | ((a & mask) << shift)) & LOW
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

/// `a * b + c`, as [`Mad::bits`] says. All three are signed words, whatever their types.
pub(in crate::ptx) fn mad(a: u64, b: u64, c: u64, how: u64) -> u64 {
    let is = |at: u32| (how >> at) & 1 == 1;
    let word = |x: u64| i64::from(x as i32);
    let product = word(a).wrapping_mul(word(b));
    let (product, c, one) = match (is(2), is(0), is(1)) {
        (true, _, _) => (product, word(c), 1),
        (_, true, _) => (!product, word(c), 1),
        (_, _, true) => (product, word(!c), 1),
        _ => (product, word(c), 0),
    };
    let sum = product.wrapping_add(c).wrapping_add(one);
    let (is_signed, scale) = (is(3), (how >> 8) & 31);
    let scaled = if is_signed { (sum >> scale) as u64 } else { sum as u64 >> scale };
    let result = match (is(4), is_signed) {
        (false, _) => scaled,
        (true, true) => clamp::<32, true>(scaled),
        (true, false) => clamp::<32, false>(scaled),
    };
    result & LOW
}
