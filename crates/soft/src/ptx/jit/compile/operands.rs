//! The registers that an instruction reads and writes.

use crate::ptx::code::matrix::{MatrixInst, MatrixOp};
use crate::ptx::code::texture::{TextureInst, TextureOp};
use crate::ptx::code::transfer::{AsyncInst, AsyncOp};
use crate::ptx::code::{Function, Inst, NONE, Op128, Place, Reg, Target, WarpOp};

/// What an instruction does with a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Reads,
    Writes,
    /// Writes it or leaves it alone, so that its old value stays alive.
    MayWrite,
}

/// The function that takes the registers.
type Each<'a> = &'a mut dyn FnMut(Use, Reg);

/// Calls `each` with every register of an instruction, without [`NONE`] where an operand may be
/// missing. Each instruction is named here: one that writes a register unseen would change a
/// constant, which native code takes from the template.
pub(super) fn operands(inst: &Inst, function: &Function, each: Each<'_>) {
    match *inst {
        Inst::Unary { d, a, .. }
        | Inst::Convert { d, a, .. }
        | Inst::Move { d, a }
        | Inst::IsSpace { d, a, .. }
        | Inst::StackAllocate { d, size: a, .. } => computes(each, d, &[a]),
        Inst::Binary { d, a, b, .. }
        | Inst::Add32 { d, a, b }
        | Inst::Add64 { d, a, b }
        | Inst::Mul32 { d, a, b }
        | Inst::And { d, a, b }
        | Inst::AddF32 { d, a, b }
        | Inst::MulF32 { d, a, b }
        | Inst::Carry { d, a, b, .. } => computes(each, d, &[a, b]),
        Inst::Ternary { d, a, b, c, .. } | Inst::Mad32 { d, a, b, c } | Inst::Select { d, a, b, c } => {
            computes(each, d, &[a, b, c]);
        }
        Inst::Quaternary { d, a, b, c, e, .. } => computes(each, d, &[a, b, c, e]),
        Inst::Special { d, .. }
        | Inst::GlobalAddress { d, .. }
        | Inst::SharedAddress { d, .. }
        | Inst::FrameAddress { d, .. }
        | Inst::StackSave { d } => computes(each, d, &[]),
        Inst::JumpIf { p: a, .. }
        | Inst::JumpUnless { p: a, .. }
        | Inst::Switch { index: a, .. }
        | Inst::Sleep { nanoseconds: a }
        | Inst::Poll { a }
        | Inst::StackRestore { a } => each(Use::Reads, a),
        Inst::Jump { .. } | Inst::Exit | Inst::Trap | Inst::GridWait | Inst::Fence => {}
        Inst::Call { site } => call(function, site, each),
        Inst::Return => registers(function.returns.iter().map(|result| result.place), Use::Reads, each),
        Inst::Load { d, base, access, .. } => {
            present(each, Use::Reads, [base]);
            elements(function, d, access.count).for_each(|d| each(Use::Writes, d));
        }
        Inst::Store { a, base, access, .. } => {
            present(each, Use::Reads, [base]);
            elements(function, a, access.count).for_each(|a| each(Use::Reads, a));
        }
        Inst::Atomic { d, base, b, c, .. } => {
            present(each, Use::Reads, [base, b, c]);
            present(each, Use::Writes, [d]);
        }
        Inst::Atomic128 { op, d, base, b, c, .. } => {
            let sources = if op == Op128::Load { [NONE; 2] } else { [b, c] };
            present(each, Use::Reads, [base]);
            pairs(each, Use::Reads, sources);
            pairs(each, Use::Writes, [d]);
        }
        Inst::CheckAligned { base, .. } => present(each, Use::Reads, [base]),
        Inst::Barrier { d, id, count, a, .. } => {
            present(each, Use::Reads, [id, count, a]);
            present(each, Use::MayWrite, [d]);
        }
        Inst::Warp { op, d, p, a, b, c, mask } => {
            present(each, Use::Reads, [a, b, c, mask]);
            // The group sets both when it is complete.
            present(each, Use::Writes, [d, p]);
            if let WarpOp::Matrix(number) = op
                && let Some(inst) = function.matrices.get(number as usize)
            {
                matrix(inst, each);
            }
        }
        Inst::Async { index } => {
            if let Some(inst) = function.asyncs.get(index as usize) {
                asynchronous(inst, function, each);
            }
        }
        Inst::Texture { index } => {
            if let Some(inst) = function.textures.get(index as usize) {
                texture(inst, function, each);
            }
        }
    }
}

