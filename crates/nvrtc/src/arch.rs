//! Architectures and compilation targets.

use core::fmt;

/// A compute capability, such as 9.0, as the compiler's options name it: `compute_90`, `sm_90`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    major: u32,
    minor: u32,
    suffix: Option<char>,
}

impl Arch {
    /// The compute capability `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor, suffix: None }
    }

    /// Adds the features specific to this compute capability, as in `sm_90a`. The code runs on no
    /// other.
    #[must_use]
    pub const fn specific(self) -> Self {
        Self { suffix: Some('a'), ..self }
    }

    /// Adds the features of this compute capability's family, as in `sm_100f`. Needs NVRTC 12.9.
    #[must_use]
    pub const fn of_family(self) -> Self {
        Self { suffix: Some('f'), ..self }
    }

    /// Converts the compiler's number: 90 for 9.0, 120 for 12.0.
    pub(crate) const fn from_number(number: u32) -> Self {
        Self::new(number / 10, number % 10)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.major, self.minor)?;
        self.suffix.map_or(Ok(()), |suffix| write!(formatter, "{suffix}"))
    }
}

/// The form and the architecture of the compiled code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// PTX for the oldest architecture that the compiler supports, or for the context's device if
    /// there is a context (feature `nvrtc` of cuda-handles).
    #[default]
    Unnamed,
    /// PTX, which runs on this compute capability and later ones.
    Ptx(Arch),
    /// Machine code, which runs on this compute capability and later ones of the same major number.
    /// The driver compiles nothing, and may be older than the compiler within the same major
    /// version.
    Cubin(Arch),
}

impl Target {
    pub(crate) fn option(self) -> Option<String> {
        match self {
            Self::Unnamed => None,
            Self::Ptx(arch) => Some(format!("--gpu-architecture=compute_{arch}")),
            Self::Cubin(arch) => Some(format!("--gpu-architecture=sm_{arch}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_named_as_the_compiler_does() {
        assert_eq!(Target::Ptx(Arch::new(7, 5)).option().as_deref(), Some("--gpu-architecture=compute_75"));
        let specific = Target::Cubin(Arch::new(9, 0).specific());
        assert_eq!(specific.option().as_deref(), Some("--gpu-architecture=sm_90a"));
        let family = Target::Cubin(Arch::from_number(120).of_family());
        assert_eq!(family.option().as_deref(), Some("--gpu-architecture=sm_120f"));
        assert_eq!(Target::default().option(), None);
        assert!(Arch::from_number(100) > Arch::new(9, 0));
    }
}
