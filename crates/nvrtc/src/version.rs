//! Versions of NVRTC, of drivers and of PTX.

use core::fmt;

/// A version, such as 12.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The part before the point.
    pub major: u32,
    /// The part after the point.
    pub minor: u32,
}

impl Version {
    /// The version `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The newest PTX that a driver of each CUDA version reads, from the PTX documentation.
const PTX: [(Version, Version); 12] = [
    (Version::new(12, 0), Version::new(8, 0)),
    (Version::new(12, 1), Version::new(8, 1)),
    (Version::new(12, 2), Version::new(8, 2)),
    (Version::new(12, 3), Version::new(8, 3)),
    (Version::new(12, 4), Version::new(8, 4)),
    (Version::new(12, 5), Version::new(8, 5)),
    (Version::new(12, 6), Version::new(8, 5)),
    (Version::new(12, 7), Version::new(8, 6)),
    (Version::new(12, 8), Version::new(8, 7)),
    (Version::new(12, 9), Version::new(8, 8)),
    (Version::new(13, 0), Version::new(9, 0)),
    (Version::new(13, 1), Version::new(9, 1)),
];

/// The newest PTX that a driver reads; `None` for a driver version unknown to this crate.
#[must_use]
pub fn newest_ptx(driver: Version) -> Option<Version> {
    PTX.iter().find(|(known, _)| *known == driver).map(|(_, ptx)| *ptx)
}

/// The version in PTX's `.version` line.
pub(crate) fn of_ptx(text: &str) -> Option<Version> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(".version"))?;
    let (major, minor) = line.trim().split_once('.')?;
    let digits = minor.find(|one: char| !one.is_ascii_digit()).unwrap_or(minor.len());
    Some(Version::new(major.parse().ok()?, minor[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_says_its_version() {
        assert_eq!(of_ptx("// a comment\n//\n.version 8.0\n.target sm_70"), Some(Version::new(8, 0)));
        assert_eq!(of_ptx("  .version 9.12 // so"), Some(Version::new(9, 12)));
        assert_eq!([of_ptx(""), of_ptx(".version"), of_ptx(".version x.y"), of_ptx(".version 8")], [None; 4]);
    }

    #[test]
    fn every_driver_reads_no_less_than_the_one_before() {
        assert!(PTX.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(newest_ptx(Version::new(12, 2)), Some(Version::new(8, 2)));
        assert_eq!(newest_ptx(Version::new(99, 0)), None);
    }
}
