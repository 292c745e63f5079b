//! Comparisons. The results are 0 or 1.

use std::cmp::Ordering;

use super::value::Value;

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident, $a:ident, $b:ident, $result:expr;)*) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub(in crate::ptx) fn $name<T: Value + PartialOrd>(a: u64, b: u64) -> u64 {
            let ($a, $b) = (T::get(a), T::get(b));
            u64::from($result)
        }
    )*};
}

comparisons! {
    eq, a, b, a == b;
    /// Not equal, and for floats neither is NaN.
    ne, a, b, a.partial_cmp(&b).is_some_and(Ordering::is_ne);
    lt, a, b, a < b;
    le, a, b, a <= b;
    gt, a, b, a > b;
    ge, a, b, a >= b;
    /// Equal or unordered, as the others that end in `u`.
    equ, a, b, a == b || a.partial_cmp(&b).is_none();
    neu, a, b, a != b;
    ltu, a, b, a < b || a.partial_cmp(&b).is_none();
    leu, a, b, a <= b || a.partial_cmp(&b).is_none();
    gtu, a, b, a > b || a.partial_cmp(&b).is_none();
    geu, a, b, a >= b || a.partial_cmp(&b).is_none();
    /// Neither is NaN.
    num, a, b, a.partial_cmp(&b).is_some();
    /// At least one is NaN.
    nan, a, b, a.partial_cmp(&b).is_none();
}

/// The classes of `testp`, as functions of the type.
macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident, $x:ident, $result:expr;)*) => {$(
        $(#[$doc])*
        pub(in crate::ptx) mod $name {
            use super::Value;
            pub(in crate::ptx) fn f32(a: u64) -> u64 {
                let $x = f32::from_bits(a as u32);
                u64::from($result)
            }
            pub(in crate::ptx) fn f64(a: u64) -> u64 {
                let $x = f64::get(a);
                u64::from($result)
            }
        }
    )*};
}
classes! {
    finite, x, x.is_finite();
    infinite, x, x.is_infinite();
    number, x, !x.is_nan();
    notanumber, x, x.is_nan();
    /// Zero counts as normal: seen on an H200.
    normal, x, x.is_normal() || x == 0.0;
    subnormal, x, x.is_subnormal();
}
