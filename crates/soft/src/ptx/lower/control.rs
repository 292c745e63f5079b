//! Branches, calls, barriers and warp-wide operations.

use super::address::unresolved;
use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use super::scope::Name;
use super::symbol::Symbol;
use crate::ptx::code::{BarrierOp, CallSite, Formal, Inst, Intrinsic, NONE, Place, Reg, Target, WarpOp};
use crate::ptx::syntax::{Instruction, Literal, Operand};
use crate::ptx::types::Type;

/// `bra`. [`branch_target`] reads one with a guard.
pub(super) fn branch<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    reader.flag("uni");
    let [to] = reader.operands()?;
    let to = label(body, to)?;
    body.jump(Inst::Jump { to });
    Ok(())
}

pub(super) fn ret<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    reader.flag("uni");
    plain(body, reader, Inst::Return)
}

pub(super) fn exit<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    plain(body, reader, Inst::Exit)
}

/// `trap` and `brkpt`.
pub(super) fn trap<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    plain(body, reader, Inst::Trap)
}

pub(super) fn nanosleep<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if reader.ty()? != Type::U32 {
        return Err(LowerError::Unsupported);
    }
    let [duration] = reader.operands()?;
    let nanoseconds = body.source(duration, Type::U32)?;
    body.emit(Inst::Sleep { nanoseconds });
    Ok(())
}

/// `griddepcontrol`. `.launch_dependents` has no effect: dependents begin as early as they may.
pub(super) fn grid_dependencies<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    // It came with both.
    if !body.symbols.is_at_least((7, 8), 90) {
        return Err("it needs PTX 7.8 and a target from sm_90 on".to_owned().into());
    }
    if reader.flag("wait") {
        return plain(body, reader, Inst::GridWait);
    }
    if !reader.flag("launch_dependents") {
        return Err(LowerError::Unsupported);
    }
    let [] = reader.operands()?;
    Ok(())
}

/// `pmevent`, which has no effect here.
pub(super) fn pmevent(reader: &mut InstructionReader<'_, '_>) -> Lowered<()> {
    reader.flag("mask");
    match reader.operands()? {
        [Operand::Number(_)] => Ok(()),
        _ => Err("expected a number".to_owned().into()),
    }
}

/// `setmaxnreg`, which has no effect here: threads have the registers that they use.
pub(super) fn set_registers(reader: &mut InstructionReader<'_, '_>) -> Lowered<()> {
    reader.one_of(&[("inc", ()), ("dec", ())]).ok_or(LowerError::Unsupported)?;
    if !reader.flag("sync") || !reader.flag("aligned") || reader.ty()? != Type::U32 {
        return Err(LowerError::Unsupported);
    }
    match reader.operands()? {
        [Operand::Number(Literal::Int(count))] if (24..=256).contains(count) && count % 8 == 0 => Ok(()),
        _ => Err("expected a multiple of 8 from 24 to 256".to_owned().into()),
    }
}

pub(super) fn activemask<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if reader.ty()? != Type::B32 {
        return Err(LowerError::Unsupported);
    }
    let [d] = reader.operands()?;
    let d = body.dest(d, Type::B32)?;
    warp(body, WarpOp::ActiveMask, d, NONE, [NONE; 3], NONE);
    Ok(())
}

pub(super) fn elect<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    must_sync(reader)?;
    let [d, mask] = reader.operands()?;
    if !matches!(d, Operand::Pair(_)) {
        return Err("expected a register and a predicate".to_owned().into());
    }
    let (d, p) = pair(body, d)?;
    let mask = body.source(mask, Type::B32)?;
    warp(body, WarpOp::Elect, d, p, [NONE; 3], mask);
    Ok(())
}

fn plain<'t>(body: &mut Body<'_, 't>, reader: &InstructionReader<'_, 't>, inst: Inst) -> Lowered<()> {
    let [] = reader.operands()?;
    body.emit(inst);
    Ok(())
}

/// Takes `.sync`, which must be there.
fn must_sync(reader: &mut InstructionReader<'_, '_>) -> Lowered<()> {
    if reader.flag("sync") { Ok(()) } else { Err("it needs `.sync`".to_owned().into()) }
}

/// Takes `.sync`, which older targets may omit; true if it is there.
fn may_sync(body: &Body<'_, '_>, reader: &mut InstructionReader<'_, '_>) -> Lowered<bool> {
    if body.symbols.is_at_least((6, 4), 70) {
        must_sync(reader)?;
        return Ok(true);
    }
    Ok(reader.flag("sync"))
}

