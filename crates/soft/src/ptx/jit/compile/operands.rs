//! The registers that an instruction reads and writes.

use crate::ptx::code::{Function, Inst, NONE, Place, Reg, Target, WarpOp};

/// Calls `read` and `write` with the registers of an instruction, without [`NONE`]. False if the
/// instruction is unknown here: then it may read and write every register.
///
/// A register whose write is left out only stays alive longer. So results that the instruction may
/// leave alone, such as those of barriers, are no writes.
#[allow(unreachable_patterns, reason = "instructions that are added to the interpreter need nothing here")]
pub(super) fn operands(
    inst: &Inst,
    function: &Function,
    read: &mut dyn FnMut(Reg),
    write: &mut dyn FnMut(Reg),
) -> bool {
    match *inst {
        Inst::Unary { d, a, .. }
        | Inst::Convert { d, a, .. }
        | Inst::Move { d, a }
        | Inst::IsSpace { d, a, .. } => {
            read(a);
            write(d);
        }
        Inst::Binary { d, a, b, .. }
        | Inst::Add32 { d, a, b }
        | Inst::Add64 { d, a, b }
        | Inst::Mul32 { d, a, b }
        | Inst::And { d, a, b }
        | Inst::AddF32 { d, a, b }
        | Inst::MulF32 { d, a, b }
        | Inst::Carry { d, a, b, .. } => {
            [a, b].into_iter().for_each(read);
            write(d);
        }
        Inst::Ternary { d, a, b, c, .. } | Inst::Mad32 { d, a, b, c } | Inst::Select { d, a, b, c } => {
            [a, b, c].into_iter().for_each(read);
            write(d);
        }
        Inst::Quaternary { d, a, b, c, e, .. } => {
            [a, b, c, e].into_iter().for_each(read);
            write(d);
        }
        Inst::Special { d, .. }
        | Inst::GlobalAddress { d, .. }
        | Inst::SharedAddress { d, .. }
        | Inst::FrameAddress { d, .. } => write(d),
        Inst::JumpIf { p, .. } | Inst::JumpUnless { p, .. } => read(p),
        Inst::Switch { index, .. } => read(index),
        Inst::Jump { .. } | Inst::Exit | Inst::Trap | Inst::GridWait | Inst::Fence => {}
        Inst::Call { site } => {
            let Some(call) = function.calls.get(site as usize) else { return false };
            if let Target::Indirect(register) = call.target {
                read(register);
            }
            for arg in &call.args {
                if let Place::Register(register) = arg.place {
                    read(register);
                }
            }
        }
        Inst::Return => {
            for result in &function.returns {
                if let Place::Register(register) = result.place {
                    read(register);
                }
            }
        }
        Inst::Load { d, base, access, .. } => {
            present(base, read);
            elements(function, d, access.count).for_each(write);
        }
        Inst::Store { a, base, access, .. } => {
            present(base, read);
            elements(function, a, access.count).for_each(read);
        }
        Inst::Atomic { d, base, b, c, .. } => {
            [base, b, c].into_iter().for_each(|register| present(register, read));
            present(d, write);
        }
        Inst::Barrier { id, count, a, .. } => {
            [id, count, a].into_iter().for_each(|register| present(register, read));
        }
        Inst::Sleep { nanoseconds } => read(nanoseconds),
        Inst::Poll { a } => read(a),
        // Its registers are in the list of matrix instructions.
        Inst::Warp { op: WarpOp::Matrix(_), .. } => return false,
        Inst::Warp { a, b, c, mask, .. } => {
            [a, b, c, mask].into_iter().for_each(|register| present(register, read));
        }
        _ => return false,
    }
    true
}

fn present(register: Reg, each: &mut dyn FnMut(Reg)) {
    if register != NONE {
        each(register);
    }
}

/// The registers of an access: one, or those in the lists.
pub(super) fn elements(function: &Function, register: Reg, count: u8) -> impl Iterator<Item = Reg> + '_ {
    let at = register as usize;
    let list = if count == 1 { &[] } else { function.lists.get(at..at + usize::from(count)).unwrap_or(&[]) };
    let one = (count == 1).then_some(register);
    one.into_iter().chain(list.iter().copied())
}
