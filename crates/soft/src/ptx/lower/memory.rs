//! Loads and stores.

use super::address::Address;
use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Access, Cell, Inst, NONE, Op128, Reg, Space};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

pub(super) const SPACES: &[(&str, Space)] = &[
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
const CACHE: &[&str] = &["ca", "cg", "cs", "lu", "cv", "wb", "wt"];

pub(super) fn skip_hints(reader: &mut InstructionReader<'_, '_>) {
    reader.ignore(ORDER);
    reader.ignore(CACHE);
    reader.ignore_prefixes(&["L1::", "L2::64B", "L2::128B", "L2::256B", "L2::evict_"]);
}

/// Whether other threads see the access in an order: not a `.weak` one.
fn is_strong(reader: &InstructionReader<'_, '_>) -> bool {
    ["volatile", "relaxed", "acquire", "release", "mmio"].iter().any(|order| reader.has(order))
}

/// Checks that the order, its scope and the space go together.
fn check_order(reader: &InstructionReader<'_, '_>, is_load: bool) -> Lowered<()> {
    let any = |names: &[&str]| names.iter().any(|name| reader.has(name));
    let is_ordered = any(&["relaxed", "acquire", "release"]);
    let has_scope = any(&["cta", "cluster", "gpu", "sys"]);
    let outside = any(&["local", "const", "param", "param::entry", "param::func"]);
    let is_shared = any(&["shared", "shared::cta", "shared::cluster"]);
    let is_wrong = is_ordered != has_scope
        || (is_ordered && any(&["weak", "volatile"]))
        || ((is_strong(reader) || reader.has("nc")) && outside)
        || reader.has(if is_load { "release" } else { "acquire" })
        || (reader.has("mmio") && (is_shared || !any(&["relaxed"]) || !any(&["sys"])))
        || any(if is_load { &["wb", "wt"] } else { &["ca", "lu", "cv", "nc"] });
    if is_wrong { Err(LowerError::Unsupported) } else { Ok(()) }
}

pub(super) fn cell(ty: Type, is_load: bool) -> Lowered<Cell> {
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

/// The space, shape and element type of a load or store.
fn access<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    is_load: bool,
) -> Lowered<(Access, Type)> {
    skip_policy(body, reader)?;
    let is_const = reader.has("const");
    check_order(reader, is_load)?;
    // Accesses of 32 bytes, and priorities in the second cache, came with both.
    let has_wide = body.symbols.is_at_least((8, 8), 100);
    if !has_wide && reader.has_prefix("L2::evict_") {
        return Err(LowerError::Unsupported);
    }
    skip_hints(reader);
    let space = reader.one_of(SPACES).unwrap_or(Space::Generic);
    if is_const && !is_load {
        return Err("constant memory cannot be written".to_owned().into());
    }
    let count = reader.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = reader.ty()?;
    let access = match ty {
        // A register of two words.
        Type::B128 if count == 1 => Access { space, cell: Cell::U64, count: 2 },
        Type::B128 => return Err(LowerError::Unsupported),
        _ => Access { space, cell: cell(ty, is_load)?, count },
    };
    if access.bytes() > if has_wide { 32 } else { 16 } {
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

/// The position of the words of a 128-bit register in the lists.
fn word_list<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>) -> Lowered<Reg> {
    let words = body.both_words(operand)?;
    let at = body.function.lists.len() as u32;
    body.function.lists.extend(words);
    Ok(at)
}

pub(super) fn load<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let is_strong = is_strong(reader);
    let acquires = reader.flag("acquire");
    let (mut access, ty) = access(body, reader, true)?;
    let [d, a] = reader.operands()?;
    let Address { base, offset, space } = body.address(a, access.space, access.bytes())?;
    access.space = space;
    if ty == Type::B128 && is_strong {
        let [d, _] = body.both_words(d)?;
        body.emit(Inst::Atomic128 { op: Op128::Load, space, d, base, offset, b: NONE, c: NONE });
    } else if ty == Type::B128 {
        let d = word_list(body, d)?;
        body.emit(Inst::Load { d, base, offset, access });
    } else {
        let d = registers(body, d, access.count, |body, each| body.wide_dest(each, ty))?;
        body.emit(Inst::Load { d, base, offset, access });
        if is_strong && access.count == 1 {
            body.emit(Inst::Poll { a: d });
        }
    }
    if acquires {
        body.emit(Inst::Fence);
    }
    Ok(())
}

pub(super) fn store<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let is_strong = is_strong(reader);
    let releases = reader.flag("release");
    let (mut access, ty) = access(body, reader, false)?;
    let [d, a] = reader.operands()?;
    let Address { base, offset, space } = body.address(d, access.space, access.bytes())?;
    if space == Space::Entry {
        return Err("the parameters of a kernel cannot be written".to_owned().into());
    }
    access.space = space;
    if releases {
        body.emit(Inst::Fence);
    }
    if ty == Type::B128 && is_strong {
        let [b, _] = body.both_words(a)?;
        body.emit(Inst::Atomic128 { op: Op128::Store, space, d: NONE, base, offset, b, c: NONE });
        return Ok(());
    }
    let a = match ty {
        Type::B128 => word_list(body, a)?,
        _ => registers(body, a, access.count, |body, each| body.wide_source(each, ty))?,
    };
    body.emit(Inst::Store { a, base, offset, access });
    Ok(())
}
