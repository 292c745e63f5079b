//! Textures and surfaces, by the handles of their objects: `tex`, `tld4`, `txq`, `suld`, `sust`,
//! `sured`, `suq`. References of module scope (`.texref`, `.samplerref`, `.surfref`) are
//! unsupported.

use super::atomic::{ATOMICS, atomic_type};
use super::body::Body;
use super::memory::{cell, skip_hints};
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::texture::{Geometry, Outside, Query, TextureInst, TextureOp, Values};
use crate::ptx::code::{AtomicOp, AtomicType, Inst, Reg};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

const GEOMETRIES: &[(&str, Geometry)] = &[
    ("1d", Geometry::Plain { rank: 1 }),
    ("2d", Geometry::Plain { rank: 2 }),
    ("3d", Geometry::Plain { rank: 3 }),
    ("a1d", Geometry::Layered { rank: 1 }),
    ("a2d", Geometry::Layered { rank: 2 }),
    ("cube", Geometry::Cube { is_layered: false }),
    ("acube", Geometry::Cube { is_layered: true }),
];

const OUTSIDE: &[(&str, Outside)] =
    &[("trap", Outside::Trap), ("clamp", Outside::Clamp), ("zero", Outside::Zero)];

const CHANNELS: &[(&str, u8)] = &[("r", 0), ("g", 1), ("b", 2), ("a", 3)];

/// Adds an instruction on a texture or surface.
fn emit(body: &mut Body<'_, '_>, inst: TextureInst) {
    let index = body.function.textures.len() as u32;
    body.function.textures.push(inst);
    body.emit(Inst::Texture { index });
}

/// Registers side by side in the lists.
fn list(body: &mut Body<'_, '_>, registers: Vec<Reg>) -> u32 {
    let at = body.function.lists.len() as u32;
    body.function.lists.extend(registers);
    at
}

/// The register with the handle of an object.
fn object<'t>(body: &mut Body<'_, 't>, base: Option<&'t str>, offset: i64) -> Lowered<Reg> {
    match base {
        Some(name) if offset == 0 && body.is_register(name) => body.register(name, Type::B64),
        _ => Err(LowerError::Unsupported),
    }
}

/// The object and the coordinates: the layer first, of which a geometry may have one more than it
/// uses.
fn place<'t>(
    body: &mut Body<'_, 't>,
    operand: &Operand<'t>,
    geometry: Geometry,
    ty: Type,
    op: TextureOp,
) -> Lowered<TextureInst> {
    let Operand::Coordinates { base, offset, at, has_sampler } = operand else {
        return Err("expected an object and coordinates in brackets".to_owned().into());
    };
    let object = object(body, *base, *offset)?;
    if *has_sampler {
        return Err(LowerError::Unsupported);
    }
    let count = geometry.coordinates() + usize::from(geometry.is_layered());
    // Three coordinates come as a vector of four.
    if at.len() != count && !(count == 3 && at.len() == 4) {
        return Err(format!("expected {count} coordinates, found {}", at.len()).into());
    }
    let mut inst = TextureInst { geometry, ..TextureInst::new(op, object) };
    let (layer, rest) = if geometry.is_layered() { at.split_at(1) } else { at.split_at(0) };
    if let Some(layer) = layer.first() {
        inst.layer = body.source(layer, Type::U32)?;
    }
    let rest = rest.iter().take(geometry.coordinates());
    let rest = rest.map(|each| body.source(each, ty)).collect::<Lowered<Vec<Reg>>>()?;
    inst.at = list(body, rest);
    Ok(inst)
}

/// The elements of a vector operand, of which there must be `count`.
fn elements<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>, count: u8) -> Lowered<Vec<Operand<'t>>> {
    let all = match operand {
        Operand::Vector(parts) => parts.clone(),
        Operand::Name(name) => body.elements(name).map_or_else(
            || vec![operand.clone()],
            |vector| match vector {
                Operand::Vector(parts) => parts,
                other => vec![other],
            },
        ),
        other => vec![other.clone()],
    };
    if all.len() == usize::from(count) {
        Ok(all)
    } else {
        Err(format!("expected {count} elements, found {}", all.len()).into())
    }
}

/// The results of a texture instruction, with the predicate that tells whether the texels are
/// there: here they always are.
fn results<'t>(
    body: &mut Body<'_, 't>,
    operand: &Operand<'t>,
    inst: &mut TextureInst,
    (ty, count): (Type, u8),
) -> Lowered<()> {
    let (vector, there) = match operand {
        Operand::Pair(both) => (&both[0], Some(&both[1])),
        other => (other, None),
    };
    let all = elements(body, vector, count)?;
    let all = all.iter().map(|each| body.dest(each, ty)).collect::<Lowered<Vec<Reg>>>()?;
    (inst.values, inst.count) = (list(body, all), count);
    if let Some(there) = there {
        let (d, a) = (body.dest(there, Type::Pred)?, body.constant(1));
        body.emit(Inst::Move { d, a });
    }
    Ok(())
}

