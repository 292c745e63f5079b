//! Conversions between types and between address spaces.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Inst, Reg, SpaceTest};
use crate::ptx::math::convert::{self, Conversion, Round};
use crate::ptx::math::rounding::{DOWN, NEAREST, UP, ZERO};
use crate::ptx::math::{F1, F2, bits, fp8, integer};
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

/// The modifiers of `cvt`.
#[derive(Clone, Copy)]
struct Modifiers {
    round: Option<Round>,
    flush: bool,
    saturate: bool,
    relu: bool,
    finite: bool,
}

impl Modifiers {
    fn of(reader: &mut InstructionReader<'_, '_>) -> Modifiers {
        Modifiers {
            round: reader.one_of(ROUNDS),
            flush: reader.flag("ftz"),
            saturate: reader.flag("sat"),
            relu: reader.flag("relu"),
            finite: reader.flag("satfinite"),
        }
    }

    fn is_nearest_or_zero(self) -> bool {
        matches!(self.round, Some(Round::Float(NEAREST | ZERO)))
    }

    /// Whether a conversion of a single number exists in this form.
    fn fit(self, to: Type, from: Type) -> bool {
        let Modifiers { round, flush, saturate, relu, finite } = self;
        let rounds_float = matches!(round, Some(Round::Float(_)));
        let rounds_integer = matches!(round, Some(Round::Integer(_)));
        let has_single = to == Type::F32 || from == Type::F32;
        let is_narrow = matches!(to, Type::F16 | Type::Bf16) && from == Type::F32;
        let may_clamp = is_narrow && self.is_nearest_or_zero() && !flush && !saturate;
        if (flush && !has_single && (to, from) != (Type::F32, Type::Bf16))
            || ((relu || finite) && !may_clamp)
            || (saturate && (to == Type::Bf16 || from == Type::Bf16))
        {
            return false;
        }
        let has_bytes = to.bits() == 8 || from.bits() == 8;
        if has_bytes && (to == Type::Bf16 || from == Type::Bf16) {
            return false;
        }
        match (from.is_float(), to.is_float()) {
            (false, false) => round.is_none() && (!saturate || can_overflow(to, from)),
            (false, true) => rounds_float,
            (true, false) => rounds_integer,
            (true, true) if to == from => rounds_integer || round.is_none(),
            // Neither holds the other.
            (true, true) if from == Type::Bf16 => !rounds_integer,
            (true, true) if to == Type::Bf16 && from == Type::F16 => !rounds_integer,
            (true, true) if to.bits() > from.bits() => round.is_none(),
            (true, true) => rounds_float,
        }
    }
}

/// Whether a number of one integer type may lie outside of the other.
fn can_overflow(to: Type, from: Type) -> bool {
    let is_narrower =
        to.bits() < from.bits() || (to.bits() == from.bits() && to.is_signed() != from.is_signed());
    is_narrower || (from.is_signed() && !to.is_signed())
}

/// Formats that only `cvt` names.
const FORMATS: &[(&str, Format)] =
    &[("e4m3x2", Format::Fp8 { e5: false }), ("e5m2x2", Format::Fp8 { e5: true }), ("tf32", Format::Tf32)];

#[derive(Clone, Copy)]
enum Format {
    Fp8 { e5: bool },
    Tf32,
}

pub(super) fn cvt<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if reader.flag("pack") {
        return pack(body, reader);
    }
    let away = reader.flag("rna");
    let how = Modifiers::of(reader);
    match reader.one_of(FORMATS) {
        Some(Format::Fp8 { e5 }) => return fp8(body, reader, how, e5),
        Some(Format::Tf32) => return tf32(body, reader, how, away),
        None if away => return Err(LowerError::Unsupported),
        None => {}
    }
    let (to, from) = (reader.ty()?, reader.ty()?);
    if matches!(to, Type::F16x2 | Type::Bf16x2) && from == Type::F32 {
        return packed(body, reader, how, to);
    }
    let is_scalar = |ty: Type| ty != Type::Pred && !matches!(ty, Type::F16x2 | Type::Bf16x2);
    let is_bits = |ty: Type| matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128);
    if !is_scalar(to) || !is_scalar(from) || is_bits(to) || is_bits(from) || !how.fit(to, from) {
        return Err(LowerError::Unsupported);
    }
    let Modifiers { flush, saturate, relu, finite, .. } = how;
    let how =
        Conversion { from, to, round: how.round.unwrap_or(Round::Float(NEAREST)), flush, saturate, relu };
    let [d, a] = reader.operands()?;
    let (a, d) = (body.wide_source(a, from)?, body.wide_dest(d, to)?);
    body.emit(match quick(how) {
        Some(f) => Inst::Unary { f, d, a },
        None => Inst::Convert { d, a, how },
    });
    if finite {
        body.emit(Inst::Unary { f: finite_half(to), d, a: d });
    }
    Ok(())
}

