//! The representation of each type in a 64-bit register.

use super::rounding::{self, Format};

/// A type that can be read from and written to a register.
pub(in crate::ptx) trait Value: Copy {
    /// Reads the low bits of a register.
    fn get(register: u64) -> Self;
    /// The register content for this value, extended to all bits.
    fn put(self) -> u64;
}

macro_rules! unsigned {
    ($($t:ty),*) => {$(
        impl Value for $t {
            #[inline(always)]
            fn get(register: u64) -> Self { register as $t }
            #[inline(always)]
            fn put(self) -> u64 { self as u64 }
        }
    )*};
}
macro_rules! signed {
    ($($t:ty),*) => {$(
        impl Value for $t {
            #[inline(always)]
            fn get(register: u64) -> Self { register as $t }
            #[inline(always)]
            fn put(self) -> u64 { self as i64 as u64 }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);
signed!(i8, i16, i32, i64);

/// The NaN that single-precision arithmetic returns on a GPU.
const NAN_F32: u32 = 0x7fff_ffff;

impl Value for f32 {
    #[inline(always)]
    fn get(register: u64) -> Self {
        f32::from_bits(register as u32)
    }
    #[inline(always)]
    fn put(self) -> u64 {
        u64::from(if self.is_nan() { NAN_F32 } else { self.to_bits() })
    }
}

impl Value for f64 {
    #[inline(always)]
    fn get(register: u64) -> Self {
        f64::from_bits(register)
    }
    #[inline(always)]
    fn put(self) -> u64 {
        self.to_bits()
    }
}

/// Single precision under `.ftz`: subnormal numbers read and write as zero of their sign.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(in crate::ptx) struct Flushed(pub(in crate::ptx) f32);

impl Value for Flushed {
    #[inline(always)]
    fn get(register: u64) -> Self {
        Flushed(flush(f32::get(register)))
    }
    #[inline(always)]
    fn put(self) -> u64 {
        flush(self.0).put()
    }
}

/// Zero of the same sign for a subnormal number.
#[inline(always)]
pub(in crate::ptx) fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0_f32.copysign(x) } else { x }
}

/// Half precision.
#[derive(Clone, Copy)]
pub(in crate::ptx) struct F16(pub(in crate::ptx) u16);
/// Brain float: the upper half of a single.
#[derive(Clone, Copy)]
pub(in crate::ptx) struct Bf16(pub(in crate::ptx) u16);

macro_rules! small_float {
    ($t:ident, $format:expr) => {
        impl Value for $t {
            fn get(register: u64) -> Self {
                $t(register as u16)
            }
            fn put(self) -> u64 {
                u64::from(self.0)
            }
        }
        impl $t {
            pub(in crate::ptx) fn to_f64(self) -> f64 {
                rounding::widen(u32::from(self.0), $format)
            }
        }
        impl PartialEq for $t {
            fn eq(&self, other: &Self) -> bool {
                self.to_f64() == other.to_f64()
            }
        }
        impl PartialOrd for $t {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.to_f64().partial_cmp(&other.to_f64())
            }
        }
    };
}
small_float!(F16, Format::F16);
small_float!(Bf16, Format::BF16);

/// Half precision under `.ftz`, as [`Flushed`].
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(in crate::ptx) struct FlushedF16(pub(in crate::ptx) F16);

impl Value for FlushedF16 {
    fn get(register: u64) -> Self {
        FlushedF16(flush_f16(F16::get(register)))
    }
    fn put(self) -> u64 {
        flush_f16(self.0).put()
    }
}

/// Zero of the same sign for a subnormal half.
fn flush_f16(x: F16) -> F16 {
    if x.0 & 0x7c00 == 0 { F16(x.0 & 0x8000) } else { x }
}
