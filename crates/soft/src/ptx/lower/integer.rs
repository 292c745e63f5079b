//! Integer arithmetic and bits.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{CarryHow, Inst};
use crate::ptx::math::{F1, F2, F3, bits, compare, integer};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

/// A generic function of `integer` or `bits` at an integer type of 16 bits and more, or
/// `Unsupported`.
macro_rules! at {
    ($f:path, $ty:expr, $kind:ty) => {{
        use $f as generic;
        let f: $kind = match $ty {
            Type::B16 | Type::U16 => generic::<u16>,
            Type::S16 => generic::<i16>,
            Type::B32 | Type::U32 => generic::<u32>,
            Type::S32 => generic::<i32>,
            Type::B64 | Type::U64 => generic::<u64>,
            Type::S64 => generic::<i64>,
            _ => return Err(LowerError::Unsupported),
        };
        f
    }};
}

/// A part of a product.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Low,
    High,
    Wide,
}

const PARTS: &[(&str, Part)] = &[("lo", Part::Low), ("hi", Part::High), ("wide", Part::Wide)];

/// Opcodes that floats have, too, and related ones.
pub(super) fn arithmetic<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if matches!(reader.opcode(), "add" | "sub" | "mad") && reader.flag("cc") {
        return with_carry(body, reader, false, true);
    }
    if let Some(half) = reader.one_of(&[("u16x2", Type::U16), ("s16x2", Type::S16)]) {
        return packed(body, reader, half);
    }
    let part = reader.one_of(PARTS);
    let dot = if reader.opcode().starts_with("dp") { Some(reader.ty()?) } else { None };
    let saturate = reader.flag("sat");
    let relu = reader.flag("relu");
    let ty = reader.ty()?;
    let is_bits = matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64);
    if is_bits || (matches!(reader.opcode(), "abs" | "neg") && !ty.is_signed()) {
        return Err(LowerError::Unsupported);
    }
    if let Some(dot) = dot {
        return dot_product(body, reader, part, dot, ty);
    }
    if saturate || relu {
        return clamped(body, reader, part, ty, (saturate, relu));
    }
    let f2: F2 = match (reader.opcode(), part) {
        ("add", None) => return add(body, reader, ty),
        ("mul", Some(Part::Low)) if ty.bits() == 32 => {
            let [d, a, b] = three(body, reader, ty)?;
            body.emit(Inst::Mul32 { d, a, b });
            return Ok(());
        }
        ("mad", Some(Part::Low)) if ty.bits() == 32 => {
            let [d, a, b, c] = reader.operands()?;
            let (a, b, c) = (body.source(a, ty)?, body.source(b, ty)?, body.source(c, ty)?);
            let d = body.dest(d, ty)?;
            body.emit(Inst::Mad32 { d, a, b, c });
            return Ok(());
        }
        ("mul" | "mad", Some(Part::Wide)) => return wide(body, reader, ty),
        ("abs", None) => return same1(body, reader, ty, at!(integer::abs, ty, F1)),
        ("neg", None) => return same1(body, reader, ty, at!(integer::neg, ty, F1)),
        ("sad", None) => return same3(body, reader, ty, at!(integer::sad, ty, F3)),
        ("mad", Some(Part::Low)) => return same3(body, reader, ty, at!(integer::mad, ty, F3)),
        ("mad", Some(Part::High)) => return same3(body, reader, ty, at!(integer::mad_hi, ty, F3)),
        ("mad24", Some(part)) => return same3(body, reader, ty, mad24(part, ty)?),
        ("mul24", Some(Part::Low)) if ty == Type::U32 => integer::mul24_lo::<u32>,
        ("mul24", Some(Part::Low)) if ty == Type::S32 => integer::mul24_lo::<i32>,
        ("mul24", Some(Part::High)) if ty == Type::U32 => integer::mul24_hi::<u32>,
        ("mul24", Some(Part::High)) if ty == Type::S32 => integer::mul24_hi::<i32>,
        ("sub", None) => at!(integer::sub, ty, F2),
        ("mul", Some(Part::Low)) => at!(integer::mul, ty, F2),
        ("mul", Some(Part::High)) => at!(integer::mul_hi, ty, F2),
        ("div", None) => at!(integer::div, ty, F2),
        ("rem", None) => at!(integer::rem, ty, F2),
        ("min", None) => at!(integer::min, ty, F2),
        ("max", None) => at!(integer::max, ty, F2),
        _ => return Err(LowerError::Unsupported),
    };
    same2(body, reader, ty, f2)
}

