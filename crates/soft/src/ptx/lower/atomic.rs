//! Atomic operations.

use super::address::Address;
use super::body::Body;
use super::memory::{SPACES, skip_hints, skip_policy};
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{AtomicOp, AtomicType, Inst, NONE, Op128, Space};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

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
        (CompareSwap, Type::B16) => AtomicType::U16,
        (Increment | Decrement, Type::U32) => AtomicType::U32,
        (Add | Min | Max, Type::U32) => AtomicType::U32,
        (Add | Min | Max, Type::S32) => AtomicType::S32,
        (Add | Min | Max, Type::U64) => AtomicType::U64,
        (Min | Max, Type::S64) => AtomicType::S64,
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
    let is_red = reader.opcode() == "red";
    let has = |order: &str| reader.has(order);
    if has("const") || has("volatile") || has("weak") || (is_red && (has("acquire") || has("acq_rel"))) {
        return Err(LowerError::Unsupported);
    }
    skip_hints(reader);
    let keeps_subnormals = reader.flag("noftz");
    let space = reader.one_of(SPACES).unwrap_or(Space::Generic);
    let op = reader.one_of(ATOMICS).ok_or(LowerError::Unsupported)?;
    let count = reader.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]);
    let ty = reader.ty()?;
    if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
        return Err(LowerError::Unsupported);
    }
    if ty == Type::B128 && count.is_none() {
        return atomic128(body, reader, space, op);
    }
    let atomic = atomic_type(op, ty)?;
    // Halves alone can only be added.
    let is_alone = count.is_none();
    let is_half = matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
    let is_extreme = matches!(op, AtomicOp::Min | AtomicOp::Max);
    let red_takes = !matches!(op, AtomicOp::Exchange | AtomicOp::CompareSwap);
    if keeps_subnormals != is_half || (is_half && is_alone && is_extreme) || (is_red && !red_takes) {
        return Err(LowerError::Unsupported);
    }
    match count {
        Some(count) => vector(body, reader, (space, op, atomic), ty, count),
        None => single(body, reader, (space, op, atomic), ty),
    }
}

/// An atomic operation on one value.
fn single<'t>(
    body: &mut Body<'_, 't>,
    reader: &InstructionReader<'_, 't>,
    (space, op, atomic): (Space, AtomicOp, AtomicType),
    ty: Type,
) -> Lowered<()> {
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
    // Others may wait in a loop around one of these.
    let polls = matches!(
        op,
        AtomicOp::CompareSwap | AtomicOp::Exchange | AtomicOp::Or | AtomicOp::And | AtomicOp::Add
    );
    if polls && d != NONE {
        body.emit(Inst::Poll { a: d });
    }
    Ok(())
}

/// `atom.exch.b128`, `atom.cas.b128`.
fn atomic128<'t>(
    body: &mut Body<'_, 't>,
    reader: &InstructionReader<'_, 't>,
    space: Space,
    op: AtomicOp,
) -> Lowered<()> {
    let (op, [d, a, b], c) = match (reader.opcode(), op) {
        ("atom", AtomicOp::Exchange) => (Op128::Exchange, reader.operands()?, None),
        ("atom", AtomicOp::CompareSwap) => {
            let [d, a, b, c] = reader.operands()?;
            (Op128::CompareSwap, [d, a, b], Some(c))
        }
        _ => return Err(LowerError::Unsupported),
    };
    let Address { base, offset, space } = body.address(a, space, 16)?;
    let [b, _] = body.both_words(b)?;
    let c = match c {
        Some(c) => body.both_words(c)?[0],
        None => NONE,
    };
    let [d, _] = body.both_words(d)?;
    body.emit(Inst::Atomic128 { op, space, d, base, offset, b, c });
    Ok(())
}

/// Floats side by side, each an atomic of its own.
fn vector<'t>(
    body: &mut Body<'_, 't>,
    reader: &InstructionReader<'_, 't>,
    (space, op, atomic): (Space, AtomicOp, AtomicType),
    ty: Type,
    count: u32,
) -> Lowered<()> {
    let fits = match ty {
        Type::F32 => op == AtomicOp::Add && count <= 4,
        Type::F16x2 | Type::Bf16x2 => count <= 4,
        Type::F16 | Type::Bf16 => true,
        _ => false,
    };
    if !fits || !matches!(op, AtomicOp::Add | AtomicOp::Min | AtomicOp::Max) || space == Space::Shared {
        return Err(LowerError::Unsupported);
    }
    let (d, a, b) = if reader.opcode() == "red" {
        let [a, b] = reader.operands()?;
        (None, a, b)
    } else {
        let [d, a, b] = reader.operands()?;
        (Some(d), a, b)
    };
    let elements = |operand: &Operand<'t>| match operand {
        Operand::Vector(parts) if parts.len() == count as usize => Ok(parts.clone()),
        _ => Err(LowerError::Wrong(format!("expected a vector of {count}"))),
    };
    let bytes = ty.bytes();
    let Address { base, offset, space } = body.address(a, space, bytes * count)?;
    let sources = elements(b)?.iter().map(|b| body.source(b, ty)).collect::<Lowered<Vec<_>>>()?;
    let results: Vec<_> = sources.iter().map(|_| d.map_or(NONE, |_| body.fresh())).collect();
    let align = bytes * count;
    body.emit(Inst::CheckAligned { base, offset, align });
    for (index, (&b, &d)) in sources.iter().zip(&results).enumerate() {
        let offset = offset.wrapping_add(index as i32 * bytes as i32);
        body.emit(Inst::Atomic { op, ty: atomic, space, d, base, offset, b, c: NONE });
    }
    if let Some(d) = d {
        for (d, a) in elements(d)?.iter().zip(results) {
            let d = body.dest(d, ty)?;
            body.emit(Inst::Move { d, a });
        }
    }
    Ok(())
}
