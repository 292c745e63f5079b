//! `wmma`: fragments whose layout PTX leaves open.

use super::address::Address;
use super::body::Body;
use super::matrix::{
    ELEMENTS, NO_MEMORY, dests, emit, emit_product, register_type, sources, take_aligned, take_is_row,
    take_shape,
};
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::matrix::{
    BitOp, Element, Fragment, Layout, MatrixInst, MatrixMemory, MatrixOp, Product, Role, Shape,
};
use crate::ptx::code::{Reg, Space};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

const SPACES: &[(&str, Space)] = &[
    ("global", Space::Global),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("shared::cluster", Space::Shared),
];

/// `wmma.load`, `wmma.store` and `wmma.mma`.
pub(super) fn instruction<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    let name =
        reader.one_of(&[("load", 'l'), ("store", 's'), ("mma", 'm')]).ok_or(LowerError::Unsupported)?;
    if name == 'm' {
        return product(body, reader);
    }
    memory(body, reader, name == 'l')
}

/// The type of `a` and `b` for a fragment with that type, and whether `wmma` has the shape.
fn is_shape(shape: Shape, element: Element, role: Role) -> bool {
    let Shape { m, n, k } = shape;
    let is_square = (m, n) == (16, 16);
    let is_wide = matches!((m, n), (16, 16) | (32, 8) | (8, 32)) && k == 16;
    match (role, element) {
        (Role::C, Element::F32) => is_wide || (is_square && k == 8),
        (Role::C, Element::F16 | Element::S32) => is_wide,
        (_, Element::F64) => (m, n, k) == (8, 8, 4),
        (Role::C, _) => false,
        (_, Element::F16 | Element::Bf16 | Element::S8 | Element::U8) => is_wide,
        (_, Element::Tf32) => is_square && k == 8,
        _ => false,
    }
}

/// The registers of a fragment.
fn registers(shape: Shape, element: Element, role: Role) -> u32 {
    if element == Element::F16 && role != Role::C {
        return 8;
    }
    shape.extent(role).len() / 32 / element.per_register()
}

fn memory<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>, is_load: bool) -> Lowered<()> {
    let roles: &[(&str, Role)] =
        if is_load { &[("a", Role::A), ("b", Role::B), ("c", Role::C)] } else { &[("d", Role::C)] };
    let role = reader.one_of(roles).ok_or(LowerError::Unsupported)?;
    take_aligned(reader)?;
    let is_row = take_is_row(reader)?;
    let shape = take_shape(reader)?;
    let space = reader.one_of(SPACES).unwrap_or(Space::Generic);
    let element = reader.one_of(ELEMENTS).ok_or(LowerError::Unsupported)?;
    if !is_shape(shape, element, role) {
        return Err(LowerError::Unsupported);
    }
    let (first, second, stride) = match reader.all_operands()? {
        [first, second] => (first, second, None),
        [first, second, stride] => (first, second, Some(stride)),
        _ => return Err("expected a fragment, an address and at most a stride".to_owned().into()),
    };
    let (list, address) = if is_load { (first, second) } else { (second, first) };
    let extent = shape.extent(role);
    let fragment = Fragment { element, extent, is_row };
    let (count, ty) = (registers(shape, element, role), register_type(element));
    let mut inst = MatrixInst {
        op: if is_load { MatrixOp::LoadFragment(fragment) } else { MatrixOp::StoreFragment(fragment) },
        memory: MatrixMemory { stride: stride_of(body, stride, fragment)?, ..NO_MEMORY },
        d: Vec::new(),
        a: Vec::new(),
        b: Vec::new(),
        c: Vec::new(),
    };
    let Address { base, offset, space } = body.address(address, space, element.bits() / 8)?;
    inst.memory = MatrixMemory { space, base, offset, ..inst.memory };
    if is_load {
        inst.d = dests(body, list, count, ty)?;
    } else {
        inst.a = sources(body, list, count, ty)?;
    }
    emit(body, inst);
    Ok(())
}

/// The register with the stride. Without one, rows (or columns) follow each other.
fn stride_of<'t>(body: &mut Body<'_, 't>, stride: Option<&Operand<'t>>, fragment: Fragment) -> Lowered<Reg> {
    match stride {
        Some(stride) => body.source(stride, Type::B32),
        None if fragment.is_row => Ok(body.constant(fragment.extent.columns.into())),
        None => Ok(body.constant(fragment.extent.rows.into())),
    }
}

fn product<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    take_aligned(reader)?;
    // Fragments hold the same elements in either layout.
    take_is_row(reader)?;
    take_is_row(reader)?;
    let shape = take_shape(reader)?;
    let saturates = reader.flag("satfinite");
    let rounds = reader.flag("rn");
    let first = reader.one_of(ELEMENTS).ok_or(LowerError::Unsupported)?;
    let second = reader.one_of(ELEMENTS).ok_or(LowerError::Unsupported)?;
    let [d, a, b, c] = match second {
        // With halves, only the types of `d` and `c` are written.
        Element::F16 | Element::F32 => [first, Element::F16, Element::F16, second],
        _ => {
            let mut next = || reader.one_of(ELEMENTS).ok_or(LowerError::Unsupported);
            [first, second, next()?, next()?]
        }
    };
    use Element::{Bf16, F16, F32, F64, S8, S32, Tf32, U8};
    let is_known = match (a, b) {
        (F16, F16) => matches!((d, c), (F16 | F32, F16 | F32)) && !saturates,
        (Bf16, Bf16) | (Tf32, Tf32) => (d, c) == (F32, F32) && !saturates,
        (F64, F64) => (d, c) == (F64, F64) && !saturates,
        (S8, S8) | (U8, U8) => (d, c) == (S32, S32),
        _ => false,
    };
    if !is_known || (rounds && a != F64) || !is_shape(shape, a, Role::A) {
        return Err(LowerError::Unsupported);
    }
    let how = Product { shape, layout: Layout::Wmma, a, b, c, d, saturates, bits: BitOp::Xor };
    let operands = reader.operands()?;
    emit_product(body, how, operands, |element, role| registers(shape, element, role))
}
