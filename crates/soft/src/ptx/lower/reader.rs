//! Reading an instruction: modifiers are taken one by one, and one that is not taken is
//! unsupported.

use crate::ptx::math::rounding::{DOWN, NEAREST, UP, ZERO};
use crate::ptx::syntax::{Instruction, Operand};
use crate::ptx::types::Type;

/// Why an instruction cannot be lowered.
#[derive(Debug)]
pub(super) enum LowerError {
    /// The interpreter lacks it.
    Unsupported,
    /// It is wrong, as the message says.
    Wrong(String),
}

impl From<String> for LowerError {
    fn from(words: String) -> Self {
        LowerError::Wrong(words)
    }
}

pub(super) type Lowered<T> = Result<T, LowerError>;

pub(super) struct InstructionReader<'i, 't> {
    instruction: &'i Instruction<'t>,
    /// The operands that are left.
    operands: &'i [Operand<'t>],
    taken: u64,
}

impl<'i, 't> InstructionReader<'i, 't> {
    pub(super) fn new(instruction: &'i Instruction<'t>) -> Self {
        InstructionReader { instruction, operands: &instruction.operands, taken: 0 }
    }

    pub(super) fn opcode(&self) -> &'t str {
        self.instruction.opcode
    }

    pub(super) fn take_where<T>(&mut self, mut pick: impl FnMut(&'t str) -> Option<T>) -> Option<T> {
        for (index, modifier) in self.instruction.modifiers.iter().enumerate().take(64) {
            if self.taken & (1 << index) == 0
                && let Some(found) = pick(modifier)
            {
                self.taken |= 1 << index;
                return Some(found);
            }
        }
        None
    }

    /// Takes a modifier; true if it is there.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.take_where(|modifier| (modifier == name).then_some(())).is_some()
    }

    /// Takes the first modifier in the table and returns its value.
    pub(super) fn one_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        self.take_where(|modifier| table.iter().find(|(name, _)| *name == modifier).map(|&(_, value)| value))
    }

    /// Takes all modifiers of the list, which are hints without effect here.
    pub(super) fn ignore(&mut self, names: &[&str]) {
        while self.take_where(|modifier| names.contains(&modifier).then_some(())).is_some() {}
    }

    /// Takes all modifiers with one of the prefixes.
    pub(super) fn ignore_prefixes(&mut self, prefixes: &[&str]) {
        let hit = |modifier: &str| prefixes.iter().any(|prefix| modifier.starts_with(prefix));
        while self.take_where(|modifier| hit(modifier).then_some(())).is_some() {}
    }

    /// Whether there is such a modifier.
    pub(super) fn has(&self, name: &str) -> bool {
        self.instruction.modifiers.contains(&name)
    }

    /// Whether a modifier begins so.
    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        self.instruction.modifiers.iter().any(|modifier| modifier.starts_with(prefix))
    }

    /// Whether the last modifier is one of these.
    pub(super) fn is_last_modifier(&self, names: &[&str]) -> bool {
        self.instruction.modifiers.last().is_some_and(|last| names.contains(last))
    }

    /// Takes the next type.
    pub(super) fn ty(&mut self) -> Lowered<Type> {
        self.take_where(Type::parse).ok_or(LowerError::Unsupported)
    }

    /// Takes the last operand.
    pub(super) fn take_last_operand(&mut self) -> Option<&'i Operand<'t>> {
        let (last, rest) = self.operands.split_last()?;
        self.operands = rest;
        Some(last)
    }

    /// Takes `.rn`, `.rz`, `.rm` or `.rp`.
    pub(super) fn rounding(&mut self) -> Option<u8> {
        self.one_of(&[("rn", NEAREST), ("rz", ZERO), ("rm", DOWN), ("rp", UP)])
    }

    /// Checks that every modifier was taken.
    pub(super) fn finish(&self) -> Lowered<()> {
        let count = self.instruction.modifiers.len();
        if count > 64 || self.taken.count_ones() as usize != count {
            Err(LowerError::Unsupported)
        } else {
            Ok(())
        }
    }

    /// [`InstructionReader::finish`], then the operands, whose number must be `N`.
    pub(super) fn operands<const N: usize>(&self) -> Lowered<[&'i Operand<'t>; N]> {
        self.finish()?;
        let all: Vec<&Operand<'t>> = self.operands.iter().collect();
        let found = all.len();
        all.try_into().map_err(|_| LowerError::Wrong(format!("expected {N} operands, found {found}")))
    }

    /// [`InstructionReader::finish`], then all operands.
    pub(super) fn all_operands(&self) -> Lowered<&'i [Operand<'t>]> {
        self.finish()?;
        Ok(self.operands)
    }
}
