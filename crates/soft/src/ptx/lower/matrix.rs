//! Matrices: `ldmatrix`, `stmatrix`, `movmatrix` and `mma`.

use super::address::Address;
use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::matrix::{
    BitOp, Element, Layout, MatrixInst, MatrixMemory, MatrixOp, Product, Role, Shape,
};
use crate::ptx::code::{Inst, NONE, Reg, Space, WarpOp};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

/// The memory operand of an instruction that has none.
pub(super) const NO_MEMORY: MatrixMemory =
    MatrixMemory { space: Space::Shared, base: NONE, offset: 0, stride: NONE };

const SHARED: &[(&str, Space)] = &[("shared", Space::Shared), ("shared::cta", Space::Shared)];

pub(super) const ELEMENTS: &[(&str, Element)] = &[
    ("f16", Element::F16),
    ("bf16", Element::Bf16),
    ("tf32", Element::Tf32),
    ("f32", Element::F32),
    ("f64", Element::F64),
    ("e4m3", Element::E4m3),
    ("e5m2", Element::E5m2),
    ("s8", Element::S8),
    ("u8", Element::U8),
    ("s4", Element::S4),
    ("u4", Element::U4),
    ("s32", Element::S32),
    ("b1", Element::Bits),
];

/// Adds an instruction for the whole warp.
pub(super) fn emit(body: &mut Body<'_, '_>, inst: MatrixInst) {
    let number = body.function.matrices.len() as u32;
    body.function.matrices.push(inst);
    let op = WarpOp::Matrix(number);
    body.emit(Inst::Warp { op, d: NONE, p: NONE, a: NONE, b: NONE, c: NONE, mask: NONE });
}

/// The parts of a vector operand; one register needs no braces.
fn parts<'i, 't>(operand: &'i Operand<'t>, count: u32) -> Lowered<&'i [Operand<'t>]> {
    let parts = match operand {
        Operand::Vector(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    if parts.len() == count as usize {
        Ok(parts)
    } else {
        Err(format!("expected {count} registers, found {}", parts.len()).into())
    }
}

pub(super) fn sources<'t>(
    body: &mut Body<'_, 't>,
    operand: &Operand<'t>,
    count: u32,
    ty: Type,
) -> Lowered<Vec<Reg>> {
    let source = |part: &Operand<'t>| match part {
        Operand::Number(_) => Err("expected a register, found a number".to_owned().into()),
        part => body.source(part, ty),
    };
    parts(operand, count)?.iter().map(source).collect()
}

pub(super) fn dests<'t>(
    body: &mut Body<'_, 't>,
    operand: &Operand<'t>,
    count: u32,
    ty: Type,
) -> Lowered<Vec<Reg>> {
    parts(operand, count)?.iter().map(|part| body.dest(part, ty)).collect()
}

/// The type of the registers of a fragment.
pub(super) fn register_type(element: Element) -> Type {
    if element == Element::F64 { Type::F64 } else { Type::B32 }
}

/// The shape in a modifier such as `m16n8k4`.
fn shape(modifier: &str) -> Option<Shape> {
    let (m, rest) = modifier.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let size = |digits: &str| digits.parse::<u32>().ok().filter(|size| (4..=256).contains(size));
    Some(Shape { m: size(m)?, n: size(n)?, k: size(k)? })
}

pub(super) fn take_shape(reader: &mut InstructionReader<'_, '_>) -> Lowered<Shape> {
    reader.take_where(shape).ok_or(LowerError::Unsupported)
}

/// Takes `.sync` and `.aligned`, which every instruction of whole warps has.
pub(super) fn take_aligned(reader: &mut InstructionReader<'_, '_>) -> Lowered<()> {
    if reader.flag("sync") && reader.flag("aligned") { Ok(()) } else { Err(LowerError::Unsupported) }
}

/// Takes `.row` or `.col`; true for `.row`.
pub(super) fn take_is_row(reader: &mut InstructionReader<'_, '_>) -> Lowered<bool> {
    reader.one_of(&[("row", true), ("col", false)]).ok_or(LowerError::Unsupported)
}

/// `ldmatrix`, `stmatrix` and `movmatrix`.
pub(super) fn transfer<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    take_aligned(reader)?;
    let is_transposed = reader.flag("trans");
    if !reader.flag("m8n8") || !reader.flag("b16") {
        return Err(LowerError::Unsupported);
    }
    let mut inst = MatrixInst {
        op: MatrixOp::Transpose,
        memory: NO_MEMORY,
        d: Vec::new(),
        a: Vec::new(),
        b: Vec::new(),
        c: Vec::new(),
    };
    if reader.opcode() == "movmatrix" {
        if !is_transposed {
            return Err(LowerError::Unsupported);
        }
        let [d, a] = reader.operands()?;
        inst.a = sources(body, a, 1, Type::B32)?;
        inst.d = dests(body, d, 1, Type::B32)?;
        emit(body, inst);
        return Ok(());
    }
    let count = reader.one_of(&[("x1", 1), ("x2", 2), ("x4", 4)]).ok_or(LowerError::Unsupported)?;
    let space = reader.one_of(SHARED).unwrap_or(Space::Generic);
    let [first, second] = reader.operands()?;
    let is_load = reader.opcode() == "ldmatrix";
    let (registers, address) = if is_load { (first, second) } else { (second, first) };
    let Address { base, offset, space } = body.address(address, space, 16)?;
    inst.memory = MatrixMemory { space, base, offset, stride: NONE };
    if is_load {
        inst.op = MatrixOp::Load { is_transposed };
        inst.d = dests(body, registers, count, Type::B32)?;
    } else {
        inst.op = MatrixOp::Store { is_transposed };
        inst.a = sources(body, registers, count, Type::B32)?;
    }
    emit(body, inst);
    Ok(())
}

