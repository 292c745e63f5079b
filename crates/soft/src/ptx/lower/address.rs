//! Addresses: operands in brackets, and the addresses of variables, parameters and functions.

use super::body::Body;
use super::reader::{LowerError, Lowered};
use super::scope::Name;
use super::symbol::Symbol;
use super::variable::function_address;
use crate::ptx::code::{Inst, NONE, Reg, Space};
use crate::ptx::math;
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;
use crate::ptx::windows::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};

/// An address operand: base register (or [`NONE`] where the space needs none), offset, and the
/// space to use.
pub(super) struct Address {
    pub(super) base: Reg,
    pub(super) offset: i32,
    pub(super) space: Space,
}

impl<'t> Body<'_, 't> {
    /// The address of a variable, parameter or function in its own space.
    pub(super) fn symbol_address(&mut self, name: &'t str, addend: i64, ty: Type) -> Lowered<Reg> {
        if !matches!(ty.bits(), 32 | 64) {
            return Err(format!(
                "`{name}` is not a register, and its address does not fit into {} bits",
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
                Some(Symbol::Reference) => Err(reference(name)),
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
            return Err("expected an address in brackets".to_owned().into());
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
            // These spaces only use 32 bits of an address.
            32 if matches!(space, Space::Shared | Space::Local) => {}
            // Bits above the 32 of the register are not part of the address.
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
            || LowerError::Wrong(format!("`{name}` lies in another space than the instruction accesses"));
        let inside = |start: u32, size: u32| {
            // Constant offsets into parameters are checked here.
            if offset < 0 || offset.saturating_add(i64::from(bytes)) > i64::from(size) {
                return Err(LowerError::Wrong(format!(
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
            Some(_) => return Err(format!("`{name}` is not a variable").into()),
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
            (Some(Symbol::Reference), _) => return Err(reference(name)),
            (Some(_), _) => return Err(format!("`{name}` is not a variable").into()),
            (None, _) => return Err(format!("`{name}` is not declared").into()),
        };
        Ok(Address { base, offset: 0, space })
    }
}

fn reference(name: &str) -> LowerError {
    LowerError::Wrong(format!(
        "`{name}` is a texture or surface reference, which is not supported by the software driver; \
         texture and surface objects are"
    ))
}

pub(super) fn unresolved(name: &str) -> LowerError {
    LowerError::Wrong(format!(
        "function `{name}` is declared but defined nowhere, and the software driver has none"
    ))
}
