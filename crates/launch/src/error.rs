//! What can be wrong with a launch.

use crate::config::LaunchConfig;
use crate::layout::WrongArguments;

/// The result of this crate's functions.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why a kernel was not launched. Except for [`Error::Handles`], the driver was not called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver refused, or a handle does not fit.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
    /// The arguments do not have the number or the sizes that the kernel takes.
    #[error(transparent)]
    WrongArguments(Box<WrongArguments>),
    /// The configuration is beyond a limit of the device or of the kernel.
    #[error(transparent)]
    Limit(Box<LimitExceeded>),
}

/// A launch configuration that the device or the kernel does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` cannot be launched with {config}: the {what} {}", verdict(*asked, *limit))]
#[non_exhaustive]
pub struct LimitExceeded {
    /// The kernel's name.
    pub kernel: String,
    /// The configuration asked for.
    pub config: LaunchConfig,
    /// What is limited, in words.
    pub what: &'static str,
    /// The value asked for.
    pub asked: u64,
    /// The largest value allowed.
    pub limit: u64,
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
}
