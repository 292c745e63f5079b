//! The layout of a kernel's parameters, against that of the arguments given.

use core::fmt;

use cuda_handles::{Kernel, Parameter};

use crate::error::{Error, Result};

/// The most bytes of parameters that any kernel has.
pub(crate) const MAX_BYTES: usize = 32_764;

/// Where one argument lies in a holder's values, and its size; both in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

impl Place {
    /// Sizes beyond 32 bits become ones that no kernel has; the check refuses them.
    #[inline]
    pub(crate) fn new(offset: usize, size: usize) -> Self {
        let narrow = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Self { offset: narrow(offset), size: narrow(size) }
    }

    /// The argument's first byte, counted from that of the first argument.
    #[must_use]
    pub fn offset(self) -> usize {
        self.offset as usize
    }

    /// The argument's size in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        self.size as usize
    }

    pub(crate) fn end(self) -> usize {
        self.offset() + self.size()
    }
}

/// Whether arguments at `places` are what `kernel` takes.
///
/// Number and sizes decide: the driver reads each argument through a pointer of its own, so an offset that differs (an array of four
/// floats where the kernel has a 16-byte aligned vector) is no fault. Drivers before 12.4 do not tell a kernel's layout; there only
/// the total size is looked at.
#[inline]
pub(crate) fn check(kernel: &Kernel, places: &[Place]) -> Result<()> {
    let fits = match kernel.parameters() {
        Some(parameters) => {
            parameters.len() == places.len()
                && parameters.iter().zip(places).all(|(wanted, given)| wanted.size == given.size())
        }
        None => places.last().is_none_or(|last| last.end() <= MAX_BYTES),
    };
    if fits { Ok(()) } else { Err(wrong(kernel, places)) }
}

#[cold]
fn wrong(kernel: &Kernel, places: &[Place]) -> Error {
    Error::WrongArguments(Box::new(WrongArguments {
        kernel: kernel.name().to_owned(),
        expected: kernel.parameters().map(<[Parameter]>::to_vec),
        found: places.to_vec(),
    }))
}

/// Arguments whose number or sizes are not those of the kernel's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongArguments {
    /// The kernel's name.
    pub kernel: String,
    /// The kernel's parameters; `None` where the driver does not tell them and the arguments are too large for any kernel.
    pub expected: Option<Vec<Parameter>>,
    /// The arguments given.
    pub found: Vec<Place>,
}

impl std::error::Error for WrongArguments {}

impl fmt::Display for WrongArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(expected) = &self.expected else {
            let bytes = self.found.last().map_or(0, |last| last.end());
            return write!(
                formatter,
                "the arguments for kernel `{}` take {bytes} bytes; no kernel has more than {MAX_BYTES}",
                self.kernel
            );
        };
        write!(formatter, "kernel `{}` takes {}", self.kernel, Count(expected.len(), "parameter"))?;
        let list = expected.iter().map(|parameter| (parameter.size, parameter.offset));
        write!(formatter, "{}", Layout(list.collect()))?;
        if expected.len() != self.found.len() {
            let list = self.found.iter().map(|place| (place.size(), place.offset()));
            let given = Count(self.found.len(), "argument");
            let verb = if self.found.len() == 1 { "was" } else { "were" };
            return write!(formatter, " but {given}{} {verb} given", Layout(list.collect()));
        }
        let pairs = (1..).zip(expected.iter().zip(&self.found));
        let wrong = pairs.filter(|(_, (wanted, given))| wanted.size != given.size());
        let separators = core::iter::once(" but ").chain(core::iter::repeat(", "));
        for ((number, (wanted, given)), separator) in wrong.zip(separators) {
            let (is, should) = (Count(given.size(), "byte"), wanted.size);
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

    fn parameters(sizes: &[usize]) -> Vec<Parameter> {
        sizes.iter().enumerate().map(|(index, &size)| Parameter { offset: index * 8, size }).collect()
    }

    fn places(sizes: &[u32]) -> Vec<Place> {
        sizes.iter().zip(0..).map(|(&size, index)| Place { offset: index * 8, size }).collect()
    }

    fn message(expected: &[usize], found: &[u32]) -> String {
        let kernel = "saxpy".to_owned();
        WrongArguments { kernel, expected: Some(parameters(expected)), found: places(found) }.to_string()
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
