//! Floating-point arithmetic, including packed half types.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Inst, Reg};
use crate::ptx::math::rounding::{DOWN, NEAREST, UP};
use crate::ptx::math::value::{Bf16, F16, Flushed, FlushedF16};
use crate::ptx::math::{F1, F2, F3, approx, compare, float};
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

/// A generic function of [`float`] at a type, flushed or not.
macro_rules! at {
    ($f:ident, $ty:expr, $flush:expr, $kind:ty) => {{
        let f: $kind = match ($ty, $flush) {
            (Type::F32, false) => float::$f::<f32>,
            (Type::F32, true) => float::$f::<Flushed>,
            (Type::F64, false) => float::$f::<f64>,
            (Type::F16, false) => float::$f::<F16>,
            (Type::F16, true) => float::$f::<FlushedF16>,
            (Type::Bf16, false) => float::$f::<Bf16>,
            _ => return Err(LowerError::Unsupported),
        };
        f
    }};
}

/// The same with a rounding mode.
macro_rules! rounded {
    ($f:ident, $ty:expr, $flush:expr, $mode:expr, $kind:ty) => {{
        macro_rules! modes {
            ($t:ty) => {
                match $mode {
                    NEAREST => float::$f::<$t, 0>,
                    DOWN => float::$f::<$t, 2>,
                    UP => float::$f::<$t, 3>,
                    _ => float::$f::<$t, 1>,
                }
            };
        }
        let f: $kind = match ($ty, $flush) {
            (Type::F32, false) => modes!(f32),
            (Type::F32, true) => modes!(Flushed),
            (Type::F64, false) => modes!(f64),
            (Type::F16, false) => modes!(F16),
            (Type::F16, true) => modes!(FlushedF16),
            (Type::Bf16, false) => modes!(Bf16),
            _ => return Err(LowerError::Unsupported),
        };
        f
    }};
}

/// A function and how many sources it has.
#[derive(Clone, Copy)]
enum Operation {
    One(F1),
    Two(F2),
    Three(F3),
}

/// The modification of the result.
#[derive(Clone, Copy, Default)]
struct After {
    saturate: bool,
    relu: bool,
    /// Plain sums and products of single precision have their own instructions.
    plain: bool,
}

/// Opcodes that integers have, too.
pub(super) fn arithmetic<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let opcode = reader.opcode();
    let flush = reader.flag("ftz");
    let approximate = opcode == "div" && (reader.flag("approx") || reader.flag("full"));
    let has_mode = reader.rounding();
    let mode = has_mode.unwrap_or(NEAREST);
    let nan = reader.flag("NaN");
    let signs = reader.flag("xorsign");
    if signs != reader.flag("abs") {
        return Err(LowerError::Unsupported);
    }
    let mut after = After { saturate: reader.flag("sat"), relu: reader.flag("relu"), plain: false };
    let ty = reader.ty()?;
    let single = match ty {
        Type::F16x2 => Type::F16,
        Type::Bf16x2 => Type::Bf16,
        other => other,
    };
    after.plain = ty == Type::F32 && mode == NEAREST && !flush;
    let operation = match opcode {
        "add" => Operation::Two(rounded!(add, single, flush, mode, F2)),
        "sub" => Operation::Two(rounded!(sub, single, flush, mode, F2)),
        "mul" => Operation::Two(rounded!(mul, single, flush, mode, F2)),
        "div" if approximate && ty != Type::F32 => return Err(LowerError::Unsupported),
        "div" => Operation::Two(rounded!(div, single, flush, mode, F2)),
        "fma" | "mad" => Operation::Three(rounded!(fma, single, flush, mode, F3)),
        "min" | "max" => Operation::Two(extreme(opcode == "max", nan, signs, single, flush)?),
        "abs" => Operation::One(at!(abs, single, flush, F1)),
        "neg" => Operation::One(at!(neg, single, flush, F1)),
        _ => return Err(LowerError::Unsupported),
    };
    let has_form = approximate || form(opcode, ty, single, has_mode, flush, after);
    if !has_form {
        return Err(LowerError::Unsupported);
    }
    let is_unrounded = matches!(opcode, "min" | "max" | "abs" | "neg");
    if (is_unrounded && (has_mode.is_some() || after.saturate)) || (nan && !is_unrounded) {
        return Err(LowerError::Unsupported);
    }
    apply(body, reader, operation, ty, single, after)
}

