//! The error of arguments whose number or sizes differ from the kernel's parameters.

use core::fmt;

use cuda_handles::Parameter;
use cuda_sys::Printable;

/// The most bytes of parameters that any kernel takes.
pub(crate) const MAX_BYTES: usize = 32_764;

const WIDTHS: &str = "C's `int` is `i32`, `unsigned` is `u32`, `long long` is `i64`";
const DECLARE_ANEW: &str = "correct the declaration (`kernel!`), or load the image that it was written for";

/// Arguments whose number or sizes differ from the kernel's parameters, or a declaration
/// ([`kernel!`](crate::kernel)) whose parameters do.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongArguments {
    /// The kernel's name.
    pub kernel: String,
    /// The kernel's parameters. `None` if the driver does not report them
    /// ([`ParameterLayout`](cuda_sys::Feature::ParameterLayout)) and the arguments are too large
    /// for any kernel.
    pub expected: Option<Vec<Parameter>>,
    /// The arguments, or the declared parameters.
    pub found: Vec<Parameter>,
    /// Whether a kernel's declaration differs from the image, and not the arguments of one launch.
    pub is_declared: bool,
    /// The names of the declared parameters; empty for arguments of one launch.
    pub names: &'static [&'static str],
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
        let (kernel, count) = (Printable(&self.kernel), Count(expected.len(), "parameter"));
        let list = expected.iter().map(|parameter| (parameter.size, parameter.offset));
        let layout = Layout(list.collect());
        match self.is_declared {
            true => write!(formatter, "kernel `{kernel}` has {count}{layout} in its image")?,
            false => write!(formatter, "kernel `{kernel}` takes {count}{layout}")?,
        }
        if expected.len() != self.found.len() {
            let list = self.found.iter().map(|given| (given.size, given.offset));
            let (count, layout) = (self.found.len(), Layout(list.collect()));
            if self.is_declared {
                let declared = Count(count, "parameter");
                return write!(formatter, ", but its declaration has {declared}{layout}; {DECLARE_ANEW}");
            }
            let verb = if count == 1 { "was" } else { "were" };
            return write!(formatter, " but {}{layout} {verb} given", Count(count, "argument"));
        }
        let pairs = (1..).zip(expected.iter().zip(&self.found));
        let wrong = pairs.filter(|(_, (wanted, given))| wanted.size != given.size);
        let separators = core::iter::once(" but ").chain(core::iter::repeat(", "));
        let mut is_mistaken = false;
        for ((number, (wanted, given)), separator) in wrong.zip(separators) {
            is_mistaken |= matches!((wanted.size, given.size), (4, 8) | (8, 4));
            let (is, should) = (Count(given.size, "byte"), wanted.size);
            if self.is_declared {
                let name = Name(self.names.get(number - 1));
                write!(
                    formatter,
                    "{separator}parameter {number}{name} is declared with {is} instead of {should}"
                )?;
                continue;
            }
            let verb = if should == 1 { "is" } else { "are" };
            write!(formatter, "{separator}argument {number} has {is} where {should} {verb} expected")?;
        }
        if is_mistaken {
            write!(formatter, "; {WIDTHS}")?;
        }
        if self.is_declared { write!(formatter, "; {DECLARE_ANEW}") } else { Ok(()) }
    }
}

/// A declared parameter's name in brackets, if it is known.
struct Name(Option<&'static &'static str>);

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(formatter, " (`{name}`)"))
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

/// Sizes and offsets in parentheses; empty for an empty list.
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

debug_is_display!(WrongArguments);

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(sizes: &[usize]) -> Vec<Parameter> {
        sizes.iter().enumerate().map(|(index, &size)| Parameter { offset: index * 8, size }).collect()
    }

    fn error(expected: &[usize], found: &[usize]) -> WrongArguments {
        let (expected, found) = (Some(parameters(expected)), parameters(found));
        WrongArguments { kernel: "saxpy".to_owned(), expected, found, is_declared: false, names: &[] }
    }

    fn message(expected: &[usize], found: &[usize]) -> String {
        error(expected, found).to_string()
    }

    #[test]
    fn a_declaration_is_compared_with_the_image() {
        let message = |expected: &[usize], found: &[usize]| {
            WrongArguments { is_declared: true, names: &["n", "x"], ..error(expected, found) }.to_string()
        };
        assert_eq!(
            message(&[4, 8], &[4]),
            format!(
                "kernel `saxpy` has 2 parameters (4 B at 0, 8 B at 8) in its image, but its declaration has \
                 1 parameter (4 B at 0); {DECLARE_ANEW}"
            )
        );
        assert_eq!(
            message(&[4, 8], &[8, 8]),
            format!(
                "kernel `saxpy` has 2 parameters (4 B at 0, 8 B at 8) in its image but parameter 1 (`n`) is \
                 declared with 8 bytes instead of 4; {WIDTHS}; {DECLARE_ANEW}"
            )
        );
    }

    #[test]
    fn a_wrong_size_is_named() {
        assert_eq!(
            message(&[4, 4, 8, 8], &[4, 8, 8, 4]),
            format!(
                "kernel `saxpy` takes 4 parameters (4 B at 0, 4 B at 8, 8 B at 16, 8 B at 24) \
                 but argument 2 has 8 bytes where 4 are expected, argument 4 has 4 bytes where 8 are expected; {WIDTHS}"
            )
        );
        assert_eq!(
            message(&[4], &[1]),
            "kernel `saxpy` takes 1 parameter (4 B at 0) but argument 1 has 1 byte where 4 are expected"
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
