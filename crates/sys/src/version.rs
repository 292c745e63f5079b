//! Versions of the driver interface.

use core::ffi::c_int;
use core::fmt;

/// A version of the CUDA driver interface, such as 12.2.
///
/// ```
/// use cuda_sys::Version;
///
/// assert_eq!(Version::new(12, 2), Version::from_raw(12020));
/// assert_eq!(Version::new(12, 2).to_string(), "12.2");
/// assert!(Version::new(12, 2) < Version::new(13, 0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(c_int);

impl Version {
    /// The oldest driver that [`Loader::install`](crate::Loader::install) accepts.
    pub const BASELINE: Self = Self::new(12, 2);

    /// The version `major.minor`.
    #[must_use]
    pub const fn new(major: u16, minor: u8) -> Self {
        Self(major as c_int * 1000 + minor as c_int * 10)
    }

    /// The version as `cuDriverGetVersion` reports it: 12020 for 12.2.
    #[must_use]
    pub const fn from_raw(raw: c_int) -> Self {
        Self(raw)
    }

    /// The number that the driver uses: 12020 for 12.2.
    #[must_use]
    pub const fn as_raw(self) -> c_int {
        self.0
    }

    /// The part before the point.
    #[must_use]
    pub const fn major(self) -> c_int {
        self.0 / 1000
    }

    /// The part after the point.
    #[must_use]
    pub const fn minor(self) -> c_int {
        self.0 % 1000 / 10
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major(), self.minor())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