/// Whether an exact operation exists with these modifiers.
fn form(opcode: &str, ty: Type, single: Type, mode: Option<u8>, flush: bool, after: After) -> bool {
    let is_half = matches!(single, Type::F16 | Type::Bf16);
    let is_packed = ty != single;
    let After { saturate, relu, .. } = after;
    let rounds = match opcode {
        "add" | "sub" | "mul" => !is_half || matches!(mode, None | Some(NEAREST)),
        "fma" if single == Type::F16 => mode == Some(NEAREST),
        "fma" if single == Type::Bf16 => mode.is_some(),
        "fma" | "mad" | "div" => mode.is_some() && !is_half && !is_packed,
        _ => mode.is_none(),
    };
    let flushes = !flush || matches!(single, Type::F32 | Type::F16);
    let may_saturate = matches!(opcode, "add" | "sub" | "mul" | "fma" | "mad");
    let saturates = !saturate || (may_saturate && matches!(single, Type::F32 | Type::F16));
    let clamps = !relu || (opcode == "fma" && is_half && !saturate);
    rounds && flushes && saturates && clamps
}

/// `min` or `max`. `signs` compares magnitudes and gives the product of the signs.
fn extreme(is_max: bool, nan: bool, signs: bool, ty: Type, flush: bool) -> Lowered<F2> {
    if ty == Type::F64 && (nan || signs) {
        return Err(LowerError::Unsupported);
    }
    Ok(match (is_max, nan, signs) {
        (false, false, false) => at!(min, ty, flush, F2),
        (false, true, false) => at!(min_nan, ty, flush, F2),
        (false, false, true) => at!(min_signs, ty, flush, F2),
        (false, true, true) => at!(min_nan_signs, ty, flush, F2),
        (true, false, false) => at!(max, ty, flush, F2),
        (true, true, false) => at!(max_nan, ty, flush, F2),
        (true, false, true) => at!(max_signs, ty, flush, F2),
        (true, true, true) => at!(max_nan_signs, ty, flush, F2),
    })
}

fn apply<'t>(
    body: &mut Body<'_, 't>,
    reader: &InstructionReader<'_, 't>,
    operation: Operation,
    ty: Type,
    single: Type,
    after: After,
) -> Lowered<()> {
    let operands = reader.all_operands()?;
    let count = match operation {
        Operation::One(_) => 1,
        Operation::Two(_) => 2,
        Operation::Three(_) => 3,
    };
    let [d, sources @ ..] = operands else { return Err("operands are missing".to_owned().into()) };
    // Newer versions have three sources here.
    if sources.len() == 3 && matches!(reader.opcode(), "min" | "max") {
        return Err(LowerError::Unsupported);
    }
    if sources.len() != count {
        let words = format!("expected {} operands, found {}", count + 1, operands.len());
        return Err(words.into());
    }
    let sources = sources.iter().map(|source| body.source(source, ty)).collect::<Lowered<Vec<Reg>>>()?;
    let d = body.dest(d, ty)?;
    if ty == single {
        return one(body, operation, single, after, reader.opcode(), d, &sources);
    }
    // Packed: each half on its own.
    let mut halves = Vec::new();
    for index in 0..2 {
        let parts: Vec<Reg> = sources.iter().map(|&source| body.field(source, 16 * index, 16)).collect();
        let half = body.fresh();
        one(body, operation, single, after, reader.opcode(), half, &parts)?;
        halves.push(half);
    }
    body.pack_to(d, &halves, 16);
    Ok(())
}

fn one(
    body: &mut Body<'_, '_>,
    operation: Operation,
    ty: Type,
    after: After,
    opcode: &str,
    d: Reg,
    sources: &[Reg],
) -> Lowered<()> {
    match (operation, sources) {
        (Operation::Two(_), &[a, b]) if after.plain && opcode == "add" => body.emit(Inst::AddF32 { d, a, b }),
        (Operation::Two(_), &[a, b]) if after.plain && opcode == "mul" => body.emit(Inst::MulF32 { d, a, b }),
        (Operation::One(f), &[a]) => body.emit(Inst::Unary { f, d, a }),
        (Operation::Two(f), &[a, b]) => body.emit(Inst::Binary { f, d, a, b }),
        (Operation::Three(f), &[a, b, c]) => body.emit(Inst::Ternary { f, d, a, b, c }),
        _ => return Err(LowerError::Unsupported),
    }
    if after.saturate {
        let f = at!(saturate, ty, false, F1);
        body.emit(Inst::Unary { f, d, a: d });
    }
    if after.relu {
        let f = at!(relu, ty, false, F1);
        body.emit(Inst::Unary { f, d, a: d });
    }
    Ok(())
}

