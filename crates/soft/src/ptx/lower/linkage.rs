//! Linking: the names that each text exports, and the definition that each name gets.

use std::collections::{HashMap, HashSet};

use super::symbol::{Symbol, signature_of};
use super::symbols::{Missing, Symbols};
use super::variable::global;
use crate::ptx::code::Program;
use crate::ptx::error::PtxError;
use crate::ptx::syntax::{Linkage, Module, Space, Variable};

/// A definition that is visible to other texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Export {
    symbol: Symbol,
    is_weak: bool,
}

impl<'t> Symbols<'t> {
    /// The exported definitions of all texts. Weak definitions that are replaced lose their names.
    pub(super) fn exports(
        &mut self,
        modules: &[Module<'t>],
        program: &mut Program,
        errors: &mut Vec<PtxError>,
    ) -> HashMap<&'t str, Export> {
        let mut exports: HashMap<&'t str, Export> = HashMap::new();
        if modules.len() < 2 {
            return exports;
        }
        for (scope, module) in modules.iter().enumerate() {
            self.scope = scope;
            let aliases: HashSet<&str> = module.aliases.iter().map(|alias| alias.name).collect();
            let functions = module.functions.iter();
            let functions =
                functions.filter(|function| function.body.is_some() || aliases.contains(function.name));
            // Kernels are found by name in the whole image, whatever their linkage.
            let functions = functions.map(|function| {
                let linkage = match function.linkage {
                    Linkage::Local if function.is_kernel => Linkage::Visible,
                    linkage => linkage,
                };
                (function.name, function.line, linkage)
            });
            let variables = module.variables.iter().filter(|variable| variable.space != Space::Shared);
            let variables = variables.map(|variable| (variable.name, variable.line, variable.linkage));
            for (name, line, linkage) in functions.chain(variables) {
                let Some(symbol) = self.get(name) else { continue };
                if !matches!(linkage, Linkage::Visible | Linkage::Weak) {
                    continue;
                }
                let own = Export { symbol, is_weak: linkage == Linkage::Weak };
                match exports.get(name).copied() {
                    None => drop(exports.insert(name, own)),
                    Some(_) if own.is_weak => self.replace(symbol, program),
                    Some(other) if other.is_weak => {
                        self.replace(other.symbol, program);
                        exports.insert(name, own);
                    }
                    Some(_) => {
                        let message = format!("`{name}` is defined in more than one of the linked texts");
                        errors.push(PtxError::new(line, message));
                    }
                }
            }
        }
        exports
    }

    /// Hides a replaced weak definition.
    fn replace(&mut self, symbol: Symbol, program: &mut Program) {
        match symbol {
            Symbol::Function(index) => {
                if let Some(defined) = self.defined.get_mut(index as usize) {
                    defined.is_replaced = true;
                }
            }
            Symbol::Global(index) => {
                if let Some(global) = program.globals.get_mut(index as usize) {
                    global.name.clear();
                }
            }
            Symbol::Shared(_) | Symbol::Intrinsic(_) | Symbol::Reference | Symbol::Unresolved => {}
        }
    }

    /// Resolves the names of a text that other texts define.
    pub(super) fn resolve(
        &mut self,
        module: &Module<'t>,
        exports: &HashMap<&'t str, Export>,
        missing: Missing,
        program: &mut Program,
        errors: &mut Vec<PtxError>,
    ) {
        for function in &module.functions {
            let own = self.get(function.name);
            let is_open = own == Some(Symbol::Unresolved) || function.linkage == Linkage::Weak;
            match exports.get(function.name).filter(|_| is_open) {
                Some(export) => self.insert(function.name, export.symbol),
                None if own == Some(Symbol::Unresolved) && missing == Missing::IsLeftOpen => {
                    // No function of the program has this index.
                    self.insert(function.name, Symbol::Function(self.signatures.len() as u32));
                    self.signatures.push(signature_of(function));
                }
                None => {}
            }
        }
        for variable in module.variables.iter().filter(|variable| variable.space != Space::Shared) {
            let own = self.get(variable.name);
            let is_open = own == Some(Symbol::Unresolved) || variable.linkage == Linkage::Weak;
            match exports.get(variable.name).filter(|_| is_open) {
                Some(export) => self.insert(variable.name, export.symbol),
                None if own != Some(Symbol::Unresolved) => {}
                None if missing == Missing::IsLeftOpen => {
                    let stand_in = Variable { size: Some(variable.size.unwrap_or(0)), ..variable.clone() };
                    if let Ok(global) = global(&stand_in) {
                        self.insert(variable.name, Symbol::Global(program.globals.len() as u32));
                        program.globals.push(global);
                    }
                }
                None => {
                    let message =
                        format!("`{}` is defined in another text: link it with that", variable.name);
                    errors.push(PtxError::new(variable.line, message));
                }
            }
        }
    }
}
