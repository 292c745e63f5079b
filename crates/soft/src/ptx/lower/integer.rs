//! Integer arithmetic and bits.

use super::body::Body;
use super::spec::{Lowered, Problem, Spec};
use crate::ptx::code::{CarryHow, Inst};
use crate::ptx::math::{F1, F2, F3, bits, integer};
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
            _ => return Err(Problem::Unsupported),
        };
        f
    }};
}

/// Which part of a product.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Low,
    High,
    Wide,
}

const PARTS: &[(&str, Part)] = &[("lo", Part::Low), ("hi", Part::High), ("wide", Part::Wide)];

/// The opcodes that floats have too, and those named like them.
pub(super) fn arithmetic<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    if matches!(spec.opcode(), "add" | "sub" | "mad") && spec.flag("cc") {
        return with_carry(body, spec, false, true);
    }
    if let Some(half) = spec.one_of(&[("u16x2", Type::U16), ("s16x2", Type::S16)]) {
        return packed(body, spec, half);
    }
    let part = spec.one_of(PARTS);
    let dot = if spec.opcode().starts_with("dp") { Some(spec.ty()?) } else { None };
    let saturate = spec.flag("sat");
    let relu = spec.flag("relu");
    let ty = spec.ty()?;
    match (spec.opcode(), part) {
        ("dp4a" | "dp2a", _) => return dot_product(body, spec, part, dot.unwrap_or(ty), ty),
        ("add", None) if ty == Type::S32 && saturate => {
            return same2(body, spec, ty, integer::add_sat::<i32>);
        }
        ("sub", None) if ty == Type::S32 && saturate => {
            return same2(body, spec, ty, integer::sub_sat::<i32>);
        }
        ("min", None) if ty == Type::S32 && relu => return same2(body, spec, ty, integer::relu_min::<i32>),
        ("max", None) if ty == Type::S32 && relu => return same2(body, spec, ty, integer::relu_max::<i32>),
        ("mad", Some(Part::High)) if ty == Type::S32 && saturate => {
            return same3(body, spec, ty, integer::mad_hi_sat::<i32>);
        }
        _ if saturate || relu => return Err(Problem::Unsupported),
        _ => {}
    }
    let f2: F2 = match (spec.opcode(), part) {
        ("add", None) => return add(body, spec, ty),
        ("mul", Some(Part::Low)) if ty.bits() == 32 => {
            let [d, a, b] = three(body, spec, ty)?;
            body.emit(Inst::Mul32 { d, a, b });
            return Ok(());
        }
        ("mad", Some(Part::Low)) if ty.bits() == 32 => {
            let [d, a, b, c] = spec.operands()?;
            let (a, b, c) = (body.source(a, ty)?, body.source(b, ty)?, body.source(c, ty)?);
            let d = body.dest(d, ty)?;
            body.emit(Inst::Mad32 { d, a, b, c });
            return Ok(());
        }
        ("mul" | "mad", Some(Part::Wide)) => return wide(body, spec, ty),
        ("abs", None) => return same1(body, spec, ty, at!(integer::abs, ty, F1)),
        ("neg", None) => return same1(body, spec, ty, at!(integer::neg, ty, F1)),
        ("sad", None) => return same3(body, spec, ty, at!(integer::sad, ty, F3)),
        ("mad", Some(Part::Low)) => return same3(body, spec, ty, at!(integer::mad, ty, F3)),
        ("mad", Some(Part::High)) => return same3(body, spec, ty, at!(integer::mad_hi, ty, F3)),
        ("mad24", Some(part)) => {
            let f: F3 = match (part, ty) {
                (Part::Low, Type::U32) => integer::mad24_lo::<u32>,
                (Part::Low, Type::S32) => integer::mad24_lo::<i32>,
                (Part::High, Type::U32) => integer::mad24_hi::<u32>,
                (Part::High, Type::S32) => integer::mad24_hi::<i32>,
                _ => return Err(Problem::Unsupported),
            };
            return same3(body, spec, ty, f);
        }
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
        _ => return Err(Problem::Unsupported),
    };
    same2(body, spec, ty, f2)
}