/// Opcodes that only floats have.
pub(super) fn function<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    match reader.opcode() {
        "testp" => return test(body, reader),
        "copysign" => {
            let ty = reader.ty()?;
            let f = match ty {
                Type::F32 => float::copysign::<{ 1 << 31 }>,
                Type::F64 => float::copysign::<{ 1 << 63 }>,
                _ => return Err(LowerError::Unsupported),
            };
            return body.binary(f, [ty; 3], reader.operands()?);
        }
        _ => {}
    }
    let approximate = reader.flag("approx");
    let flush = reader.flag("ftz");
    let mode = reader.rounding();
    let ty = reader.ty()?;
    if reader.opcode() == "tanh" && flush {
        return Err(LowerError::Unsupported);
    }
    if mode.is_some() == approximate {
        return Err("it needs either a rounding mode or `.approx`".to_owned().into());
    }
    let mode = mode.unwrap_or(NEAREST);
    let f: F1 = match (reader.opcode(), approximate, ty) {
        ("rcp", false, Type::F32 | Type::F64) => rounded!(rcp, ty, flush && ty == Type::F32, mode, F1),
        ("sqrt", false, Type::F32 | Type::F64) => rounded!(sqrt, ty, flush, mode, F1),
        ("tanh" | "ex2", true, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) => {
            return half_approximation(body, reader, ty, flush);
        }
        ("rcp", true, Type::F64) if flush => approx::rcp_f64,
        ("rsqrt", true, Type::F64) if flush => approx::rsqrt_f64,
        ("rsqrt", true, Type::F64) => approx::rsqrt_f64_full,
        (name, true, Type::F32) => single_approximation(name, flush)?,
        _ => return Err(LowerError::Unsupported),
    };
    body.unary(f, ty, reader.operands()?)
}

fn half_approximation<'t>(
    body: &mut Body<'_, 't>,
    reader: &InstructionReader<'_, 't>,
    ty: Type,
    flush: bool,
) -> Lowered<()> {
    let single = if matches!(ty, Type::F16 | Type::F16x2) { Type::F16 } else { Type::Bf16 };
    let f: F1 = match (reader.opcode(), single, flush) {
        ("tanh", Type::F16, false) => approx::tanh_f16,
        ("tanh", _, false) => approx::tanh_bf16,
        ("ex2", Type::F16, false) => approx::ex2_f16,
        ("ex2", Type::Bf16, true) => approx::ex2_bf16_flushed,
        _ => return Err(LowerError::Unsupported),
    };
    apply(body, reader, Operation::One(f), ty, single, After::default())
}

fn single_approximation(name: &str, flush: bool) -> Lowered<F1> {
    let (kept, flushed): (F1, F1) = match name {
        "rcp" => (approx::rcp::f32, approx::rcp::f32_flushed),
        "sqrt" => (approx::sqrt::f32, approx::sqrt::f32_flushed),
        "rsqrt" => (approx::rsqrt::f32, approx::rsqrt::f32_flushed),
        "sin" => (approx::sin::f32, approx::sin::f32_flushed),
        "cos" => (approx::cos::f32, approx::cos::f32_flushed),
        "ex2" => (approx::ex2::f32, approx::ex2::f32_flushed),
        "lg2" => (approx::lg2::f32, approx::lg2::f32_flushed),
        "tanh" => (approx::tanh::f32, approx::tanh::f32_flushed),
        _ => return Err(LowerError::Unsupported),
    };
    Ok(if flush { flushed } else { kept })
}

fn test<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    const CLASSES: &[(&str, (F1, F1))] = &[
        ("finite", (compare::finite::f32, compare::finite::f64)),
        ("infinite", (compare::infinite::f32, compare::infinite::f64)),
        ("number", (compare::number::f32, compare::number::f64)),
        ("notanumber", (compare::notanumber::f32, compare::notanumber::f64)),
        ("normal", (compare::normal::f32, compare::normal::f64)),
        ("subnormal", (compare::subnormal::f32, compare::subnormal::f64)),
    ];
    let (single, double) = reader.one_of(CLASSES).ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    let f = match ty {
        Type::F32 => single,
        Type::F64 => double,
        _ => return Err(LowerError::Unsupported),
    };
    let [d, a]: [&Operand<'t>; 2] = reader.operands()?;
    let (a, d) = (body.source(a, ty)?, body.dest(d, Type::Pred)?);
    body.emit(Inst::Unary { f, d, a });
    Ok(())
}
