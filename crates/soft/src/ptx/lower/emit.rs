//! Emitting instructions of a given shape: one to four sources, and fields of registers.

use super::body::Body;
use super::reader::Lowered;
use crate::ptx::code::{Inst, Reg};
use crate::ptx::math::{F1, F2, F3, F4, bits};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

impl<'t> Body<'_, 't> {
    /// `d = f(a)` with all of type `ty`.
    pub(super) fn unary(&mut self, f: F1, ty: Type, [d, a]: [&Operand<'t>; 2]) -> Lowered<()> {
        let (a, d) = (self.source(a, ty)?, self.dest(d, ty)?);
        self.emit(Inst::Unary { f, d, a });
        Ok(())
    }

    /// `d = f(a, b)`, types in the order of the operands.
    pub(super) fn binary(&mut self, f: F2, types: [Type; 3], [d, a, b]: [&Operand<'t>; 3]) -> Lowered<()> {
        let (a, b) = (self.source(a, types[1])?, self.source(b, types[2])?);
        let d = self.dest(d, types[0])?;
        self.emit(Inst::Binary { f, d, a, b });
        Ok(())
    }

    /// `d = f(a, b, c)`, types in the order of the operands.
    pub(super) fn ternary(
        &mut self,
        f: F3,
        types: [Type; 4],
        [d, a, b, c]: [&Operand<'t>; 4],
    ) -> Lowered<()> {
        let (a, b, c) = (self.source(a, types[1])?, self.source(b, types[2])?, self.source(c, types[3])?);
        let d = self.dest(d, types[0])?;
        self.emit(Inst::Ternary { f, d, a, b, c });
        Ok(())
    }

    /// `d = f(a, b, c, e)`, types in the order of the operands.
    pub(super) fn quaternary(
        &mut self,
        f: F4,
        types: [Type; 5],
        [d, a, b, c, e]: [&Operand<'t>; 5],
    ) -> Lowered<()> {
        let (a, b) = (self.source(a, types[1])?, self.source(b, types[2])?);
        let (c, e) = (self.source(c, types[3])?, self.source(e, types[4])?);
        let d = self.dest(d, types[0])?;
        self.emit(Inst::Quaternary { f, d, a, b, c, e });
        Ok(())
    }

    /// A field of a register, in a register of its own.
    pub(super) fn field(&mut self, a: Reg, shift: u32, width: u32) -> Reg {
        let d = self.fresh();
        self.field_to(d, a, shift, width);
        d
    }

    pub(super) fn field_to(&mut self, d: Reg, a: Reg, shift: u32, width: u32) {
        let b = self.constant(bits::field_spec(shift, width));
        self.emit(Inst::Binary { f: bits::field, d, a, b });
    }

    /// Packs parts of `width` bits into `d`, the lowest first.
    pub(super) fn pack_to(&mut self, d: Reg, parts: &[Reg], width: u32) {
        let mut whole = self.constant(0);
        for (index, &b) in parts.iter().enumerate() {
            // The parts may overlap with the destination, so only the last step writes it.
            let to = if index + 1 == parts.len() { d } else { self.fresh() };
            let c = self.constant(bits::field_spec(index as u32 * width, width));
            self.emit(Inst::Ternary { f: bits::insert, d: to, a: whole, b, c });
            whole = to;
        }
    }
}
