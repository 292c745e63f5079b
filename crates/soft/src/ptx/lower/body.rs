//! A function that is being lowered: its registers, frame and code.

use std::collections::HashMap;

use super::reader::{LowerError, Lowered};
use super::scope::{Name, Scopes};
use super::symbol::Symbol;
use super::symbols::Symbols;
use super::variable::layout;
use crate::ptx::code::{Formal, Function, Inst, MemoryOrder, Place, Reg, SourceLine};
use crate::ptx::error::PtxError;
use crate::ptx::syntax::{self, Parameter, Space, Variable};

/// The largest frame: the limit of local memory on GPUs.
const MOST_FRAME: u32 = 512 << 10;

/// A function that is being lowered.
pub(super) struct Body<'a, 't> {
    pub(super) symbols: &'a mut Symbols<'t>,
    pub(super) scopes: Scopes<'t>,
    pub(super) function: Function,
    pub(super) is_kernel: bool,
    /// Whether the current instruction reads special registers.
    pub(super) takes_special: bool,
    constants: HashMap<u64, Reg>,
    pub(super) line: u32,
    /// The memory order of the instructions that are being emitted.
    pub(super) order: MemoryOrder,
    pub(super) frame_end: u32,
    /// The position of each label.
    places: Vec<u32>,
    /// Instructions that hold the number of a label until its position is known.
    jumps: Vec<usize>,
    pub(super) switches: Vec<usize>,
}

impl<'a, 't> Body<'a, 't> {
    pub(super) fn new(
        name: &str,
        is_kernel: bool,
        line: u32,
        scopes: Scopes<'t>,
        symbols: &'a mut Symbols<'t>,
    ) -> Self {
        Body {
            symbols,
            places: vec![0; scopes.label_count()],
            scopes,
            function: Function { name: name.to_owned(), ..Function::default() },
            is_kernel,
            takes_special: false,
            constants: HashMap::new(),
            line,
            order: MemoryOrder::default(),
            frame_end: 0,
            jumps: Vec::new(),
            switches: Vec::new(),
        }
    }

    pub(super) fn signature(&mut self, source: &syntax::Function<'t>, errors: &mut Vec<PtxError>) {
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

    fn parameter(&mut self, param: &Parameter<'t>, formal: Formal, errors: &mut Vec<PtxError>) -> Formal {
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
        // Parameters of prototypes are named `_`.
        if param.name != "_" && !self.scopes.define(param.name, name) {
            errors.push(PtxError::new(param.line, format!("`{}` is defined twice", param.name)));
        }
        formal
    }

    fn grow_frame(&mut self, errors: &mut Vec<PtxError>) {
        if self.frame_end > MOST_FRAME {
            let message =
                format!("`{}` needs more than {MOST_FRAME} bytes of local memory", self.function.name);
            errors.push(PtxError::new(self.line, message));
            self.frame_end = 0;
        }
        self.function.frame_bytes = self.function.frame_bytes.max(self.frame_end);
    }

    pub(super) fn variable(&mut self, variable: &Variable<'t>) -> Lowered<()> {
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
                    let message =
                        format!("`{}` makes the local memory of this function too large", variable.name);
                    return Err(message.into());
                }
                self.frame_end = end;
                self.function.frame_bytes = self.function.frame_bytes.max(end);
                let is_param = variable.space == Space::Param;
                match places.first() {
                    Some(Formal { place: Place::Frame(offset), .. }) => {
                        Name::Frame { offset: *offset, size, is_param }
                    }
                    _ => return Err(LowerError::Unsupported),
                }
            }
            Space::Global | Space::Const => self.inner_global(variable)?,
        };
        if self.scopes.define(variable.name, name) {
            Ok(())
        } else {
            Err(format!("`{}` is defined twice", variable.name).into())
        }
    }

    /// A variable of module scope that only this block can name.
    fn inner_global(&mut self, variable: &Variable<'t>) -> Lowered<Name> {
        let mut names = HashMap::new();
        for name in variable.initial.iter().filter_map(|item| item.value.name()) {
            let symbol = match self.scopes.find(name) {
                Some(Name::Global(index)) => Some(Symbol::Global(*index)),
                Some(_) => None,
                None => self.symbols.get(name),
            };
            names.insert(name, symbol);
        }
        let find = |name: &str| names.get(name).copied().flatten();
        let index = self.symbols.inner_global(variable, find).map_err(|error| error.message)?;
        Ok(Name::Global(index))
    }

    /// Places a label here.
    pub(super) fn place_label(&mut self, name: &str) {
        let place = self.function.code.len() as u32;
        let label = self.scopes.label(name);
        if let Some(slot) = label.and_then(|label| self.places.get_mut(label as usize)) {
            *slot = place;
        }
    }

    pub(super) fn label(&mut self, name: &str) -> Lowered<u32> {
        self.scopes.label(name).ok_or_else(|| LowerError::Wrong(format!("there is no label `{name}`")))
    }

    pub(super) fn emit(&mut self, inst: Inst) {
        if self.order != MemoryOrder::default() {
            self.function.orders.push((self.function.code.len() as u32, self.order));
        }
        self.function.code.push(inst);
        self.function.lines.push(self.line);
    }

    /// Sets the place in the source, from here on.
    pub(super) fn source_line(&mut self, file: u64, line: u32) {
        let Some(file) = self.symbols.file(file) else { return };
        let pc = self.function.code.len() as u32;
        self.function.sources.push(SourceLine { pc, file, line });
    }

    /// Emits a jump whose target is the number of a label.
    pub(super) fn jump(&mut self, inst: Inst) {
        self.jumps.push(self.function.code.len());
        self.emit(inst);
    }

    /// A new register without a name.
    pub(super) fn fresh(&mut self) -> Reg {
        self.function.template.push(0);
        self.function.template.len() as u32 - 1
    }

    /// A register that holds `bits` at entry.
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

    /// Replaces label numbers by positions.
    pub(super) fn finish(mut self, errors: &mut Vec<PtxError>) -> Function {
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
        self.function.constants = self.constants.into_values().collect();
        self.function
    }
}
