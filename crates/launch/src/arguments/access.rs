//! What a launch declares to do with the memory of its arguments.

use core::fmt;

use std::sync::Arc;

use cuda_handles::Allocation;

/// Memory that an argument leads to.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// What keeps it.
    pub allocation: &'a Arc<Allocation>,
    /// The address of its first byte.
    pub start: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether the kernel may write it.
    pub written: bool,
}

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
    /// The bytes of an element.
    pub element: usize,
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

/// The memory that one launch accesses: a declaration, and of each parameter what the driver could
/// not tell of it.
///
/// That is two words, which every kernel node has: the driver tells the addresses, most arguments
/// are whole allocations, and most slices of a launch have as many elements. Where it does not
/// suffice, [`are_apart`](Self::are_apart), there are [`AccessRanges`] besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    declaration: Option<&'static Declaration>,
    /// The positions of parameters that are given no whole allocations, a bit each, and how many
    /// elements are given for all of them.
    lengths: u64,
}

impl Accesses {
    const POSITIONS: u32 = 16;
    const SHIFT: u32 = u64::BITS - Self::POSITIONS;
    const LONGEST: u64 = (1 << Self::SHIFT) - 1;
    /// In place of lengths that are too different.
    const APART: u64 = u64::MAX;

    /// Those of a launch of which nothing is known.
    #[inline]
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }

    /// Those of a launch with whole allocations for the declaration's parameters.
    #[inline]
    #[must_use]
    pub fn new(declaration: &'static Declaration) -> Self {
        Self { declaration: Some(declaration), lengths: 0 }
    }

    /// Says what memory is given for a parameter.
    #[inline]
    pub fn note(&mut self, position: usize, memory: &Memory<'_>, parameter: MemoryParameter) {
        let whole = memory.allocation.bytes() as u64 == memory.bytes && memory.bytes > 0;
        if !(parameter.by_address && whole && memory.allocation.address() == memory.start) {
            self.note_part(position, memory.bytes, parameter);
        }
    }

    #[inline]
    fn note_part(&mut self, position: usize, bytes: u64, parameter: MemoryParameter) {
        let len = bytes / (parameter.element as u64).max(1);
        let is_alike = self.lengths == 0 || self.lengths & Self::LONGEST == len;
        let is_possible = position < Self::POSITIONS as usize && len < Self::LONGEST;
        match parameter.by_address && is_alike && is_possible {
            true => self.lengths |= 1 << (Self::SHIFT + position as u32) | len,
            false => self.lengths = Self::APART,
        }
    }

    /// The declaration; `None` if nothing is known.
    #[must_use]
    pub fn declaration(self) -> Option<&'static Declaration> {
        self.declaration
    }

    /// Whether [`AccessRanges`] are needed besides.
    #[inline]
    #[must_use]
    pub fn are_apart(self) -> bool {
        self.lengths == Self::APART
    }

    /// The bytes given for a parameter; `None` where it is a whole allocation.
    #[must_use]
    pub fn bytes(self, position: usize) -> Option<u64> {
        let has = position < Self::POSITIONS as usize && self.lengths >> Self::SHIFT & (1 << position) != 0;
        let parameter = self.declaration?.memory.get(position).copied().flatten()?;
        has.then(|| (self.lengths & Self::LONGEST) * (parameter.element as u64).max(1))
    }
}

/// The memory that is given for each parameter of a launch: what goes with [`Accesses`] that do not
/// have it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessRanges(Vec<(usize, u64, u64)>);

impl AccessRanges {
    /// Says what memory is given for a parameter.
    pub fn note(&mut self, position: usize, memory: &Memory<'_>) {
        self.0.push((position, memory.start, memory.bytes));
    }

    /// The address and the bytes of what is given for a parameter.
    #[must_use]
    pub fn find(&self, position: usize) -> Option<(u64, u64)> {
        let found = self.0.iter().find(|(known, ..)| *known == position);
        found.map(|(_, start, bytes)| (*start, *bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back() {
        const WORDS: MemoryParameter = MemoryParameter { access: Access::Read, by_address: true, element: 4 };
        const BYTES: MemoryParameter = MemoryParameter { element: 1, ..WORDS };
        static MANY: Declaration = Declaration { names: &[], memory: &[Some(BYTES); 32] };
        let most = Accesses::LONGEST - 1;
        for (first, second) in
            [(8, 8), (0, 0), (most, most), (8, 9), (0, 8), (8, 0), (most + 1, 8), (8, u64::MAX)]
        {
            for positions in [[0, 15], [3, 2], [15, 16], [31, 0]] {
                let mut accesses = Accesses::new(&MANY);
                for (position, bytes) in positions.into_iter().zip([first, second]) {
                    accesses.note_part(position, bytes, BYTES);
                }
                let is_alike =
                    first == second && first <= most && positions.iter().all(|position| *position < 16);
                assert_eq!(accesses.are_apart(), !is_alike, "{first} {second} {positions:?}");
                if is_alike {
                    let found = positions.map(|position| accesses.bytes(position));
                    assert_eq!((found, accesses.bytes(7)), ([Some(first), Some(second)], None));
                }
            }
        }
        let mut tensor = Accesses::new(&MANY);
        tensor.note_part(0, 8, MemoryParameter { by_address: false, ..WORDS });
        assert!(tensor.are_apart());
        static MIXED: Declaration = Declaration { names: &[], memory: &[Some(WORDS), Some(BYTES)] };
        let mut mixed = Accesses::new(&MIXED);
        mixed.note_part(0, 40, WORDS);
        mixed.note_part(1, 10, BYTES);
        assert_eq!((mixed.bytes(0), mixed.bytes(1), mixed.are_apart()), (Some(40), Some(10), false));
    }

    #[test]
    fn known_are_two_words() {
        assert_eq!(size_of::<Accesses>(), 16);
    }
}
