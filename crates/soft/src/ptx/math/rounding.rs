//! Exact rounding, by way of double precision rounded to odd.
//!
//! A result computed in double precision and *rounded to odd* (the last bit set whenever anything
//! was lost) keeps enough to be rounded once more, in any direction, to a format of at most 25
//! bits: the same as rounding the exact result once.

/// Rounding modes of `.rn`, `.rz`, `.rm` and `.rp`, as parameters of generic functions.
pub(in crate::ptx) const NEAREST: u8 = 0;
pub(in crate::ptx) const ZERO: u8 = 1;
pub(in crate::ptx) const DOWN: u8 = 2;
pub(in crate::ptx) const UP: u8 = 3;

/// A binary floating-point format narrower than double precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ptx) struct Format {
    /// Bits of the significand with the hidden one.
    precision: u32,
    /// Exponent of the smallest normal number.
    least: i32,
}

impl Format {
    pub(in crate::ptx) const F32: Format = Format { precision: 24, least: -126 };
    pub(in crate::ptx) const F16: Format = Format { precision: 11, least: -14 };
    pub(in crate::ptx) const BF16: Format = Format { precision: 8, least: -126 };

    /// Bits of infinity without the sign.
    const fn infinity(self) -> u32 {
        (2 * (1 - self.least) as u32 + 1) << (self.precision - 1)
    }

    const fn sign(self) -> u32 {
        if self.precision == 24 { 1 << 31 } else { 1 << 15 }
    }

    /// The one NaN that arithmetic returns: all bits but the sign.
    const fn nan(self) -> u32 {
        self.sign() - 1
    }
}

/// The bits of `x` in a narrower format, rounded by `mode`.
pub(in crate::ptx) fn narrow(x: f64, format: Format, mode: u8) -> u32 {
    let bits = x.to_bits();
    let negative = bits >> 63 != 0;
    let sign = if negative { format.sign() } else { 0 };
    if x.is_nan() {
        return format.nan();
    }
    if x.is_infinite() {
        return sign | format.infinity();
    }
    if x == 0.0 {
        return sign;
    }
    let raw = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    // A subnormal double is far below every format here: its exponent need not be exact, only
    // small.
    let (exponent, significand) =
        if raw == 0 { (-1023, fraction | 1) } else { (raw - 1023, fraction | (1 << 52)) };
    let below = (format.least - exponent).max(0) as u32;
    let shift = (53 - format.precision + below).min(63);
    let kept = significand >> shift;
    let lost = significand & ((1 << shift) - 1);
    let half = 1_u64 << (shift - 1);
    let up = match mode {
        NEAREST => lost > half || (lost == half && kept & 1 == 1),
        DOWN => negative && lost != 0,
        UP => !negative && lost != 0,
        _ => false,
    };
    let kept = kept as u32 + u32::from(up);
    let magnitude = if below > 0 {
        kept
    } else {
        let steps = u32::try_from(exponent - format.least).unwrap_or(0);
        (u64::from(steps) << (format.precision - 1))
            .saturating_add(u64::from(kept))
            .min(u64::from(u32::MAX >> 1)) as u32
    };
    if magnitude < format.infinity() {
        return sign | magnitude;
    }
    let stays_finite = match mode {
        NEAREST => false,
        DOWN => !negative,
        UP => negative,
        _ => true,
    };
    sign | (format.infinity() - u32::from(stays_finite))
}

/// The value of the bits of a narrower format; exact.
pub(in crate::ptx) fn widen(bits: u32, format: Format) -> f64 {
    let magnitude = bits & (format.sign() - 1);
    let value = if magnitude > format.infinity() {
        f64::NAN
    } else if magnitude == format.infinity() {
        f64::INFINITY
    } else {
        let field = magnitude >> (format.precision - 1);
        let fraction = magnitude & ((1 << (format.precision - 1)) - 1);
        let significand = if field == 0 { fraction } else { fraction | (1 << (format.precision - 1)) };
        let exponent = format.least + field.max(1) as i32 - 1 - (format.precision as i32 - 1);
        f64::from(significand) * f64::from_bits(((exponent + 1023) as u64) << 52)
    };
    if bits & format.sign() != 0 { -value } else { value }
}

/// `x`, the rounded form of an exact value that is `lost` away, rounded to odd instead.
#[inline(always)]
pub(in crate::ptx) fn to_odd(x: f64, lost: f64) -> f64 {
    if lost == 0.0 || !x.is_finite() || lost.is_nan() || x.to_bits() & 1 == 1 {
        return x;
    }
    // An even neighbour was taken: the exact value lies beyond it (away from zero) or before it.
    let away = (lost > 0.0) == (x > 0.0);
    f64::from_bits(if away { x.to_bits() + 1 } else { x.to_bits().wrapping_sub(1) })
}

/// `x`, the nearest double to an exact value that is `lost` away, rounded by `mode` instead.
pub(in crate::ptx) fn direct(x: f64, lost: f64, mode: u8) -> f64 {
    match mode {
        DOWN if lost < 0.0 => x.next_down(),
        UP if lost > 0.0 => x.next_up(),
        ZERO if x > 0.0 && lost < 0.0 => x.next_down(),
        ZERO if x < 0.0 && lost > 0.0 => x.next_up(),
        _ => x,
    }
}

/// `x`, the nearest double to an exact value that is `lost` away, times 2^-512 and rounded by mode:
/// the result may be subnormal.
pub(in crate::ptx) fn scaled_back(x: f64, lost: f64, mode: u8) -> f64 {
    let odd = to_odd(x, lost);
    let (bits, negative) = (odd.abs().to_bits(), odd.is_sign_negative());
    let exponent = (bits >> 52) as i32 - 512;
    if !odd.is_finite() || exponent > 0 {
        return direct(x, lost, mode) * f64::from_bits((1023 - 512) << 52);
    }
    // Now the exponent field would be zero or less: the significand moves right instead.
    let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
    let shift = (1 - exponent).min(63);
    let lost = significand & ((1 << shift) - 1) != 0;
    let up = lost && ((mode == DOWN && negative) || (mode == UP && !negative));
    let magnitude = f64::from_bits((significand >> shift) + u64::from(up));
    if negative { -magnitude } else { magnitude }
}

/// The rounded sum and what it lost, which is exact.
#[inline(always)]
pub(in crate::ptx) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}
