//! Loads, stores and atomics.

use super::address::Address;
use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Access, AtomicOp, AtomicType, Cell, Inst, NONE, Reg, Space};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

const SPACES: &[(&str, Space)] = &[
    ("global", Space::Global),
    // Constants lie among the global variables.
    ("const", Space::Global),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("shared::cluster", Space::Shared),
    ("local", Space::Local),
    ("param", Space::Param),
    ("param::entry", Space::Param),
    ("param::func", Space::Param),
];

/// Memory order and scope. Accesses are relaxed atomics of the host; `.acquire` and `.release` add
/// a fence.
const ORDER: &[&str] = &[
    "weak", "volatile", "relaxed", "acq_rel", "acquire", "release", "mmio", "cta", "cluster", "gpu", "sys",
    "nc",
];
const CACHE: &[&str] = &["ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified"];

fn skip_hints(reader: &mut InstructionReader<'_, '_>) {
    reader.ignore(ORDER);
    reader.ignore(CACHE);
    reader.ignore_prefixes(&["L1::", "L2::64B", "L2::128B", "L2::256B", "L2::evict_"]);
}

fn cell(ty: Type, is_load: bool) -> Lowered<Cell> {
    // Only loads extend; a store takes the low bits.
    Ok(match ty {
        Type::S8 if is_load => Cell::S8,
        Type::S16 if is_load => Cell::S16,
        Type::S32 if is_load => Cell::S32,
        Type::Pred => return Err(LowerError::Unsupported),
        _ => match ty.bits() {
            8 => Cell::U8,
            16 => Cell::U16,
            32 => Cell::U32,
            _ => Cell::U64,
        },
    })
}

/// A cache policy, which is the last operand. It has no effect here.
pub(super) fn skip_policy<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    if !reader.flag("L2::cache_hint") {
        return Ok(());
    }
    match reader.take_last_operand() {
        Some(policy) => body.source(policy, Type::B64).map(drop),
        None => Err("expected a cache policy".to_owned().into()),
    }
}

/// `createpolicy`. Policies have no effect here.
pub(super) fn create_policy<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    reader.ignore(&["fractional", "range", "cvt", "global", "L2"]);
    reader.ignore_prefixes(&["L2::evict_"]);
    if reader.ty()? != Type::B64 {
        return Err(LowerError::Unsupported);
    }
    let [d, ..] = reader.all_operands()? else { return Err("expected a register".to_owned().into()) };
    let (a, d) = (body.constant(0), body.dest(d, Type::B64)?);
    body.emit(Inst::Move { d, a });
    Ok(())
}

/// The space, shape and element type of a load or store.
fn access<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    is_load: bool,
) -> Lowered<(Access, Type)> {
    skip_policy(body, reader)?;
    skip_hints(reader);
    let space = reader.one_of(SPACES).unwrap_or(Space::Generic);
    let count = reader.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = reader.ty()?;
    let access = Access { space, cell: cell(ty, is_load)?, count };
    if access.bytes() > 32 {
        return Err(LowerError::Unsupported);
    }
    Ok((access, ty))
}

/// The registers of an operand: one, or the elements of a vector.
fn registers<'t>(
    body: &mut Body<'_, 't>,
    operand: &Operand<'t>,
    count: u8,
    mut each: impl FnMut(&mut Body<'_, 't>, &Operand<'t>) -> Lowered<Reg>,
) -> Lowered<Reg> {
    match operand {
        // Triton writes every access so.
        Operand::Vector(parts) if parts.len() == 1 && count == 1 => each(body, &parts[0]),
        Operand::Vector(parts) if parts.len() == usize::from(count) => {
            let parts = parts.iter().map(|part| each(body, part)).collect::<Lowered<Vec<Reg>>>()?;
            let at = body.function.lists.len() as u32;
            body.function.lists.extend(parts);
            Ok(at)
        }
        Operand::Vector(parts) => Err(format!("expected {count} elements, found {}", parts.len()).into()),
        _ if count > 1 => Err(format!("expected a vector of {count}").into()),
        other => each(body, other),
    }
}

pub(super) fn load<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let acquires = reader.flag("acquire");
    let (mut access, ty) = access(body, reader, true)?;
    let [d, a] = reader.operands()?;
    let Address { base, offset, space } = body.address(a, access.space, access.bytes())?;
    access.space = space;
    let d = registers(body, d, access.count, |body, each| body.wide_dest(each, ty))?;
    body.emit(Inst::Load { d, base, offset, access });
    if acquires {
        body.emit(Inst::Fence);
    }
    Ok(())
}

