//! Conversions between types and between address spaces.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Inst, Reg, SpaceTest};
use crate::ptx::math::F1;
use crate::ptx::math::convert::{self, Conversion, Round};
use crate::ptx::math::rounding::{DOWN, NEAREST, UP, ZERO};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;
use crate::ptx::windows::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, shared_from_generic};

const ROUNDS: &[(&str, Round)] = &[
    ("rn", Round::Float(NEAREST)),
    ("rz", Round::Float(ZERO)),
    ("rm", Round::Float(DOWN)),
    ("rp", Round::Float(UP)),
    ("rni", Round::Integer(NEAREST)),
    ("rzi", Round::Integer(ZERO)),
    ("rmi", Round::Integer(DOWN)),
    ("rpi", Round::Integer(UP)),
];

pub(super) fn cvt<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let round = reader.one_of(ROUNDS);
    let (flush, saturate, relu) = (reader.flag("ftz"), reader.flag("sat"), reader.flag("relu"));
    let (to, from) = (reader.ty()?, reader.ty()?);
    if matches!(to, Type::F16x2 | Type::Bf16x2) && from == Type::F32 {
        let to_half = if to == Type::F16x2 { Type::F16 } else { Type::Bf16 };
        let round = round.unwrap_or(Round::Float(NEAREST));
        return packed(body, reader, Conversion { from, to: to_half, round, flush, saturate, relu });
    }
    let is_scalar = |ty: Type| ty != Type::Pred && !matches!(ty, Type::F16x2 | Type::Bf16x2);
    let is_bits = |ty: Type| matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64);
    if !is_scalar(to) || !is_scalar(from) || is_bits(to) || is_bits(from) {
        return Err(LowerError::Unsupported);
    }
    let to_integer = from.is_float() && to.is_integer();
    let round = round.unwrap_or(if to_integer { Round::Integer(ZERO) } else { Round::Float(NEAREST) });
    let how = Conversion { from, to, round, flush, saturate, relu };
    let [d, a] = reader.operands()?;
    let (a, d) = (body.wide_source(a, from)?, body.wide_dest(d, to)?);
    body.emit(match quick(how) {
        Some(f) => Inst::Unary { f, d, a },
        None => Inst::Convert { d, a, how },
    });
    Ok(())
}

/// Converts two singles to two halves in one register. The first source is the upper half.
fn packed<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, how: Conversion) -> Lowered<()> {
    let [d, a, b]: [&Operand<'t>; 3] = reader.operands()?;
    let (a, b) = (body.source(a, how.from)?, body.source(b, how.from)?);
    let d = body.dest(d, Type::B32)?;
    let mut halves: Vec<Reg> = Vec::new();
    for a in [b, a] {
        let half = body.fresh();
        body.emit(Inst::Convert { d: half, a, how });
        halves.push(half);
    }
    body.pack_to(d, &halves, 16);
    Ok(())
}

/// The specialised function of a common conversion.
fn quick(how: Conversion) -> Option<F1> {
    if how.saturate || how.relu || how.flush {
        return None;
    }
    macro_rules! to {
        ($s:ty) => {
            match how.to {
                Type::U8 => convert::extend_from::<$s, u8>,
                Type::S8 => convert::extend_from::<$s, i8>,
                Type::U16 => convert::extend_from::<$s, u16>,
                Type::S16 => convert::extend_from::<$s, i16>,
                Type::U32 => convert::extend_from::<$s, u32>,
                Type::S32 => convert::extend_from::<$s, i32>,
                Type::U64 => convert::extend_from::<$s, u64>,
                Type::S64 => convert::extend_from::<$s, i64>,
                _ => return None,
            }
        };
    }
    let near = how.round == Round::Float(NEAREST);
    Some(match (how.from, how.to) {
        (Type::S32, Type::F32) if near => convert::i32_to_f32,
        (Type::U32, Type::F32) if near => convert::u32_to_f32,
        (Type::S32, Type::F64) => convert::i32_to_f64,
        (Type::F32, Type::F64) if near => convert::f32_to_f64,
        (Type::F64, Type::F32) if near => convert::f64_to_f32,
        (Type::U8, _) => to!(u8),
        (Type::S8, _) => to!(i8),
        (Type::U16, _) => to!(u16),
        (Type::S16, _) => to!(i16),
        (Type::U32, _) => to!(u32),
        (Type::S32, _) => to!(i32),
        (Type::U64, _) => to!(u64),
        (Type::S64, _) => to!(i64),
        _ => return None,
    })
}

const SPACES: &[(&str, SpaceTest)] = &[
    ("global", SpaceTest::Global),
    ("const", SpaceTest::Const),
    ("shared", SpaceTest::Shared),
    ("shared::cta", SpaceTest::Shared),
    ("shared::cluster", SpaceTest::Shared),
    ("local", SpaceTest::Local),
    ("param", SpaceTest::Param),
    ("param::entry", SpaceTest::Param),
];

/// The start of a space in the generic address space.
fn window(space: SpaceTest) -> u64 {
    match space {
        SpaceTest::Global | SpaceTest::Const => 0,
        SpaceTest::Shared => SHARED_WINDOW,
        SpaceTest::Local => LOCAL_WINDOW,
        SpaceTest::Param => PARAM_WINDOW,
    }
}

/// Conversions from and to generic addresses.
pub(super) fn cvta<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let from_generic = reader.flag("to");
    let space = reader.one_of(SPACES).ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    if ty != Type::U64 {
        return Err(LowerError::Unsupported);
    }
    let [d, a] = reader.operands()?;
    let (a, d) = (body.source(a, ty)?, body.dest(d, ty)?);
    let bias = window(space);
    if from_generic && space == SpaceTest::Shared {
        body.emit(Inst::Unary { f: shared_from_generic, d, a });
    } else if bias == 0 {
        body.emit(Inst::Move { d, a });
    } else {
        let b = body.constant(if from_generic { bias.wrapping_neg() } else { bias });
        body.emit(Inst::Add64 { d, a, b });
    }
    Ok(())
}

pub(super) fn isspacep<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let which = reader.one_of(SPACES).ok_or(LowerError::Unsupported)?;
    let [d, a] = reader.operands()?;
    let (a, d) = (body.source(a, Type::U64)?, body.dest(d, Type::Pred)?);
    body.emit(Inst::IsSpace { d, a, which });
    Ok(())
}