fn warp(body: &mut Body<'_, '_>, op: WarpOp, d: Reg, p: Reg, [a, b, c]: [Reg; 3], mask: Reg) {
    body.emit(Inst::Warp { op, d, p, a, b, c, mask });
}

fn label<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>) -> Lowered<u32> {
    match operand {
        Operand::Name(name) => body.label(name),
        _ => Err("expected a label".to_owned().into()),
    }
}

/// The label of a guarded `bra`.
pub(super) fn branch_target<'t>(body: &mut Body<'_, 't>, instruction: &Instruction<'t>) -> Lowered<u32> {
    let mut reader = InstructionReader::new(instruction);
    reader.flag("uni");
    let [to] = reader.operands()?;
    label(body, to)
}

/// `brx.idx`.
pub(super) fn switch<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if !reader.flag("idx") {
        return Err(LowerError::Unsupported);
    }
    reader.flag("uni");
    let [index, targets] = reader.operands()?;
    let index = body.source(index, Type::U32)?;
    let targets = match targets {
        Operand::Name(name) => match body.scopes.find(name) {
            Some(Name::Targets(labels)) => labels.clone(),
            _ => return Err(format!("`{name}` is not a list of branch targets").into()),
        },
        _ => return Err("expected a list of branch targets".to_owned().into()),
    };
    let list = body.function.lists.len();
    body.switches.extend(list..list + targets.len());
    let len = targets.len() as u32;
    body.function.lists.extend(targets);
    body.emit(Inst::Switch { index, list: list as u32, len });
    Ok(())
}

/// `call (results), function, (arguments), prototype;`
pub(super) fn call<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    reader.flag("uni");
    let mut operands = reader.all_operands()?;
    let mut results: &[Operand<'t>] = &[];
    if let [Operand::Group(group), rest @ ..] = operands {
        (results, operands) = (group, rest);
    }
    let [Operand::Name(name), rest @ ..] = operands else {
        return Err("expected the name of a function".to_owned().into());
    };
    let (arguments, rest): (&[Operand<'t>], _) = match rest {
        [Operand::Group(group), rest @ ..] => (group, rest),
        rest => (&[], rest),
    };
    match rest {
        [] => {}
        [Operand::Name(list)] if matches!(body.scopes.find(list), Some(Name::Prototype)) => {}
        _ => return Err("expected the name of a prototype or of a list of functions".to_owned().into()),
    }
    let returns = results.iter().map(|result| actual(body, result)).collect::<Lowered<Vec<Formal>>>()?;
    let is_register = matches!(body.scopes.find(name), Some(Name::Register { .. }));
    let symbol = if is_register { None } else { body.symbols.get(name) };
    let mut args = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let mut formal = actual(body, argument)?;
        // A number is as wide as its parameter.
        if let (Operand::Number(literal), Some(Symbol::Function(function))) = (argument, symbol) {
            let size =
                body.symbols.signature(function).and_then(|signature| signature.params.get(index).copied());
            let ty = if size == Some(8) { Type::B64 } else { Type::B32 };
            formal =
                Formal { place: Place::Register(body.constant(literal.bits(ty))), size: size.unwrap_or(4) };
        }
        args.push(formal);
    }
    let target = match symbol {
        _ if is_register => Target::Indirect(body.register(name, Type::U64)?),
        Some(Symbol::Function(function)) => {
            check_call(body, name, function, &args, &returns)?;
            Target::Function(function)
        }
        Some(Symbol::Intrinsic(intrinsic)) => {
            let wanted = match intrinsic {
                Intrinsic::Allocate | Intrinsic::Free => 1,
                Intrinsic::Print | Intrinsic::SetConditional => 2,
                Intrinsic::AssertFail => 5,
            };
            if args.len() != wanted {
                return Err(format!("`{name}` takes {wanted} arguments, {} are given", args.len()).into());
            }
            Target::Intrinsic(intrinsic)
        }
        Some(Symbol::Unresolved) => return Err(unresolved(name)),
        _ => return Err(format!("`{name}` is not a function").into()),
    };
    let site = body.function.calls.len() as u32;
    body.function.calls.push(CallSite { target, args, returns });
    body.emit(Inst::Call { site });
    Ok(())
}

fn actual<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>) -> Lowered<Formal> {
    if let Operand::Name(name) = operand
        && let Some(Name::Frame { offset, size, .. }) = body.scopes.find(name)
    {
        return Ok(Formal { place: Place::Frame(*offset), size: *size });
    }
    let ty = body.type_of(operand).unwrap_or(Type::B32);
    if ty == Type::B128 {
        return Err("a register of 128 bits as an argument is not supported by the software driver"
            .to_owned()
            .into());
    }
    let place = Place::Register(body.source(operand, ty)?);
    Ok(Formal { place, size: ty.bytes() })
}

