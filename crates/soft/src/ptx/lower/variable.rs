//! Variables of module scope: their layout and initial contents.

use super::symbol::Symbol;
use crate::ptx::code::{Formal, Place};
use crate::ptx::error::PtxError;
use crate::ptx::global::{Global, Pointer};
use crate::ptx::syntax::{InitialValue, Space, Variable};
use crate::ptx::windows::{FUNCTION_STEP, FUNCTION_WINDOW};

/// The largest initialiser.
const MOST_INITIAL: u64 = 1 << 30;

/// Applies the initialiser of a variable.
pub(super) fn initialise(
    variable: &Variable<'_>,
    global: &mut Global,
    find: impl Fn(&str) -> Option<Symbol>,
) -> Result<(), PtxError> {
    for item in &variable.initial {
        let (at, width) = (item.offset as usize, item.width as usize);
        let end = at + width;
        if end as u64 > MOST_INITIAL {
            return Err(PtxError::new(item.line, "this initialiser is too large"));
        }
        if global.initial.len() < end {
            global.initial.resize(end, 0);
        }
        let bits = match item.value {
            InitialValue::Bits(bits) => bits,
            InitialValue::Address { name, addend, shift } => match find(name) {
                Some(Symbol::Global(target)) => {
                    let (offset, width) = (item.offset as u32, item.width as u8);
                    global.pointers.push(Pointer { offset, width, shift, global: target, addend });
                    0
                }
                Some(Symbol::Function(target)) => function_address(target).wrapping_add(addend) >> shift,
                _ => {
                    let message = format!("`{name}` has no address that memory can be initialised with");
                    return Err(PtxError::new(item.line, message));
                }
            },
        };
        if let (Some(place), Some(bytes)) = (global.initial.get_mut(at..end), bits.to_le_bytes().get(..width))
        {
            place.copy_from_slice(bytes);
        }
    }
    Ok(())
}

/// The address of a function.
pub(super) fn function_address(function: u32) -> u64 {
    FUNCTION_WINDOW + FUNCTION_STEP * (u64::from(function) + 1)
}

/// Lays out parameters from offset `from` on; returns the end, too.
pub(super) fn layout(sizes: impl Iterator<Item = (u32, u32)>, from: u32) -> (Vec<Formal>, u32) {
    let mut end = from;
    let mut all = Vec::new();
    for (size, align) in sizes {
        let offset = end.checked_next_multiple_of(align.max(1)).unwrap_or(u32::MAX);
        end = offset.saturating_add(size);
        all.push(Formal { place: Place::Frame(offset), size });
    }
    (all, end)
}

pub(super) fn global(variable: &Variable<'_>) -> Result<Global, PtxError> {
    let Some(size) = variable.size else {
        return Err(PtxError::new(variable.line, format!("`{}` has no size", variable.name)));
    };
    Ok(Global {
        name: variable.name.to_owned(),
        size,
        align: variable.align,
        initial: Vec::new(),
        pointers: Vec::new(),
        is_const: variable.space == Space::Const,
        is_managed: variable.is_managed,
    })
}
