//! The tables of names of module scope, one a text.

use std::collections::HashMap;

use super::symbol::{Defined, Signature, Symbol, signature_of};
use super::variable::{global, initialise};
use crate::ptx::code::{Intrinsic, Program, SharedVariable};
use crate::ptx::error::PtxError;
use crate::ptx::global::Global;
use crate::ptx::syntax::{Alias, Function, Linkage, Module, Space, Variable};

/// How to treat a name that no text defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    IsError,
    /// Another text will define it.
    IsLeftOpen,
}

/// The names of module scope of each text.
#[derive(Debug, Default)]
pub(super) struct Symbols<'t> {
    names: Vec<HashMap<&'t str, Symbol>>,
    /// The current text.
    pub(super) scope: usize,
    pub(super) defined: Vec<Defined>,
    pub(super) signatures: Vec<Signature>,
    shared: Vec<SharedVariable>,
    /// Whether code asks for reserved shared memory.
    pub(super) uses_reserved: bool,
    /// The source files of each text: number there, and index in the program.
    files: Vec<HashMap<u64, u32>>,
    /// Variables of module scope.
    outer: u32,
    /// Variables declared inside functions, which follow them.
    inner: Vec<Global>,
    /// The PTX version and the number of the target of each text.
    levels: Vec<((u32, u32), u32)>,
}

/// The largest shared variable; no GPU has as much shared memory.
const MOST_SHARED: u64 = 1 << 20;