/// `mma`.
pub(super) fn product<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    take_aligned(reader)?;
    let mut shape = take_shape(reader)?;
    let (a_is_row, b_is_row) = (take_is_row(reader)?, take_is_row(reader)?);
    let saturates = reader.flag("satfinite");
    let xor = reader.flag("xor");
    let bits = if xor { BitOp::Xor } else { BitOp::And };
    let counts = (xor || reader.flag("and")) && reader.flag("popc");
    let [d, a, b, c] = take_elements(reader)?;
    if counts != (a == Element::Bits) || !is_product(shape, [d, a, b, c], saturates) {
        return Err(LowerError::Unsupported);
    }
    let mut layout = Layout::Mma;
    if a == Element::F16 && shape.m == 8 {
        layout = Layout::QuadPairs { a_is_row, b_is_row };
    } else if !a_is_row || b_is_row {
        return Err(LowerError::Unsupported);
    }
    if a == Element::Bits {
        shape.k /= 32;
    }
    let how = Product { shape, layout, a, b, c, d, saturates, bits };
    let operands = reader.operands()?;
    let registers = |element: Element, role: Role| match layout {
        // Each of the four products has a matrix of its own, in eight lanes.
        Layout::QuadPairs { .. } => shape.extent(role).len() / 8 / element.per_register(),
        _ => shape.extent(role).len() / 32 / element.per_register(),
    };
    emit_product(body, how, operands, registers)
}

/// Emits a product; `registers` tells how many a fragment has.
pub(super) fn emit_product<'t>(
    body: &mut Body<'_, 't>,
    how: Product,
    [d, a, b, c]: [&Operand<'t>; 4],
    registers: impl Fn(Element, Role) -> u32,
) -> Lowered<()> {
    let inst = MatrixInst {
        op: MatrixOp::Product(how),
        memory: NO_MEMORY,
        a: sources(body, a, registers(how.a, Role::A), register_type(how.a))?,
        b: sources(body, b, registers(how.b, Role::B), register_type(how.b))?,
        c: sources(body, c, registers(how.c, Role::C), register_type(how.c))?,
        d: dests(body, d, registers(how.d, Role::C), register_type(how.d))?,
    };
    emit(body, inst);
    Ok(())
}

/// Takes four types: of `d`, `a`, `b` and `c`.
pub(super) fn take_elements(reader: &mut InstructionReader<'_, '_>) -> Lowered<[Element; 4]> {
    let mut next = || reader.one_of(ELEMENTS).ok_or(LowerError::Unsupported);
    Ok([next()?, next()?, next()?, next()?])
}

/// Whether `mma` has the shape for these types, which are those of `d`, `a`, `b` and `c`.
fn is_product(shape: Shape, [d, a, b, c]: [Element; 4], saturates: bool) -> bool {
    use Element::{Bf16, Bits, E4m3, E5m2, F16, F32, F64, S4, S8, S32, Tf32, U4, U8};
    let Shape { m, n, k } = shape;
    if n != 8 {
        return false;
    }
    let is_float = |element: Element| matches!(element, F16 | F32);
    match (a, b) {
        (F16, F16) if (m, k) == (8, 4) => matches!((d, c), (F16 | F32, F16) | (F32, F32)) && !saturates,
        (F16, F16) => m == 16 && matches!(k, 8 | 16) && is_float(d) && d == c && !saturates,
        (Bf16, Bf16) => m == 16 && matches!(k, 8 | 16) && (d, c) == (F32, F32) && !saturates,
        (Tf32, Tf32) => m == 16 && matches!(k, 4 | 8) && (d, c) == (F32, F32) && !saturates,
        (E4m3 | E5m2, E4m3 | E5m2) => m == 16 && matches!(k, 16 | 32) && is_float(d) && d == c && !saturates,
        (F64, F64) => matches!((m, k), (8, 4) | (16, 4 | 8 | 16)) && (d, c) == (F64, F64) && !saturates,
        (S8 | U8, S8 | U8) => matches!((m, k), (8, 16) | (16, 16 | 32)) && (d, c) == (S32, S32),
        (S4 | U4, S4 | U4) => matches!((m, k), (8, 32) | (16, 32 | 64)) && (d, c) == (S32, S32),
        (Bits, Bits) => matches!((m, k), (8, 128) | (16, 128 | 256)) && (d, c) == (S32, S32) && !saturates,
        _ => false,
    }
}
