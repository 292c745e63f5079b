//! Operands to registers, with their types checked.

use super::body::Body;
use super::scope::Name;
use super::spec::{Lowered, Problem};
use super::symbols::{Symbol, function_address};
use crate::ptx::code::{Inst, LOCAL_WINDOW, NONE, PARAM_WINDOW, Reg, SHARED_WINDOW, Space};
use crate::ptx::math::{self, F1, F2, F3, F4, bits, integer};
use crate::ptx::special::Special;
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

/// An address operand: base register (or [`NONE`] where the space needs none), offset, and the
/// space to use.
pub(super) struct Address {
    pub(super) base: Reg,
    pub(super) offset: i32,
    pub(super) space: Space,
}

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

    fn declared(&mut self, name: &'t str) -> Lowered<(Type, Reg)> {
        let next = self.function.template.len() as u32;
        match self.scopes.find(name) {
            Some(Name::Register { ty, slot: Some(slot) }) => Ok((*ty, *slot)),
            Some(Name::Register { ty, slot }) => {
                *slot = Some(next);
                let ty = *ty;
                self.function.registers += ty.bits() / 32 + u32::from(matches!(ty.bits(), 8 | 16));
                Ok((ty, self.fresh()))
            }
            Some(Name::Vector { .. }) => {
                Err(format!("`{name}` is a vector, one of its elements is wanted: `{name}.x`").into())
            }
            Some(_) => Err(format!("`{name}` is a variable, a register is wanted").into()),
            None => Err(format!("register `{name}` is not declared").into()),
        }
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

    /// The element of that name, if it is one, which must be as wide as `ty`; or wider, where that
    /// is allowed.
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

    fn is_register(&mut self, name: &'t str) -> bool {
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

    /// Where a result of that type goes.
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
            return Err(format!("a number can be added to `{name}` where integers are wanted").into());
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
                    Err(format!("`{name}.{member}` is no register that the software driver knows").into())
                }
            },
            Operand::Offset(name, offset) => self.symbol_address(name, *offset, ty),
            _ => Err("a register or a number is wanted here".to_owned().into()),
        }
    }

    fn special(&mut self, name: &str, (which, width): (Special, u32), ty: Type) -> Lowered<Reg> {
        let d = self.fresh();
        self.special_to(d, name, (which, width), ty)?;
        Ok(d)
    }

    /// A special register to a register of that type.
    pub(super) fn special_to(
        &mut self,
        d: Reg,
        name: &str,
        (which, width): (Special, u32),
        ty: Type,
    ) -> Lowered<()> {
        // Clocks may be read as 64 bits from older 32-bit names, and places of threads as 16 bits;
        // else the widths agree.
        let narrows = ty.bits() == 16 && which.is_place();
        if ty.bits() < width && !narrows {
            return Err(format!("`{name}` has {width} bits, the instruction wants {}", ty.bits()).into());
        }
        self.emit(Inst::Special { d, which });
        if narrows {
            self.field_to(d, d, 0, 16);
        }
        Ok(())
    }

    /// The address of a variable, parameter or function in its own space.
    fn symbol_address(&mut self, name: &'t str, addend: i64, ty: Type) -> Lowered<Reg> {
        if !matches!(ty.bits(), 32 | 64) {
            return Err(format!(
                "`{name}` is no register, and its address does not fit into {} bits",
                ty.bits()
            )
            .into());
        }
        let found = self.scopes.find(name).cloned();
        match found {
            Some(Name::Entry { offset, .. }) => {
                Ok(self.constant(u64::from(offset).wrapping_add_signed(addend)))
            }
            Some(Name::Frame { offset, is_param, .. }) => {
                let bias = if is_param { LOCAL_WINDOW.wrapping_sub(PARAM_WINDOW) } else { 0 };
                Ok(self.frame_address(offset, bias.wrapping_add_signed(addend)))
            }
            Some(Name::Shared(index)) => Ok(self.shared_address(index, addend)),
            Some(Name::Global(index)) => Ok(self.global_address(index, addend)),
            Some(_) => Err(format!("`{name}` has no address").into()),
            None => match self.symbols.get(name) {
                Some(Symbol::Global(index)) => Ok(self.global_address(index, addend)),
                Some(Symbol::Shared(index)) => Ok(self.shared_address(index, addend)),
                Some(Symbol::Function(index)) => Ok(self.constant(function_address(index))),
                Some(_) => Err(unresolved(name)),
                None => Err(format!("`{name}` is not declared").into()),
            },
        }
    }

    fn frame_address(&mut self, offset: u32, bias: u64) -> Reg {
        let d = self.fresh();
        self.emit(Inst::FrameAddress { d, offset, bias });
        d
    }

    fn shared_address(&mut self, index: u32, addend: i64) -> Reg {
        let d = self.fresh();
        self.emit(Inst::SharedAddress { d, index, addend });
        d
    }

    fn global_address(&mut self, index: u32, addend: i64) -> Reg {
        let d = self.fresh();
        self.emit(Inst::GlobalAddress { d, index, addend });
        d
    }

    /// An operand in brackets, for an access of `bytes` in `space`.
    pub(super) fn address(&mut self, operand: &Operand<'t>, space: Space, bytes: u32) -> Lowered<Address> {
        let Operand::Address { base, offset } = operand else {
            return Err("an address in brackets is wanted".to_owned().into());
        };
        let Some(name) = *base else {
            let base = self.constant(*offset as u64);
            return Ok(Address { base, offset: 0, space });
        };
        if self.is_register(name) {
            return self.register_address(name, *offset, space);
        }
        self.variable_address(name, *offset, space, bytes)
    }

    fn register_address(&mut self, name: &'t str, offset: i64, space: Space) -> Lowered<Address> {
        let (ty, mut base) = self.declared(name)?;
        match ty.bits() {
            64 => {}
            // These spaces look at 32 bits of an address anyway.
            32 if matches!(space, Space::Shared | Space::Local) => {}
            // What lies above 32 bits of a register is no part of the address.
            32 => {
                let d = self.fresh();
                self.emit(Inst::Unary { f: math::convert::extend_from::<u32, u64>, d, a: base });
                base = d;
            }
            _ => return Err(format!("`{name}` is too narrow for an address").into()),
        }
        if let Ok(offset) = i32::try_from(offset) {
            return Ok(Address { base, offset, space });
        }
        let (d, b) = (self.fresh(), self.constant(offset as u64));
        self.emit(Inst::Add64 { d, a: base, b });
        Ok(Address { base: d, offset: 0, space })
    }

    fn variable_address(&mut self, name: &'t str, offset: i64, space: Space, bytes: u32) -> Lowered<Address> {
        let found = self.scopes.find(name).cloned();
        let wrong =
            || Problem::Wrong(format!("`{name}` lies in another space than the instruction accesses"));
        let inside = |start: u32, size: u32| {
            // Constant offsets into parameters can be judged here.
            if offset < 0 || offset.saturating_add(i64::from(bytes)) > i64::from(size) {
                return Err(Problem::Wrong(format!(
                    "{bytes} bytes at `{name}+{offset}` are outside of its {size}"
                )));
            }
            Ok(start.wrapping_add_signed(offset as i32) as i32)
        };
        let symbol = match found {
            Some(Name::Entry { offset: start, size }) => {
                return match space {
                    Space::Param => {
                        Ok(Address { base: NONE, offset: inside(start, size)?, space: Space::Entry })
                    }
                    _ => Err(wrong()),
                };
            }
            Some(Name::Frame { offset: start, size, is_param: true }) => {
                return match space {
                    Space::Param => {
                        Ok(Address { base: NONE, offset: inside(start, size)?, space: Space::Frame })
                    }
                    _ => Err(wrong()),
                };
            }
            Some(Name::Frame { offset: start, .. }) => {
                let bias = match space {
                    Space::Local => 0,
                    Space::Generic => LOCAL_WINDOW,
                    _ => return Err(wrong()),
                };
                let base = self.frame_address(start, bias.wrapping_add_signed(offset));
                return Ok(Address { base, offset: 0, space });
            }
            Some(Name::Shared(index)) => Some(Symbol::Shared(index)),
            Some(Name::Global(index)) => Some(Symbol::Global(index)),
            Some(_) => return Err(format!("`{name}` is no variable").into()),
            None => self.symbols.get(name),
        };
        let base = match (symbol, space) {
            (Some(Symbol::Shared(index)), Space::Shared) => self.shared_address(index, offset),
            (Some(Symbol::Shared(index)), Space::Generic) => {
                self.shared_address(index, (SHARED_WINDOW as i64).wrapping_add(offset))
            }
            (Some(Symbol::Global(index)), Space::Global | Space::Generic) => {
                self.global_address(index, offset)
            }
            (Some(Symbol::Global(_) | Symbol::Shared(_)), _) => return Err(wrong()),
            (Some(_), _) => return Err(format!("`{name}` is no variable").into()),
            (None, _) => return Err(format!("`{name}` is not declared").into()),
        };
        Ok(Address { base, offset: 0, space })
    }

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

    /// `d` from parts of `width` bits, the lowest first.
    pub(super) fn pack_to(&mut self, d: Reg, parts: &[Reg], width: u32) {
        let mut whole = self.constant(0);
        for (index, &b) in parts.iter().enumerate() {
            // The parts may overlap with the destination: only the last step writes it.
            let to = if index + 1 == parts.len() { d } else { self.fresh() };
            let c = self.constant(bits::field_spec(index as u32 * width, width));
            self.emit(Inst::Ternary { f: bits::insert, d: to, a: whole, b, c });
            whole = to;
        }
    }
}

/// Names of the elements of a vector register.
const ELEMENTS: [[&str; 2]; 4] = [["x", "r"], ["y", "g"], ["z", "b"], ["w", "a"]];

fn no_destination() -> Lowered<Reg> {
    Err("the destination must be a register".to_owned().into())
}

fn mismatch(name: &str, found: Type, wanted: Type) -> Problem {
    let width = |ty: Type| match ty {
        Type::Pred => "a predicate".to_owned(),
        _ => format!("{} bits", ty.bits()),
    };
    Problem::Wrong(format!("`{name}` is {}, the instruction wants {}", width(found), width(wanted)))
}

pub(super) fn unresolved(name: &str) -> Problem {
    Problem::Wrong(format!(
        "function `{name}` is declared but defined nowhere, and the software driver has none"
    ))
}