/// The types of a texture's results: of one register, and how the values lie there.
fn values(reader: &mut InstructionReader<'_, '_>) -> Lowered<(Type, u8, Values)> {
    let is_pair = reader.one_of(&[("v2", true), ("v4", false)]).ok_or(LowerError::Unsupported)?;
    match (is_pair, reader.ty()?) {
        (false, ty @ (Type::U32 | Type::S32 | Type::F32)) => Ok((ty, 4, Values::Words)),
        (false, ty @ Type::F16) => Ok((ty, 4, Values::Halves)),
        (true, ty @ Type::F16x2) => Ok((ty, 2, Values::Pairs)),
        _ => Err(LowerError::Unsupported),
    }
}

/// The operands behind the coordinates, as single values.
fn flat<'t>(operand: &Operand<'t>) -> Vec<Operand<'t>> {
    match operand {
        Operand::Vector(parts) => parts.clone(),
        other => vec![other.clone()],
    }
}

/// Offsets in texels.
fn offsets<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>, inst: &mut TextureInst) -> Lowered<()> {
    // A single register may be a value to compare depths with.
    if !matches!(operand, Operand::Vector(_)) {
        return Err(LowerError::Unsupported);
    }
    let all = flat(operand);
    let count = inst.geometry.coordinates();
    if all.len() < count || matches!(inst.geometry, Geometry::Cube { .. }) {
        return Err(format!("expected {count} offsets, found {}", all.len()).into());
    }
    let all = all.iter().take(count).map(|each| body.source(each, Type::S32));
    let all = all.collect::<Lowered<Vec<Reg>>>()?;
    inst.offsets = list(body, all);
    Ok(())
}

/// `tex`. Textures have no mipmaps, so levels and gradients have no effect.
pub(super) fn sample<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let extra = reader.one_of(&[("base", 0), ("level", 1), ("grad", 2)]).unwrap_or(0);
    let geometry = reader.one_of(GEOMETRIES).ok_or(LowerError::Unsupported)?;
    let (ty, count, values) = values(reader)?;
    let from = reader.ty()?;
    if !matches!(from, Type::S32 | Type::F32) {
        return Err(LowerError::Unsupported);
    }
    let op = TextureOp::Sample { from_singles: from == Type::F32, values };
    let (d, at, rest) = match reader.all_operands()? {
        [d, at, rest @ ..] => (d, at, rest),
        _ => return Err("expected results and coordinates".to_owned().into()),
    };
    let mut inst = place(body, at, geometry, from, op)?;
    results(body, d, &mut inst, (ty, count))?;
    let (lods, rest) = rest.split_at_checked(extra).ok_or_else(|| "expected a level".to_owned())?;
    for each in lods.iter().flat_map(flat) {
        body.source(&each, from)?;
    }
    match rest {
        [] => {}
        [one] => offsets(body, one, &mut inst)?,
        _ => return Err(LowerError::Unsupported),
    }
    emit(body, inst);
    Ok(())
}

/// `tld4`.
pub(super) fn gather<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let channel = reader.one_of(CHANNELS).ok_or(LowerError::Unsupported)?;
    let geometry = reader.one_of(GEOMETRIES).ok_or(LowerError::Unsupported)?;
    if !matches!(geometry, Geometry::Plain { rank: 2 } | Geometry::Layered { rank: 2 }) {
        return Err(LowerError::Unsupported);
    }
    let (ty, count, values) = values(reader)?;
    if reader.ty()? != Type::F32 {
        return Err(LowerError::Unsupported);
    }
    let (d, at, rest) = match reader.all_operands()? {
        [d, at, rest @ ..] => (d, at, rest),
        _ => return Err("expected results and coordinates".to_owned().into()),
    };
    let mut inst = place(body, at, geometry, Type::F32, TextureOp::Gather { channel, values })?;
    results(body, d, &mut inst, (ty, count))?;
    match rest {
        [] => {}
        [one] => offsets(body, one, &mut inst)?,
        _ => return Err(LowerError::Unsupported),
    }
    emit(body, inst);
    Ok(())
}