pub(super) fn store<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let releases = reader.flag("release");
    let (mut access, ty) = access(body, reader, false)?;
    let [d, a] = reader.operands()?;
    let Address { base, offset, space } = body.address(d, access.space, access.bytes())?;
    if space == Space::Entry {
        return Err("the parameters of a kernel cannot be written".to_owned().into());
    }
    access.space = space;
    let a = registers(body, a, access.count, |body, each| body.wide_source(each, ty))?;
    if releases {
        body.emit(Inst::Fence);
    }
    body.emit(Inst::Store { a, base, offset, access });
    Ok(())
}

pub(super) const ATOMICS: &[(&str, AtomicOp)] = &[
    ("add", AtomicOp::Add),
    ("min", AtomicOp::Min),
    ("max", AtomicOp::Max),
    ("and", AtomicOp::And),
    ("or", AtomicOp::Or),
    ("xor", AtomicOp::Xor),
    ("exch", AtomicOp::Exchange),
    ("cas", AtomicOp::CompareSwap),
    ("inc", AtomicOp::Increment),
    ("dec", AtomicOp::Decrement),
];

pub(super) fn atomic_type(op: AtomicOp, ty: Type) -> Lowered<AtomicType> {
    use AtomicOp::{Add, And, CompareSwap, Decrement, Exchange, Increment, Max, Min, Or, Xor};
    Ok(match (op, ty) {
        (And | Or | Xor | Exchange | CompareSwap, Type::B32) => AtomicType::U32,
        (And | Or | Xor | Exchange | CompareSwap, Type::B64) => AtomicType::U64,
        (Exchange | CompareSwap, Type::U32 | Type::S32 | Type::F32) => AtomicType::U32,
        (Exchange | CompareSwap, Type::U64 | Type::S64 | Type::F64) => AtomicType::U64,
        (CompareSwap, Type::B16) => AtomicType::U16,
        (Increment | Decrement, Type::U32) => AtomicType::U32,
        (Add | Min | Max, Type::U32) => AtomicType::U32,
        (Add | Min | Max, Type::S32) => AtomicType::S32,
        (Add | Min | Max, Type::U64) => AtomicType::U64,
        (Add | Min | Max, Type::S64) => AtomicType::S64,
        (Add, Type::F32) => AtomicType::F32,
        (Add, Type::F64) => AtomicType::F64,
        (Add | Min | Max, Type::F16) => AtomicType::F16,
        (Add | Min | Max, Type::Bf16) => AtomicType::Bf16,
        (Add | Min | Max, Type::F16x2) => AtomicType::F16x2,
        (Add | Min | Max, Type::Bf16x2) => AtomicType::Bf16x2,
        _ => return Err(LowerError::Unsupported),
    })
}

/// `atom`, and `red`, which has no result.
pub(super) fn atomic<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    skip_policy(body, reader)?;
    skip_hints(reader);
    reader.ignore(&["noftz"]);
    let space = reader.one_of(SPACES).unwrap_or(Space::Generic);
    let op = reader.one_of(ATOMICS).ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    let atomic = atomic_type(op, ty)?;
    if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
        return Err(LowerError::Unsupported);
    }
    let swaps = op == AtomicOp::CompareSwap;
    let (d, a, b, c): (Option<&Operand<'t>>, _, _, Option<&Operand<'t>>) = match (reader.opcode(), swaps) {
        ("red", true) => return Err(LowerError::Unsupported),
        ("red", false) => {
            let [a, b] = reader.operands()?;
            (None, a, b, None)
        }
        (_, false) => {
            let [d, a, b] = reader.operands()?;
            (Some(d), a, b, None)
        }
        (_, true) => {
            let [d, a, b, c] = reader.operands()?;
            (Some(d), a, b, Some(c))
        }
    };
    let Address { base, offset, space } = body.address(a, space, ty.bytes())?;
    let b = body.source(b, ty)?;
    let c = match c {
        Some(c) => body.source(c, ty)?,
        None => NONE,
    };
    let d = match d {
        Some(d) => body.dest(d, ty)?,
        None => NONE,
    };
    body.emit(Inst::Atomic { op, ty: atomic, space, d, base, offset, b, c });
    Ok(())
}

/// Fences.
pub(super) fn fence<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    skip_hints(reader);
    reader.ignore(&[
        "sc",
        "gl",
        "proxy",
        "alias",
        "async",
        "global",
        "shared::cta",
        "shared::cluster",
        "mbarrier_init",
        "async::generic",
        "tensormap::generic",
    ]);
    reader.ignore_prefixes(&["sync_restrict::", "op_restrict::"]);
    reader.finish()?;
    body.emit(Inst::Fence);
    Ok(())
}

/// Cache hints, without effect.
pub(super) fn hint(reader: &mut InstructionReader<'_, '_>) -> Lowered<()> {
    skip_hints(reader);
    reader.ignore(&["global", "local", "const", "param", "tensormap", "L1", "L2"]);
    reader.ignore_prefixes(&["L2::"]);
    reader.finish()
}
