//! Moves, comparisons and selections.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Inst, Reg};
use crate::ptx::math::value::{Bf16, F16, Flushed, FlushedF16};
use crate::ptx::math::{F2, F3, bits, compare};
use crate::ptx::special::Special;
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

pub(super) fn mov<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let lanes = reader.one_of(&[("v2", 2), ("v4", 4)]);
    let ty = reader.ty()?;
    let [d, a] = reader.operands()?;
    if ty == Type::B128 && lanes.is_none() {
        return pair(body, d, a);
    }
    if let Some(lanes) = lanes {
        return each_element(body, ty, lanes, d, a);
    }
    match (d, a) {
        (_, Operand::Vector(parts)) => pack(body, ty, d, parts),
        (Operand::Vector(parts), _) => unpack(body, ty, parts, a),
        (_, Operand::Member(name, member)) if Special::parse(name, Some(member)).is_some() => {
            special(body, ty, d, name, Special::parse(name, Some(member)))
        }
        (_, Operand::Name(name)) if Special::parse(name, None).is_some() && body.type_of(a).is_none() => {
            special(body, ty, d, name, Special::parse(name, None))
        }
        _ => {
            let (a, d) = (body.source(a, ty)?, body.dest(d, ty)?);
            body.emit(Inst::Move { d, a });
            Ok(())
        }
    }
}

/// `mov.b128`: between registers of two words and pairs of words.
fn pair<'t>(body: &mut Body<'_, 't>, d: &Operand<'t>, a: &Operand<'t>) -> Lowered<()> {
    let sources = match a {
        Operand::Vector(parts) => match parts.as_slice() {
            [low, high] => [body.source(low, Type::B64)?, body.source(high, Type::B64)?],
            _ => return Err("expected two words of 64 bits".to_owned().into()),
        },
        Operand::Number(literal) => [body.constant(literal.bits(Type::B64)), body.constant(0)],
        other => body.both_words(other)?,
    };
    // A source may be a destination.
    let copies = sources.map(|a| {
        let d = body.fresh();
        body.emit(Inst::Move { d, a });
        d
    });
    let dests = match d {
        Operand::Vector(parts) => match parts.as_slice() {
            [low, high] => [body.dest(low, Type::B64)?, body.dest(high, Type::B64)?],
            _ => return Err("expected two words of 64 bits".to_owned().into()),
        },
        other => body.both_words(other)?,
    };
    for (d, a) in dests.into_iter().zip(copies) {
        body.emit(Inst::Move { d, a });
    }
    Ok(())
}

fn special<'t>(
    body: &mut Body<'_, 't>,
    ty: Type,
    d: &Operand<'t>,
    name: &str,
    special: Option<(Special, u32)>,
) -> Lowered<()> {
    let d = body.dest(d, ty)?;
    body.special_to(d, name, special.ok_or(LowerError::Unsupported)?, ty)
}

/// `mov.v2`, `mov.v4`: element by element.
fn each_element<'t>(
    body: &mut Body<'_, 't>,
    ty: Type,
    lanes: usize,
    d: &Operand<'t>,
    a: &Operand<'t>,
) -> Lowered<()> {
    let (dests, sources) = match (d, a) {
        (Operand::Vector(dests), Operand::Vector(sources)) => (dests, sources.clone()),
        (Operand::Vector(dests), Operand::Name(name)) if Special::parse(name, Some("x")).is_some() => {
            (dests, ["x", "y", "z", "w"].map(|member| Operand::Member(name, member)).to_vec())
        }
        _ => return Err(format!("expected two vectors of {lanes}").into()),
    };
    if dests.len() != lanes || sources.len() != lanes {
        return Err(format!("expected two vectors of {lanes}").into());
    }
    // A source may be an earlier destination, so all are read before anything is written.
    let mut values = Vec::new();
    for source in &sources {
        let (a, d) = (body.source(source, ty)?, body.fresh());
        body.emit(Inst::Move { d, a });
        values.push(d);
    }
    for (d, a) in dests.iter().zip(values) {
        let d = body.dest(d, ty)?;
        body.emit(Inst::Move { d, a });
    }
    Ok(())
}

