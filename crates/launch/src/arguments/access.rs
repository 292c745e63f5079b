//! The memory that a launch accesses, as the kernel's declaration says.

use core::any::{Any, TypeId};
use core::fmt;

use std::sync::Arc;

use cuda_handles::Allocation;
use cuda_handles::capture::Record;

/// The memory of one argument.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// The allocation that owns it.
    pub allocation: &'a Arc<Allocation>,
    /// The address of its first byte.
    pub start: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether the kernel writes it.
    pub written: bool,
}

/// How a kernel accesses the memory of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Only reads: [`In`](crate::In).
    Read,
    /// Only writes: [`Out`](crate::Out).
    Write,
    /// Reads and writes: [`InOut`](crate::InOut).
    ReadWrite,
}

impl Access {
    /// Whether the kernel writes the memory.
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

/// A parameter of a kernel that stands for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryParameter {
    /// How the kernel accesses it.
    pub access: Access,
    /// Whether the kernel gets an address; otherwise it gets a tensor map.
    pub by_address: bool,
    /// The size of an element in bytes.
    pub element: usize,
}

/// The declaration of a kernel, without its types. The kernel accesses no other memory than that of
/// its memory parameters, and variables of its image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The names of the parameters.
    pub names: &'static [&'static str],
    /// For each parameter, its memory; `None` for one passed by value.
    pub memory: &'static [Option<MemoryParameter>],
    /// For each parameter, whether its value may have padding. Shorter if the rest has none.
    pub padded: &'static [bool],
    /// The type of its [`Signature`](crate::Signature); `None` for kernels of this library, whose
    /// declaration has no types.
    pub signature: Option<TypeId>,
    /// Whether the kernel ends whatever other kernels do: it was declared as `fn`, not as `unsafe
    /// fn`.
    pub ends_alone: bool,
}

impl Declaration {
    /// Of a kernel without parameters that promises nothing.
    pub const NONE: Self = Self { names: &[], memory: &[], padded: &[], signature: None, ends_alone: false };

    /// The memory parameters with their positions.
    pub fn each(&self) -> impl Iterator<Item = (usize, MemoryParameter)> {
        self.memory.iter().enumerate().filter_map(|(position, memory)| Some((position, (*memory)?)))
    }
}

/// The memory that one launch accesses, in two words: the kernel's declaration, and the lengths of
/// slices.
///
/// Every kernel node of a graph stores one. The addresses are not in it, since the driver returns
/// them with the node's parameters. Most arguments are whole allocations, and most slices of one
/// launch have the same number of elements, so one length and a bit for each parameter usually
/// suffice. If not, [`are_apart`](Self::are_apart) is true and [`AccessRanges`] hold the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    declaration: Option<&'static Declaration>,
    /// The upper [`POSITIONS`](Self::POSITIONS) bits mark parameters given a part of an allocation;
    /// the lower bits are the number of elements of each such part. Or [`APART`](Self::APART).
    lengths: u64,
}

impl Accesses {
    const POSITIONS: u32 = 16;
    const SHIFT: u32 = u64::BITS - Self::POSITIONS;
    const LONGEST: u64 = (1 << Self::SHIFT) - 1;
    /// The value of `lengths` if they differ or do not fit.
    const APART: u64 = u64::MAX;

    /// The accesses of a launch without a declaration.
    #[inline]
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }

    /// The accesses of a launch whose memory arguments are all whole allocations.
    #[inline]
    #[must_use]
    pub fn new(declaration: &'static Declaration) -> Self {
        Self { declaration: Some(declaration), lengths: 0 }
    }

    /// Whether the kernel is known to end whatever other kernels do.
    #[must_use]
    pub fn ends_alone(&self) -> bool {
        self.declaration.is_some_and(|declaration| declaration.ends_alone)
    }

    /// Notes the memory given for a parameter.
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

    /// The form in which the record of a captured launch holds them; `None` if they are unknown.
    #[inline]
    pub(crate) fn to_record(self) -> Option<(&'static (dyn Any + Send + Sync), u64)> {
        self.declaration.map(|declaration| (declaration as &'static (dyn Any + Send + Sync), self.lengths))
    }

    /// The accesses that a record of a captured launch holds.
    #[must_use]
    pub fn of_record(record: &Record<'_>) -> Self {
        let declared = record.declared();
        let known = declared.and_then(|(declaration, lengths)| Some((declaration.downcast_ref()?, lengths)));
        known.map_or_else(Self::unknown, |(declaration, lengths)| Self {
            declaration: Some(declaration),
            lengths,
        })
    }

    /// The kernel's declaration; `None` for an untyped launch.
    #[must_use]
    pub fn declaration(self) -> Option<&'static Declaration> {
        self.declaration
    }

    /// Whether the lengths are in [`AccessRanges`] instead.
    #[inline]
    #[must_use]
    pub fn are_apart(self) -> bool {
        self.lengths == Self::APART
    }

    /// The bytes given for a parameter; `None` if it is a whole allocation.
    #[must_use]
    pub fn bytes(self, position: usize) -> Option<u64> {
        let has = position < Self::POSITIONS as usize && self.lengths >> Self::SHIFT & (1 << position) != 0;
        let parameter = self.declaration?.memory.get(position).copied().flatten()?;
        has.then(|| (self.lengths & Self::LONGEST) * (parameter.element as u64).max(1))
    }
}

/// The memory given for each parameter of a launch, for [`Accesses`] that
/// [are apart](Accesses::are_apart).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessRanges(Vec<(usize, u64, u64)>);

impl AccessRanges {
    /// Notes the memory given for a parameter.
    pub fn note(&mut self, position: usize, memory: &Memory<'_>) {
        self.0.push((position, memory.start, memory.bytes));
    }

    /// The address and the size in bytes of the memory given for a parameter.
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
        static MANY: Declaration = Declaration { memory: &[Some(BYTES); 32], ..Declaration::NONE };
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
        static MIXED: Declaration = Declaration { memory: &[Some(WORDS), Some(BYTES)], ..Declaration::NONE };
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
