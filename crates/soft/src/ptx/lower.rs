//! [`syntax`](super::syntax) to [`code`](super::code): names resolved, operands checked, every instruction known.

mod body;
mod control;
mod convert;
mod data;
mod float;
mod function;
mod integer;
mod kernel;
mod memory;
mod operand;
mod scope;
mod spec;
mod symbols;

use std::sync::Arc;

use super::code::{Function, Program};
use super::error::{MOST_ERRORS, PtxError};
use super::image::Image;
use super::parse;
use super::syntax::Module;
use symbols::Symbols;

impl Image {
    /// Parses, checks and lowers a PTX text.
    ///
    /// # Errors
    /// Everything wrong with the text, in its order; an instruction that the interpreter lacks is an error here.
    pub(crate) fn parse(text: &str) -> Result<Image, Vec<PtxError>> {
        image(parse::module(text)?)
    }
}

/// Lowers a parsed text.
fn image(module: Module<'_>) -> Result<Image, Vec<PtxError>> {
    let mut errors = Vec::new();
    let mut program = Program::default();
    let mut symbols = Symbols::collect(&module, &mut program, &mut errors);
    let mut functions = Vec::new();
    for index in symbols.defined() {
        let Some(function) = module.functions.get(index) else { continue };
        if errors.len() < MOST_ERRORS {
            functions.push(function::lower(function, &mut symbols, &mut errors));
        } else {
            functions.push(Function::default());
        }
    }
    if !errors.is_empty() {
        errors.sort_by_key(|error| error.line);
        errors.truncate(MOST_ERRORS);
        return Err(errors);
    }
    program.functions = functions;
    program.shared = symbols.take_shared();
    let program = Arc::new(program);
    let mut kernels = Vec::new();
    for (function, index) in symbols.defined().into_iter().enumerate() {
        if let Some(source) = module.functions.get(index).filter(|source| source.is_kernel) {
            match kernel::kernel(source, function as u32, &program) {
                Ok(kernel) => kernels.push(kernel),
                Err(error) => errors.push(error),
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Image { version: module.version, target: module.target.to_owned(), kernels, program })
}
