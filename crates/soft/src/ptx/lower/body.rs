//! The body of one function.

use std::collections::HashMap;

use super::scope::{Name, Scopes};
use super::spec::{Lowered, Problem, Spec};
use super::symbols::{Symbols, layout};
use super::{control, convert, data, float, integer, memory};
use crate::ptx::code::{Formal, Function, Inst, Place, Reg};
use crate::ptx::error::PtxError;
use crate::ptx::parse::MOST_ERRORS;
use crate::ptx::syntax::{self, Instruction, Parameter, Space, Statement, StatementKind, Variable};
use crate::ptx::types::Type;

/// Larger frames are refused: the limit of local memory on GPUs.
const MOST_FRAME: u32 = 512 << 10;

/// A function while it is lowered.
pub(super) struct Body<'a, 't> {
    pub(super) symbols: &'a mut Symbols<'t>,
    pub(super) scopes: Scopes<'t>,
    pub(super) function: Function,
    pub(super) is_kernel: bool,
    constants: HashMap<u64, Reg>,
    line: u32,
    frame_end: u32,
    /// Where each label is.
    places: Vec<u32>,
    /// Instructions and list entries that hold a label's number until its place is known.
    jumps: Vec<usize>,
    pub(super) switches: Vec<usize>,
}

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
    let mut body = Body {
        symbols,
        places: vec![0; scopes.label_count()],
        scopes,
        function: Function { name: source.name.to_owned(), ..Function::default() },
        is_kernel: source.is_kernel,
        constants: HashMap::new(),
        line: source.line,
        frame_end: 0,
        jumps: Vec::new(),
        switches: Vec::new(),
    };
    body.signature(source, errors);
    for statement in statements {
        if errors.len() >= MOST_ERRORS {
            break;
        }
        body.line = statement.line;
        if let Err(problem) = body.statement(statement) {
            errors.push(PtxError::new(statement.line, words(statement, problem)));
        }
    }
    body.emit(Inst::Return);
    body.finish(errors)
}

/// The message for a statement that cannot be lowered.
fn words(statement: &Statement<'_>, problem: Problem) -> String {
    let StatementKind::Instruction(instruction) = &statement.kind else {
        return match problem {
            Problem::Wrong(words) => words,
            Problem::Unsupported => "this declaration is not supported by the software driver".into(),
        };
    };
    let mut name = instruction.opcode.to_owned();
    for modifier in &instruction.modifiers {
        name.push('.');
        name.push_str(modifier);
    }
    match problem {
        Problem::Unsupported => format!("instruction `{name}` is not supported by the software driver"),
        Problem::Wrong(words) => format!("instruction `{name}`: {words}"),
    }
}

