//! The approximate functions, computed in double precision, so that they are at least as accurate
//! as a GPU's.

use super::float;
use super::rounding::{NEAREST, ZERO};
use super::value::{Bf16, F16, Flushed, Value};

macro_rules! approximations {
    ($($name:ident, $x:ident, $result:expr;)*) => {$(
        pub(in crate::ptx) mod $name {
            use super::{Flushed, Value};
            pub(super) fn exact($x: f64) -> f64 {
                $result
            }
            pub(in crate::ptx) fn f32(a: u64) -> u64 {
                (exact(f64::from(f32::get(a))) as f32).put()
            }
            pub(in crate::ptx) fn f32_flushed(a: u64) -> u64 {
                Flushed(exact(f64::from(Flushed::get(a).0)) as f32).put()
            }
        }
    )*};
}
approximations! {
    sin, x, super::turns(x).map_or(f64::NAN, |turns| if turns == 0.0 { 0.0_f64.copysign(x) } else { turns.sin() });
    cos, x, super::turns(x).map_or(f64::NAN, f64::cos);
    tanh, x, x.tanh();
    ex2, x, x.exp2();
    lg2, x, if x < 0.0 { f64::NAN } else { x.log2() };
    rcp, x, 1.0 / x;
    sqrt, x, x.sqrt();
    rsqrt, x, 1.0 / x.sqrt();
}

/// The approximations that halves have.
macro_rules! halves {
    ($($name:ident, $of:ident, $half:ident;)*) => {$(
        pub(in crate::ptx) fn $name(a: u64) -> u64 {
            $half::from_odd::<NEAREST>($of::exact($half::get(a).to_f64())).put()
        }
    )*};
}
halves! {
    tanh_f16, tanh, F16;
    tanh_bf16, tanh, Bf16;
    ex2_f16, ex2, F16;
}
/// Subnormal results become zero.
pub(in crate::ptx) fn ex2_bf16_flushed(a: u64) -> u64 {
    let result = Bf16::from_odd::<NEAREST>(ex2::exact(Bf16::get(a).to_f64())).put();
    if result & 0x7f80 == 0 { result & 0x8000 } else { result }
}

/// Reduces an angle as a GPU does, by a product in single precision, which loses large angles.
fn turns(x: f64) -> Option<f64> {
    let turns =
        float::mul::<f32, ZERO>((x as f32).put(), std::f32::consts::FRAC_1_PI.mul_add(0.5, 0.0).put());
    let turns = f64::from(f32::get(turns));
    turns.is_finite().then(|| turns.fract() * std::f64::consts::TAU)
}

const UPPER: u64 = !(u32::MAX as u64);

/// The seed that the compiler's own division starts from: of the upper word of the number, the
/// upper word of the result. The lower words are 0.
pub(in crate::ptx) fn rcp_f64(a: u64) -> u64 {
    upper_word(1.0 / flush(f64::get(a & UPPER)))
}
/// The seed for square roots, upper word only.
pub(in crate::ptx) fn rsqrt_f64(a: u64) -> u64 {
    upper_word(1.0 / flush(f64::get(a & UPPER)).sqrt())
}
pub(in crate::ptx) fn rsqrt_f64_full(a: u64) -> u64 {
    (1.0 / f64::get(a).sqrt()).put()
}

fn flush(x: f64) -> f64 {
    if x.is_subnormal() { 0.0_f64.copysign(x) } else { x }
}
fn upper_word(x: f64) -> u64 {
    flush(x).put() & UPPER
}