/// `txq` and `suq`.
pub(super) fn query<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    const SIZES: &[(&str, Query)] =
        &[("width", Query::Width), ("height", Query::Height), ("depth", Query::Depth)];
    const TEXTURE: &[(&str, Query)] = &[
        ("normalized_coords", Query::IsNormalised),
        ("num_mipmap_levels", Query::One),
        ("num_samples", Query::One),
    ];
    let is_texture = reader.opcode() == "txq";
    let has_level = is_texture && reader.flag("level");
    let query = match reader.one_of(SIZES) {
        Some(query) => query,
        None if !has_level && reader.flag("array_size") => Query::ArraySize,
        None if is_texture && !has_level => reader.one_of(TEXTURE).ok_or(LowerError::Unsupported)?,
        None => return Err(LowerError::Unsupported),
    };
    if reader.ty()? != Type::B32 {
        return Err(LowerError::Unsupported);
    }
    let (d, a) = if has_level {
        let [d, a, level] = reader.operands()?;
        body.source(level, Type::B32)?;
        (d, a)
    } else {
        let [d, a] = reader.operands()?;
        (d, a)
    };
    let Operand::Address { base, offset } = a else {
        return Err("expected an object in brackets".to_owned().into());
    };
    let object = object(body, *base, *offset)?;
    let op = if is_texture { TextureOp::QueryTexture(query) } else { TextureOp::QuerySurface(query) };
    let mut inst = TextureInst::new(op, object);
    let d = body.dest(d, Type::B32)?;
    (inst.values, inst.count) = (list(body, vec![d]), 1);
    emit(body, inst);
    Ok(())
}

/// The geometry of a surface access.
fn surface_geometry(reader: &mut InstructionReader<'_, '_>) -> Lowered<Geometry> {
    match reader.one_of(GEOMETRIES) {
        Some(Geometry::Cube { .. }) | None => Err(LowerError::Unsupported),
        Some(geometry) => Ok(geometry),
    }
}

/// `suld` and `sust`.
pub(super) fn surface<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let is_load = reader.opcode() == "suld";
    // Bytes or texels.
    let in_bytes = reader.one_of(&[("b", true), ("p", false)]).ok_or(LowerError::Unsupported)?;
    let geometry = surface_geometry(reader)?;
    skip_hints(reader);
    let count = reader.one_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    let ty = reader.ty()?;
    let outside = reader.one_of(OUTSIDE).unwrap_or(Outside::Trap);
    let is_untyped = matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64);
    if !is_untyped || ty.bytes() * u32::from(count) > 16 {
        return Err(LowerError::Unsupported);
    }
    let op = match (is_load, in_bytes) {
        (true, true) => TextureOp::Load { cell: cell(ty, true)?, outside },
        (false, true) => TextureOp::Store { cell: cell(ty, false)?, outside },
        (false, false) if ty == Type::B32 => TextureOp::StoreTexel { outside },
        _ => return Err(LowerError::Unsupported),
    };
    let [first, second] = reader.operands()?;
    let (values, at) = if is_load { (first, second) } else { (second, first) };
    let mut inst = place(body, at, geometry, Type::S32, op)?;
    let values = elements(body, values, count)?;
    let register = |each| if is_load { body.wide_dest(each, ty) } else { body.wide_source(each, ty) };
    let values = values.iter().map(register).collect::<Lowered<Vec<Reg>>>()?;
    (inst.values, inst.count) = (list(body, values), count);
    emit(body, inst);
    Ok(())
}

/// `sured`.
pub(super) fn reduce<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let in_bytes = reader.one_of(&[("b", true), ("p", false)]).ok_or(LowerError::Unsupported)?;
    let op = reader.one_of(ATOMICS).ok_or(LowerError::Unsupported)?;
    let geometry = surface_geometry(reader)?;
    let ty = reader.ty()?;
    let outside = reader.one_of(OUTSIDE).unwrap_or(Outside::Trap);
    let atomic = match (op, ty) {
        (AtomicOp::And | AtomicOp::Or, Type::B32) => AtomicType::U32,
        (AtomicOp::Add | AtomicOp::Min | AtomicOp::Max, Type::U32 | Type::S32 | Type::U64 | Type::S64)
            if in_bytes =>
        {
            // Sums do not depend on the sign.
            let unsigned = if ty == Type::S64 { Type::U64 } else { ty };
            atomic_type(op, if op == AtomicOp::Add { unsigned } else { ty })?
        }
        // The format of the surface tells the sign.
        (AtomicOp::Add | AtomicOp::Min | AtomicOp::Max, Type::B32) if !in_bytes => AtomicType::U32,
        _ => return Err(LowerError::Unsupported),
    };
    let [at, value] = reader.operands()?;
    let op = TextureOp::Reduce { op, ty: atomic, in_bytes, outside };
    let mut inst = place(body, at, geometry, Type::S32, op)?;
    let value = elements(body, value, 1)?;
    let value = value.iter().map(|each| body.source(each, ty)).collect::<Lowered<Vec<Reg>>>()?;
    (inst.values, inst.count) = (list(body, value), 1);
    emit(body, inst);
    Ok(())
}
