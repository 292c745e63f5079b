//! `mbarrier`: barriers in shared memory.

use super::body::Body;
use super::reader::{InstructionReader, LowerError, Lowered};
use super::transfer::{emit, pointer};
use crate::ptx::code::transfer::{Arrival, AsyncInst, AsyncOp, MbarrierOp};
use crate::ptx::code::{Inst, NONE, Space};
use crate::ptx::math::mbarrier::pending_count;
use crate::ptx::syntax::Operand;
use crate::ptx::types::Type;

const SPACES: &[(&str, Space)] = &[
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    // A cluster is one block.
    ("shared::cluster", Space::Shared),
];

/// The bytes of a barrier.
const BYTES: u32 = 8;

/// `mbarrier` and all its operations.
pub(super) fn instruction<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    if reader.flag("pending_count") {
        reader.flag("b64");
        let [d, state] = reader.operands()?;
        let (a, d) = (body.source(state, Type::B64)?, body.dest(d, Type::B32)?);
        body.emit(Inst::Unary { f: pending_count, d, a });
        return Ok(());
    }
    // Every operation is as strong as `.acq_rel` here.
    reader.ignore(&["relaxed", "release", "acquire", "cta", "cluster"]);
    let space = reader.one_of(SPACES).unwrap_or(Space::Generic);
    if reader.flag("init") {
        return with_count(body, reader, space, MbarrierOp::Init);
    }
    if reader.flag("inval") {
        reader.flag("b64");
        let [address] = reader.operands()?;
        let barrier = pointer(body, address, space, BYTES)?;
        emit(body, AsyncInst { barrier, ..AsyncInst::new(AsyncOp::Mbarrier(MbarrierOp::Invalidate)) });
        return Ok(());
    }
    if let Some(drops) = reader.one_of(&[("arrive", false), ("arrive_drop", true)]) {
        return arrive(body, reader, space, drops);
    }
    if reader.flag("test_wait") || reader.flag("try_wait") {
        return wait(body, reader, space);
    }
    if reader.flag("expect_tx") {
        return with_count(body, reader, space, MbarrierOp::ExpectBytes);
    }
    if reader.flag("complete_tx") {
        return with_count(body, reader, space, MbarrierOp::CompleteBytes);
    }
    Err(LowerError::Unsupported)
}

/// An operation with an address and a number.
fn with_count<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    space: Space,
    op: MbarrierOp,
) -> Lowered<()> {
    if !reader.flag("b64") {
        return Err(LowerError::Unsupported);
    }
    let [address, count] = reader.operands()?;
    let barrier = pointer(body, address, space, BYTES)?;
    let size = body.source(count, Type::B32)?;
    emit(body, AsyncInst { barrier, size, ..AsyncInst::new(AsyncOp::Mbarrier(op)) });
    Ok(())
}

fn arrive<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
    space: Space,
    drops: bool,
) -> Lowered<()> {
    let expects_bytes = reader.flag("expect_tx");
    let may_complete = !reader.flag("noComplete");
    if !reader.flag("b64") || (expects_bytes && !may_complete) {
        return Err(LowerError::Unsupported);
    }
    // The state may be left out.
    let (state, rest) = match reader.all_operands()? {
        [address @ Operand::Address { .. }, rest @ ..] => (None, [Some(address), rest.first()]),
        [state, address, rest @ ..] => (Some(state), [Some(address), rest.first()]),
        _ => (None, [None, None]),
    };
    let [Some(address), count] = rest else { return Err("expected an address".to_owned().into()) };
    let size = match count {
        Some(count) => body.source(count, Type::B32)?,
        None if expects_bytes => return Err("expected a number of bytes".to_owned().into()),
        None => NONE,
    };
    let barrier = pointer(body, address, space, BYTES)?;
    let d = match state {
        Some(state) => body.dest(state, Type::B64)?,
        None => NONE,
    };
    let op = MbarrierOp::Arrive(Arrival { drops, expects_bytes, may_complete });
    emit(body, AsyncInst { barrier, d, size, ..AsyncInst::new(AsyncOp::Mbarrier(op)) });
    Ok(())
}

fn wait<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>, space: Space) -> Lowered<()> {
    let by_parity = reader.flag("parity");
    if !reader.flag("b64") {
        return Err(LowerError::Unsupported);
    }
    let (d, address, phase) = match reader.all_operands()? {
        [d, address, phase] => (d, address, phase),
        // A thread that waits lets others run, for as long as they like.
        [d, address, phase, hint] if reader.has("try_wait") => {
            body.source(hint, Type::B32)?;
            (d, address, phase)
        }
        _ => return Err("expected a predicate, an address and a phase".to_owned().into()),
    };
    let size = body.source(phase, if by_parity { Type::B32 } else { Type::B64 })?;
    let barrier = pointer(body, address, space, BYTES)?;
    let d = body.dest(d, Type::Pred)?;
    let op = AsyncOp::Mbarrier(MbarrierOp::Wait { by_parity });
    emit(body, AsyncInst { barrier, d, size, ..AsyncInst::new(op) });
    Ok(())
}
