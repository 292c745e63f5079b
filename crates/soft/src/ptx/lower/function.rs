//! Lowering the statements of a function.

use super::body::Body;
use super::control;
use super::reader::{LowerError, Lowered};
use super::scope::{Name, Scopes};
use super::symbols::Symbols;
use crate::ptx::code::{Function, Inst, MemoryOrder};
use crate::ptx::error::{MOST_ERRORS, PtxError};
use crate::ptx::syntax::{self, Instruction, Operand, Statement, StatementKind};
use crate::ptx::types::Type;

/// Lowers a function that has a body.
pub(super) fn lower<'t>(
    source: &syntax::Function<'t>,
    symbols: &mut Symbols<'t>,
    errors: &mut Vec<PtxError>,
) -> Function {
    let statements = source.body.as_deref().unwrap_or(&[]);
    let (scopes, twice) = Scopes::new(statements);
    for (line, name) in twice {
        errors.push(PtxError::new(line, format!("label `{name}` is defined twice")));
    }
    let mut body = Body::new(source.name, source.is_kernel, source.line, scopes, symbols);
    body.signature(source, errors);
    for statement in statements {
        if errors.len() >= MOST_ERRORS {
            break;
        }
        body.line = statement.line;
        body.order = memory_order(statement);
        if let Err(problem) = body.statement(statement) {
            errors.push(PtxError::new(statement.line, words(statement, problem)));
        }
    }
    body.emit(Inst::Return);
    body.finish(errors)
}

/// The memory order that the modifiers of an instruction give.
fn memory_order(statement: &Statement<'_>) -> MemoryOrder {
    let StatementKind::Instruction(instruction) = &statement.kind else { return MemoryOrder::default() };
    if !matches!(instruction.opcode, "ld" | "st" | "atom" | "red" | "fence" | "membar") {
        return MemoryOrder::default();
    }
    let has = |names: &[&str]| instruction.modifiers.iter().any(|modifier| names.contains(modifier));
    MemoryOrder {
        is_strong: has(&["volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"]),
        releases: has(&["release", "acq_rel"]),
        is_of_block: has(&["cta"]),
    }
}

/// The message for a statement that cannot be lowered.
fn words(statement: &Statement<'_>, problem: LowerError) -> String {
    let StatementKind::Instruction(instruction) = &statement.kind else {
        return match problem {
            LowerError::Wrong(words) => words,
            LowerError::Unsupported => "this declaration is not supported by the software driver".into(),
        };
    };
    let mut name = instruction.opcode.to_owned();
    for modifier in &instruction.modifiers {
        name.push('.');
        name.push_str(modifier);
    }
    match problem {
        LowerError::Unsupported => format!("instruction `{name}` is not supported by the software driver"),
        LowerError::Wrong(words) => format!("instruction `{name}`: {words}"),
    }
}

impl<'t> Body<'_, 't> {
    fn statement(&mut self, statement: &Statement<'t>) -> Lowered<()> {
        match &statement.kind {
            StatementKind::Open => self.scopes.open(self.frame_end),
            StatementKind::Close => self.frame_end = self.scopes.close().unwrap_or(self.frame_end),
            StatementKind::Registers { ty, name, count, lanes } => {
                if !self.scopes.define_registers(name, *ty, *lanes, *count) {
                    return Err(format!("register `{name}` is defined twice").into());
                }
            }
            StatementKind::Variable(variable) => self.variable(variable)?,
            StatementKind::Location { file, line } => self.source_line(*file, *line),
            StatementKind::Label(name) => self.place_label(name),
            StatementKind::Targets { name, labels } => {
                let labels = labels.iter().map(|label| self.label(label)).collect::<Lowered<Vec<u32>>>()?;
                if !self.scopes.define(name, Name::Targets(labels)) {
                    return Err(format!("`{name}` is defined twice").into());
                }
            }
            StatementKind::Prototype(name) => {
                if !self.scopes.define(name, Name::Prototype) {
                    return Err(format!("`{name}` is defined twice").into());
                }
            }
            StatementKind::Instruction(instruction) if self.scopes.has_vectors => {
                let instruction = self.with_elements(instruction);
                self.instruction(&instruction)?;
            }
            StatementKind::Instruction(instruction) => self.instruction(instruction)?,
        }
        Ok(())
    }

    /// The instruction with vector registers replaced by their elements.
    fn with_elements(&mut self, instruction: &Instruction<'t>) -> Instruction<'t> {
        let operands = instruction.operands.iter().map(|operand| match operand {
            Operand::Name(name) => self.elements(name).unwrap_or_else(|| operand.clone()),
            other => other.clone(),
        });
        Instruction {
            operands: operands.collect(),
            modifiers: instruction.modifiers.clone(),
            guard: instruction.guard,
            opcode: instruction.opcode,
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'t>) -> Lowered<()> {
        let Some(guard) = instruction.guard else { return self.opcode(instruction) };
        let p = self.register(guard.predicate, Type::Pred)?;
        // A guarded branch is one conditional jump. Any other guarded instruction is jumped over.
        if instruction.opcode == "bra" {
            let to = control::branch_target(self, instruction)?;
            self.jump(if guard.negated { Inst::JumpUnless { p, to } } else { Inst::JumpIf { p, to } });
            return Ok(());
        }
        let skip = self.function.code.len();
        self.emit(Inst::Jump { to: 0 });
        let result = self.opcode(instruction);
        let to = self.function.code.len() as u32;
        if let Some(slot) = self.function.code.get_mut(skip) {
            *slot = if guard.negated { Inst::JumpIf { p, to } } else { Inst::JumpUnless { p, to } };
        }
        result
    }
}
