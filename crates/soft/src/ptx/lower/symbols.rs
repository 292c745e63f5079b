//! Names of module scope.

use std::collections::HashMap;

use crate::ptx::code::{FUNCTION_STEP, FUNCTION_WINDOW, Formal, Intrinsic, Place, Program, SharedVariable};
use crate::ptx::error::PtxError;
use crate::ptx::global::{Global, Pointer};
use crate::ptx::syntax::{Function, InitialValue, Module, Space, Variable};

/// What a name of module scope stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    Global(u32),
    Shared(u32),
    /// A function with a body, by its index in the program.
    Function(u32),
    Intrinsic(Intrinsic),
    /// Declared, but defined nowhere.
    Unresolved,
}

/// What a caller has to know of a function.
#[derive(Debug, Clone, Default)]
pub(super) struct Signature {
    pub(super) is_kernel: bool,
    /// Sizes in bytes.
    pub(super) params: Vec<u32>,
    pub(super) returns: Vec<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Symbols<'t> {
    names: HashMap<&'t str, Symbol>,
    /// Indices into the module's functions, of those that have a body.
    defined: Vec<usize>,
    signatures: Vec<Signature>,
    shared: Vec<SharedVariable>,
}

/// Larger shared variables are refused: no GPU has as much.
const MOST_SHARED: u64 = 1 << 20;
/// Initialisers beyond this are refused.
const MOST_INITIAL: u64 = 1 << 30;