fn part_type(ty: Type, parts: usize) -> Lowered<Type> {
    match ty.bits() / parts.max(1) as u32 {
        32 if parts > 1 => Ok(Type::B32),
        16 if parts > 1 => Ok(Type::B16),
        8 if parts > 1 => Ok(Type::B8),
        _ => Err(format!("a vector of {parts} does not make {} bits", ty.bits()).into()),
    }
}

fn pack<'t>(body: &mut Body<'_, 't>, ty: Type, d: &Operand<'t>, parts: &[Operand<'t>]) -> Lowered<()> {
    if let [one] = parts {
        let (a, d) = (body.source(one, ty)?, body.dest(d, ty)?);
        body.emit(Inst::Move { d, a });
        return Ok(());
    }
    let part = part_type(ty, parts.len())?;
    let parts = parts.iter().map(|each| body.source(each, part)).collect::<Lowered<Vec<Reg>>>()?;
    let d = body.dest(d, ty)?;
    body.pack_to(d, &parts, part.bits());
    Ok(())
}

fn unpack<'t>(body: &mut Body<'_, 't>, ty: Type, parts: &[Operand<'t>], a: &Operand<'t>) -> Lowered<()> {
    if let [one] = parts {
        let (a, d) = (body.source(a, ty)?, body.dest(one, ty)?);
        body.emit(Inst::Move { d, a });
        return Ok(());
    }
    let part = part_type(ty, parts.len())?;
    let mut a = body.source(a, ty)?;
    let dests: Vec<Option<Reg>> = parts
        .iter()
        .map(|each| match each {
            Operand::Ignore => Ok(None),
            _ => body.dest(each, part).map(Some),
        })
        .collect::<Lowered<_>>()?;
    if dests.contains(&Some(a)) {
        let copy = body.fresh();
        body.emit(Inst::Move { d: copy, a });
        a = copy;
    }
    for (index, d) in dests.into_iter().enumerate() {
        if let Some(d) = d {
            body.field_to(d, a, index as u32 * part.bits(), part.bits());
        }
    }
    Ok(())
}

/// The comparison of a name and type. Integers only have the ordered names; unsigned ones also have
/// `lo`, `ls`, `hi`, `hs`.
fn comparison(name: &str, ty: Type, flush: bool) -> Lowered<F2> {
    macro_rules! at {
        ($t:ty, $float:expr) => {
            match name {
                "eq" => compare::eq::<$t>,
                "ne" => compare::ne::<$t>,
                "lt" | "lo" => compare::lt::<$t>,
                "le" | "ls" => compare::le::<$t>,
                "gt" | "hi" => compare::gt::<$t>,
                "ge" | "hs" => compare::ge::<$t>,
                "equ" if $float => compare::equ::<$t>,
                "neu" if $float => compare::neu::<$t>,
                "ltu" if $float => compare::ltu::<$t>,
                "leu" if $float => compare::leu::<$t>,
                "gtu" if $float => compare::gtu::<$t>,
                "geu" if $float => compare::geu::<$t>,
                "num" if $float => compare::num::<$t>,
                "nan" if $float => compare::nan::<$t>,
                _ => return Err(LowerError::Unsupported),
            }
        };
    }
    if matches!(ty, Type::B16 | Type::B32 | Type::B64) && !matches!(name, "eq" | "ne") {
        return Err(LowerError::Unsupported);
    }
    if matches!(name, "lo" | "ls" | "hi" | "hs") && (ty.is_signed() || ty.is_float()) {
        return Err(LowerError::Unsupported);
    }
    Ok(match (ty, flush) {
        (Type::B16 | Type::U16, false) => at!(u16, false),
        (Type::B32 | Type::U32, false) => at!(u32, false),
        (Type::B64 | Type::U64, false) => at!(u64, false),
        (Type::S16, false) => at!(i16, false),
        (Type::S32, false) => at!(i32, false),
        (Type::S64, false) => at!(i64, false),
        (Type::F32, false) => at!(f32, true),
        (Type::F32, true) => at!(Flushed, true),
        (Type::F64, false) => at!(f64, true),
        (Type::F16, false) => at!(F16, true),
        (Type::F16, true) => at!(FlushedF16, true),
        (Type::Bf16, false) => at!(Bf16, true),
        _ => return Err(LowerError::Unsupported),
    })
}

