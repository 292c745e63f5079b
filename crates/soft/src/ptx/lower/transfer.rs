//! Asynchronous copies: `cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk`.

use super::address::Address;
use super::atomic::{ATOMICS, atomic_type};
use super::body::Body;
use super::memory::skip_policy;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::transfer::{AsyncInst, AsyncOp, Pointer, Reduction};
use crate::ptx::code::{AtomicOp, Inst, Reg, Space};
use crate::ptx::syntax::{Literal, Operand};
use crate::ptx::types::Type;

/// Bulk copies move whole units of so many bytes.
const BULK_UNIT: u32 = 16;

/// The name and place of each space of a bulk copy.
const SPACES: &[(&str, Space)] =
    &[("global", Space::Global), ("shared::cta", Space::Shared), ("shared::cluster", Space::Shared)];

/// Adds an asynchronous instruction.
pub(super) fn emit(body: &mut Body<'_, '_>, inst: AsyncInst) {
    let index = body.function.asyncs.len() as u32;
    body.function.asyncs.push(inst);
    body.emit(Inst::Async { index });
}

pub(super) fn pointer<'t>(
    body: &mut Body<'_, 't>,
    operand: &Operand<'t>,
    space: Space,
    bytes: u32,
) -> Lowered<Pointer> {
    let Address { base, offset, space } = body.address(operand, space, bytes)?;
    Ok(Pointer { space, base, offset })
}

/// A number in the text.
pub(super) fn number(operand: &Operand<'_>) -> Lowered<u64> {
    match operand {
        Operand::Number(Literal::Int(value)) => Ok(*value),
        _ => Err("expected a number".to_owned().into()),
    }
}

/// `cp` and all its forms.
pub(super) fn copy<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let reduces = reader.flag("reduce");
    if !reader.flag("async") {
        return Err(LowerError::Unsupported);
    }
    if reader.flag("bulk") {
        return bulk(body, reader, reduces);
    }
    if reduces {
        return Err(LowerError::Unsupported);
    }
    if reader.flag("commit_group") {
        let [] = reader.operands()?;
        emit(body, AsyncInst::new(AsyncOp::CommitCopies));
    } else if reader.flag("wait_all") {
        let [] = reader.operands()?;
        emit(body, AsyncInst::new(AsyncOp::WaitAllCopies));
    } else if reader.flag("wait_group") {
        let [most] = reader.operands()?;
        emit(body, AsyncInst::new(AsyncOp::WaitCopies { most: number(most)? }));
    } else if reader.flag("mbarrier") {
        return arrive(body, reader);
    } else {
        return small_copy(body, reader);
    }
    Ok(())
}

/// `cp.async.mbarrier.arrive`.
fn arrive<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let expects_more = !reader.flag("noinc");
    if !reader.flag("arrive") || !reader.flag("b64") {
        return Err(LowerError::Unsupported);
    }
    let spaces = &[("shared", Space::Shared), ("shared::cta", Space::Shared)];
    let space = reader.one_of(spaces).unwrap_or(Space::Generic);
    let [barrier] = reader.operands()?;
    let barrier = pointer(body, barrier, space, 8)?;
    let inst = AsyncInst::new(AsyncOp::ArriveAfterCopies { expects_more });
    emit(body, AsyncInst { barrier, ..inst });
    Ok(())
}

/// `cp.async.ca` and `cp.async.cg`.
fn small_copy<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    skip_policy(body, reader)?;
    reader.ignore_prefixes(&["L2::64B", "L2::128B", "L2::256B"]);
    let is_global_cache = reader.one_of(&[("ca", false), ("cg", true)]).ok_or(LowerError::Unsupported)?;
    if !(reader.flag("shared") || reader.flag("shared::cta")) || !reader.flag("global") {
        return Err(LowerError::Unsupported);
    }
    let (to, from, bytes, size) = match reader.all_operands()? {
        [to, from, bytes] => (to, from, bytes, None),
        [to, from, bytes, size] => (to, from, bytes, Some(size)),
        _ => return Err("expected two addresses and one or two sizes".to_owned().into()),
    };
    let bytes = match number(bytes)? {
        16 => 16,
        small @ (4 | 8) if !is_global_cache => small as u32,
        other if is_global_cache => return Err(format!("copies 16 bytes, not {other}").into()),
        other => return Err(format!("copies 4, 8 or 16 bytes, not {other}").into()),
    };
    let mut inst = AsyncInst::new(AsyncOp::Copy { bytes });
    inst.to = pointer(body, to, Space::Shared, bytes)?;
    inst.from = pointer(body, from, Space::Global, 0)?;
    match size {
        None => inst.size = body.constant(bytes.into()),
        Some(ignores) if is_predicate(body, ignores) => {
            inst.size = body.constant(bytes.into());
            inst.ignores = body.source(ignores, Type::Pred)?;
        }
        Some(Operand::Number(Literal::Int(size))) if *size > u64::from(bytes) => {
            return Err(format!("{size} bytes of a copy of {bytes} cannot come from the source").into());
        }
        Some(size) => inst.size = body.source(size, Type::B32)?,
    }
    emit(body, inst);
    Ok(())
}

