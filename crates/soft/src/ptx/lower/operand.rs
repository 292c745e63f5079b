//! Operands to registers: sources and destinations, with their types checked.

use super::body::Body;
use super::reader::{LowerError, Lowered};
use super::scope::Name;
use crate::ptx::code::{Inst, Reg};
use crate::ptx::math::{bits, integer};
use crate::ptx::special::Special;
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

impl<'t> Body<'_, 't> {
    /// The register of that name, which must be as wide as `ty`.
    pub(super) fn register(&mut self, name: &'t str, ty: Type) -> Lowered<Reg> {
        let (found, slot) = self.declared(name)?;
        let fits = found.bits() == ty.bits() && (found == Type::Pred) == (ty == Type::Pred);
        if fits { Ok(slot) } else { Err(mismatch(name, found, ty)) }
    }

    /// The register of that name, which must be at least as wide as `ty`.
    fn wide_register(&mut self, name: &'t str, ty: Type) -> Lowered<Reg> {
        let (found, slot) = self.declared(name)?;
        let fits = found.bits() >= ty.bits() && (found == Type::Pred) == (ty == Type::Pred);
        if fits { Ok(slot) } else { Err(mismatch(name, found, ty)) }
    }

    pub(super) fn declared(&mut self, name: &'t str) -> Lowered<(Type, Reg)> {
        let next = self.function.template.len() as u32;
        match self.scopes.find(name) {
            Some(Name::Register { ty, slot: Some(slot) }) => Ok((*ty, *slot)),
            Some(Name::Register { ty, slot }) => {
                *slot = Some(next);
                let ty = *ty;
                self.function.registers += ty.bits() / 32 + u32::from(matches!(ty.bits(), 8 | 16));
                let first = self.fresh();
                if ty == Type::B128 {
                    self.fresh();
                }
                Ok((ty, first))
            }
            Some(Name::Vector { .. }) => {
                Err(format!("`{name}` is a vector, expected one of its elements: `{name}.x`").into())
            }
            Some(_) => Err(format!("`{name}` is a variable, expected a register").into()),
            None => Err(format!("register `{name}` is not declared").into()),
        }
    }

    /// The two words of a register of 128 bits.
    pub(super) fn both_words(&mut self, operand: &Operand<'t>) -> Lowered<[Reg; 2]> {
        let first = match operand {
            Operand::Name(name) if self.is_register(name) => self.register(name, Type::B128)?,
            Operand::Ignore => {
                let first = self.fresh();
                self.fresh();
                first
            }
            _ => return Err("expected a register of 128 bits".to_owned().into()),
        };
        Ok([first, first + 1])
    }

    /// An element of a vector register; `None` if the name is not one.
    fn element(&mut self, name: &'t str, member: &str) -> Option<Lowered<(Type, Reg)>> {
        let next = self.function.template.len() as u32;
        let Some(Name::Vector { ty, lanes, first }) = self.scopes.find(name) else { return None };
        let (ty, lanes, is_new) = (*ty, *lanes, first.is_none());
        let first = *first.get_or_insert(next);
        if is_new {
            self.function.registers += (ty.bits() * u32::from(lanes)).div_ceil(32);
            (0..lanes).for_each(|_| self.function.template.push(0));
        }
        let index = ELEMENTS.iter().position(|names| names.contains(&member));
        Some(match index.filter(|&index| index < usize::from(lanes)) {
            Some(index) => Ok((ty, first + index as u32)),
            None => Err(format!("`{name}` has {lanes} elements, `.{member}` is none of them").into()),
        })
    }

    /// All elements of a vector register as an operand; `None` if the name is not one.
    pub(super) fn elements(&mut self, name: &'t str) -> Option<Operand<'t>> {
        let Some(Name::Vector { lanes, .. }) = self.scopes.find(name) else { return None };
        let names = ELEMENTS.iter().take(usize::from(*lanes));
        Some(Operand::Vector(names.map(|&[member, _]| Operand::Member(name, member)).collect()))
    }

    /// The element of that name, if it is one. It must be as wide as `ty`, or at least as wide if
    /// `is_wide` is set.
    fn fitting_element(
        &mut self,
        name: &'t str,
        member: &str,
        ty: Type,
        is_wide: bool,
    ) -> Option<Lowered<Reg>> {
        let found = self.element(name, member)?;
        Some(found.and_then(|(found, slot)| {
            let fits = found.bits() == ty.bits() || (is_wide && found.bits() > ty.bits());
            if fits && ty != Type::Pred { Ok(slot) } else { Err(mismatch(name, found, ty)) }
        }))
    }

    pub(super) fn is_register(&mut self, name: &'t str) -> bool {
        matches!(self.scopes.find(name), Some(Name::Register { .. }))
    }

    /// The type of a register operand.
    pub(super) fn type_of(&mut self, operand: &Operand<'t>) -> Option<Type> {
        match operand {
            Operand::Name(name) => match self.scopes.find(name) {
                Some(Name::Register { ty, .. }) => Some(*ty),
                _ => None,
            },
            Operand::Member(name, _) => match self.scopes.find(name) {
                Some(Name::Vector { ty, .. }) => Some(*ty),
                _ => None,
            },
            _ => None,
        }
    }

    /// The register for a result of that type.
    pub(super) fn dest(&mut self, operand: &Operand<'t>, ty: Type) -> Lowered<Reg> {
        match operand {
            Operand::Name(name) => self.register(name, ty),
            Operand::Ignore => Ok(self.fresh()),
            Operand::Member(name, member) => {
                self.fitting_element(name, member, ty, false).unwrap_or_else(no_destination)
            }
            _ => no_destination(),
        }
    }

    /// As [`Body::dest`], but the register may be wider.
    pub(super) fn wide_dest(&mut self, operand: &Operand<'t>, ty: Type) -> Lowered<Reg> {
        match operand {
            Operand::Name(name) => self.wide_register(name, ty),
            Operand::Member(name, member) => {
                self.fitting_element(name, member, ty, true).unwrap_or_else(no_destination)
            }
            _ => self.dest(operand, ty),
        }
    }

    /// A register with the operand's value.
    pub(super) fn source(&mut self, operand: &Operand<'t>, ty: Type) -> Lowered<Reg> {
        match operand {
            Operand::Name(name) if self.is_register(name) => self.register(name, ty),
            Operand::Offset(name, offset) if self.is_register(name) => {
                let register = self.register(name, ty)?;
                self.register_plus(name, register, *offset, ty)
            }
            _ => self.other_source(operand, ty, false),
        }
    }

    /// As [`Body::source`], but a register may be wider.
    pub(super) fn wide_source(&mut self, operand: &Operand<'t>, ty: Type) -> Lowered<Reg> {
        match operand {
            Operand::Name(name) if self.is_register(name) => self.wide_register(name, ty),
            Operand::Offset(name, offset) if self.is_register(name) => {
                let register = self.wide_register(name, ty)?;
                self.register_plus(name, register, *offset, ty)
            }
            _ => self.other_source(operand, ty, true),
        }
    }

    /// A register with a number added.
    fn register_plus(&mut self, name: &str, a: Reg, offset: i64, ty: Type) -> Lowered<Reg> {
        if !ty.is_integer() {
            return Err(format!(
                "a number can only be added to `{name}` where the instruction takes integers"
            )
            .into());
        }
        let (d, b) = (self.fresh(), self.constant(offset as u64));
        let add = match ty.bits() {
            8 => integer::add::<u8>,
            16 => integer::add::<u16>,
            32 => integer::add::<u32>,
            _ => integer::add::<u64>,
        };
        self.emit(Inst::Binary { f: add, d, a, b });
        Ok(d)
    }

    fn other_source(&mut self, operand: &Operand<'t>, ty: Type, is_wide: bool) -> Lowered<Reg> {
        match operand {
            Operand::Number(literal) if ty == Type::Pred => {
                Ok(self.constant(u64::from(literal.bits(Type::U64) != 0)))
            }
            Operand::Number(literal) => Ok(self.constant(literal.bits(ty))),
            Operand::Not(name) => {
                let (a, d) = (self.register(name, Type::Pred)?, self.fresh());
                self.emit(Inst::Unary { f: bits::not_pred, d, a });
                Ok(d)
            }
            Operand::Name(name) => match Special::parse(name, None) {
                Some(special) => self.special(name, special, ty),
                None => self.symbol_address(name, 0, ty),
            },
            Operand::Member(name, member) => match Special::parse(name, Some(member)) {
                Some(special) => self.special(name, special, ty),
                None => {
                    if let Some(element) = self.fitting_element(name, member, ty, is_wide) {
                        return element;
                    }
                    Err(format!("`{name}.{member}` is not a register that the software driver knows").into())
                }
            },
            Operand::Offset(name, offset) => self.symbol_address(name, *offset, ty),
            _ => Err("expected a register or a number".to_owned().into()),
        }
    }

    fn special(&mut self, name: &str, (which, width): (Special, u32), ty: Type) -> Lowered<Reg> {
        if !self.takes_special && which != Special::Fixed(32) {
            return Err(format!("`{name}` is read by `mov` and `cvt` only").into());
        }
        let d = self.fresh();
        self.special_to(d, name, (which, width), ty)?;
        Ok(d)
    }

    /// Copies a special register to a register of that type.
    pub(super) fn special_to(
        &mut self,
        d: Reg,
        name: &str,
        (which, width): (Special, u32),
        ty: Type,
    ) -> Lowered<()> {
        // Older 32-bit clocks may be read as 64 bits, and thread positions as 16 bits. Otherwise
        // the widths must agree.
        let narrows = ty.bits() == 16 && which.is_place();
        if ty.bits() < width && !narrows {
            return Err(format!("`{name}` has {width} bits, the instruction takes {}", ty.bits()).into());
        }
        self.symbols.uses_reserved |= matches!(which, Special::Reserved { .. });
        self.emit(Inst::Special { d, which });
        if narrows {
            self.field_to(d, d, 0, 16);
        }
        Ok(())
    }
}

/// Names of the elements of a vector register.
const ELEMENTS: [[&str; 2]; 4] = [["x", "r"], ["y", "g"], ["z", "b"], ["w", "a"]];

fn no_destination() -> Lowered<Reg> {
    Err("the destination must be a register".to_owned().into())
}

fn mismatch(name: &str, found: Type, wanted: Type) -> LowerError {
    let width = |ty: Type| match ty {
        Type::Pred => "a predicate".to_owned(),
        _ => format!("{} bits", ty.bits()),
    };
    LowerError::Wrong(format!("`{name}` is {}, the instruction takes {}", width(found), width(wanted)))
}