const COMPARISONS: &[(&str, &str)] = &[
    ("eq", "eq"),
    ("ne", "ne"),
    ("lt", "lt"),
    ("le", "le"),
    ("gt", "gt"),
    ("ge", "ge"),
    ("lo", "lo"),
    ("ls", "ls"),
    ("hi", "hi"),
    ("hs", "hs"),
    ("equ", "equ"),
    ("neu", "neu"),
    ("ltu", "ltu"),
    ("leu", "leu"),
    ("gtu", "gtu"),
    ("geu", "geu"),
    ("num", "num"),
    ("nan", "nan"),
];

const COMBINATIONS: &[(&str, F2)] = &[("and", bits::and), ("or", bits::or), ("xor", bits::xor)];

/// The common part of `setp` and `set`.
struct Comparison {
    f: F2,
    combine: Option<F2>,
    /// The type of the result, for `set`.
    result: Option<Type>,
    ty: Type,
    is_packed: bool,
}

fn comparison_of(reader: &mut InstructionReader<'_, '_>, has_result: bool) -> Lowered<Comparison> {
    let name = reader.one_of(COMPARISONS).ok_or(LowerError::Unsupported)?;
    let combine = reader.one_of(COMBINATIONS);
    let flush = reader.flag("ftz");
    let result = if has_result { Some(reader.ty()?) } else { None };
    let ty = reader.ty()?;
    let single = match ty {
        Type::F16x2 => Type::F16,
        Type::Bf16x2 => Type::Bf16,
        other => other,
    };
    Ok(Comparison { f: comparison(name, single, flush)?, combine, result, ty, is_packed: single != ty })
}

/// `setp.lt.and.s32 p|q, a, b, c`: `p` is the comparison, `q` its opposite, both combined with `c`.
pub(super) fn setp<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let how = comparison_of(reader, false)?;
    let (d, a, b, c) = compared(reader, &how)?;
    let (a, b) = (body.source(a, how.ty)?, body.source(b, how.ty)?);
    let c = match c {
        Some(c) => Some(body.source(c, Type::Pred)?),
        None => None,
    };
    let (p, q) = match d {
        Operand::Pair(pair) => (&pair[0], Some(&pair[1])),
        other => (other, None),
    };
    if q.is_some() && matches!(how.ty, Type::F16 | Type::Bf16) {
        return Err("expected one destination for halves".to_owned().into());
    }
    let p = body.dest(p, Type::Pred)?;
    let q = match q {
        Some(q) => Some(body.dest(q, Type::Pred)?),
        None => None,
    };
    let (Some(q), f) = (q, how.f) else {
        // Of a packed comparison, one destination takes the lower half.
        let (a, b) = if how.is_packed { (body.field(a, 0, 16), body.field(b, 0, 16)) } else { (a, b) };
        match how.combine.zip(c) {
            None => body.emit(Inst::Binary { f: how.f, d: p, a, b }),
            Some((combine, c)) => {
                let first = body.fresh();
                body.emit(Inst::Binary { f: how.f, d: first, a, b });
                body.emit(Inst::Binary { f: combine, d: p, a: first, b: c });
            }
        }
        return Ok(());
    };
    // Sources may be destinations, so everything is computed before anything is written.
    let (first, second) = (body.fresh(), body.fresh());
    if how.is_packed {
        for (d, shift) in [(first, 0), (second, 16)] {
            let (a, b) = (body.field(a, shift, 16), body.field(b, shift, 16));
            body.emit(Inst::Binary { f, d, a, b });
        }
    } else {
        body.emit(Inst::Binary { f, d: first, a, b });
        body.emit(Inst::Unary { f: bits::not_pred, d: second, a: first });
    }
    if let Some((f, c)) = how.combine.zip(c) {
        body.emit(Inst::Binary { f, d: first, a: first, b: c });
        body.emit(Inst::Binary { f, d: second, a: second, b: c });
    }
    body.emit(Inst::Move { d: p, a: first });
    body.emit(Inst::Move { d: q, a: second });
    Ok(())
}