/// Two half-words side by side.
fn packed<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>, half: Type) -> Lowered<()> {
    let f: F2 = match (spec.opcode(), spec.flag("relu")) {
        ("add", false) => integer::add::<u16>,
        ("min", false) => at!(integer::min, half, F2),
        ("max", false) => at!(integer::max, half, F2),
        ("min", true) if half == Type::S16 => integer::relu_min::<i16>,
        ("max", true) if half == Type::S16 => integer::relu_max::<i16>,
        _ => return Err(Problem::Unsupported),
    };
    let [d, a, b] = three(body, spec, Type::B32)?;
    let halves = [0, 16].map(|shift| {
        let (d, a, b) = (body.fresh(), body.field(a, shift, 16), body.field(b, shift, 16));
        body.emit(Inst::Binary { f, d, a, b });
        d
    });
    body.pack_to(d, &halves, 16);
    Ok(())
}

fn same1<'t>(body: &mut Body<'_, 't>, spec: &Spec<'_, 't>, ty: Type, f: F1) -> Lowered<()> {
    body.unary(f, ty, spec.operands()?)
}
fn same2<'t>(body: &mut Body<'_, 't>, spec: &Spec<'_, 't>, ty: Type, f: F2) -> Lowered<()> {
    body.binary(f, [ty; 3], spec.operands()?)
}
fn same3<'t>(body: &mut Body<'_, 't>, spec: &Spec<'_, 't>, ty: Type, f: F3) -> Lowered<()> {
    body.ternary(f, [ty; 4], spec.operands()?)
}

fn three<'t>(body: &mut Body<'_, 't>, spec: &Spec<'_, 't>, ty: Type) -> Lowered<[u32; 3]> {
    let [d, a, b] = spec.operands()?;
    let (a, b) = (body.source(a, ty)?, body.source(b, ty)?);
    Ok([body.dest(d, ty)?, a, b])
}

fn add<'t>(body: &mut Body<'_, 't>, spec: &Spec<'_, 't>, ty: Type) -> Lowered<()> {
    match ty.bits() {
        32 => {
            let [d, a, b] = three(body, spec, ty)?;
            body.emit(Inst::Add32 { d, a, b });
        }
        64 => {
            let [d, a, b] = three(body, spec, ty)?;
            body.emit(Inst::Add64 { d, a, b });
        }
        _ => return same2(body, spec, ty, at!(integer::add, ty, F2)),
    }
    Ok(())
}

fn wide<'t>(body: &mut Body<'_, 't>, spec: &Spec<'_, 't>, ty: Type) -> Lowered<()> {
    let (result, mul, mad): (Type, F2, F3) = match ty {
        Type::U16 => (Type::U32, integer::mul_wide::<u16>, integer::mad_wide::<u16>),
        Type::S16 => (Type::S32, integer::mul_wide::<i16>, integer::mad_wide::<i16>),
        Type::U32 => (Type::U64, integer::mul_wide::<u32>, integer::mad_wide::<u32>),
        Type::S32 => (Type::S64, integer::mul_wide::<i32>, integer::mad_wide::<i32>),
        _ => return Err(Problem::Unsupported),
    };
    if spec.opcode() == "mul" {
        body.binary(mul, [result, ty, ty], spec.operands()?)
    } else {
        body.ternary(mad, [result, ty, ty, result], spec.operands()?)
    }
}

fn dot_product<'t>(
    body: &mut Body<'_, 't>,
    spec: &Spec<'_, 't>,
    part: Option<Part>,
    a: Type,
    b: Type,
) -> Lowered<()> {
    let high = part == Some(Part::High);
    if (spec.opcode() == "dp4a") != part.is_none() || a.bits() != 32 || b.bits() != 32 {
        return Err(Problem::Unsupported);
    }
    let f: F3 = match (spec.opcode(), a.is_signed(), b.is_signed(), high) {
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
    same3(body, spec, Type::B32, f)
}

/// `addc`, `subc`, `madc`.
pub(super) fn carrying<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    let out = spec.flag("cc");
    with_carry(body, spec, true, out)
}