impl<'t> Body<'_, 't> {
    fn signature(&mut self, source: &syntax::Function<'t>, errors: &mut Vec<PtxError>) {
        for (list, is_return) in [(&source.params, false), (&source.returns, true)] {
            let sizes = list.iter().map(|param| (param.size, param.align));
            let from = if self.is_kernel { 0 } else { self.frame_end };
            let (places, end) = layout(sizes, from);
            if !self.is_kernel {
                self.frame_end = end;
            }
            for (param, formal) in list.iter().zip(places) {
                let formal = self.parameter(param, formal, errors);
                if is_return {
                    self.function.returns.push(formal);
                } else {
                    self.function.params.push(formal);
                }
            }
        }
        self.grow_frame(errors);
    }

    fn parameter(
        &mut self,
        param: &Parameter<'t>,
        formal: Formal,
        errors: &mut Vec<PtxError>,
    ) -> Formal {
        let (name, formal) = match formal.place {
            _ if param.is_register => {
                let slot = self.fresh();
                let formal = Formal { place: Place::Register(slot), size: param.size };
                (Name::Register { ty: param.ty, slot: Some(slot) }, formal)
            }
            Place::Frame(offset) if self.is_kernel => (Name::Entry { offset, size: param.size }, formal),
            Place::Frame(offset) => (Name::Frame { offset, size: param.size, is_param: true }, formal),
            Place::Register(_) => return formal,
        };
        // Prototypes name parameters `_`.
        if param.name != "_" && !self.scopes.define(param.name, name) {
            errors.push(PtxError::new(param.line, format!("`{}` is defined twice", param.name)));
        }
        formal
    }

    fn grow_frame(&mut self, errors: &mut Vec<PtxError>) {
        if self.frame_end > MOST_FRAME {
            let message = format!("`{}` needs more than {MOST_FRAME} bytes of local memory", self.function.name);
            errors.push(PtxError::new(self.line, message));
            self.frame_end = 0;
        }
        self.function.frame_bytes = self.function.frame_bytes.max(self.frame_end);
    }

    fn statement(&mut self, statement: &Statement<'t>) -> Lowered<()> {
        match &statement.kind {
            StatementKind::Open => self.scopes.open(self.frame_end),
            StatementKind::Close => self.frame_end = self.scopes.close().unwrap_or(self.frame_end),
            StatementKind::Registers { ty, name, count } => {
                let is_new = match count {
                    Some(count) => self.scopes.define_range(name, *ty, *count),
                    None => self.scopes.define(name, Name::Register { ty: *ty, slot: None }),
                };
                if !is_new {
                    return Err(format!("register `{name}` is defined twice").into());
                }
            }
            StatementKind::Variable(variable) => self.variable(variable)?,
            StatementKind::Label(name) => {
                let place = self.function.code.len() as u32;
                let label = self.scopes.label(name);
                if let Some(slot) = label.and_then(|label| self.places.get_mut(label as usize)) {
                    *slot = place;
                }
            }
            StatementKind::Targets { name, labels } => {
                let labels = labels.iter().map(|label| self.label(label)).collect::<Lowered<Vec<u32>>>()?;
                if !self.scopes.define(name, Name::Targets(labels)) {
                    return Err(format!("`{name}` is defined twice").into());
                }
            }
            StatementKind::Prototype => {}
            StatementKind::Instruction(instruction) => self.instruction(instruction)?,
        }
        Ok(())
    }

    fn variable(&mut self, variable: &Variable<'t>) -> Lowered<()> {
        let name = match variable.space {
            Space::Shared => {
                let index = self.symbols.shared_variable(variable).map_err(|error| error.message)?;
                Name::Shared(index)
            }
            Space::Local | Space::Param => {
                if !variable.initial.is_empty() {
                    return Err(format!("`{}`: such a variable cannot be initialised", variable.name).into());
                }
                let size = u32::try_from(variable.size.unwrap_or(0)).unwrap_or(u32::MAX);
                let (places, end) = layout([(size, variable.align as u32)].into_iter(), self.frame_end);
                if end > MOST_FRAME {
                    let message = format!("`{}` makes the local memory of this function too large", variable.name);
                    return Err(message.into());
                }
                self.frame_end = end;
                self.function.frame_bytes = self.function.frame_bytes.max(end);
                let is_param = variable.space == Space::Param;
                match places.first() {
                    Some(Formal { place: Place::Frame(offset), .. }) => {
                        Name::Frame { offset: *offset, size, is_param }
                    }
                    _ => return Err(Problem::Unsupported),
                }
            }
            Space::Global | Space::Const => return Err(Problem::Unsupported),
        };
        if self.scopes.define(variable.name, name) {
            Ok(())
        } else {
            Err(format!("`{}` is defined twice", variable.name).into())
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'t>) -> Lowered<()> {
        let Some(guard) = instruction.guard else { return self.unguarded(instruction) };
        let p = self.register(guard.predicate, Type::Pred)?;
        // A guarded branch is one conditional jump; all else is jumped over.
        if instruction.opcode == "bra" {
            let to = control::branch_target(self, instruction)?;
            self.jump(if guard.negated { Inst::JumpUnless { p, to } } else { Inst::JumpIf { p, to } });
            return Ok(());
        }
        let skip = self.function.code.len();
        self.emit(Inst::Jump { to: 0 });
        let result = self.unguarded(instruction);
        let to = self.function.code.len() as u32;
        if let Some(slot) = self.function.code.get_mut(skip) {
            *slot = if guard.negated { Inst::JumpIf { p, to } } else { Inst::JumpUnless { p, to } };
        }
        result
    }

    fn unguarded(&mut self, instruction: &Instruction<'t>) -> Lowered<()> {
        let mut spec = Spec::new(instruction);
        let spec = &mut spec;
        match instruction.opcode {
            "add" | "sub" | "mul" | "div" | "min" | "max" | "abs" | "neg" | "mad" | "fma" => {
                if instruction.modifiers.iter().filter_map(|name| Type::parse(name)).any(Type::is_float) {
                    float::arithmetic(self, spec)
                } else {
                    integer::arithmetic(self, spec)
                }
            }
            "rem" | "sad" | "mul24" | "mad24" | "dp4a" | "dp2a" => integer::arithmetic(self, spec),
            "addc" | "subc" | "madc" => integer::carrying(self, spec),
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shl" | "shr" | "shf" | "prmt" | "popc" | "clz"
            | "bfind" | "brev" | "bfe" | "bfi" | "fns" | "bmsk" | "szext" => integer::bits(self, spec),
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh" | "copysign" | "testp" => {
                float::function(self, spec)
            }
            "mov" => data::mov(self, spec),
            "setp" => data::setp(self, spec),
            "set" => data::set(self, spec),
            "selp" | "slct" => data::select(self, spec),
            "cvt" => convert::cvt(self, spec),
            "cvta" => convert::cvta(self, spec),
            "isspacep" => convert::isspacep(self, spec),
            "ld" | "ldu" => memory::load(self, spec),
            "st" => memory::store(self, spec),
            "atom" | "red" => memory::atomic(self, spec),
            "membar" | "fence" => memory::fence(self, spec),
            "prefetch" | "prefetchu" | "discard" | "applypriority" | "griddepcontrol" => memory::hint(spec),
            _ => control::instruction(self, spec),
        }
    }

    pub(super) fn label(&mut self, name: &str) -> Lowered<u32> {
        self.scopes.label(name).ok_or_else(|| Problem::Wrong(format!("there is no label `{name}`")))
    }

    pub(super) fn emit(&mut self, inst: Inst) {
        self.function.code.push(inst);
        self.function.lines.push(self.line);
    }

    /// Emits a jump whose target is the number of a label.
    pub(super) fn jump(&mut self, inst: Inst) {
        self.jumps.push(self.function.code.len());
        self.emit(inst);
    }

    /// A register that no name stands for.
    pub(super) fn fresh(&mut self) -> Reg {
        self.function.template.push(0);
        self.function.template.len() as u32 - 1
    }

    /// A register that holds `bits` from the start.
    pub(super) fn constant(&mut self, bits: u64) -> Reg {
        if let Some(&slot) = self.constants.get(&bits) {
            return slot;
        }
        let slot = self.fresh();
        if let Some(place) = self.function.template.get_mut(slot as usize) {
            *place = bits;
        }
        self.constants.insert(bits, slot);
        slot
    }

    /// Puts the places of labels where their numbers stand.
    fn finish(mut self, errors: &mut Vec<PtxError>) -> Function {
        let place = |label: u32| self.places.get(label as usize).copied().unwrap_or(0);
        for &index in &self.jumps {
            if let Some(Inst::Jump { to } | Inst::JumpIf { to, .. } | Inst::JumpUnless { to, .. }) =
                self.function.code.get_mut(index)
            {
                *to = place(*to);
            }
        }
        for &index in &self.switches {
            if let Some(entry) = self.function.lists.get_mut(index) {
                *entry = place(*entry);
            }
        }
        if self.function.template.len() > 1 << 20 || self.function.code.len() > 1 << 26 {
            let message = format!("`{}` is too large", self.function.name);
            errors.push(PtxError::new(self.line, message));
        }
        self.function
    }
}