fn computes(each: Each<'_>, d: Reg, sources: &[Reg]) {
    sources.iter().for_each(|&source| each(Use::Reads, source));
    each(Use::Writes, d);
}

/// The registers that are there.
fn present<const N: usize>(each: Each<'_>, how: Use, registers: [Reg; N]) {
    registers.into_iter().filter(|&register| register != NONE).for_each(|register| each(how, register));
}

/// Registers that are the first of two.
fn pairs<const N: usize>(each: Each<'_>, how: Use, registers: [Reg; N]) {
    for register in registers.into_iter().filter(|&register| register != NONE) {
        each(how, register);
        each(how, register.saturating_add(1));
    }
}

fn registers(places: impl Iterator<Item = Place>, how: Use, each: Each<'_>) {
    for place in places {
        if let Place::Register(register) = place {
            each(how, register);
        }
    }
}

fn call(function: &Function, site: u32, each: Each<'_>) {
    let Some(call) = function.calls.get(site as usize) else { return };
    if let Target::Indirect(register) = call.target {
        each(Use::Reads, register);
    }
    registers(call.args.iter().map(|arg| arg.place), Use::Reads, each);
    registers(call.returns.iter().map(|result| result.place), Use::MayWrite, each);
}

fn matrix(inst: &MatrixInst, each: Each<'_>) {
    let adds = if let MatrixOp::GroupProduct(how) = inst.op { how.adds } else { NONE };
    present(each, Use::Reads, [inst.memory.base, inst.memory.stride, adds]);
    for &register in inst.a.iter().chain(&inst.b).chain(&inst.c) {
        present(each, Use::Reads, [register]);
    }
    inst.d.iter().for_each(|&register| present(each, Use::MayWrite, [register]));
}

fn asynchronous(inst: &AsyncInst, function: &Function, each: Each<'_>) {
    present(each, Use::Reads, [inst.to.base, inst.from.base, inst.barrier.base, inst.size, inst.ignores]);
    present(each, Use::MayWrite, [inst.d]);
    let (list, count) = match inst.op {
        AsyncOp::TensorLoad { rank, list } | AsyncOp::TensorStore { rank, list, .. } => (list, rank),
        AsyncOp::Send { list, count, .. } => (list, count),
        _ => return,
    };
    listed(function, list, count.into()).for_each(|register| each(Use::Reads, register));
}

fn texture(inst: &TextureInst, function: &Function, each: Each<'_>) {
    let coordinates = inst.geometry.coordinates();
    present(each, Use::Reads, [inst.object, inst.layer]);
    if !matches!(inst.op, TextureOp::QueryTexture(_) | TextureOp::QuerySurface(_)) {
        for first in [inst.at, inst.offsets].into_iter().filter(|&first| first != NONE) {
            listed(function, first, coordinates).for_each(|register| present(each, Use::Reads, [register]));
        }
    }
    let is_store =
        matches!(inst.op, TextureOp::Store { .. } | TextureOp::StoreTexel { .. } | TextureOp::Reduce { .. });
    let how = if is_store { Use::Reads } else { Use::Writes };
    listed(function, inst.values, inst.count.into()).for_each(|register| present(each, how, [register]));
}

/// So many registers in the lists.
fn listed(function: &Function, first: u32, count: usize) -> impl Iterator<Item = Reg> + '_ {
    function.lists.iter().copied().skip(first as usize).take(count)
}

/// The registers of an access: one, or those in the lists.
pub(super) fn elements(function: &Function, register: Reg, count: u8) -> impl Iterator<Item = Reg> + '_ {
    let at = register as usize;
    let list = if count == 1 { &[] } else { function.lists.get(at..at + usize::from(count)).unwrap_or(&[]) };
    let one = (count == 1).then_some(register);
    one.into_iter().chain(list.iter().copied())
}