/// The number of a text's target: 90 of `sm_90a`.
fn target_number(module: &Module<'_>) -> u32 {
    let digits: String = module.target.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// Adds the source files of a text to the program.
fn source_files(module: &Module<'_>, program: &mut Program) -> HashMap<u64, u32> {
    let mut numbers = HashMap::new();
    for &(number, name) in &module.files {
        numbers.insert(number, program.files.len() as u32);
        program.files.push(name.to_owned());
    }
    numbers
}

impl<'t> Symbols<'t> {
    pub(super) fn collect(
        modules: &[Module<'t>],
        missing: Missing,
        program: &mut Program,
        errors: &mut Vec<PtxError>,
    ) -> Symbols<'t> {
        let mut symbols = Symbols {
            names: vec![HashMap::new(); modules.len()],
            levels: modules.iter().map(|module| (module.version, target_number(module))).collect(),
            files: modules.iter().map(|module| source_files(module, program)).collect(),
            ..Symbols::default()
        };
        let mut sources = Vec::new();
        for (scope, module) in modules.iter().enumerate() {
            symbols.scope = scope;
            for (index, function) in module.functions.iter().enumerate() {
                symbols.function(function, index, errors);
            }
            for alias in &module.aliases {
                symbols.alias(alias, errors);
            }
            for variable in &module.variables {
                if symbols.variable(variable, program, errors) {
                    sources.push((scope, variable));
                }
            }
        }
        let exports = symbols.exports(modules, program, errors);
        for (scope, module) in modules.iter().enumerate() {
            symbols.scope = scope;
            symbols.resolve(module, &exports, missing, program, errors);
        }
        for ((scope, variable), global) in sources.into_iter().zip(&mut program.globals) {
            symbols.scope = scope;
            if let Err(error) = initialise(variable, global, |name| symbols.get(name)) {
                errors.push(error);
            }
        }
        symbols.outer = program.globals.len() as u32;
        symbols
    }

    /// Whether the current text has this PTX version and target, or later ones.
    pub(super) fn is_at_least(&self, version: (u32, u32), target: u32) -> bool {
        self.levels.get(self.scope).is_some_and(|(has, on)| *has >= version && *on >= target)
    }

    /// The index of a source file of the current text.
    pub(super) fn file(&self, number: u64) -> Option<u32> {
        self.files.get(self.scope)?.get(&number).copied()
    }

    /// Sets the current text.
    pub(super) fn enter(&mut self, module: usize) {
        self.scope = module;
    }

    fn function(&mut self, function: &Function<'t>, index: usize, errors: &mut Vec<PtxError>) {
        let intrinsic = match function.name {
            "vprintf" => Some(Intrinsic::Print),
            "__assertfail" => Some(Intrinsic::AssertFail),
            "malloc" => Some(Intrinsic::Allocate),
            "free" => Some(Intrinsic::Free),
            "cudaGraphSetConditional" => Some(Intrinsic::SetConditional),
            _ => None,
        };
        let symbol = match (function.body.is_some(), intrinsic) {
            (true, _) => Symbol::Function(self.defined.len() as u32),
            (false, Some(intrinsic)) => Symbol::Intrinsic(intrinsic),
            (false, None) => Symbol::Unresolved,
        };
        if let Symbol::Function(_) = symbol {
            self.defined.push(Defined { module: self.scope, function: index, is_replaced: false });
            self.signatures.push(signature_of(function));
        }
        match self.get(function.name) {
            // A definition resolves declarations before and after it.
            Some(Symbol::Unresolved | Symbol::Intrinsic(_)) => {
                if let Symbol::Function(_) = symbol {
                    self.insert(function.name, symbol);
                }
            }
            Some(Symbol::Function(_)) if !matches!(symbol, Symbol::Function(_)) => {}
            _ => self.define(function.line, function.name, symbol, errors),
        }
    }

    /// Another name for a function of the same text.
    fn alias(&mut self, alias: &Alias<'t>, errors: &mut Vec<PtxError>) {
        let message = match (self.get(alias.of), self.get(alias.name)) {
            (Some(symbol @ Symbol::Function(_)), None | Some(Symbol::Unresolved | Symbol::Intrinsic(_))) => {
                return self.insert(alias.name, symbol);
            }
            (Some(Symbol::Function(_)), Some(_)) => format!("`{}` is defined twice", alias.name),
            _ => format!("`{}` is not a function that is defined here", alias.of),
        };
        errors.push(PtxError::new(alias.line, message));
    }

    /// Declares a variable; true if it may have initial contents.
    fn variable(
        &mut self,
        variable: &Variable<'t>,
        program: &mut Program,
        errors: &mut Vec<PtxError>,
    ) -> bool {
        if variable.space == Space::Shared {
            match self.shared_variable(variable) {
                Ok(index) => self.define(variable.line, variable.name, Symbol::Shared(index), errors),
                Err(error) => errors.push(error),
            }
            return false;
        }
        if variable.linkage == Linkage::Extern {
            if self.get(variable.name).is_none() {
                self.insert(variable.name, Symbol::Unresolved);
            }
            return false;
        }
        if variable.is_reference {
            self.define(variable.line, variable.name, Symbol::Reference, errors);
            return false;
        }
        match global(variable) {
            Ok(global) => {
                let symbol = Symbol::Global(program.globals.len() as u32);
                program.globals.push(global);
                if self.get(variable.name) == Some(Symbol::Unresolved) {
                    self.insert(variable.name, symbol);
                } else {
                    self.define(variable.line, variable.name, symbol, errors);
                }
                true
            }
            Err(error) => {
                errors.push(error);
                false
            }
        }
    }

    fn define(&mut self, line: u32, name: &'t str, symbol: Symbol, errors: &mut Vec<PtxError>) {
        if self.get(name).is_some() {
            errors.push(PtxError::new(line, format!("`{name}` is defined twice")));
        }
        self.insert(name, symbol);
    }

    pub(super) fn insert(&mut self, name: &'t str, symbol: Symbol) {
        if let Some(names) = self.names.get_mut(self.scope) {
            names.insert(name, symbol);
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
            name: variable.name.to_owned(),
            size: size as u32,
            align: variable.align as u32,
            is_dynamic: variable.size.is_none(),
        });
        Ok(self.shared.len() as u32 - 1)
    }

    /// Adds a variable that a function declares. It cannot be found by name in the image; `find`
    /// resolves the names of its block.
    pub(super) fn inner_global(
        &mut self,
        variable: &Variable<'_>,
        find: impl Fn(&str) -> Option<Symbol>,
    ) -> Result<u32, PtxError> {
        if variable.is_reference {
            let message = format!("`{}`: a reference inside a function is not supported", variable.name);
            return Err(PtxError::new(variable.line, message));
        }
        let mut global = global(variable)?;
        global.name.clear();
        initialise(variable, &mut global, find)?;
        self.inner.push(global);
        Ok(self.outer + self.inner.len() as u32 - 1)
    }

    pub(super) fn get(&self, name: &str) -> Option<Symbol> {
        self.names.get(self.scope)?.get(name).copied()
    }

    pub(super) fn signature(&self, function: u32) -> Option<&Signature> {
        self.signatures.get(function as usize)
    }

    pub(super) fn defined(&self) -> Vec<Defined> {
        self.defined.clone()
    }

    pub(super) fn take_inner(&mut self) -> Vec<Global> {
        std::mem::take(&mut self.inner)
    }

    pub(super) fn take_shared(&mut self) -> Vec<SharedVariable> {
        std::mem::take(&mut self.shared)
    }
}