/// Operations with `.sat` or `.relu`, which only 32-bit signed integers have.
fn clamped<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    part: Option<Part>,
    ty: Type,
    (saturate, relu): (bool, bool),
) -> Lowered<()> {
    if ty != Type::S32 {
        return Err(LowerError::Unsupported);
    }
    match (reader.opcode(), part) {
        ("add", None) if saturate => same2(body, reader, ty, integer::add_sat::<i32>),
        ("sub", None) if saturate => same2(body, reader, ty, integer::sub_sat::<i32>),
        ("min", None) if relu => same2(body, reader, ty, integer::relu_min::<i32>),
        ("max", None) if relu => same2(body, reader, ty, integer::relu_max::<i32>),
        ("mad24", Some(Part::High)) if saturate => same3(body, reader, ty, integer::mad24_hi_sat::<i32>),
        ("mad", Some(Part::High)) if saturate => same3(body, reader, ty, integer::mad_hi_sat::<i32>),
        _ => Err(LowerError::Unsupported),
    }
}

fn mad24(part: Part, ty: Type) -> Lowered<F3> {
    Ok(match (part, ty) {
        (Part::Low, Type::U32) => integer::mad24_lo::<u32>,
        (Part::Low, Type::S32) => integer::mad24_lo::<i32>,
        (Part::High, Type::U32) => integer::mad24_hi::<u32>,
        (Part::High, Type::S32) => integer::mad24_hi::<i32>,
        _ => return Err(LowerError::Unsupported),
    })
}

/// Two half-words side by side.
fn packed<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>, half: Type) -> Lowered<()> {
    let f: F2 = match (reader.opcode(), reader.flag("relu")) {
        ("add", false) => integer::add::<u16>,
        ("min", false) => at!(integer::min, half, F2),
        ("max", false) => at!(integer::max, half, F2),
        ("min", true) if half == Type::S16 => integer::relu_min::<i16>,
        ("max", true) if half == Type::S16 => integer::relu_max::<i16>,
        _ => return Err(LowerError::Unsupported),
    };
    let [d, a, b] = three(body, reader, Type::B32)?;
    let halves = [0, 16].map(|shift| {
        let (d, a, b) = (body.fresh(), body.field(a, shift, 16), body.field(b, shift, 16));
        body.emit(Inst::Binary { f, d, a, b });
        d
    });
    body.pack_to(d, &halves, 16);
    Ok(())
}

fn same1<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, ty: Type, f: F1) -> Lowered<()> {
    body.unary(f, ty, reader.operands()?)
}
fn same2<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, ty: Type, f: F2) -> Lowered<()> {
    body.binary(f, [ty; 3], reader.operands()?)
}
fn same3<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, ty: Type, f: F3) -> Lowered<()> {
    body.ternary(f, [ty; 4], reader.operands()?)
}

fn three<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, ty: Type) -> Lowered<[u32; 3]> {
    let [d, a, b] = reader.operands()?;
    let (a, b) = (body.source(a, ty)?, body.source(b, ty)?);
    Ok([body.dest(d, ty)?, a, b])
}

