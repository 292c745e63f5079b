//! Clusters, which have one block here: `mapa`, `getctarank`.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::Inst;
use crate::ptx::types::Type;

/// Whether the address lies in shared memory, and its type.
fn address(reader: &mut InstructionReader<'_, '_>) -> Lowered<(bool, Type)> {
    let is_shared = reader.flag("shared::cluster");
    match reader.ty()? {
        ty @ (Type::U32 | Type::U64) => Ok((is_shared, ty)),
        _ => Err(LowerError::Unsupported),
    }
}

/// `mapa`: the address in another block. Every rank means the only block.
pub(super) fn map<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let (_, ty) = address(reader)?;
    let [d, a, rank] = reader.operands()?;
    let a = body.source(a, ty)?;
    body.source(rank, Type::U32)?;
    let d = body.dest(d, ty)?;
    body.emit(Inst::Move { d, a });
    Ok(())
}

/// `getctarank`: the block that an address lies in.
pub(super) fn rank<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let (_, ty) = address(reader)?;
    let [d, a] = reader.operands()?;
    body.source(a, ty)?;
    let (a, d) = (body.constant(0), body.dest(d, Type::U32)?);
    body.emit(Inst::Move { d, a });
    Ok(())
}
