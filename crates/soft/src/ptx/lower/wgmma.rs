//! `wgmma`: products of four warps.
//!
//! They take place at once, so that fences, groups and waits have no effect.

use super::body::Body;
use super::matrix::{ELEMENTS, NO_MEMORY, dests, emit, sources, take_aligned, take_shape};
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::matrix::{
    BitOp, Element, GroupProduct, GroupSource, Layout, MatrixInst, MatrixOp, Product, Role, Shape,
};
use crate::ptx::syntax::{Literal, Operand};
use crate::ptx::types::Type;

/// The warps of a group, which share the rows.
const WARPS: u32 = 4;

/// `wgmma.mma_async`, `wgmma.fence`, `wgmma.commit_group` and `wgmma.wait_group`.
pub(super) fn instruction<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    let name = reader
        .one_of(&[("mma_async", 'm'), ("fence", 'f'), ("commit_group", 'f'), ("wait_group", 'w')])
        .ok_or(LowerError::Unsupported)?;
    take_aligned(reader)?;
    match name {
        'm' => product(body, reader),
        'w' => {
            let [_] = reader.operands()?;
            Ok(())
        }
        _ => {
            let [] = reader.operands()?;
            Ok(())
        }
    }
}

fn product<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let Shape { m, n, k } = take_shape(reader)?;
    let saturates = reader.flag("satfinite");
    let counts = reader.flag("and") && reader.flag("popc");
    let mut next = || reader.one_of(ELEMENTS).ok_or(LowerError::Unsupported);
    let (d, a, b) = (next()?, next()?, next()?);
    let bytes = k * a.bits() / 8;
    let is_shape = m == 16 * WARPS && n % 8 == 0 && if a == Element::Bits { k == 256 } else { bytes == 32 };
    if !is_shape || counts != (a == Element::Bits) || !are_types(d, a, b, saturates) {
        return Err(LowerError::Unsupported);
    }
    let k = if a == Element::Bits { k / 32 } else { k };
    let shape = Shape { m: m / WARPS, n, k };
    let product = Product { shape, layout: Layout::Mma, a, b, c: d, d, saturates, bits: BitOp::And };
    let [d_operand, a_operand, b_operand, adds, options @ ..] = reader.all_operands()? else {
        return Err("expected at least 4 operands".to_owned().into());
    };
    let is_in_registers = matches!(a_operand, Operand::Vector(_));
    let [a_source, b_source] = sources_of(a, is_in_registers, options)?;
    let registers = |element: Element, role: Role| shape.extent(role).len() / 32 / element.per_register();
    let a_count = if is_in_registers { registers(a, Role::A) } else { 1 };
    let descriptor = |is_in_registers: bool| if is_in_registers { Type::B32 } else { Type::B64 };
    let inst = MatrixInst {
        a: sources(body, a_operand, a_count, descriptor(is_in_registers))?,
        b: sources(body, b_operand, 1, descriptor(false))?,
        c: sources(body, d_operand, registers(d, Role::C), Type::B32)?,
        d: dests(body, d_operand, registers(d, Role::C), Type::B32)?,
        op: MatrixOp::GroupProduct(GroupProduct {
            product,
            a: a_source,
            b: b_source,
            adds: body.source(adds, Type::Pred)?,
        }),
        memory: NO_MEMORY,
    };
    emit(body, inst);
    Ok(())
}

fn are_types(d: Element, a: Element, b: Element, saturates: bool) -> bool {
    use Element::{Bf16, Bits, E4m3, E5m2, F16, F32, S8, S32, Tf32, U8};
    match (a, b) {
        (F16, F16) | (E4m3 | E5m2, E4m3 | E5m2) => matches!(d, F16 | F32) && !saturates,
        (Bf16, Bf16) | (Tf32, Tf32) => d == F32 && !saturates,
        (S8 | U8, S8 | U8) => d == S32,
        (Bits, Bits) => d == S32 && !saturates,
        _ => false,
    }
}

/// The two sources, from the numbers behind the other operands: the signs, for floats, and whether
/// they are transposed, for floats of 16 bits in memory.
fn sources_of(element: Element, is_in_registers: bool, options: &[Operand<'_>]) -> Lowered<[GroupSource; 2]> {
    let is_half = matches!(element, Element::F16 | Element::Bf16);
    let is_integer = matches!(element, Element::S8 | Element::U8 | Element::Bits);
    let mut left = options.iter();
    let mut next = |is_there: bool| match (is_there, left.next()) {
        (false, other) => {
            if other.is_none() {
                Ok(None)
            } else {
                Err(())
            }
        }
        (true, Some(Operand::Number(Literal::Int(value)))) => Ok(Some(*value as i64)),
        (true, _) => Err(()),
    };
    let mut take = || -> Result<[GroupSource; 2], ()> {
        let signs = if is_integer { [None; 2] } else { [next(true)?, next(true)?] };
        let a_turn = if is_half && !is_in_registers { next(true)? } else { None };
        let b_turn = if is_half { next(true)? } else { None };
        next(false)?;
        let source = |is_in_registers, sign: Option<i64>, turn: Option<i64>| GroupSource {
            is_in_registers,
            is_negated: sign == Some(-1),
            is_transposed: turn == Some(1),
        };
        Ok([source(is_in_registers, signs[0], a_turn), source(false, signs[1], b_turn)])
    };
    take().map_err(|()| {
        let options = match (is_integer, is_half, is_in_registers) {
            (true, ..) => "nothing",
            (_, true, false) => "two signs and two numbers for transposing",
            (_, true, true) => "two signs and a number for transposing",
            _ => "two signs",
        };
        LowerError::Wrong(format!("expected {options} behind the predicate"))
    })
}