fn is_predicate<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>) -> bool {
    matches!(operand, Operand::Not(_)) || body.type_of(operand) == Some(Type::Pred)
}

/// `cp.async.bulk` and `cp.reduce.async.bulk`.
fn bulk<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>, reduces: bool) -> Lowered<()> {
    if reader.flag("commit_group") {
        let [] = reader.operands()?;
        emit(body, AsyncInst::new(AsyncOp::CommitBulk));
        return Ok(());
    }
    if reader.flag("wait_group") {
        let reads = reader.flag("read");
        let [most] = reader.operands()?;
        emit(body, AsyncInst::new(AsyncOp::WaitBulk { most: number(most)?, reads }));
        return Ok(());
    }
    skip_policy(body, reader)?;
    if reader.flag("tensor") {
        return tensor(body, reader, reduces);
    }
    if reader.flag("prefetch") {
        return prefetch(body, reader);
    }
    let reduction = if reduces { Some(reduction(reader)?) } else { None };
    let to = reader.one_of(SPACES).ok_or(LowerError::Unsupported)?;
    let from = reader.one_of(SPACES).ok_or(LowerError::Unsupported)?;
    let spaces = (to, from);
    if reader.flag("mbarrier::complete_tx::bytes") {
        return bulk_load(body, reader, spaces, reduction);
    }
    if !reader.flag("bulk_group") || spaces != (Space::Global, Space::Shared) {
        return Err(LowerError::Unsupported);
    }
    let [to, from, size] = reader.operands()?;
    let inst = AsyncInst {
        to: pointer(body, to, Space::Global, 0)?,
        from: pointer(body, from, Space::Shared, 0)?,
        size: bulk_size(body, size)?,
        ..AsyncInst::new(AsyncOp::BulkStore(reduction))
    };
    emit(body, inst);
    Ok(())
}

/// The operation of `cp.reduce`, and the type of its elements.
fn reduction(reader: &mut InstructionReader<'_, '_>) -> Lowered<Reduction> {
    let op = reader.one_of(ATOMICS).ok_or(LowerError::Unsupported)?;
    if op == AtomicOp::Add {
        reader.ignore(&["noftz"]);
    }
    Ok(Reduction { op, ty: atomic_type(op, reader.ty()?)? })
}

/// A bulk copy to shared memory: from global memory, or within the cluster, which is one block.
fn bulk_load<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    (to_space, from_space): (Space, Space),
    reduction: Option<Reduction>,
) -> Lowered<()> {
    if to_space != Space::Shared || (reduction.is_some() && from_space != Space::Shared) {
        return Err(LowerError::Unsupported);
    }
    if reader.flag("multicast::cluster") {
        // The only block of the cluster is a target.
        let mask = reader.take_last_operand();
        body.source(mask.unwrap_or(&Operand::Ignore), Type::B16)?;
    }
    let [to, from, size, barrier] = reader.operands()?;
    let inst = AsyncInst {
        to: pointer(body, to, Space::Shared, 0)?,
        from: pointer(body, from, from_space, 0)?,
        barrier: pointer(body, barrier, Space::Shared, 8)?,
        size: bulk_size(body, size)?,
        ..AsyncInst::new(AsyncOp::BulkLoad(reduction))
    };
    emit(body, inst);
    Ok(())
}

fn bulk_size<'t>(body: &mut Body<'_, 't>, size: &Operand<'t>) -> Lowered<Reg> {
    if let Operand::Number(Literal::Int(bytes)) = size
        && bytes % u64::from(BULK_UNIT) != 0
    {
        return Err(format!("{bytes} bytes are not a multiple of {BULK_UNIT}").into());
    }
    body.source(size, Type::B32)
}

/// `cp.async.bulk.prefetch`, a hint.
fn prefetch<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if !reader.flag("L2") || !reader.flag("global") {
        return Err(LowerError::Unsupported);
    }
    let [from, size] = reader.operands()?;
    pointer(body, from, Space::Global, 0)?;
    bulk_size(body, size)?;
    Ok(())
}

