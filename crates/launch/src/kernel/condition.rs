//! The values in conditions of typed kernels: integers, extents and lengths.
//!
//! Integers are 128 bits wide, so products of a launch's numbers do not wrap around. An operation
//! that overflows all the same, or divides by zero, makes the condition false.

use core::cell::Cell;
use core::cmp::Ordering;
use core::ops::{Add, Div, Mul, Neg, Rem, Sub};

use crate::config::dim::Dim;
use crate::config::launch_config::LaunchConfig;

/// One evaluation of conditions. Remembers whether an operation overflowed or divided by zero.
#[derive(Debug, Default)]
pub struct Scope {
    failed: Cell<bool>,
}

impl Scope {
    /// A scope without failures.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an operation exceeded 128 bits or divided by zero.
    #[inline]
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// An integer.
    #[inline]
    #[must_use]
    pub fn int(&self, value: impl Into<i128>) -> Int<'_> {
        Int { value: value.into(), scope: self }
    }

    /// The extents of a grid, in blocks.
    #[inline]
    #[must_use]
    pub fn grid(&self, config: &LaunchConfig) -> Extent<'_> {
        self.extent(config.grid())
    }

    /// The extents of a block, in threads.
    #[inline]
    #[must_use]
    pub fn block(&self, config: &LaunchConfig) -> Extent<'_> {
        self.extent(config.block())
    }

    /// The extents of a cluster, in blocks; (1, 1, 1) without clusters.
    #[inline]
    #[must_use]
    pub fn cluster(&self, config: &LaunchConfig) -> Extent<'_> {
        self.extent(config.cluster_dim())
    }

    /// The bytes of dynamic shared memory.
    #[inline]
    #[must_use]
    pub fn shared(&self, config: &LaunchConfig) -> Int<'_> {
        self.int(config.shared())
    }

    #[inline]
    fn extent(&self, dim: Dim) -> Extent<'_> {
        Extent { x: self.int(dim.x), y: self.int(dim.y), z: self.int(dim.z) }
    }
}

/// An integer in a condition, for arithmetic and comparisons with others and with literals.
#[derive(Clone, Copy, Debug)]
pub struct Int<'s> {
    value: i128,
    scope: &'s Scope,
}

impl Int<'_> {
    /// The nearest `f64`, for comparisons with floating-point parameters.
    #[inline]
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.value as f64
    }

    #[inline]
    fn with(self, value: Option<i128>) -> Self {
        if value.is_none() {
            self.scope.failed.set(true);
        }
        Self { value: value.unwrap_or(0), ..self }
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $checked:ident),*) => {$(
        impl $operator for Int<'_> {
            type Output = Self;

            #[inline]
            fn $method(self, other: Self) -> Self {
                self.with(self.value.$checked(other.value))
            }
        }

        impl $operator<i128> for Int<'_> {
            type Output = Self;

            #[inline]
            fn $method(self, other: i128) -> Self {
                self.with(self.value.$checked(other))
            }
        }

        impl<'s> $operator<Int<'s>> for i128 {
            type Output = Int<'s>;

            #[inline]
            fn $method(self, other: Int<'s>) -> Int<'s> {
                other.with(self.$checked(other.value))
            }
        }
    )*};
}

operators!(Add add checked_add, Sub sub checked_sub, Mul mul checked_mul, Div div checked_div, Rem rem checked_rem);

impl Neg for Int<'_> {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        self.with(self.value.checked_neg())
    }
}

impl PartialEq for Int<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq<i128> for Int<'_> {
    #[inline]
    fn eq(&self, other: &i128) -> bool {
        self.value == *other
    }
}

impl PartialEq<Int<'_>> for i128 {
    #[inline]
    fn eq(&self, other: &Int<'_>) -> bool {
        *self == other.value
    }
}

impl PartialOrd for Int<'_> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

impl PartialOrd<i128> for Int<'_> {
    #[inline]
    fn partial_cmp(&self, other: &i128) -> Option<Ordering> {
        self.value.partial_cmp(other)
    }
}

impl PartialOrd<Int<'_>> for i128 {
    #[inline]
    fn partial_cmp(&self, other: &Int<'_>) -> Option<Ordering> {
        self.partial_cmp(&other.value)
    }
}

/// A grid (in blocks), a block (in threads) or a cluster (in blocks) in a condition.
#[derive(Clone, Copy, Debug)]
pub struct Extent<'s> {
    /// The extent in the dimension whose index changes fastest.
    pub x: Int<'s>,
    /// The extent in the second dimension.
    pub y: Int<'s>,
    /// The extent in the third dimension.
    pub z: Int<'s>,
}

impl<'s> Extent<'s> {
    /// The product of the three extents.
    #[inline]
    #[must_use]
    pub fn product(self) -> Int<'s> {
        self.x * self.y * self.z
    }
}

/// A buffer or slice in a condition.
#[derive(Clone, Copy, Debug)]
pub struct Length<'s>(pub(crate) Int<'s>);

#[allow(clippy::len_without_is_empty)] // Conditions write `x.len() == 0`.
impl<'s> Length<'s> {
    /// The number of elements.
    #[inline]
    #[must_use]
    pub fn len(self) -> Int<'s> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_with_literals_on_either_side() {
        let scope = Scope::new();
        let n = scope.int(6_u32);
        assert!(n >= 6 && n * 2 + 1 == 13 && 2 * n - 12 == 0 && 7 > n && -n < 0 && n / 4 == 1 && 13 % n == 1);
        assert!(n * n == scope.int(36_u64) && n * n > n);
        assert!(!scope.has_failed());
    }

    #[test]
    fn numbers_that_are_too_large_are_noticed() {
        let scope = Scope::new();
        let most = scope.int(u64::MAX);
        let square = most * most;
        assert!(scope.has_failed() && square == 0);
        let scope = Scope::new();
        assert!(scope.int(1_u32) / scope.int(0_u32) == 0 && scope.has_failed());
        let scope = Scope::new();
        let extent = scope.grid(&LaunchConfig::new([u32::MAX; 3], 1));
        assert!(extent.product() == i128::from(u32::MAX).pow(3) && !scope.has_failed());
    }
}