fn add<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, ty: Type) -> Lowered<()> {
    match ty.bits() {
        32 => {
            let [d, a, b] = three(body, reader, ty)?;
            body.emit(Inst::Add32 { d, a, b });
        }
        64 => {
            let [d, a, b] = three(body, reader, ty)?;
            body.emit(Inst::Add64 { d, a, b });
        }
        _ => return same2(body, reader, ty, at!(integer::add, ty, F2)),
    }
    Ok(())
}

fn wide<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, ty: Type) -> Lowered<()> {
    let (result, mul, mad): (Type, F2, F3) = match ty {
        Type::U16 => (Type::U32, integer::mul_wide::<u16>, integer::mad_wide::<u16>),
        Type::S16 => (Type::S32, integer::mul_wide::<i16>, integer::mad_wide::<i16>),
        Type::U32 => (Type::U64, integer::mul_wide::<u32>, integer::mad_wide::<u32>),
        Type::S32 => (Type::S64, integer::mul_wide::<i32>, integer::mad_wide::<i32>),
        _ => return Err(LowerError::Unsupported),
    };
    if reader.opcode() == "mul" {
        body.binary(mul, [result, ty, ty], reader.operands()?)
    } else {
        body.ternary(mad, [result, ty, ty, result], reader.operands()?)
    }
}

fn dot_product<'t>(
    body: &mut Body<'_, 't>,
    reader: &InstructionReader<'_, 't>,
    part: Option<Part>,
    a: Type,
    b: Type,
) -> Lowered<()> {
    let high = part == Some(Part::High);
    if (reader.opcode() == "dp4a") != part.is_none() || a.bits() != 32 || b.bits() != 32 {
        return Err(LowerError::Unsupported);
    }
    let f: F3 = match (reader.opcode(), a.is_signed(), b.is_signed(), high) {
        ("dp4a", false, false, _) => integer::dp4a::<false, false>,
        ("dp4a", false, true, _) => integer::dp4a::<false, true>,
        ("dp4a", true, false, _) => integer::dp4a::<true, false>,
        ("dp4a", true, true, _) => integer::dp4a::<true, true>,
        (_, false, false, false) => integer::dp2a::<false, false, false>,
        (_, false, true, false) => integer::dp2a::<false, true, false>,
        (_, true, false, false) => integer::dp2a::<true, false, false>,
        (_, true, true, false) => integer::dp2a::<true, true, false>,
        (_, false, false, true) => integer::dp2a::<false, false, true>,
        (_, false, true, true) => integer::dp2a::<false, true, true>,
        (_, true, false, true) => integer::dp2a::<true, false, true>,
        (_, true, true, true) => integer::dp2a::<true, true, true>,
    };
    same3(body, reader, Type::B32, f)
}

/// `addc`, `subc`, `madc`.
pub(super) fn carrying<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let out = reader.flag("cc");
    with_carry(body, reader, true, out)
}

fn with_carry<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    carry_in: bool,
    carry_out: bool,
) -> Lowered<()> {
    let part = reader.one_of(PARTS);
    let ty = reader.ty()?;
    let bits: u32 = ty.bits();
    // Halves take a carry, but give none.
    let has_form = matches!(bits, 32 | 64) || (bits == 16 && !carry_out);
    if !has_form || !matches!(ty, Type::U16 | Type::S16 | Type::U32 | Type::S32 | Type::U64 | Type::S64) {
        return Err(LowerError::Unsupported);
    }
    let subtract = reader.opcode().starts_with("sub");
    let how = CarryHow { wide: ty.bits() == 64, subtract, carry_in, carry_out };
    if !reader.opcode().starts_with("mad") {
        if part.is_some() {
            return Err(LowerError::Unsupported);
        }
        let [d, a, b] = three(body, reader, ty)?;
        body.emit(Inst::Carry { d, a, b, how });
        return Ok(());
    }
    let f = match part {
        Some(Part::Low) => at!(integer::mul, ty, F2),
        // Assemblers take bits 32 to 63 of the product of halves, too.
        Some(Part::High) if ty == Type::U16 => integer::mul_upper_word::<u16>,
        Some(Part::High) if ty == Type::S16 => integer::mul_upper_word::<i16>,
        Some(Part::High) => at!(integer::mul_hi, ty, F2),
        _ => return Err(LowerError::Unsupported),
    };
    let [d, a, b, c] = reader.operands()?;
    let (a, b, c) = (body.source(a, ty)?, body.source(b, ty)?, body.source(c, ty)?);
    let (d, product) = (body.dest(d, ty)?, body.fresh());
    body.emit(Inst::Binary { f, d: product, a, b });
    body.emit(Inst::Carry { d, a: product, b: c, how });
    Ok(())
}

