//! `tensormap`: changes of tensor maps in memory.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use super::transfer::{emit, number, pointer};
use crate::ptx::code::Space;
use crate::ptx::code::transfer::{AsyncInst, AsyncOp, MapField};
use crate::ptx::types::Type;

const SPACES: &[(&str, Space)] = &[("global", Space::Global), ("shared::cta", Space::Shared)];

/// Fields with one value.
const SINGLE: &[(&str, MapField)] = &[
    ("global_address", MapField::Address),
    ("rank", MapField::Rank),
    ("elemtype", MapField::ElementType),
    ("interleave_layout", MapField::Interleave),
    ("swizzle_mode", MapField::Swizzle),
    ("fill_mode", MapField::Fill),
];

type OfDimension = fn(u8) -> MapField;

/// Fields with a value for each dimension.
const REPEATED: &[(&str, (OfDimension, u64))] = &[
    ("box_dim", (MapField::BoxSize, 5)),
    ("global_dim", (MapField::Size, 5)),
    ("global_stride", (MapField::Stride, 4)),
    ("element_stride", (MapField::Step, 5)),
];

/// The element types of `tensormap.replace`, as data types of tensor maps.
const ELEMENT_TYPES: [u64; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12];

/// `tensormap.replace` and `tensormap.cp_fenceproxy`.
pub(super) fn instruction<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    if reader.flag("cp_fenceproxy") {
        return copy(body, reader);
    }
    if !reader.flag("replace") || !reader.flag("tile") {
        return Err(LowerError::Unsupported);
    }
    let space = reader.one_of(SPACES).unwrap_or(Space::Generic);
    let repeated = reader.one_of(REPEATED);
    let single = if repeated.is_some() { None } else { reader.one_of(SINGLE) };
    let ty = if reader.flag("b1024") { reader.ty()? } else { return Err(LowerError::Unsupported) };
    let (address, field, value) = match (repeated, single) {
        (Some((field, count)), _) => {
            let [address, dimension, value] = reader.operands()?;
            let dimension = number(dimension)?;
            if dimension >= count {
                return Err(format!("there is no dimension {dimension}").into());
            }
            (address, field(dimension as u8), value)
        }
        (_, Some(field)) => {
            let [address, value] = reader.operands()?;
            (address, field, value)
        }
        _ => return Err(LowerError::Unsupported),
    };
    let is_wide = matches!(field, MapField::Address | MapField::Stride(_));
    if ty != if is_wide { Type::B64 } else { Type::B32 } {
        return Err(LowerError::Unsupported);
    }
    let size = if field == MapField::ElementType {
        let ty = usize::try_from(number(value)?).ok().and_then(|number| ELEMENT_TYPES.get(number));
        body.constant(*ty.ok_or_else(|| LowerError::Wrong("there is no such element type".to_owned()))?)
    } else {
        body.source(value, ty)?
    };
    let to = pointer(body, address, space, 0)?;
    emit(body, AsyncInst { to, size, ..AsyncInst::new(AsyncOp::ReplaceField(field)) });
    Ok(())
}

/// `tensormap.cp_fenceproxy`: every lane copies the same map.
fn copy<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let spaces = [reader.one_of(SPACES), reader.one_of(SPACES)];
    reader.ignore(&["tensormap::generic", "release", "cta", "cluster", "gpu", "sys", "sync", "aligned"]);
    if spaces != [Some(Space::Global), Some(Space::Shared)] {
        return Err(LowerError::Unsupported);
    }
    let [to, from, bytes] = reader.operands()?;
    if number(bytes)? != 128 {
        return Err("a tensor map has 128 bytes".to_owned().into());
    }
    let to = pointer(body, to, Space::Global, 0)?;
    let from = pointer(body, from, Space::Shared, 0)?;
    emit(body, AsyncInst { to, from, ..AsyncInst::new(AsyncOp::CopyMap) });
    Ok(())
}
