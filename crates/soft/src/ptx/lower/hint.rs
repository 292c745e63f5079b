//! Fences, and hints to the caches, which have no effect here.

use super::body::Body;
use super::memory::{SPACES, skip_hints};
use super::reader::{InstructionReader, LowerError, Lowered};
use crate::ptx::code::{Inst, Space};
use crate::ptx::syntax::{Literal, Operand};
use crate::ptx::types::Type;

const SCOPES: &[(&str, ())] = &[("cta", ()), ("cluster", ()), ("gpu", ()), ("sys", ())];

/// `fence` and `membar`. Each of them is the strongest one here.
pub(super) fn fence<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if reader.flag("proxy") {
        return proxy_fence(body, reader);
    }
    let is_fine = if reader.opcode() == "membar" {
        reader.one_of(&[("cta", ()), ("gl", ()), ("sys", ())]).is_some()
    } else if reader.flag("mbarrier_init") {
        reader.flag("release") && reader.flag("cluster")
    } else {
        // The order may be left out, the scope may not.
        reader.one_of(&[("sc", ()), ("acq_rel", ()), ("acquire", ()), ("release", ())]);
        restriction(body, reader);
        reader.one_of(SCOPES).is_some()
    };
    if !is_fine {
        return Err(LowerError::Unsupported);
    }
    let [] = reader.operands()?;
    body.emit(Inst::Fence);
    Ok(())
}

/// Takes what the order is restricted to, which came with PTX 8.6.
fn restriction(body: &Body<'_, '_>, reader: &mut InstructionReader<'_, '_>) {
    if body.symbols.is_at_least((8, 6), 90) {
        reader.ignore_prefixes(&["sync_restrict::", "op_restrict::"]);
    }
}

fn proxy_fence<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    if reader.flag("tensormap::generic") {
        let acquires = match reader.one_of(&[("acquire", true), ("release", false)]) {
            Some(acquires) => acquires,
            None => return Err(LowerError::Unsupported),
        };
        reader.one_of(SCOPES).ok_or(LowerError::Unsupported)?;
        if acquires {
            let [at, size] = reader.operands()?;
            body.address(at, Space::Generic, 1)?;
            number(size, &[128])?;
        } else {
            let [] = reader.operands()?;
        }
    } else if reader.flag("async::generic") {
        reader.one_of(&[("acquire", ()), ("release", ())]).ok_or(LowerError::Unsupported)?;
        restriction(body, reader);
        reader.one_of(SCOPES).ok_or(LowerError::Unsupported)?;
        let [] = reader.operands()?;
    } else {
        let is_async = reader.one_of(&[("alias", false), ("async", true)]).ok_or(LowerError::Unsupported)?;
        if is_async {
            reader.one_of(&[("global", ()), ("shared::cta", ()), ("shared::cluster", ())]);
        }
        let [] = reader.operands()?;
    }
    body.emit(Inst::Fence);
    Ok(())
}

/// A number that must be one of those.
fn number(operand: &Operand<'_>, allowed: &[u64]) -> Lowered<()> {
    match operand {
        Operand::Number(Literal::Int(value)) if allowed.contains(value) => Ok(()),
        _ => Err(format!("expected one of the numbers {allowed:?}").into()),
    }
}

/// `prefetch`, `prefetchu`.
pub(super) fn prefetch<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let space = reader.one_of(SPACES);
    let uniform = reader.opcode() == "prefetchu";
    let is_fine = match space {
        None if uniform => reader.flag("L1"),
        _ if uniform => false,
        _ if reader.flag("tensormap") => !matches!(space, Some(Space::Shared | Space::Local)),
        None | Some(Space::Global)
            if reader.one_of(&[("L2::evict_last", ()), ("L2::evict_normal", ())]).is_some() =>
        {
            true
        }
        None | Some(Space::Global | Space::Local) => reader.one_of(&[("L1", ()), ("L2", ())]).is_some(),
        _ => false,
    };
    if !is_fine {
        return Err(LowerError::Unsupported);
    }
    let [at] = reader.operands()?;
    body.address(at, space.unwrap_or(Space::Generic), 1)?;
    Ok(())
}

/// `applypriority`, `discard`: what a discarded line holds is undefined, here what it held.
pub(super) fn line<'t>(body: &mut Body<'_, 't>, reader: &mut InstructionReader<'_, 't>) -> Lowered<()> {
    let name = if reader.opcode() == "discard" { "L2" } else { "L2::evict_normal" };
    let is_global = reader.flag("global");
    if !reader.flag(name) {
        return Err(LowerError::Unsupported);
    }
    let [at, size] = reader.operands()?;
    body.address(at, if is_global { Space::Global } else { Space::Generic }, 128)?;
    number(size, &[128])
}

/// `createpolicy`. Policies have no effect here.
pub(super) fn create_policy<'t>(
    body: &mut Body<'_, 't>,
    reader: &mut InstructionReader<'_, 't>,
) -> Lowered<()> {
    let kind =
        reader.one_of(&[("fractional", 0), ("range", 1), ("cvt", 2)]).ok_or(LowerError::Unsupported)?;
    let mut priorities = 0;
    skip_hints_counted(reader, &mut priorities);
    let is_fine = match kind {
        0 => priorities > 0,
        1 => {
            reader.flag("global");
            priorities > 0
        }
        _ => reader.flag("L2") && priorities == 0,
    };
    if !is_fine || reader.ty()? != Type::B64 {
        return Err(LowerError::Unsupported);
    }
    let d = match (kind, reader.all_operands()?) {
        (0, [d]) => d,
        (0, [d, fraction]) => {
            body.source(fraction, Type::F32)?;
            d
        }
        (1, [d, at, first, total]) => {
            body.address(at, Space::Generic, 1)?;
            body.source(first, Type::B32)?;
            body.source(total, Type::B32)?;
            d
        }
        (2, [d, property]) => {
            body.source(property, Type::B64)?;
            d
        }
        (_, other) => return Err(format!("{} operands do not fit", other.len()).into()),
    };
    let (a, d) = (body.constant(0), body.dest(d, Type::B64)?);
    body.emit(Inst::Move { d, a });
    Ok(())
}

/// Takes the priorities of a policy and counts them.
fn skip_hints_counted(reader: &mut InstructionReader<'_, '_>, count: &mut u32) {
    const PRIORITIES: &[(&str, ())] = &[
        ("L2::evict_last", ()),
        ("L2::evict_normal", ()),
        ("L2::evict_first", ()),
        ("L2::evict_unchanged", ()),
    ];
    while reader.one_of(PRIORITIES).is_some() {
        *count += 1;
    }
    skip_hints(reader);
}