/// Logic, shifts and bit fields.
pub(super) fn bits<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    match reader.opcode() {
        "shf" => return funnel(body, reader),
        "prmt" => return permute(body, reader),
        "bmsk" | "szext" => return masks(body, reader),
        "bfind" => return find(body, reader),
        "lop3" => return lop3(body, reader),
        _ => {}
    }
    let ty = reader.ty()?;
    let wide = ty.bits() == 64;
    let (u32, b32) = (Type::U32, Type::B32);
    if ty == Type::Pred {
        return match reader.opcode() {
            "and" => same2(body, reader, ty, bits::and),
            "or" => same2(body, reader, ty, bits::or),
            "xor" => same2(body, reader, ty, bits::xor),
            "not" => same1(body, reader, ty, bits::not_pred),
            _ => Err(LowerError::Unsupported),
        };
    }
    let is_bits = matches!(ty, Type::B16 | Type::B32 | Type::B64);
    let has_type = match reader.opcode() {
        "shr" => matches!(ty.bits(), 16 | 32 | 64) && ty.is_integer(),
        "bfe" => !is_bits,
        _ => is_bits,
    };
    if !has_type {
        return Err(LowerError::Unsupported);
    }
    match reader.opcode() {
        "and" => {
            let [d, a, b] = three(body, reader, ty)?;
            body.emit(Inst::And { d, a, b });
            Ok(())
        }
        "or" => same2(body, reader, ty, bits::or),
        "xor" => same2(body, reader, ty, bits::xor),
        "not" => same1(body, reader, ty, bits::not),
        "cnot" => same1(body, reader, ty, at!(bits::cnot, ty, F1)),
        "shl" => body.binary(at!(integer::shl, ty, F2), [ty, ty, u32], reader.operands()?),
        "shr" => body.binary(at!(integer::shr, ty, F2), [ty, ty, u32], reader.operands()?),
        _ if ty.bits() == 16 => Err(LowerError::Unsupported),
        "popc" => count(body, reader, ty, if wide { bits::popc64 } else { bits::popc32 }),
        "clz" => count(body, reader, ty, if wide { bits::clz64 } else { bits::clz32 }),
        "brev" => same1(body, reader, ty, if wide { bits::brev64 } else { bits::brev32 }),
        "bfe" => body.ternary(at!(bits::bfe, ty, F3), [ty, ty, u32, u32], reader.operands()?),
        "bfi" => {
            let f = if wide { bits::bfi::<u64> } else { bits::bfi::<u32> };
            body.quaternary(f, [ty, ty, ty, u32, u32], reader.operands()?)
        }
        "fns" if !wide => body.ternary(bits::fns, [b32; 4], reader.operands()?),
        _ => Err(LowerError::Unsupported),
    }
}

fn count<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, ty: Type, f: F1) -> Lowered<()> {
    let [d, a]: [&Operand<'t>; 2] = reader.operands()?;
    let (a, d) = (body.source(a, ty)?, body.dest(d, Type::U32)?);
    body.emit(Inst::Unary { f, d, a });
    Ok(())
}

fn find<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let shift = reader.flag("shiftamt");
    let ty = reader.ty()?;
    let f: F1 = match (ty, shift) {
        (Type::U32, false) => bits::bfind::<u32, false>,
        (Type::U32, true) => bits::bfind::<u32, true>,
        (Type::S32, false) => bits::bfind::<i32, false>,
        (Type::S32, true) => bits::bfind::<i32, true>,
        (Type::U64, false) => bits::bfind::<u64, false>,
        (Type::U64, true) => bits::bfind::<u64, true>,
        (Type::S64, false) => bits::bfind::<i64, false>,
        (Type::S64, true) => bits::bfind::<i64, true>,
        _ => return Err(LowerError::Unsupported),
    };
    count(body, reader, ty, f)
}

