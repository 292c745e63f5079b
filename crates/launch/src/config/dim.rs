//! Extents in three dimensions.

use core::fmt;

/// The extent of a grid (in blocks) or of a block (in threads) in three dimensions.
///
/// ```
/// use cuda_launch::Dim;
///
/// assert_eq!(Dim::from(7), Dim { x: 7, y: 1, z: 1 });
/// assert_eq!(Dim::from((7, 2)), Dim::from([7, 2, 1]));
/// assert_eq!(Dim::from((7, 2)).to_string(), "(7, 2, 1)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dim {
    /// The extent in the direction whose index changes fastest.
    pub x: u32,
    /// The extent in the second direction.
    pub y: u32,
    /// The extent in the third direction.
    pub z: u32,
}

impl Dim {
    /// The product of the three extents; `u64::MAX` where it is larger than that.
    #[must_use]
    #[inline]
    pub fn product(self) -> u64 {
        (u64::from(self.x) * u64::from(self.y)).saturating_mul(u64::from(self.z))
    }

    pub(crate) fn axes(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }

    /// Whether each extent is at least one and at most its limit.
    #[inline]
    pub(crate) fn within(self, max: &[u32; 3]) -> bool {
        // An extent of zero wraps around and is beyond every limit. One is within all of them,
        // which is known when a launch in fewer dimensions is compiled.
        let fits = |extent: u32, max: u32| extent.wrapping_sub(1) < max;
        fits(self.x, max[0]) && (self.y == 1 || fits(self.y, max[1])) && (self.z == 1 || fits(self.z, max[2]))
    }
}

impl From<u32> for Dim {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

impl From<[u32; 3]> for Dim {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Self { x, y, z }
    }
}

impl From<Dim> for (u32, u32, u32) {
    fn from(dim: Dim) -> Self {
        (dim.x, dim.y, dim.z)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "({}, {}, {})", self.x, self.y, self.z)
    }
}
