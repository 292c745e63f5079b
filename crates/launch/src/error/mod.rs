//! What can be wrong with a launch.

use core::fmt;

use cuda_handles::Parameter;
use cuda_sys::{Printable, Version};

use crate::config::launch_config::LaunchConfig;

/// The most bytes of parameters that any kernel has.
pub(crate) const MAX_BYTES: usize = 32_764;

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
    /// A condition in the declaration of the kernel does not hold.
    #[error(transparent)]
    Condition(Box<BrokenCondition>),
    /// Memory that the kernel writes is also part of another argument.
    #[error(transparent)]
    Overlap(Box<OverlappingArguments>),
    /// The device or the kernel does not allow an attribute of the launch.
    #[error(transparent)]
    Attribute(Box<Refused>),
    /// The driver that runs is too old for an attribute of the launch.
    #[error(transparent)]
    Unavailable(Unavailable),
    /// An argument is the handle of a condition, which a kernel may have only as a node of the
    /// condition's graph: set outside of a launch of that, it costs the device its context.
    #[error(
        "kernel `{}` takes the handle of a condition: add it as a node of the condition's graph",
        Printable(kernel)
    )]
    OutsideGraph {
        /// The kernel's name.
        kernel: Box<str>,
    },
    /// The shape of a tensor map breaks a rule of the hardware, or does not fit its memory.
    #[error("the tensor map is not possible: {0}")]
    TensorMap(Box<str>),
}

/// An attribute of a launch that the device or the kernel does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{}` cannot be launched with {config}: {what} is not possible: {reason}", Printable(kernel))]
#[non_exhaustive]
pub struct Refused {
    /// The kernel's name.
    pub kernel: String,
    /// The configuration asked for.
    pub config: LaunchConfig,
    /// The attribute, in words.
    pub what: &'static str,
    /// Why.
    pub reason: String,
}

/// Something that drivers have from a version on, where an older one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} needs a CUDA driver of version {needed} or newer; this one is {found}")]
#[non_exhaustive]
pub struct Unavailable {
    /// What was asked for, in words.
    pub what: &'static str,
    /// The version that has it.
    pub needed: Version,
    /// The version of the driver that runs.
    pub found: Version,
}

/// A condition in a kernel's declaration that does not hold for a launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// The configuration asked for.
    pub config: LaunchConfig,
}

fn separated(values: &str) -> String {
    if values.is_empty() { String::new() } else { format!("{values}; ") }
}

/// Two arguments that share memory which the kernel writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// By how many bytes they overlap.
    pub bytes: u64,
}

/// A launch configuration that the device or the kernel does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// The configuration asked for.
    pub config: LaunchConfig,
    /// What is limited, in words.
    pub what: &'static str,
    /// The value asked for.
    pub asked: u64,
    /// The largest value allowed.
    pub limit: u64,
    /// Who can raise the limit, and how far, or why nobody can; may be empty.
    pub advice: String,
}

/// A sentence behind another one; nothing if it is empty.
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

/// Arguments whose number or sizes are not those of the kernel's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongArguments {
    /// The kernel's name.
    pub kernel: String,
    /// The kernel's parameters; `None` where the driver does not tell them and the arguments are
    /// too large for any kernel.
    pub expected: Option<Vec<Parameter>>,
    /// The arguments given.
    pub found: Vec<Parameter>,
}

impl std::error::Error for WrongArguments {}

impl fmt::Display for WrongArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(expected) = &self.expected else {
            let bytes = self.found.last().map_or(0, |last| last.offset + last.size);
            return write!(
                formatter,
                "the arguments for kernel `{}` take {bytes} bytes; no kernel has more than {MAX_BYTES}",
                Printable(&self.kernel)
            );
        };
        write!(
            formatter,
            "kernel `{}` takes {}",
            Printable(&self.kernel),
            Count(expected.len(), "parameter")
        )?;
        let list = expected.iter().map(|parameter| (parameter.size, parameter.offset));
        write!(formatter, "{}", Layout(list.collect()))?;
        if expected.len() != self.found.len() {
            let list = self.found.iter().map(|given| (given.size, given.offset));
            let given = Count(self.found.len(), "argument");
            let verb = if self.found.len() == 1 { "was" } else { "were" };
            return write!(formatter, " but {given}{} {verb} given", Layout(list.collect()));
        }
        let pairs = (1..).zip(expected.iter().zip(&self.found));
        let wrong = pairs.filter(|(_, (wanted, given))| wanted.size != given.size);
        let separators = core::iter::once(" but ").chain(core::iter::repeat(", "));
        for ((number, (wanted, given)), separator) in wrong.zip(separators) {
            let (is, should) = (Count(given.size, "byte"), wanted.size);
            let verb = if should == 1 { "is" } else { "are" };
            write!(formatter, "{separator}argument {number} has {is} where {should} {verb} expected")?;
        }
        Ok(())
    }
}

/// A number with its noun.
struct Count(usize, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ending = if self.0 == 1 { "" } else { "s" };
        write!(formatter, "{} {}{ending}", self.0, self.1)
    }
}

/// Sizes and offsets in parentheses; nothing for none.
struct Layout(Vec<(usize, usize)>);

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        for (index, (size, offset)) in self.0.iter().take(SHOWN).enumerate() {
            let before = if index == 0 { " (" } else { ", " };
            write!(formatter, "{before}{size} B at {offset}")?;
        }
        match self.0.len() {
            0 => Ok(()),
            count if count > SHOWN => write!(formatter, ", and {} more)", count - SHOWN),
            _ => write!(formatter, ")"),
        }
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

    fn parameters(sizes: &[usize]) -> Vec<Parameter> {
        sizes.iter().enumerate().map(|(index, &size)| Parameter { offset: index * 8, size }).collect()
    }

    fn message(expected: &[usize], found: &[usize]) -> String {
        let kernel = "saxpy".to_owned();
        WrongArguments { kernel, expected: Some(parameters(expected)), found: parameters(found) }.to_string()
    }

    #[test]
    fn a_wrong_size_is_named() {
        assert_eq!(
            message(&[4, 4, 8, 8], &[4, 8, 8, 4]),
            "kernel `saxpy` takes 4 parameters (4 B at 0, 4 B at 8, 8 B at 16, 8 B at 24) \
             but argument 2 has 8 bytes where 4 are expected, argument 4 has 4 bytes where 8 are expected"
        );
    }

    #[test]
    fn a_wrong_number_is_named() {
        assert_eq!(
            message(&[4, 8], &[4]),
            "kernel `saxpy` takes 2 parameters (4 B at 0, 8 B at 8) but 1 argument (4 B at 0) was given"
        );
        assert_eq!(
            message(&[], &[1, 2]),
            "kernel `saxpy` takes 0 parameters but 2 arguments (1 B at 0, 2 B at 8) were given"
        );
    }

    #[test]
    fn a_long_layout_is_cut() {
        assert!(message(&[4; 30], &[]).contains(", and 10 more)"));
    }
}