fn with_carry<'t>(
    body: &mut Body<'_, 't>,
    spec: &mut Spec<'_, 't>,
    carry_in: bool,
    carry_out: bool,
) -> Lowered<()> {
    let part = spec.one_of(PARTS);
    let ty = spec.ty()?;
    if !matches!(ty.bits(), 32 | 64) || !ty.is_integer() {
        return Err(Problem::Unsupported);
    }
    let subtract = spec.opcode().starts_with("sub");
    let how = CarryHow { wide: ty.bits() == 64, subtract, carry_in, carry_out };
    if !spec.opcode().starts_with("mad") {
        if part.is_some() {
            return Err(Problem::Unsupported);
        }
        let [d, a, b] = three(body, spec, ty)?;
        body.emit(Inst::Carry { d, a, b, how });
        return Ok(());
    }
    let f = match part {
        Some(Part::Low) => at!(integer::mul, ty, F2),
        Some(Part::High) => at!(integer::mul_hi, ty, F2),
        _ => return Err(Problem::Unsupported),
    };
    let [d, a, b, c] = spec.operands()?;
    let (a, b, c) = (body.source(a, ty)?, body.source(b, ty)?, body.source(c, ty)?);
    let (d, product) = (body.dest(d, ty)?, body.fresh());
    body.emit(Inst::Binary { f, d: product, a, b });
    body.emit(Inst::Carry { d, a: product, b: c, how });
    Ok(())
}

/// Logic, shifts and bit fields.
pub(super) fn bits<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    match spec.opcode() {
        "shf" => return funnel(body, spec),
        "prmt" => return permute(body, spec),
        "bmsk" | "szext" => return masks(body, spec),
        "bfind" => return find(body, spec),
        "lop3" => return lop3(body, spec),
        _ => {}
    }
    let ty = spec.ty()?;
    let wide = ty.bits() == 64;
    let (u32, b32) = (Type::U32, Type::B32);
    if ty == Type::Pred {
        return match spec.opcode() {
            "and" => same2(body, spec, ty, bits::and),
            "or" => same2(body, spec, ty, bits::or),
            "xor" => same2(body, spec, ty, bits::xor),
            "not" => same1(body, spec, ty, bits::not_pred),
            _ => Err(Problem::Unsupported),
        };
    }
    if !matches!(ty.bits(), 16 | 32 | 64) || ty.is_float() {
        return Err(Problem::Unsupported);
    }
    match spec.opcode() {
        "and" => {
            let [d, a, b] = three(body, spec, ty)?;
            body.emit(Inst::And { d, a, b });
            Ok(())
        }
        "or" => same2(body, spec, ty, bits::or),
        "xor" => same2(body, spec, ty, bits::xor),
        "not" => same1(body, spec, ty, bits::not),
        "cnot" => same1(body, spec, ty, at!(bits::cnot, ty, F1)),
        "shl" => body.binary(at!(integer::shl, ty, F2), [ty, ty, u32], spec.operands()?),
        "shr" => body.binary(at!(integer::shr, ty, F2), [ty, ty, u32], spec.operands()?),
        _ if ty.bits() == 16 => Err(Problem::Unsupported),
        "popc" => count(body, spec, ty, if wide { bits::popc64 } else { bits::popc32 }),
        "clz" => count(body, spec, ty, if wide { bits::clz64 } else { bits::clz32 }),
        "brev" => same1(body, spec, ty, if wide { bits::brev64 } else { bits::brev32 }),
        "bfe" => body.ternary(at!(bits::bfe, ty, F3), [ty, ty, u32, u32], spec.operands()?),
        "bfi" => {
            let f = if wide { bits::bfi::<u64> } else { bits::bfi::<u32> };
            body.quaternary(f, [ty, ty, ty, u32, u32], spec.operands()?)
        }
        "fns" if !wide => body.ternary(bits::fns, [b32; 4], spec.operands()?),
        _ => Err(Problem::Unsupported),
    }
}

