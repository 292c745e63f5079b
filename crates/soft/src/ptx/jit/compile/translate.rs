//! The translation of a function to Cranelift's intermediate code: registers, lines and exits.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, InstBuilder, JumpTableData, MemFlagsData, SigRef, Signature, Type, Value,
    types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

use super::flow::{End, Flow, Set};
use super::special;
use crate::ptx::code::{Function, Inst, Reg};
use crate::ptx::jit::context::{Context, Helpers, Status};

/// A function that is being translated.
pub(super) struct Translator<'a, 'b> {
    pub(super) builder: FunctionBuilder<'b>,
    pub(super) function: &'a Function,
    /// Its index in the program.
    pub(super) index: u32,
    pub(super) helpers: Helpers,
    flow: &'a Flow,
    /// The variable of each register, or `None` for a constant.
    variables: Vec<Option<Variable>>,
    pub(super) context: Value,
    registers: Value,
    steps: Variable,
    blocks: Vec<Block>,
    /// Returns with a fault behind the instruction of its parameter.
    faulted: Block,
    /// The values of registers in this line as single-precision numbers and as truths.
    pub(super) singles: HashMap<Reg, Value>,
    pub(super) truths: HashMap<Reg, Value>,
    signatures: HashMap<usize, SigRef>,
    /// The slots taken so far.
    pub(super) slots: u32,
    /// Where the line starts that is being translated.
    line_start: usize,
}

/// Whether the interpreter has to execute an instruction.
#[allow(unreachable_patterns, reason = "instructions that are added to the interpreter need nothing here")]
pub(super) fn stops(inst: &Inst) -> bool {
    match inst {
        Inst::Unary { .. }
        | Inst::Binary { .. }
        | Inst::Ternary { .. }
        | Inst::Quaternary { .. }
        | Inst::Convert { .. }
        | Inst::Move { .. }
        | Inst::Add32 { .. }
        | Inst::Add64 { .. }
        | Inst::Mul32 { .. }
        | Inst::Mad32 { .. }
        | Inst::And { .. }
        | Inst::AddF32 { .. }
        | Inst::MulF32 { .. }
        | Inst::Select { .. }
        | Inst::GlobalAddress { .. }
        | Inst::SharedAddress { .. }
        | Inst::FrameAddress { .. }
        | Inst::Jump { .. }
        | Inst::JumpIf { .. }
        | Inst::JumpUnless { .. }
        | Inst::Return
        | Inst::Exit
        | Inst::Fence
        | Inst::Load { .. }
        | Inst::Store { .. }
        | Inst::Atomic { .. } => false,
        Inst::Special { which, .. } => special::stops(*which),
        _ => true,
    }
}

/// The signature of native code: context, registers, entry; returns a [`Status`].
pub(super) fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = [types::I64, types::I64, types::I32].map(AbiParam::new).to_vec();
    signature.returns = vec![AbiParam::new(types::I32)];
    signature
}

/// Fields of the context that stay the same while native code runs.
pub(super) fn fixed() -> MemFlagsData {
    MemFlagsData::trusted().with_readonly().with_can_move()
}

impl<'a, 'b> Translator<'a, 'b> {
    /// Translates the function; returns the number of slots that it uses, and the entries in the
    /// order of their numbers.
    pub(super) fn translate(
        mut builder: FunctionBuilder<'b>,
        function: &'a Function,
        index: u32,
        flow: &'a Flow,
        helpers: Helpers,
    ) -> Option<(FunctionBuilder<'b>, u32, Vec<usize>)> {
        let first = builder.create_block();
        builder.append_block_params_for_function_params(first);
        builder.switch_to_block(first);
        let [context, registers, entry] = *builder.block_params(first) else { return None };
        let mut is_constant = vec![false; function.template.len()];
        for &constant in &function.constants {
            *is_constant.get_mut(constant as usize)? = true;
        }
        let variables =
            is_constant.iter().map(|is_constant| (!is_constant).then(|| builder.declare_var(types::I64)));
        let variables = variables.collect();
        let steps = builder.declare_var(types::I64);
        let blocks = flow.lines.iter().map(|_| builder.create_block()).collect();
        let faulted = builder.create_block();
        let mut translator = Translator {
            builder,
            function,
            index,
            helpers,
            flow,
            variables,
            context,
            registers,
            steps,
            blocks,
            faulted,
            singles: HashMap::new(),
            truths: HashMap::new(),
            signatures: HashMap::new(),
            slots: 0,
            line_start: 0,
        };
        let entries = translator.enter(entry);
        for line in 0..flow.lines.len() {
            translator.line(line)?;
        }
        translator.fault_exit();
        translator.builder.seal_all_blocks();
        Some((translator.builder, translator.slots, entries))
    }

