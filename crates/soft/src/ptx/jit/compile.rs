//! From a function to machine code.

mod access;
mod arithmetic;
mod flow;
mod known;
mod operands;
mod special;
mod translate;

use std::sync::OnceLock;

use cranelift_codegen::Context as Compiler;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function as Code, UserFuncName};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::Native;
use super::context::Helpers;
use super::machine::Machine;
use crate::ptx::code::{Function, Inst, NONE, Program, Space};
use flow::Flow;
use operands::Use;
use translate::Translator;

/// Compiles a function; `None` if it has something that native code cannot do.
pub(super) fn compile(program: &Program, index: u32, helpers: Helpers) -> Option<Native> {
    let function = program.functions.get(index as usize)?;
    let registers = function.template.len();
    if !is_sound(function, program) {
        return None;
    }
    let flow = Flow::new(function, &translate::stops)?;
    let isa = isa()?;
    let mut code = Code::with_name_signature(UserFuncName::default(), translate::signature());
    let mut builder = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut code, &mut builder);
    let (builder, slots, entries) = Translator::translate(builder, function, index, &flow, helpers)?;
    builder.finalize(isa.frontend_config());
    let mut compiler = Compiler::for_function(code);
    let compiled = compiler.compile(&*isa, &mut ControlPlane::default()).ok()?;
    if !compiled.buffer.relocs().is_empty() {
        return None;
    }
    let machine = Machine::new(compiled.code_buffer())?;
    let mut numbers = vec![u32::MAX; function.code.len()];
    for (number, pc) in entries.into_iter().enumerate() {
        *numbers.get_mut(pc)? = number as u32;
    }
    Some(Native { machine, entries: numbers, registers, params: params(function), slots, first_slot: 0 })
}

/// Whether every function of `math` that it uses is known.
#[cfg(test)]
pub(super) fn is_translated(function: &Function) -> bool {
    function.code.iter().all(|inst| match *inst {
        Inst::Unary { f, .. } => known::known(f as usize).is_some(),
        Inst::Binary { f, .. } => known::known(f as usize).is_some(),
        Inst::Ternary { f, .. } => known::known(f as usize).is_some(),
        Inst::Quaternary { f, .. } => known::known(f as usize).is_some(),
        _ => true,
    })
}

/// The bytes of parameters that a function reads.
fn params(function: &Function) -> usize {
    let ends = function.code.iter().filter_map(|inst| match inst {
        Inst::Load { offset, access, .. } if access.space == Space::Entry => {
            Some((i64::from(*offset).max(0) + i64::from(access.bytes())) as usize)
        }
        _ => None,
    });
    ends.max().unwrap_or(0)
}

/// Whether all registers and variables exist, and constants are never written.
fn is_sound(function: &Function, program: &Program) -> bool {
    let len = function.template.len();
    let mut is_constant = vec![false; len];
    for &constant in &function.constants {
        match is_constant.get_mut(constant as usize) {
            Some(slot) => *slot = true,
            None => return false,
        }
    }
    let mut is_sound = len <= 1 << 20;
    for inst in &function.code {
        operands::operands(inst, function, &mut |how, register| {
            let constant = is_constant.get(register as usize);
            is_sound &= constant.is_some_and(|constant| how == Use::Reads || !constant);
        });
        is_sound &= match inst {
            Inst::Load { offset, access, base, .. } if access.space == Space::Entry => {
                *offset >= 0 && *base == NONE
            }
            Inst::GlobalAddress { index, .. } => (*index as usize) < program.globals.len(),
            Inst::SharedAddress { index, .. } => (*index as usize) < program.shared.len(),
            _ => true,
        };
    }
    is_sound
}

/// The processor, as Cranelift describes it.
fn isa() -> Option<OwnedTargetIsa> {
    static ISA: OnceLock<Option<OwnedTargetIsa>> = OnceLock::new();
    let make = || {
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").ok()?;
        flags.set("unwind_info", "false").ok()?;
        flags.set("enable_probestack", "true").ok()?;
        flags.set("probestack_strategy", "inline").ok()?;
        flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }).ok()?;
        cranelift_native::builder().ok()?.finish(Flags::new(flags)).ok()
    };
    ISA.get_or_init(make).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::code::matrix::{MatrixInst, MatrixMemory, MatrixOp};
    use crate::ptx::code::texture::{Query, TextureInst, TextureOp};
    use crate::ptx::code::transfer::{AsyncInst, AsyncOp};
    use crate::ptx::code::{BarrierOp, CallSite, Formal, Op128, Place, Target, WarpOp};

    /// A function of one instruction, whose register 1 is a constant.
    fn function(inst: Inst) -> Function {
        let constants = vec![1];
        Function { code: vec![inst, Inst::Exit], template: vec![0; 4], constants, ..Function::default() }
    }

    fn warp(op: WarpOp, d: u32, p: u32) -> Inst {
        Inst::Warp { op, d, p, a: 0, b: NONE, c: NONE, mask: NONE }
    }

    #[test]
    fn functions_that_write_constants_are_not_sound() {
        let program = Program::default();
        let check = |function: &Function, wanted: bool| {
            assert_eq!(is_sound(function, &program), wanted, "{function:?}");
        };
        for d in 0..5 {
            // Register 4 does not exist.
            let wanted = d != 1 && d < 4;
            let op = BarrierOp::RedPopc;
            for inst in [
                warp(WarpOp::VoteBallot, d, NONE),
                warp(WarpOp::ShuffleXor, 0, d),
                Inst::Barrier { op, d, id: 0, count: NONE, a: 0 },
                Inst::Move { d, a: 0 },
                Inst::StackSave { d },
                Inst::StackAllocate { d, size: 0, align: 16 },
            ] {
                check(&function(inst), wanted);
            }
            let returns = vec![Formal { place: Place::Register(d), size: 4 }];
            let mut called = function(Inst::Call { site: 0 });
            called.calls.push(CallSite { target: Target::Function(0), args: Vec::new(), returns });
            check(&called, wanted);
            let mut copied = function(Inst::Async { index: 0 });
            copied.asyncs.push(AsyncInst { d, ..AsyncInst::new(AsyncOp::CommitBulk) });
            check(&copied, wanted);
            let mut asked = function(Inst::Texture { index: 0 });
            let query = TextureInst::new(TextureOp::QueryTexture(Query::Width), 0);
            asked.textures.push(TextureInst { count: 1, ..query });
            asked.lists.push(d);
            check(&asked, wanted);
            let mut loaded = function(warp(WarpOp::Matrix(0), NONE, NONE));
            let memory = MatrixMemory { space: Space::Shared, base: 0, offset: 0, stride: NONE };
            let (a, b, c) = (Vec::new(), Vec::new(), Vec::new());
            let op = MatrixOp::Load { is_transposed: false };
            loaded.matrices.push(MatrixInst { op, memory, d: vec![d], a, b, c });
            check(&loaded, wanted);
        }
        // The second of a pair.
        let pair = |d| Inst::Atomic128 {
            op: Op128::Load,
            space: Space::Global,
            d,
            base: 0,
            offset: 0,
            b: NONE,
            c: NONE,
        };
        for (d, wanted) in [(0, false), (1, false), (2, true), (3, false)] {
            check(&function(pair(d)), wanted);
        }
    }
}