const RANKS: &[(&str, u8)] = &[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)];

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`, in tiles.
fn tensor<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>, reduces: bool) -> Lowered<()> {
    let rank = reader.one_of(RANKS).ok_or(LowerError::Unsupported)?;
    reader.flag("tile");
    if reader.flag("prefetch") {
        if !reader.flag("L2") || !reader.flag("global") {
            return Err(LowerError::Unsupported);
        }
        let [map] = reader.operands()?;
        tensor_operand(body, map, rank)?;
        return Ok(());
    }
    let reduction = if reduces { Some(reader.one_of(ATOMICS).ok_or(LowerError::Unsupported)?) } else { None };
    let to = reader.one_of(SPACES).ok_or(LowerError::Unsupported)?;
    let from = reader.one_of(SPACES).ok_or(LowerError::Unsupported)?;
    match (to, from) {
        (Space::Shared, Space::Global) if !reduces && reader.flag("mbarrier::complete_tx::bytes") => {
            if reader.flag("multicast::cluster") {
                // The only block of the cluster is a target.
                let mask = reader.take_last_operand();
                body.source(mask.unwrap_or(&Operand::Ignore), Type::B16)?;
            }
            reader.flag("cta_group::1");
            let [to, map, barrier] = reader.operands()?;
            let (from, list) = tensor_operand(body, map, rank)?;
            let inst = AsyncInst {
                to: pointer(body, to, Space::Shared, 0)?,
                from,
                barrier: pointer(body, barrier, Space::Shared, 8)?,
                ..AsyncInst::new(AsyncOp::TensorLoad { rank, list })
            };
            emit(body, inst);
        }
        (Space::Global, Space::Shared) if reader.flag("bulk_group") => {
            let [map, from] = reader.operands()?;
            let (to, list) = tensor_operand(body, map, rank)?;
            let inst = AsyncInst {
                to,
                from: pointer(body, from, Space::Shared, 0)?,
                ..AsyncInst::new(AsyncOp::TensorStore { rank, list, reduction })
            };
            emit(body, inst);
        }
        _ => return Err(LowerError::Unsupported),
    }
    Ok(())
}

/// The address of a tensor map, and the place of the coordinates in the lists.
fn tensor_operand<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>, rank: u8) -> Lowered<(Pointer, u32)> {
    let Operand::Coordinates { base, offset, at, .. } = operand else {
        return Err("expected a tensor map and coordinates in brackets".to_owned().into());
    };
    if at.len() != usize::from(rank) {
        return Err(format!("expected {rank} coordinates, found {}", at.len()).into());
    }
    let address = Operand::Address { base: *base, offset: *offset };
    let map = pointer(body, &address, Space::Generic, 0)?;
    let at = at.iter().map(|each| body.source(each, Type::B32)).collect::<Lowered<Vec<Reg>>>()?;
    let list = body.function.lists.len() as u32;
    body.function.lists.extend(at);
    Ok((map, list))
}

/// `st.async` and `red.async`.
pub(super) fn send<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    reader.flag("async");
    reader.ignore(&["weak", "relaxed", "cluster"]);
    if !reader.flag("mbarrier::complete_tx::bytes") || !reader.flag("shared::cluster") {
        return Err(LowerError::Unsupported);
    }
    let reduces = reader.opcode() == "red";
    let count = if reduces { 1 } else { reader.one_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1) };
    let op = if reduces { Some(reader.one_of(ATOMICS).ok_or(LowerError::Unsupported)?) } else { None };
    let ty = reader.ty()?;
    if !matches!(ty.bits(), 32 | 64) {
        return Err(LowerError::Unsupported);
    }
    let reduction = match op {
        Some(op) => Some(Reduction { op, ty: atomic_type(op, ty)? }),
        None => None,
    };
    let [to, values, barrier] = reader.operands()?;
    let values = match values {
        Operand::Vector(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    if values.len() != usize::from(count) {
        return Err(format!("expected {count} values, found {}", values.len()).into());
    }
    let values = values.iter().map(|each| body.source(each, ty)).collect::<Lowered<Vec<Reg>>>()?;
    let list = body.function.lists.len() as u32;
    body.function.lists.extend(values);
    let bytes = ty.bytes() as u8;
    let inst = AsyncInst {
        to: pointer(body, to, Space::Shared, 0)?,
        barrier: pointer(body, barrier, Space::Shared, 8)?,
        ..AsyncInst::new(AsyncOp::Send { list, count, bytes, reduction })
    };
    emit(body, inst);
    Ok(())
}
