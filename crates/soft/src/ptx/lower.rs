//! Lowering: [`syntax`](super::syntax) to [`code`](super::code), with names resolved and operands
//! checked.

mod address;
mod atomic;
mod body;
mod cluster;
mod control;
mod convert;
mod data;
mod emit;
mod float;
mod function;
mod hint;
mod integer;
mod kernel;
mod linkage;
mod matrix;
mod mbarrier;
mod memory;
mod opcodes;
mod operand;
mod reader;
mod scope;
mod stack;
mod symbol;
mod symbols;
mod tensormap;
mod texture;
mod transfer;
mod variable;
mod video;
mod wgmma;
mod wmma;

use std::sync::Arc;

use super::code::{Function, Program};
use super::error::{MOST_ERRORS, PtxError};
use super::image::Image;
use super::jit::Cache;
use super::parse;
use super::syntax::Module;
use symbol::Defined;
use symbols::{Missing, Symbols};

impl Image {
    /// Parses, checks and lowers a PTX text.
    ///
    /// # Errors
    /// Returns all errors of the text in order. An instruction that the interpreter lacks is an
    /// error, too.
    pub(crate) fn parse(text: &str) -> Result<Image, Vec<PtxError>> {
        image(&[parse::module(text)?], Missing::IsError)
    }

    /// As [`parse`](Self::parse), for a text whose external names other texts will define. The
    /// image cannot run.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub(crate) fn parse_part(text: &str) -> Result<Image, Vec<PtxError>> {
        image(&[parse::module(text)?], Missing::IsLeftOpen)
    }

    /// Links several texts to one image. Each external name is defined by the text that makes it
    /// visible.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse); in addition, names that no text or several texts define.
    pub(crate) fn link(texts: &[&str]) -> Result<Image, Vec<PtxError>> {
        let modules = texts.iter().map(|text| parse::module(text)).collect::<Result<Vec<_>, _>>()?;
        image(&modules, Missing::IsError)
    }
}

/// Lowers parsed texts to one image.
fn image(modules: &[Module<'_>], missing: Missing) -> Result<Image, Vec<PtxError>> {
    let mut errors = Vec::new();
    let mut program = Program::default();
    let mut symbols = Symbols::collect(modules, missing, &mut program, &mut errors);
    let defined = symbols.defined();
    let source = |at: &Defined| modules.get(at.module)?.functions.get(at.function);
    let mut functions = Vec::new();
    for (at, source) in defined.iter().filter_map(|at| Some((at, source(at)?))) {
        if errors.len() < MOST_ERRORS {
            symbols.enter(at.module);
            functions.push(function::lower(source, &mut symbols, &mut errors));
        } else {
            functions.push(Function::default());
        }
    }
    if !errors.is_empty() {
        // Lines of several texts have no common order.
        if modules.len() == 1 {
            errors.sort_by_key(|error| error.line);
        }
        errors.truncate(MOST_ERRORS);
        return Err(errors);
    }
    program.functions = functions;
    program.uses_reserved = symbols.uses_reserved;
    program.shared = symbols.take_shared();
    program.globals.append(&mut symbols.take_inner());
    let program = Arc::new(program);
    let native = Arc::new(Cache::new(program.functions.len()));
    let mut kernels = Vec::new();
    for (function, at) in defined.iter().enumerate() {
        if let Some(source) = source(at).filter(|source| source.is_kernel && !at.is_replaced) {
            match kernel::kernel(source, function as u32, &program, &native) {
                Ok(kernel) => kernels.push(kernel),
                Err(error) => errors.push(error),
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let version = modules.iter().map(|module| module.version).max().unwrap_or_default();
    Ok(Image { version, kernels, program })
}
