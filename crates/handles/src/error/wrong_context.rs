//! Things of different contexts, in errors.

use core::fmt;
use std::borrow::Cow;

use cuda_sys::Printable;

/// A context as errors name it: by its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextName {
    /// The device's ordinal.
    pub device: usize,
    /// Whether it is the device's primary context.
    pub is_primary: bool,
    /// The driver's own handle, as a number.
    pub raw: usize,
}

impl ContextName {
    /// Which of two contexts it is.
    fn beside(self, other: Self) -> Named {
        Named { name: self, alone: self.device != other.device }
    }
}

/// A context beside another one.
struct Named {
    name: ContextName,
    alone: bool,
}

impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ContextName { device, is_primary, raw } = self.name;
        match (self.alone, is_primary) {
            (true, _) => write!(formatter, "the context of device {device}"),
            (false, true) => write!(formatter, "the primary context of device {device}"),
            (false, false) => write!(formatter, "the context {raw:#x} of device {device}"),
        }
    }
}

/// Two things that were to work together, of different contexts: which, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongContext {
    /// The object that belongs elsewhere.
    pub what: Cow<'static, str>,
    /// Its context.
    pub found: ContextName,
    /// The object that it was to work with; may be empty.
    pub with: &'static str,
    /// The context needed.
    pub needed: ContextName,
    /// Advice; may be empty.
    pub advice: &'static str,
}

impl WrongContext {
    /// Advice for memory of another context.
    pub const MEMORY: &'static str =
        "allocate it with a stream of that context, or copy it to such memory (`Stream::copy_peer`)";

    /// Adds advice.
    #[must_use]
    pub fn advise(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }
}

impl std::error::Error for WrongContext {}

impl fmt::Display for WrongContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, needed) = (self.found.beside(self.needed), self.needed.beside(self.found));
        let what = Printable(&self.what);
        match self.with {
            "" => write!(formatter, "{what} belongs to {found}; {needed} is needed")?,
            with => write!(formatter, "{what} belongs to {found}, {with} to {needed}")?,
        }
        match self.advice {
            "" => Ok(()),
            advice => write!(formatter, "; {advice}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(found: ContextName, needed: ContextName) -> String {
        WrongContext { what: "the event".into(), found, with: "the stream", needed, advice: "" }.to_string()
    }

    #[test]
    fn contexts_are_told_by_device_and_apart() {
        let first = ContextName { device: 0, is_primary: true, raw: 0x10 };
        let second = ContextName { device: 1, is_primary: true, raw: 0x20 };
        let own = ContextName { device: 0, is_primary: false, raw: 0x30 };
        assert_eq!(
            message(first, second),
            "the event belongs to the context of device 0, the stream to the context of device 1"
        );
        assert_eq!(
            message(own, first),
            "the event belongs to the context 0x30 of device 0, the stream to the primary context of device 0"
        );
    }
}