fn check_call(
    body: &Body<'_, '_>,
    name: &str,
    function: u32,
    args: &[Formal],
    returns: &[Formal],
) -> Lowered<()> {
    let Some(signature) = body.symbols.signature(function) else { return Err(LowerError::Unsupported) };
    if signature.is_kernel {
        return Err(format!("`{name}` is a kernel and cannot be called").into());
    }
    for (what, wanted, given) in
        [("arguments", &signature.params, args), ("results", &signature.returns, returns)]
    {
        if wanted.len() != given.len() {
            return Err(format!("`{name}` has {} {what}, {} are given", wanted.len(), given.len()).into());
        }
        for (index, (wanted, given)) in wanted.iter().zip(given).enumerate() {
            if *wanted != given.size {
                let words = format!(
                    "{what} of `{name}`: number {index} has {wanted} bytes, {} are given",
                    given.size
                );
                return Err(words.into());
            }
        }
    }
    Ok(())
}

/// `bar` and `barrier`.
pub(super) fn barrier<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if reader.flag("warp") {
        reader.flag("sync");
        let [mask] = reader.operands()?;
        let mask = body.source(mask, Type::B32)?;
        warp(body, WarpOp::Sync, NONE, NONE, [NONE; 3], mask);
        return Ok(());
    }
    if reader.flag("cluster") {
        return cluster_barrier(body, reader);
    }
    reader.ignore(&["cta", "aligned"]);
    if reader.flag("red") {
        return reducing_barrier(body, reader);
    }
    let op = reader
        .one_of(&[("sync", BarrierOp::Sync), ("arrive", BarrierOp::Arrive)])
        .ok_or(LowerError::Unsupported)?;
    let (id, count) = match reader.all_operands()? {
        [id] => (id, None),
        [id, count] => (id, Some(count)),
        _ => return Err("expected a barrier and at most a number of threads".to_owned().into()),
    };
    let id = body.source(id, Type::U32)?;
    let count = match count {
        Some(count) => body.source(count, Type::U32)?,
        None if op == BarrierOp::Arrive => return Err("expected a number of threads".to_owned().into()),
        None => NONE,
    };
    body.emit(Inst::Barrier { op, d: NONE, id, count, a: NONE });
    Ok(())
}

/// The barrier of a cluster, which is one block here: arriving has no effect, waiting waits for the
/// block. It uses a barrier that no program can name.
fn cluster_barrier<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let waits = reader.one_of(&[("arrive", false), ("wait", true)]).ok_or(LowerError::Unsupported)?;
    reader.ignore(&["release", "relaxed", "acquire", "aligned"]);
    let [] = reader.operands()?;
    if waits {
        let id = body.constant(0);
        body.emit(Inst::Barrier { op: BarrierOp::Cluster, d: NONE, id, count: NONE, a: NONE });
    }
    Ok(())
}

fn reducing_barrier<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let op = reader
        .one_of(&[("popc", BarrierOp::RedPopc), ("and", BarrierOp::RedAnd), ("or", BarrierOp::RedOr)])
        .ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    if (op == BarrierOp::RedPopc) != (ty == Type::U32) || !matches!(ty, Type::U32 | Type::Pred) {
        return Err(LowerError::Unsupported);
    }
    let (d, id, count, a) = match reader.all_operands()? {
        [d, id, a] => (d, id, None, a),
        [d, id, count, a] => (d, id, Some(count), a),
        _ => return Err("expected 3 or 4 operands".to_owned().into()),
    };
    let id = body.source(id, Type::U32)?;
    let count = match count {
        Some(count) => body.source(count, Type::U32)?,
        None => NONE,
    };
    let a = body.source(a, Type::Pred)?;
    let d = body.dest(d, ty)?;
    body.emit(Inst::Barrier { op, d, id, count, a });
    Ok(())
}

/// `d|p`, where the predicate is optional.
fn pair<'t>(body: &mut Body<'_, 't>, operand: &Operand<'t>) -> Lowered<(Reg, Reg)> {
    match operand {
        Operand::Pair(pair) => Ok((body.dest(&pair[0], Type::B32)?, body.dest(&pair[1], Type::Pred)?)),
        other => Ok((body.dest(other, Type::B32)?, NONE)),
    }
}

