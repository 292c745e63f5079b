//! Errors of launches, one variant for each check that can fail.

use core::fmt;

use cuda_sys::{DriverTooOld, Printable};

use crate::config::launch_config::LaunchConfig;

/// Shows an error in `Debug` as in `Display`, so that an error out of `main` reads as a sentence.
macro_rules! debug_is_display {
    ($($error:ident),*) => {$(
        impl core::fmt::Debug for $error {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, formatter)
            }
        }
    )*};
}

mod wrong_arguments;

pub(crate) use wrong_arguments::MAX_BYTES;
pub use wrong_arguments::WrongArguments;

/// The result of this crate's functions.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The error of a kernel that was not launched.
///
/// Except for [`Error::Handles`], the driver was not called. `Debug` shows the same sentence as
/// `Display`.
///
/// The variants by what to change:
/// - the arguments: [`WrongArguments`](Self::WrongArguments), [`Overlap`](Self::Overlap),
///   [`TensorMap`](Self::TensorMap);
/// - the configuration: [`Limit`](Self::Limit), [`Attribute`](Self::Attribute);
/// - either, as the kernel's declaration says: [`Condition`](Self::Condition);
/// - the place of the launch: [`OutsideGraph`](Self::OutsideGraph);
/// - the driver: [`DriverTooOld`](Self::DriverTooOld);
/// - as [`cuda_handles::Error`] says: [`Handles`](Self::Handles).
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver answered with an error, or the kernel, the stream or memory is of another
    /// context, captured, or otherwise unusable.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
    /// The arguments differ in number or size from the kernel's parameters.
    #[error(transparent)]
    WrongArguments(Box<WrongArguments>),
    /// The configuration exceeds a limit of the device or the kernel.
    #[error(transparent)]
    Limit(Box<LimitExceeded>),
    /// A condition of the kernel's declaration does not hold.
    #[error(transparent)]
    Condition(Box<BrokenCondition>),
    /// Memory that the kernel writes overlaps another argument.
    #[error(transparent)]
    Overlap(Box<OverlappingArguments>),
    /// The device or the kernel does not allow an attribute of the launch.
    #[error(transparent)]
    Attribute(Box<AttributeRefused>),
    /// The driver is too old for an attribute of the launch.
    #[error(transparent)]
    DriverTooOld(#[from] DriverTooOld),
    /// A kernel that takes the handle of a condition was launched on a stream. It can only be a
    /// node of the condition's graph: set outside of that graph's launch, the handle costs the
    /// device its context.
    #[error(
        "kernel `{}` takes the handle of a condition: add it as a node of the condition's graph",
        Printable(kernel)
    )]
    OutsideGraph {
        /// The kernel's name.
        kernel: Box<str>,
    },
    /// The shape of a tensor map breaks a rule of the hardware, or exceeds its memory.
    #[error("the tensor map is not possible: {0}")]
    TensorMap(Box<str>),
}

debug_is_display!(Error, AttributeRefused, BrokenCondition, OverlappingArguments, LimitExceeded);

/// An attribute of a launch that the device or the kernel does not allow.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{}` cannot be launched with {config}: {what} is not possible: {reason}", Printable(kernel))]
#[non_exhaustive]
pub struct AttributeRefused {
    /// The kernel's name.
    pub kernel: String,
    /// The configuration.
    pub config: LaunchConfig,
    /// The attribute, in words.
    pub what: &'static str,
    /// The reason.
    pub reason: String,
}

/// A condition of a kernel's declaration that does not hold for a launch.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "kernel `{}` cannot be launched: `{condition}` does not hold with {}{config}",
    Printable(kernel),
    separated(values)
)]
#[non_exhaustive]
pub struct BrokenCondition {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The condition as declared.
    pub condition: &'static str,
    /// The arguments by name, with their values.
    pub values: String,
    /// The configuration.
    pub config: LaunchConfig,
}

fn separated(values: &str) -> String {
    if values.is_empty() { String::new() } else { format!("{values}; ") }
}

/// Two arguments that share memory, at least one of which the kernel writes.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "kernel `{}` cannot be launched: `{first}` and `{second}` overlap by {bytes} bytes, and one of them is written; if the kernel \
     is made for that, declare it with `allow overlap`",
    Printable(kernel)
)]
#[non_exhaustive]
pub struct OverlappingArguments {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The first argument's name.
    pub first: &'static str,
    /// The second argument's name.
    pub second: &'static str,
    /// The number of bytes they share.
    pub bytes: u64,
}

/// A launch configuration that exceeds a limit of the device or the kernel.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "kernel `{}` cannot be launched with {config}: the {what} {}{}",
    Printable(kernel),
    verdict(*asked, *limit),
    Advice(advice)
)]
#[non_exhaustive]
pub struct LimitExceeded {
    /// The kernel's name.
    pub kernel: String,
    /// The configuration.
    pub config: LaunchConfig,
    /// The limited quantity, in words.
    pub what: &'static str,
    /// The value in the configuration.
    pub asked: u64,
    /// The largest allowed value.
    pub limit: u64,
    /// How to raise the limit and how far, or why nothing can; may be empty.
    pub advice: String,
}

/// Advice after the sentence; empty for no advice.
struct Advice<'a>(&'a str);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(formatter, "; {}", self.0) }
    }
}

fn verdict(asked: u64, limit: u64) -> String {
    if asked == 0 {
        format!("is 0; it must be between 1 and {limit} (is there any work to do?)")
    } else {
        format!("is {asked}; the limit is {limit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_well() {
        let mut error = LimitExceeded {
            kernel: "saxpy".to_owned(),
            config: LaunchConfig::new(1, 2048),
            what: "block extent in x",
            asked: 2048,
            limit: 1024,
            advice: String::new(),
        };
        assert_eq!(
            error.to_string(),
            "kernel `saxpy` cannot be launched with grid (1, 1, 1), block (2048, 1, 1): the block extent in x is 2048; the limit is 1024"
        );
        error.asked = 0;
        assert!(error.to_string().contains("must be between 1 and 1024"));
    }

    #[test]
    fn errors_are_small() {
        assert!(size_of::<Error>() <= 64);
    }

    #[test]
    fn debug_shows_the_sentence() {
        let found = cuda_sys::Version::new(12, 2);
        let error: Error = cuda_handles::Error::MemoryOfGraph.into();
        assert_eq!(format!("{error:?}"), error.to_string());
        let too_old = found.ensure(cuda_sys::Feature::PreferredCluster).map_err(Error::from);
        assert_eq!(
            format!("{:?}", too_old.unwrap_err()),
            "a preferred cluster needs a CUDA driver of version 12.8 or newer; this one is 12.2"
        );
    }
}
