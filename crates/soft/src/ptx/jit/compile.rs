//! From a function to machine code.

mod access;
mod arithmetic;
mod flow;
mod known;
mod operands;
mod translate;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

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
use translate::Translator;

/// Compiles a function; `None` if it has something that native code cannot do.
pub(super) fn compile(program: &Program, index: u32, helpers: Helpers, slots: &AtomicU32) -> Option<Native> {
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
    // Other functions may be compiled at the same time, so the slots are taken before.
    let accesses = function.code.iter().filter(|inst| uses_slot(inst)).count() as u32;
    let first_slot = slots.fetch_add(accesses, Ordering::AcqRel);
    let (builder, end, entries) =
        Translator::translate(builder, function, index, &flow, helpers, first_slot)?;
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
    Some(Native { machine, entries: numbers, registers, params: params(function), slots: end as usize })
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

fn uses_slot(inst: &Inst) -> bool {
    match inst {
        Inst::Load { access, .. } | Inst::Store { access, .. } => {
            matches!(access.space, Space::Global | Space::Generic)
        }
        _ => false,
    }
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
    let (mut exist, mut are_kept) = (true, true);
    for inst in &function.code {
        let mut all_exist = true;
        let mut read = |register: u32| all_exist &= (register as usize) < len;
        let mut write = |register: u32| {
            are_kept &=
                register == NONE || is_constant.get(register as usize).is_some_and(|constant| !constant);
        };
        operands::operands(inst, function, &mut read, &mut write);
        exist &= all_exist;
        exist &= match inst {
            Inst::Load { offset, access, base, .. } if access.space == Space::Entry => {
                *offset >= 0 && *base == NONE
            }
            Inst::GlobalAddress { index, .. } => (*index as usize) < program.globals.len(),
            Inst::SharedAddress { index, .. } => (*index as usize) < program.shared.len(),
            _ => true,
        };
    }
    exist && are_kept && len <= 1 << 20
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
