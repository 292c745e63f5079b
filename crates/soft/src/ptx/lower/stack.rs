//! The stack of a thread: `alloca`, `stacksave`, `stackrestore`.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::Inst;
use crate::ptx::syntax::{Literal, Operand};
use crate::ptx::types::Type;

/// The alignment of memory that states none.
const ALIGN: u32 = 8;
const MOST_ALIGN: u64 = 1 << 16;

/// Stacks have addresses of 64 or 32 bits.
fn word(reader: &mut InstructionReader<'_, '_>) -> Lowered<Type> {
    match reader.ty()? {
        ty @ (Type::U32 | Type::U64) => Ok(ty),
        _ => Err(LowerError::Unsupported),
    }
}

pub(super) fn allocate<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let ty = word(reader)?;
    let (d, size, align) = match reader.all_operands()? {
        [d, size] => (d, size, ALIGN),
        [d, size, Operand::Number(Literal::Int(align))]
            if align.is_power_of_two() && *align <= MOST_ALIGN =>
        {
            (d, size, *align as u32)
        }
        _ => return Err("expected a register, a size and at most an alignment".to_owned().into()),
    };
    let (size, d) = (body.source(size, ty)?, body.dest(d, ty)?);
    body.emit(Inst::StackAllocate { d, size, align });
    Ok(())
}

pub(super) fn save<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let ty = word(reader)?;
    let [d] = reader.operands()?;
    let d = body.dest(d, ty)?;
    body.emit(Inst::StackSave { d });
    Ok(())
}

pub(super) fn restore<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let ty = word(reader)?;
    let [a] = reader.operands()?;
    let a = body.source(a, ty)?;
    body.emit(Inst::StackRestore { a });
    Ok(())
}