fn count<'t>(body: &mut Body<'_, 't>, spec: &Spec<'_, 't>, ty: Type, f: F1) -> Lowered<()> {
    let [d, a]: [&Operand<'t>; 2] = spec.operands()?;
    let (a, d) = (body.source(a, ty)?, body.dest(d, Type::U32)?);
    body.emit(Inst::Unary { f, d, a });
    Ok(())
}

fn find<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    let shift = spec.flag("shiftamt");
    let ty = spec.ty()?;
    let f: F1 = match (ty, shift) {
        (Type::U32, false) => bits::bfind::<u32, false>,
        (Type::U32, true) => bits::bfind::<u32, true>,
        (Type::S32, false) => bits::bfind::<i32, false>,
        (Type::S32, true) => bits::bfind::<i32, true>,
        (Type::U64, false) => bits::bfind::<u64, false>,
        (Type::U64, true) => bits::bfind::<u64, true>,
        (Type::S64, false) => bits::bfind::<i64, false>,
        (Type::S64, true) => bits::bfind::<i64, true>,
        _ => return Err(Problem::Unsupported),
    };
    count(body, spec, ty, f)
}

fn funnel<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    let left = match spec.one_of(&[("l", true), ("r", false)]) {
        Some(left) => left,
        None => return Err(Problem::Unsupported),
    };
    let wrap = spec.one_of(&[("wrap", true), ("clamp", false)]).ok_or(Problem::Unsupported)?;
    let ty = spec.ty()?;
    if ty != Type::B32 {
        return Err(Problem::Unsupported);
    }
    let f: F3 = match (left, wrap) {
        (true, true) => bits::shf_left::<true>,
        (true, false) => bits::shf_left::<false>,
        (false, true) => bits::shf_right::<true>,
        (false, false) => bits::shf_right::<false>,
    };
    body.ternary(f, [ty, ty, ty, Type::U32], spec.operands()?)
}

fn permute<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    let ty = spec.ty()?;
    if ty != Type::B32 {
        return Err(Problem::Unsupported);
    }
    const MODES: &[(&str, F3)] = &[
        ("f4e", bits::prmt_mode::<0>),
        ("b4e", bits::prmt_mode::<1>),
        ("rc8", bits::prmt_mode::<2>),
        ("ecl", bits::prmt_mode::<3>),
        ("ecr", bits::prmt_mode::<4>),
        ("rc16", bits::prmt_mode::<5>),
    ];
    let f = spec.one_of(MODES).unwrap_or(bits::prmt);
    body.ternary(f, [ty, ty, ty, Type::U32], spec.operands()?)
}

fn masks<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    let wrap = spec.one_of(&[("wrap", true), ("clamp", false)]).ok_or(Problem::Unsupported)?;
    let ty = spec.ty()?;
    let f: F2 = match (spec.opcode(), ty, wrap) {
        ("bmsk", Type::B32, true) => bits::bmsk::<true>,
        ("bmsk", Type::B32, false) => bits::bmsk::<false>,
        ("szext", Type::U32, true) => bits::szext::<false, true>,
        ("szext", Type::U32, false) => bits::szext::<false, false>,
        ("szext", Type::S32, true) => bits::szext::<true, true>,
        ("szext", Type::S32, false) => bits::szext::<true, false>,
        _ => return Err(Problem::Unsupported),
    };
    same2(body, spec, ty, f)
}

fn lop3<'t>(body: &mut Body<'_, 't>, spec: &mut Spec<'_, 't>) -> Lowered<()> {
    let ty = spec.ty()?;
    if ty != Type::B32 {
        return Err(Problem::Unsupported);
    }
    body.quaternary(bits::lop3, [ty, ty, ty, ty, Type::U32], spec.operands()?)
}
