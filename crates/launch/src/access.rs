//! What a launch declares to do with the memory of its arguments.

use core::fmt;

use smallvec::SmallVec;

use crate::signature::Memory;

/// What a kernel does with the memory of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// It only reads it: [`In`](crate::In).
    Read,
    /// It only writes it: [`Out`](crate::Out).
    Write,
    /// Both: [`InOut`](crate::InOut).
    ReadWrite,
}

impl Access {
    /// Whether something is written.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::Read
    }
}

impl fmt::Display for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::ReadWrite => "reads and writes",
        })
    }
}

/// The memory that a kernel's parameter leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryParameter {
    /// What the kernel does with it.
    pub access: Access,
    /// Whether the kernel gets its address; else it gets a tensor map.
    pub by_address: bool,
}

/// What the kernels of a declaration access: the memory of these parameters, and no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The names of the parameters.
    pub names: &'static [&'static str],
    /// The memory that each parameter leads to, if it does.
    pub memory: &'static [Option<MemoryParameter>],
}

impl Declaration {
    /// The parameters that lead to memory, by their positions.
    pub fn each(&self) -> impl Iterator<Item = (usize, MemoryParameter)> {
        self.memory.iter().enumerate().filter_map(|(position, memory)| Some((position, (*memory)?)))
    }
}

/// The memory that one launch accesses: a declaration, and of each parameter what the driver could not tell of it.
///
/// That is short: the driver tells the addresses, and most arguments are whole allocations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    declaration: Option<&'static Declaration>,
    parts: SmallVec<[Part; 4]>,
}

/// A number with the position of the parameter that it is about, and what it is: in one word, since every kernel node has some.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part(u64);

impl Part {
    const BITS: u32 = 56;
    const STARTS: u64 = 1 << 63;

    /// `None` for a position or a number that is not possible on any machine there is.
    #[inline]
    fn new(position: usize, number: u64, kind: u64) -> Option<Self> {
        let fits = position < 64 && number >> Self::BITS == 0;
        fits.then_some(Self(kind | (position as u64) << Self::BITS | number))
    }

    fn is(self, position: usize, kind: u64) -> bool {
        self.0 >> Self::BITS == (kind >> Self::BITS | position as u64)
    }

    fn number(self) -> u64 {
        self.0 & ((1 << Self::BITS) - 1)
    }
}

impl Accesses {
    /// Those of a launch of which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }

    /// Those of a launch with this memory for the declaration's parameters, in their order.
    #[inline]
    #[must_use]
    pub fn new(declaration: &'static Declaration) -> Self {
        Self { declaration: Some(declaration), parts: SmallVec::new() }
    }

    /// Says what memory is given for a parameter.
    #[inline]
    pub fn note(&mut self, position: usize, memory: &Memory<'_>, by_address: bool) {
        let whole = memory.allocation.bytes() as u64 == memory.bytes && memory.bytes > 0;
        if whole && by_address && memory.allocation.address() == memory.start {
            return;
        }
        self.note_part(position, memory, by_address);
    }

    fn note_part(&mut self, position: usize, memory: &Memory<'_>, by_address: bool) {
        let start = (!by_address).then_some((memory.start, Part::STARTS));
        for (number, kind) in [(memory.bytes, 0)].into_iter().chain(start) {
            match Part::new(position, number, kind) {
                Some(part) => self.parts.push(part),
                None => return *self = Self::unknown(),
            }
        }
    }

    /// The declaration; `None` if nothing is known.
    #[must_use]
    pub fn declaration(&self) -> Option<&'static Declaration> {
        self.declaration
    }

    /// The bytes given for a parameter; `None` where it is a whole allocation.
    #[must_use]
    pub fn bytes(&self, position: usize) -> Option<u64> {
        self.find(position, 0)
    }

    /// Where the memory given for a parameter starts; `None` where the driver tells.
    #[must_use]
    pub fn start(&self, position: usize) -> Option<u64> {
        self.find(position, Part::STARTS)
    }

    fn find(&self, position: usize, kind: u64) -> Option<u64> {
        self.parts.iter().find(|part| part.is(position, kind)).map(|part| part.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let most = (1 << Part::BITS) - 1;
        for (position, number, kind) in [(0, 0, 0), (31, most, 0), (31, most, Part::STARTS), (63, 1, 0)] {
            let part = Part::new(position, number, kind).unwrap();
            assert!(part.is(position, kind) && !part.is(position, kind ^ Part::STARTS));
            assert!(!part.is(position ^ 1, kind));
            assert_eq!(part.number(), number);
        }
        assert_eq!((Part::new(64, 0, 0), Part::new(0, most + 1, 0)), (None, None));
    }

    #[test]
    fn known_are_few_bytes() {
        assert!(size_of::<Accesses>() <= 56);
    }
}