fn funnel<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let left = match reader.one_of(&[("l", true), ("r", false)]) {
        Some(left) => left,
        None => return Err(LowerError::Unsupported),
    };
    let wrap = reader.one_of(&[("wrap", true), ("clamp", false)]).ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    if ty != Type::B32 {
        return Err(LowerError::Unsupported);
    }
    let f: F3 = match (left, wrap) {
        (true, true) => bits::shf_left::<true>,
        (true, false) => bits::shf_left::<false>,
        (false, true) => bits::shf_right::<true>,
        (false, false) => bits::shf_right::<false>,
    };
    body.ternary(f, [ty, ty, ty, Type::U32], reader.operands()?)
}

fn permute<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let ty = reader.ty()?;
    if ty != Type::B32 {
        return Err(LowerError::Unsupported);
    }
    const MODES: &[(&str, F3)] = &[
        ("f4e", bits::prmt_mode::<0>),
        ("b4e", bits::prmt_mode::<1>),
        ("rc8", bits::prmt_mode::<2>),
        ("ecl", bits::prmt_mode::<3>),
        ("ecr", bits::prmt_mode::<4>),
        ("rc16", bits::prmt_mode::<5>),
    ];
    let f = reader.one_of(MODES).unwrap_or(bits::prmt);
    body.ternary(f, [ty, ty, ty, Type::U32], reader.operands()?)
}

fn masks<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let wrap = reader.one_of(&[("wrap", true), ("clamp", false)]).ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    let f: F2 = match (reader.opcode(), ty, wrap) {
        ("bmsk", Type::B32, true) => bits::bmsk::<true>,
        ("bmsk", Type::B32, false) => bits::bmsk::<false>,
        ("szext", Type::U32, true) => bits::szext::<false, true>,
        ("szext", Type::U32, false) => bits::szext::<false, false>,
        ("szext", Type::S32, true) => bits::szext::<true, true>,
        ("szext", Type::S32, false) => bits::szext::<true, false>,
        _ => return Err(LowerError::Unsupported),
    };
    same2(body, reader, ty, f)
}

fn lop3<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let combine: Option<F2> = reader.one_of(&[("or", bits::or as F2), ("and", bits::and as F2)]);
    let ty = reader.ty()?;
    if ty != Type::B32 {
        return Err(LowerError::Unsupported);
    }
    let Some(combine) = combine else {
        return body.quaternary(bits::lop3, [ty, ty, ty, ty, Type::U32], reader.operands()?);
    };
    let [d, a, b, c, e, q] = reader.operands()?;
    let Operand::Pair(pair) = d else { return Err("expected a register and a predicate".to_owned().into()) };
    let [d, p] = &**pair;
    let q = body.source(q, Type::Pred)?;
    let result = body.fresh();
    let (a, b, c) = (body.source(a, ty)?, body.source(b, ty)?, body.source(c, ty)?);
    let e = body.source(e, Type::U32)?;
    let (d, p) = (body.dest(d, ty)?, body.dest(p, Type::Pred)?);
    body.emit(Inst::Quaternary { f: bits::lop3, d: result, a, b, c, e });
    let (truth, zero) = (body.fresh(), body.constant(0));
    body.emit(Inst::Binary { f: compare::ne::<u32>, d: truth, a: result, b: zero });
    body.emit(Inst::Binary { f: combine, d: p, a: truth, b: q });
    body.emit(Inst::Move { d, a: result });
    Ok(())
}