/// `shfl`.
pub(super) fn shuffle<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    const MODES: &[(&str, WarpOp)] = &[
        ("up", WarpOp::ShuffleUp),
        ("down", WarpOp::ShuffleDown),
        ("bfly", WarpOp::ShuffleXor),
        ("idx", WarpOp::ShuffleIndex),
    ];
    let has_mask = may_sync(body, reader)?;
    let op = reader.one_of(MODES).ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    if ty != Type::B32 {
        return Err(LowerError::Unsupported);
    }
    let (d, a, b, c, mask) = if has_mask {
        let [d, a, b, c, mask] = reader.operands()?;
        (d, a, b, c, body.source(mask, Type::B32)?)
    } else {
        let [d, a, b, c] = reader.operands()?;
        (d, a, b, c, NONE)
    };
    if matches!(d, Operand::Pair(pair) if matches!(pair[0], Operand::Ignore)) {
        return Err("expected a register for the value".to_owned().into());
    }
    let sources = [body.source(a, ty)?, body.source(b, ty)?, body.source(c, ty)?];
    let (d, p) = pair(body, d)?;
    warp(body, op, d, p, sources, mask);
    Ok(())
}

pub(super) fn vote<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    const MODES: &[(&str, WarpOp)] = &[
        ("all", WarpOp::VoteAll),
        ("any", WarpOp::VoteAny),
        ("uni", WarpOp::VoteUniform),
        ("ballot", WarpOp::VoteBallot),
    ];
    let has_mask = may_sync(body, reader)?;
    let op = reader.one_of(MODES).ok_or(LowerError::Unsupported)?;
    let ty = reader.ty()?;
    if ty != if op == WarpOp::VoteBallot { Type::B32 } else { Type::Pred } {
        return Err(LowerError::Unsupported);
    }
    let (d, a, mask) = if has_mask {
        let [d, a, mask] = reader.operands()?;
        (d, a, body.source(mask, Type::B32)?)
    } else {
        let [d, a] = reader.operands()?;
        (d, a, NONE)
    };
    let a = body.source(a, Type::Pred)?;
    let d = body.dest(d, ty)?;
    warp(body, op, d, NONE, [a, NONE, NONE], mask);
    Ok(())
}

/// `match`.
pub(super) fn matching<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let all = reader.one_of(&[("all", true), ("any", false)]).ok_or(LowerError::Unsupported)?;
    must_sync(reader)?;
    let ty = reader.ty()?;
    let op = match (all, ty) {
        (false, Type::B32) => WarpOp::MatchAny32,
        (false, Type::B64) => WarpOp::MatchAny64,
        (true, Type::B32) => WarpOp::MatchAll32,
        (true, Type::B64) => WarpOp::MatchAll64,
        _ => return Err(LowerError::Unsupported),
    };
    let [d, a, mask] = reader.operands()?;
    if !all && matches!(d, Operand::Pair(_)) {
        return Err("only `match.all` has a predicate".to_owned().into());
    }
    let (a, mask) = (body.source(a, ty)?, body.source(mask, Type::B32)?);
    let (d, p) = pair(body, d)?;
    warp(body, op, d, p, [a, NONE, NONE], mask);
    Ok(())
}

/// `redux`.
pub(super) fn reduce<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    must_sync(reader)?;
    const NAMES: &[(&str, &str)] =
        &[("add", "add"), ("min", "min"), ("max", "max"), ("and", "and"), ("or", "or"), ("xor", "xor")];
    let name = reader.one_of(NAMES).ok_or(LowerError::Unsupported)?;
    let (abs, nan) = (reader.flag("abs"), reader.flag("NaN"));
    let ty = reader.ty()?;
    let is_float = ty == Type::F32;
    if (abs || nan) && !is_float || (is_float && !body.symbols.is_at_least((8, 6), 90)) {
        return Err(LowerError::Unsupported);
    }
    let op = match (name, ty) {
        ("add", Type::U32 | Type::S32) => WarpOp::ReduceAdd,
        ("min", Type::U32) => WarpOp::ReduceMinU,
        ("min", Type::S32) => WarpOp::ReduceMinS,
        ("max", Type::U32) => WarpOp::ReduceMaxU,
        ("max", Type::S32) => WarpOp::ReduceMaxS,
        ("and", Type::B32) => WarpOp::ReduceAnd,
        ("or", Type::B32) => WarpOp::ReduceOr,
        ("xor", Type::B32) => WarpOp::ReduceXor,
        ("min" | "max", Type::F32) => WarpOp::ReduceFloat { is_max: name == "max", abs, nan },
        _ => return Err(LowerError::Unsupported),
    };
    let [d, a, mask] = reader.operands()?;
    let (a, mask) = (body.source(a, ty)?, body.source(mask, Type::B32)?);
    let d = body.dest(d, ty)?;
    warp(body, op, d, NONE, [a, NONE, NONE], mask);
    Ok(())
}