type Compared<'i, 't> = (&'i Operand<'t>, &'i Operand<'t>, &'i Operand<'t>, Option<&'i Operand<'t>>);

/// Destination, the two values, and the predicate to combine with.
fn compared<'i, 't>(reader: &InstructionReader<'i, 't>, how: &Comparison) -> Lowered<Compared<'i, 't>> {
    if how.combine.is_some() {
        let [d, a, b, c] = reader.operands()?;
        Ok((d, a, b, Some(c)))
    } else {
        let [d, a, b] = reader.operands()?;
        Ok((d, a, b, None))
    }
}

/// As `setp`, but true is all ones or 1.0.
pub(super) fn set<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let how = comparison_of(reader, true)?;
    let result = how.result.unwrap_or(Type::U32);
    let (d, a, b, c) = compared(reader, &how)?;
    let (a, b) = (body.source(a, how.ty)?, body.source(b, how.ty)?);
    let c = match c {
        Some(c) => Some(body.source(c, Type::Pred)?),
        None => None,
    };
    let d = body.dest(d, result)?;
    let is_half = matches!(how.ty, Type::F16 | Type::Bf16);
    let fits = match result {
        Type::U16 | Type::S16 => is_half,
        Type::F32 => !is_half,
        Type::F16 => how.ty != Type::Bf16,
        Type::F16x2 | Type::Bf16x2 => how.ty == result,
        _ => true,
    };
    if !fits {
        return Err(LowerError::Unsupported);
    }
    let yes = match (result, how.is_packed) {
        (Type::U16 | Type::S16, false) | (Type::U32 | Type::S32, true) => u64::from(u16::MAX),
        (Type::U32 | Type::S32, false) => u64::from(u32::MAX),
        (Type::F32, false) => u64::from(1_f32.to_bits()),
        (Type::F16, false) | (Type::F16x2, true) => 0x3c00,
        (Type::Bf16, false) | (Type::Bf16x2, true) => 0x3f80,
        _ => return Err(LowerError::Unsupported),
    };
    let (yes, no) = (body.constant(yes), body.constant(0));
    let one = |body: &mut Body<'_, 't>, d: Reg, a: Reg, b: Reg| {
        let truth = body.fresh();
        body.emit(Inst::Binary { f: how.f, d: truth, a, b });
        if let Some((f, c)) = how.combine.zip(c) {
            body.emit(Inst::Binary { f, d: truth, a: truth, b: c });
        }
        body.emit(Inst::Select { d, a: yes, b: no, c: truth });
    };
    if !how.is_packed {
        one(body, d, a, b);
        return Ok(());
    }
    let halves = [0, 16].map(|shift| {
        let (half, a, b) = (body.fresh(), body.field(a, shift, 16), body.field(b, shift, 16));
        one(body, half, a, b);
        half
    });
    body.pack_to(d, &halves, 16);
    Ok(())
}

/// `selp` by a predicate, `slct` by a sign.
pub(super) fn select<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let flush = reader.flag("ftz");
    let ty = reader.ty()?;
    let is_half = matches!(ty, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2);
    if !matches!(ty.bits(), 16 | 32 | 64) || is_half {
        return Err(LowerError::Unsupported);
    }
    if reader.opcode() == "selp" {
        let [d, a, b, c] = reader.operands()?;
        let (a, b, c) = (body.source(a, ty)?, body.source(b, ty)?, body.source(c, Type::Pred)?);
        let d = body.dest(d, ty)?;
        body.emit(Inst::Select { d, a, b, c });
        return Ok(());
    }
    let by = reader.ty()?;
    let f: F3 = match (by, flush) {
        (Type::S32, false) => bits::select_by_sign,
        (Type::F32, false) => bits::select_by_float,
        (Type::F32, true) => bits::select_by_float_flushed,
        _ => return Err(LowerError::Unsupported),
    };
    body.ternary(f, [ty, ty, ty, by], reader.operands()?)
}