/// The function that makes infinite halves finite.
fn finite_half(ty: Type) -> F1 {
    if ty == Type::F16 { fp8::finite_f16 } else { fp8::finite_bf16 }
}

/// Converts two singles to two halves in one register. The first source is the upper half.
fn packed<'t>(
    body: &mut Body<'_, 't>,
    reader: &InstructionReader<'_, 't>,
    how: Modifiers,
    to: Type,
) -> Lowered<()> {
    if !how.is_nearest_or_zero() || how.flush || how.saturate {
        return Err(LowerError::Unsupported);
    }
    let to = if to == Type::F16x2 { Type::F16 } else { Type::Bf16 };
    let from = Type::F32;
    let round = how.round.unwrap_or(Round::Float(NEAREST));
    let one = Conversion { from, to, round, flush: false, saturate: false, relu: how.relu };
    let [d, a, b]: [&Operand<'t>; 3] = reader.operands()?;
    let (a, b) = (body.source(a, from)?, body.source(b, from)?);
    let d = body.dest(d, Type::B32)?;
    let mut halves: Vec<Reg> = Vec::new();
    for a in [b, a] {
        let half = body.fresh();
        body.emit(Inst::Convert { d: half, a, how: one });
        if how.finite {
            body.emit(Inst::Unary { f: finite_half(to), d: half, a: half });
        }
        halves.push(half);
    }
    body.pack_to(d, &halves, 16);
    Ok(())
}

/// From and to pairs of 8-bit floats.
fn fp8<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    how: Modifiers,
    e5: bool,
) -> Lowered<()> {
    if how.round != Some(Round::Float(NEAREST)) || how.flush || how.saturate {
        return Err(LowerError::Unsupported);
    }
    // Which of the two types is the pair of 8-bit floats is a matter of their order.
    let is_source = reader.is_last_modifier(&["e4m3x2", "e5m2x2"]);
    let other = reader.ty()?;
    match (is_source, other, how.finite) {
        (true, Type::F16x2, false) => {
            let [d, a]: [&Operand<'t>; 2] = reader.operands()?;
            let f: F1 = match (e5, how.relu) {
                (false, false) => fp8::to_halves::<false, false>,
                (false, true) => fp8::to_halves::<false, true>,
                (true, false) => fp8::to_halves::<true, false>,
                (true, true) => fp8::to_halves::<true, true>,
            };
            let (a, d) = (body.source(a, Type::B16)?, body.dest(d, Type::B32)?);
            body.emit(Inst::Unary { f, d, a });
            Ok(())
        }
        (false, Type::F16x2, true) => {
            let [d, a]: [&Operand<'t>; 2] = reader.operands()?;
            let f: F1 = match (e5, how.relu) {
                (false, false) => fp8::from_halves::<false, false>,
                (false, true) => fp8::from_halves::<false, true>,
                (true, false) => fp8::from_halves::<true, false>,
                (true, true) => fp8::from_halves::<true, true>,
            };
            let (a, d) = (body.source(a, Type::B32)?, body.dest(d, Type::B16)?);
            body.emit(Inst::Unary { f, d, a });
            Ok(())
        }
        (false, Type::F32, true) => {
            let f: F2 = match (e5, how.relu) {
                (false, false) => fp8::from_singles::<false, false>,
                (false, true) => fp8::from_singles::<false, true>,
                (true, false) => fp8::from_singles::<true, false>,
                (true, true) => fp8::from_singles::<true, true>,
            };
            body.binary(f, [Type::B16, Type::F32, Type::F32], reader.operands()?)
        }
        _ => Err(LowerError::Unsupported),
    }
}

/// A single to `tf32`.
fn tf32<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    how: Modifiers,
    away: bool,
) -> Lowered<()> {
    const NEAR: Option<Round> = Some(Round::Float(NEAREST));
    const CUT: Option<Round> = Some(Round::Float(ZERO));
    let f: F1 = match (away, how.round, how.relu, how.finite) {
        (true, None, false, false) => fp8::tf32::<{ fp8::AWAY }, false, false>,
        (true, None, false, true) => fp8::tf32::<{ fp8::AWAY }, false, true>,
        (false, NEAR, false, false) => fp8::tf32::<NEAREST, false, false>,
        (false, NEAR, true, false) => fp8::tf32::<NEAREST, true, false>,
        (false, NEAR, false, true) => fp8::tf32::<NEAREST, false, true>,
        (false, NEAR, true, true) => fp8::tf32::<NEAREST, true, true>,
        (false, CUT, false, false) => fp8::tf32::<ZERO, false, false>,
        (false, CUT, true, false) => fp8::tf32::<ZERO, true, false>,
        (false, CUT, false, true) => fp8::tf32::<ZERO, false, true>,
        (false, CUT, true, true) => fp8::tf32::<ZERO, true, true>,
        _ => return Err(LowerError::Unsupported),
    };
    let is_late = how.finite && !away;
    if reader.ty()? != Type::F32
        || how.flush
        || how.saturate
        || (is_late && !body.symbols.is_at_least((8, 6), 90))
    {
        return Err(LowerError::Unsupported);
    }
    let [d, a]: [&Operand<'t>; 2] = reader.operands()?;
    let (a, d) = (body.source(a, Type::F32)?, body.dest(d, Type::B32)?);
    body.emit(Inst::Unary { f, d, a });
    Ok(())
}

/// `cvt.pack`: two clamped words side by side, below what is left of a third word.
fn pack<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    const NARROW: &[(&str, (u32, F1))] = &[
        ("u2", (2, integer::clamp_to::<2, false>)),
        ("s2", (2, integer::clamp_to::<2, true>)),
        ("u4", (4, integer::clamp_to::<4, false>)),
        ("s4", (4, integer::clamp_to::<4, true>)),
        ("u8", (8, integer::clamp_to::<8, false>)),
        ("s8", (8, integer::clamp_to::<8, true>)),
        ("u16", (16, integer::clamp_to::<16, false>)),
        ("s16", (16, integer::clamp_to::<16, true>)),
    ];
    let (bits, f) = reader.one_of(NARROW).ok_or(LowerError::Unsupported)?;
    let has_rest = bits < 16;
    if !reader.flag("sat") || reader.ty()? != Type::S32 || (has_rest && reader.ty()? != Type::B32) {
        return Err(LowerError::Unsupported);
    }
    let (d, a, b, c) = if has_rest {
        let [d, a, b, c] = reader.operands()?;
        (d, a, b, Some(c))
    } else {
        let [d, a, b] = reader.operands()?;
        (d, a, b, None)
    };
    let mut parts = Vec::new();
    for source in [b, a] {
        let (a, d) = (body.source(source, Type::S32)?, body.fresh());
        body.emit(Inst::Unary { f, d, a });
        parts.push(d);
    }
    let rest = match c {
        Some(c) => Some(body.source(c, Type::B32)?),
        None => None,
    };
    let d = body.dest(d, Type::B32)?;
    let Some(rest) = rest else {
        body.pack_to(d, &parts, bits);
        return Ok(());
    };
    let pair = body.fresh();
    body.pack_to(pair, &parts, bits);
    let rest = body.field(rest, 0, 32 - 2 * bits);
    let c = body.constant(bits::field_spec(2 * bits, 32 - 2 * bits));
    body.emit(Inst::Ternary { f: bits::insert, d, a: pair, b: rest, c });
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
    // A narrow address is extended.
    let ty = if body.type_of(a).is_some_and(|ty| ty.bits() == 32) { Type::U32 } else { Type::U64 };
    let (a, d) = (body.source(a, ty)?, body.dest(d, Type::Pred)?);
    body.emit(Inst::IsSpace { d, a, which });
    Ok(())
}