impl<'t> Symbols<'t> {
    pub(super) fn collect(
        module: &Module<'t>,
        program: &mut Program,
        errors: &mut Vec<PtxError>,
    ) -> Symbols<'t> {
        let mut symbols = Symbols::default();
        for (index, function) in module.functions.iter().enumerate() {
            symbols.function(function, index, errors);
        }
        let mut sources = Vec::new();
        for variable in &module.variables {
            match variable.space {
                Space::Shared => match symbols.shared_variable(variable) {
                    Ok(index) => symbols.define(variable.line, variable.name, Symbol::Shared(index), errors),
                    Err(error) => errors.push(error),
                },
                _ => match global(variable) {
                    Ok(global) => {
                        let index = program.globals.len() as u32;
                        symbols.define(variable.line, variable.name, Symbol::Global(index), errors);
                        program.globals.push(global);
                        sources.push(variable);
                    }
                    Err(error) => errors.push(error),
                },
            }
        }
        for (variable, global) in sources.into_iter().zip(&mut program.globals) {
            if let Err(error) = symbols.initialise(variable, global) {
                errors.push(error);
            }
        }
        symbols
    }

    fn function(&mut self, function: &Function<'t>, index: usize, errors: &mut Vec<PtxError>) {
        let intrinsic = match function.name {
            "vprintf" => Some(Intrinsic::Print),
            "__assertfail" => Some(Intrinsic::AssertFail),
            "cudaGraphSetConditional" => Some(Intrinsic::SetConditional),
            _ => None,
        };
        let symbol = match (function.body.is_some(), intrinsic) {
            (true, _) => Symbol::Function(self.defined.len() as u32),
            (false, Some(intrinsic)) => Symbol::Intrinsic(intrinsic),
            (false, None) => Symbol::Unresolved,
        };
        if let Symbol::Function(_) = symbol {
            self.defined.push(index);
            self.signatures.push(Signature {
                is_kernel: function.is_kernel,
                params: function.params.iter().map(|param| param.size).collect(),
                returns: function.returns.iter().map(|value| value.size).collect(),
            });
        }
        match self.names.get(function.name) {
            // A definition fulfils declarations before and after it.
            Some(Symbol::Unresolved | Symbol::Intrinsic(_)) => {
                if let Symbol::Function(_) = symbol {
                    self.names.insert(function.name, symbol);
                }
            }
            Some(Symbol::Function(_)) if !matches!(symbol, Symbol::Function(_)) => {}
            _ => self.define(function.line, function.name, symbol, errors),
        }
    }

    fn define(&mut self, line: u32, name: &'t str, symbol: Symbol, errors: &mut Vec<PtxError>) {
        if self.names.insert(name, symbol).is_some() {
            errors.push(PtxError::new(line, format!("`{name}` is defined twice")));
        }
    }

    /// Adds a shared variable, of module scope or of a function.
    pub(super) fn shared_variable(&mut self, variable: &Variable<'_>) -> Result<u32, PtxError> {
        let size = variable.size.unwrap_or(0);
        if size > MOST_SHARED {
            let message =
                format!("`{}` takes {size} bytes: no block has so much shared memory", variable.name);
            return Err(PtxError::new(variable.line, message));
        }
        if !variable.initial.is_empty() {
            let message = format!("`{}`: shared memory cannot be initialised", variable.name);
            return Err(PtxError::new(variable.line, message));
        }
        self.shared.push(SharedVariable {
            size: size as u32,
            align: variable.align as u32,
            is_dynamic: variable.size.is_none(),
        });
        Ok(self.shared.len() as u32 - 1)
    }

    fn initialise(&self, variable: &Variable<'_>, global: &mut Global) -> Result<(), PtxError> {
        for item in &variable.initial {
            let at = item.offset as usize;
            let end = at + item.width as usize;
            if end as u64 > MOST_INITIAL {
                return Err(PtxError::new(item.line, "this initialiser is too large"));
            }
            if global.initial.len() < end {
                global.initial.resize(end, 0);
            }
            let bits = match item.value {
                InitialValue::Bits(bits) => bits,
                InitialValue::Address { name, addend } => match self.get(name) {
                    Some(Symbol::Global(target)) => {
                        global.pointers.push(Pointer { offset: item.offset as u32, global: target, addend });
                        0
                    }
                    Some(Symbol::Function(target)) => function_address(target).wrapping_add(addend),
                    _ => {
                        let message = format!("`{name}` has no address that memory can be initialised with");
                        return Err(PtxError::new(item.line, message));
                    }
                },
            };
            if let Some(place) = global.initial.get_mut(at..end) {
                place.copy_from_slice(&bits.to_le_bytes()[..item.width as usize]);
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<Symbol> {
        self.names.get(name).copied()
    }

    pub(super) fn signature(&self, function: u32) -> Option<&Signature> {
        self.signatures.get(function as usize)
    }

    pub(super) fn defined(&self) -> Vec<usize> {
        self.defined.clone()
    }

    pub(super) fn take_shared(&mut self) -> Vec<SharedVariable> {
        std::mem::take(&mut self.shared)
    }
}

/// The address that stands for a function.
pub(super) fn function_address(function: u32) -> u64 {
    FUNCTION_WINDOW + FUNCTION_STEP * (u64::from(function) + 1)
}

/// Lays parameters out one after the other from `from` on; returns where they end.
pub(super) fn layout(sizes: impl Iterator<Item = (u32, u32)>, from: u32) -> (Vec<Formal>, u32) {
    let mut end = from;
    let mut all = Vec::new();
    for (size, align) in sizes {
        let offset = end.checked_next_multiple_of(align.max(1)).unwrap_or(u32::MAX);
        end = offset.saturating_add(size);
        all.push(Formal { place: Place::Frame(offset), size });
    }
    (all, end)
}

fn global(variable: &Variable<'_>) -> Result<Global, PtxError> {
    let Some(size) = variable.size else {
        let message = format!("`{}` is defined in another module: linking is not supported", variable.name);
        return Err(PtxError::new(variable.line, message));
    };
    if variable.is_extern {
        let message = format!("`{}` is defined in another module: linking is not supported", variable.name);
        return Err(PtxError::new(variable.line, message));
    }
    Ok(Global {
        name: variable.name.to_owned(),
        size,
        align: variable.align,
        initial: Vec::new(),
        pointers: Vec::new(),
        is_const: variable.space == Space::Const,
        is_managed: variable.is_managed,
    })
}