    /// Jumps to the line of the entry's number, with its registers loaded.
    fn enter(&mut self, entry: Value) -> Vec<usize> {
        let flow = self.flow;
        let lines: Vec<usize> = (0..flow.lines.len()).filter(|&line| flow.lines[line].is_entry).collect();
        let steps = self.field(types::I64, offset_of!(Context, steps));
        self.builder.def_var(self.steps, steps);
        let stubs: Vec<Block> = lines.iter().map(|_| self.builder.create_block()).collect();
        if let [only] = stubs[..] {
            self.builder.ins().jump(only, &[]);
        } else {
            let calls: Vec<_> =
                stubs.iter().map(|&stub| self.builder.func.dfg.block_call(stub, &[])).collect();
            let table = JumpTableData::new(calls[0], &calls);
            let table = self.builder.create_jump_table(table);
            self.builder.ins().br_table(entry, table);
        }
        for (&line, &stub) in lines.iter().zip(&stubs) {
            self.builder.switch_to_block(stub);
            for register in flow.lines[line].alive.iter() {
                if let Some(variable) = self.variables[register as usize] {
                    let flags = MemFlagsData::trusted();
                    let offset = register as i32 * 8;
                    let value = self.builder.ins().load(types::I64, flags, self.registers, offset);
                    self.builder.def_var(variable, value);
                }
            }
            self.builder.ins().jump(self.blocks[line], &[]);
        }
        lines.iter().map(|&line| flow.lines[line].start).collect()
    }

    fn line(&mut self, index: usize) -> Option<()> {
        let line = &self.flow.lines[index];
        if !line.is_reachable {
            return Some(());
        }
        self.builder.switch_to_block(self.blocks[index]);
        self.singles.clear();
        self.truths.clear();
        self.line_start = line.start;
        let last = match line.how {
            End::Falls => line.end,
            _ => line.end - 1,
        };
        for pc in line.start..last {
            self.instruction(pc, self.function.code.get(pc)?)?;
        }
        let count = (line.end - line.start) as i64;
        match line.how {
            End::Falls => {
                self.count(count);
                match self.flow.line_at(line.end) {
                    Some(next) => {
                        self.builder.ins().jump(self.blocks[next], &[]);
                    }
                    // The end of the function is passed: a fault.
                    None => self.exit(Status::Stopped, line.end, None),
                }
            }
            End::Jumps(to) => {
                self.count(count);
                let to = self.jump_block(last, to)?;
                self.builder.ins().jump(to.0, &[]);
                self.yield_exit(to.1);
            }
            End::Branches(register, when, to) => {
                let truth = self.truth(register);
                self.count(count);
                let to = self.jump_block(last, to)?;
                let next = match self.flow.line_at(line.end) {
                    Some(next) => self.blocks[next],
                    None => return None,
                };
                if when {
                    self.builder.ins().brif(truth, to.0, &[], next, &[]);
                } else {
                    self.builder.ins().brif(truth, next, &[], to.0, &[]);
                }
                self.yield_exit(to.1);
            }
            End::Stops => {
                self.count(count - 1);
                let alive = self.flow.alive_at_stop(index, self.function);
                self.exit(Status::Stopped, last, Some(&alive));
            }
            End::Exits => {
                self.count(count);
                self.exit(Status::Exited, line.end, None);
            }
            End::Returns => {
                self.count(count);
                let alive = self.flow.alive_at_stop(index, self.function);
                self.exit(Status::Returned, line.end, Some(&alive));
            }
        }
        Some(())
    }

