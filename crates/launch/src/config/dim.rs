//! Extents in three dimensions: `Dim`.

use core::fmt;

/// The extents of a grid or cluster (in blocks) or of a block (in threads).
///
/// ```
/// use cuda_launch::Dim;
///
/// assert_eq!(Dim::from(7), Dim { x: 7, y: 1, z: 1 });
/// assert_eq!(Dim::from((7, 2)), Dim::from([7, 2, 1]));
/// assert_eq!(Dim::from((7, 2)).to_string(), "(7, 2, 1)");
/// ```
#[doc(alias = "dim3")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dim {
    /// The extent in the dimension whose index changes fastest.
    pub x: u32,
    /// The extent in the second dimension.
    pub y: u32,
    /// The extent in the third dimension.
    pub z: u32,
}

impl Dim {
    /// The product of the three extents, at most `u64::MAX`.
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
        // An extent of zero wraps around and exceeds every limit. An extent of one never does: the
        // compiler drops the comparison for launches in fewer dimensions.
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