    fn count(&mut self, instructions: i64) {
        let steps = self.builder.use_var(self.steps);
        let steps = self.builder.ins().iadd_imm_s(steps, instructions);
        self.builder.def_var(self.steps, steps);
    }

    /// The instructions executed behind the one at `pc`.
    pub(super) fn steps_behind(&mut self, pc: usize) -> Value {
        let steps = self.builder.use_var(self.steps);
        self.builder.ins().iadd_imm_s(steps, (pc + 1 - self.line_start) as i64)
    }

    /// The block to jump to from `pc`. A backward jump first compares the steps with the end, in a
    /// block of its own, which `yield_exit` fills.
    fn jump_block(&mut self, pc: usize, to: usize) -> Option<(Block, Option<(Block, usize)>)> {
        let line = self.flow.line_at(to)?;
        if to > pc {
            return Some((self.blocks[line], None));
        }
        let check = self.builder.create_block();
        Some((check, Some((check, line))))
    }

    fn yield_exit(&mut self, check: Option<(Block, usize)>) {
        let Some((check, line)) = check else { return };
        let yields = self.builder.create_block();
        self.builder.set_cold_block(yields);
        self.builder.switch_to_block(check);
        let steps = self.builder.use_var(self.steps);
        let end = self.builder.ins().load(types::I64, fixed(), self.context, offset_of!(Context, end) as i32);
        let is_over = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, steps, end);
        self.builder.ins().brif(is_over, yields, &[], self.blocks[line], &[]);
        self.builder.switch_to_block(yields);
        let flow = self.flow;
        self.exit(Status::Yielded, flow.lines[line].start, Some(&flow.lines[line].alive));
    }

    /// Returns with the registers that are alive stored.
    fn exit(&mut self, status: Status, pc: usize, alive: Option<&Set>) {
        if let Some(alive) = alive {
            for register in alive.iter() {
                if let Some(variable) = self.variables[register as usize] {
                    let value = self.builder.use_var(variable);
                    let flags = MemFlagsData::trusted();
                    self.builder.ins().store(flags, value, self.registers, register as i32 * 8);
                }
            }
        }
        let steps = self.builder.use_var(self.steps);
        self.set_field(steps, offset_of!(Context, steps));
        let pc = self.builder.ins().iconst(types::I64, pc as i64);
        self.set_field(pc, offset_of!(Context, pc));
        let status = self.builder.ins().iconst(types::I32, status as i64);
        self.builder.ins().return_(&[status]);
    }

    fn fault_exit(&mut self) {
        let pc = self.builder.append_block_param(self.faulted, types::I64);
        self.builder.set_cold_block(self.faulted);
        self.builder.switch_to_block(self.faulted);
        self.set_field(pc, offset_of!(Context, pc));
        let status = self.builder.ins().iconst(types::I32, Status::Faulted as i64);
        self.builder.ins().return_(&[status]);
    }

    /// Continues if the value, which a helper has returned, is 0. Otherwise the instruction at `pc`
    /// is at fault.
    pub(super) fn check(&mut self, fault: Value, pc: usize) {
        let next = self.builder.create_block();
        // Faults name the instruction before the program counter.
        let pc = self.builder.ins().iconst(types::I64, pc as i64 + 1);
        self.builder.ins().brif(fault, self.faulted, &[BlockArg::from(pc)], next, &[]);
        self.builder.switch_to_block(next);
    }

    fn instruction(&mut self, pc: usize, inst: &Inst) -> Option<()> {
        match *inst {
            Inst::Move { d, a } => {
                let value = self.get(a);
                let (single, truth) = (self.singles.get(&a).copied(), self.truths.get(&a).copied());
                self.set(d, value);
                single.map(|single| self.singles.insert(d, single));
                truth.map(|truth| self.truths.insert(d, truth));
            }
            Inst::Special { d, which } => self.special(pc, d, which)?,
            Inst::GlobalAddress { d, index, addend } => {
                let field = offset_of!(Context, globals) as i32;
                let all = self.builder.ins().load(types::I64, fixed(), self.context, field);
                let base = self.builder.ins().load(types::I64, fixed(), all, index as i32 * 8);
                let value = self.builder.ins().iadd_imm_s(base, addend);
                self.set(d, value);
            }
            Inst::SharedAddress { d, index, addend } => {
                let field = offset_of!(Context, shared_offsets) as i32;
                let all = self.builder.ins().load(types::I64, fixed(), self.context, field);
                let base = self.builder.ins().load(types::I32, fixed(), all, index as i32 * 4);
                let base = self.builder.ins().uextend(types::I64, base);
                let value = self.builder.ins().iadd_imm_s(base, addend);
                self.set(d, value);
            }
            Inst::FrameAddress { d, offset, bias } => {
                let base = self.fixed_field(offset_of!(Context, local_base));
                let value = self.builder.ins().iadd_imm_s(base, u64::from(offset).wrapping_add(bias) as i64);
                self.set(d, value);
            }
            Inst::Fence => {
                self.builder.ins().fence();
            }
            Inst::Load { d, base, offset, access } => self.load(pc, d, (base, offset), access)?,
            Inst::Store { a, base, offset, access } => self.store(pc, a, (base, offset), access)?,
            Inst::Atomic { d, base, offset, b, c, .. } => self.atomic(pc, d, (base, offset), [b, c]),
            ref other => self.arithmetic(other)?,
        }
        Some(())
    }

    /// The value of a register.
    pub(super) fn get(&mut self, register: Reg) -> Value {
        match self.variables.get(register as usize).copied().flatten() {
            Some(variable) => self.builder.use_var(variable),
            None => {
                let value = self.constant(register).unwrap_or(0);
                self.builder.ins().iconst(types::I64, value as i64)
            }
        }
    }

    /// The value of a register that never changes.
    pub(super) fn constant(&self, register: Reg) -> Option<u64> {
        match self.variables.get(register as usize) {
            Some(None) => self.function.template.get(register as usize).copied(),
            _ => None,
        }
    }

    pub(super) fn set(&mut self, register: Reg, value: Value) {
        self.singles.remove(&register);
        self.truths.remove(&register);
        if let Some(variable) = self.variables.get(register as usize).copied().flatten() {
            self.builder.def_var(variable, value);
        }
    }

    /// Sets a register to a zero-extended value.
    pub(super) fn set_narrow(&mut self, register: Reg, value: Value) {
        let value = self.builder.ins().uextend(types::I64, value);
        self.set(register, value);
    }

    /// The register as a condition of a branch: not 0 if its lowest bit is set.
    pub(super) fn truth(&mut self, register: Reg) -> Value {
        if let Some(&truth) = self.truths.get(&register) {
            return truth;
        }
        let value = self.get(register);
        let value = self.builder.ins().ireduce(types::I8, value);
        self.builder.ins().band_imm_s(value, 1)
    }

    fn field(&mut self, ty: Type, offset: usize) -> Value {
        self.builder.ins().load(ty, MemFlagsData::trusted(), self.context, offset as i32)
    }

    pub(super) fn fixed_field(&mut self, offset: usize) -> Value {
        self.builder.ins().load(types::I64, fixed(), self.context, offset as i32)
    }

    pub(super) fn set_field(&mut self, value: Value, offset: usize) {
        self.builder.ins().store(MemFlagsData::trusted(), value, self.context, offset as i32);
    }

    /// Calls a function of the C calling convention with 64-bit arguments and result.
    pub(super) fn call(&mut self, address: usize, arguments: &[Value]) -> Value {
        let builder = &mut self.builder;
        let signature = *self.signatures.entry(arguments.len()).or_insert_with(|| {
            let mut signature = Signature::new(CallConv::SystemV);
            signature.params = vec![AbiParam::new(types::I64); arguments.len()];
            signature.returns = vec![AbiParam::new(types::I64)];
            builder.import_signature(signature)
        });
        let callee = builder.ins().iconst(types::I64, address as i64);
        let call = builder.ins().call_indirect(signature, callee, arguments);
        builder.inst_results(call)[0]
    }
}
