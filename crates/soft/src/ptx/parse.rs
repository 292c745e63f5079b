//! The parser: tokens to [`syntax`](super::syntax). This file parses declarations of module scope,
//! [`body`] function bodies, [`variable`] variables.

mod body;
mod constant;
mod cursor;
mod location;
mod variable;

use super::error::{MOST_ERRORS, Parsed, PtxError};
use super::lex::{self, Kind};
use super::syntax::{Alias, Function, Linkage, Module, Parameter};
use super::types::Type;
use cursor::Cursor;

/// The target of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'t> {
    /// Whether it begins as a PTX text.
    pub(crate) is_ptx: bool,
    /// Version of PTX, major and minor.
    pub(crate) version: Option<(u32, u32)>,
    /// The first target.
    pub(crate) target: Option<&'t str>,
}

/// Parses the directives at the beginning of a text.
pub(crate) fn head(text: &str) -> Head<'_> {
    let tokens = lex::first_tokens(lex::until_zero(text), 4);
    let mut cursor = Cursor::new(&tokens);
    let is_ptx = cursor.next() == Some(Kind::Dotted("version"));
    let mut head = Head { is_ptx, version: None, target: None };
    if is_ptx {
        head.version = version(&mut cursor).ok();
    }
    if cursor.next() == Some(Kind::Dotted("target")) {
        head.target = cursor.word().ok();
    }
    head
}

/// Parses a text.
pub(super) fn module(text: &str) -> Result<Module<'_>, Vec<PtxError>> {
    let mut errors = Vec::new();
    let tokens = lex::tokens(lex::until_zero(text), &mut errors);
    let mut cursor = Cursor::new(&tokens);
    let mut module = Module::default();
    if cursor.peek() != Some(Kind::Dotted("version")) {
        return Err(vec![PtxError::new(
            cursor.line(),
            "the text does not begin with `.version`; is it PTX?",
        )]);
    }
    while !cursor.is_end() && errors.len() < MOST_ERRORS {
        let before = cursor.position();
        if let Err(error) = item(&mut cursor, &mut module, &mut errors) {
            errors.push(error);
            cursor.recover_item();
        }
        if cursor.position() == before {
            cursor.bump();
        }
    }
    if errors.is_empty() && module.target.is_empty() {
        errors.push(PtxError::new(1, "the text has no `.target`"));
    }
    if errors.is_empty() { Ok(module) } else { Err(errors) }
}

fn item<'t>(cursor: &mut Cursor<'_, 't>, module: &mut Module<'t>, errors: &mut Vec<PtxError>) -> Parsed<()> {
    match cursor.peek() {
        Some(Kind::Dotted("version")) => {
            cursor.bump();
            module.version = version(cursor)?;
        }
        Some(Kind::Dotted("target")) => {
            cursor.bump();
            module.target = cursor.word()?;
            while cursor.take(b',') {
                cursor.word()?;
            }
        }
        Some(Kind::Dotted("address_size")) => {
            cursor.bump();
            let line = cursor.line();
            if cursor.integer()? != 64 {
                return Err(PtxError::new(
                    line,
                    "only `.address_size 64` is supported by the software driver",
                ));
            }
        }
        Some(Kind::Dotted("file")) => module.files.extend(location::file(cursor)),
        Some(Kind::Dotted("loc")) => cursor.skip_line(),
        Some(Kind::Dotted("section")) => section(cursor)?,
        Some(Kind::Dotted("pragma")) => cursor.skip_past(b';'),
        Some(Kind::Dotted("alias")) => module.aliases.push(alias(cursor)?),
        Some(Kind::Mark(b';')) => cursor.bump(),
        _ => declaration(cursor, module, errors)?,
    }
    Ok(())
}

/// `.alias name, of;`
fn alias<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<Alias<'t>> {
    let line = cursor.line();
    cursor.bump();
    let name = cursor.word()?;
    cursor.expect(b',')?;
    let of = cursor.word()?;
    cursor.expect(b';')?;
    Ok(Alias { line, name, of })
}

fn version(cursor: &mut Cursor<'_, '_>) -> Parsed<(u32, u32)> {
    let line = cursor.line();
    let Some(Kind::Number(text)) = cursor.next() else {
        return Err(PtxError::new(line, "`.version` takes a number such as 8.0"));
    };
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => Ok((major, minor)),
        _ => Err(PtxError::new(line, format!("`.version {text}` is not a version"))),
    }
}

/// Skips debug information.
fn section(cursor: &mut Cursor<'_, '_>) -> Parsed<()> {
    let line = cursor.line();
    while !matches!(cursor.peek(), None | Some(Kind::Mark(b'{'))) {
        cursor.bump();
    }
    let mut depth = 0_u32;
    while let Some(kind) = cursor.next() {
        match kind {
            Kind::Mark(b'{') => depth += 1,
            Kind::Mark(b'}') => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return Ok(());
        }
    }
    Err(PtxError::new(line, "this `.section` has no end"))
}

fn declaration<'t>(
    cursor: &mut Cursor<'_, 't>,
    module: &mut Module<'t>,
    errors: &mut Vec<PtxError>,
) -> Parsed<()> {
    let line = cursor.line();
    let mut linkage = Linkage::Local;
    loop {
        match cursor.peek() {
            Some(Kind::Dotted("extern")) => linkage = Linkage::Extern,
            Some(Kind::Dotted("visible")) => linkage = Linkage::Visible,
            Some(Kind::Dotted("weak" | "common")) => linkage = Linkage::Weak,
            _ => break,
        }
        cursor.bump();
    }
    match cursor.peek() {
        Some(Kind::Dotted("entry" | "func")) => {
            module.functions.push(function(cursor, line, linkage, errors)?);
            Ok(())
        }
        Some(Kind::Dotted("global" | "const" | "shared")) => {
            module.variables.append(&mut variable::declarations(cursor, linkage)?);
            Ok(())
        }
        Some(Kind::Dotted(name)) => {
            Err(PtxError::new(line, format!("directive `.{name}` is not supported by the software driver")))
        }
        _ => Err(cursor.unexpected("a directive")),
    }
}

fn function<'t>(
    cursor: &mut Cursor<'_, 't>,
    line: u32,
    linkage: Linkage,
    errors: &mut Vec<PtxError>,
) -> Parsed<Function<'t>> {
    let is_kernel = cursor.next() == Some(Kind::Dotted("entry"));
    let mut function = Function {
        line,
        name: "",
        is_kernel,
        linkage,
        returns: Vec::new(),
        params: Vec::new(),
        max_threads: None,
        required: None,
        body: None,
    };
    skip_attributes(cursor);
    if cursor.peek() == Some(Kind::Mark(b'(')) {
        function.returns = parameters(cursor)?;
    }
    if is_kernel && !function.returns.is_empty() {
        return Err(PtxError::new(line, "a kernel returns nothing"));
    }
    function.name = cursor.word()?;
    if cursor.peek() == Some(Kind::Mark(b'(')) {
        function.params = parameters(cursor)?;
        check_parameters(&function)?;
    }
    tuning(cursor, &mut function)?;
    match cursor.peek() {
        Some(Kind::Mark(b'{')) => function.body = Some(body::statements(cursor, errors)?),
        Some(Kind::Mark(b';')) => cursor.bump(),
        _ => return Err(cursor.unexpected("a body")),
    }
    Ok(function)
}

/// Only the last parameter of a device function may be an array without a size: the rest of a
/// variadic call.
fn check_parameters(function: &Function<'_>) -> Parsed<()> {
    let wrong = |param: &&Parameter<'_>| param.is_register || matches!(param.ty, Type::Pred | Type::B128);
    if let Some(param) = function.params.iter().find(|param| function.is_kernel && wrong(param)) {
        let message = format!("parameter `{}` of a kernel has to be `.param`, and no predicate", param.name);
        return Err(PtxError::new(param.line, message));
    }
    let complete = if function.is_kernel { 0 } else { 1 };
    let all = function.params.len().saturating_sub(complete);
    match function.params.iter().take(all).find(|param| param.size == 0) {
        Some(param) => Err(PtxError::new(param.line, format!("parameter `{}` has no size", param.name))),
        None => Ok(()),
    }
}

fn skip_attributes(cursor: &mut Cursor<'_, '_>) {
    while cursor.peek() == Some(Kind::Dotted("attribute")) {
        cursor.skip_past(b')');
    }
}

/// The directives between the parameters and the body.
fn tuning(cursor: &mut Cursor<'_, '_>, function: &mut Function<'_>) -> Parsed<()> {
    while let Some(Kind::Dotted(name)) = cursor.peek() {
        let line = cursor.line();
        cursor.bump();
        match name {
            "maxntid" | "reqntid" | "reqnctapercluster" => {
                let dims = dimensions(cursor)?;
                let threads = dims.iter().try_fold(1_u32, |product, &dim| product.checked_mul(dim));
                if name == "reqntid" {
                    function.required = Some(dims);
                }
                if name != "reqnctapercluster" {
                    function.max_threads = Some(threads.unwrap_or(1024).min(1024));
                }
            }
            "minnctapersm"
            | "maxnctapersm"
            | "maxnreg"
            | "maxclusterrank"
            | "local_maxnreg"
            | "abi_preserve"
            | "abi_preserve_control" => {
                cursor.integer()?;
            }
            "noreturn" | "explicitcluster" | "blocksareclusters" | "unique" => {}
            "pragma" => cursor.skip_past(b';'),
            "attribute" => cursor.skip_past(b')'),
            "loc" | "file" => cursor.skip_line(),
            _ => {
                let message = format!("directive `.{name}` is not supported by the software driver");
                return Err(PtxError::new(line, message));
            }
        }
    }
    Ok(())
}

fn dimensions(cursor: &mut Cursor<'_, '_>) -> Parsed<[u32; 3]> {
    let mut dims = [1; 3];
    for dim in &mut dims {
        let line = cursor.line();
        *dim = u32::try_from(cursor.integer()?)
            .map_err(|_| PtxError::new(line, "this dimension does not fit into 32 bits"))?;
        if !cursor.take(b',') {
            break;
        }
    }
    Ok(dims)
}

/// `( .param .b32 a, .param .align 8 .b8 b[16] )`
fn parameters<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<Vec<Parameter<'t>>> {
    cursor.expect(b'(')?;
    let mut all = Vec::new();
    while !cursor.take(b')') {
        if !all.is_empty() {
            cursor.expect(b',')?;
        }
        all.push(parameter(cursor)?);
    }
    Ok(all)
}

fn parameter<'t>(cursor: &mut Cursor<'_, 't>) -> Parsed<Parameter<'t>> {
    let line = cursor.line();
    let is_register = match cursor.next() {
        Some(Kind::Dotted("reg")) => true,
        Some(Kind::Dotted("param")) => false,
        _ => return Err(PtxError::new(line, "a parameter begins with `.param` or `.reg`")),
    };
    let mut align = None;
    let mut ty = None;
    while let Some(Kind::Dotted(name)) = cursor.peek() {
        cursor.bump();
        match name {
            "align" => align = Some(variable::alignment(cursor)?),
            "ptr" => {
                // What the pointer points to is a hint to the compiler; its alignment must not be
                // taken for ours.
                while let Some(Kind::Dotted(hint @ ("global" | "const" | "local" | "shared" | "align"))) =
                    cursor.peek()
                {
                    cursor.bump();
                    if hint == "align" {
                        variable::alignment(cursor)?;
                    }
                }
            }
            _ => ty = Some(variable::fundamental(name, line)?),
        }
    }
    let ty: Type = ty.ok_or_else(|| PtxError::new(line, "this parameter has no type"))?;
    let name = cursor.word()?;
    if ty == Type::B128 && is_register {
        return Err(PtxError::new(
            line,
            format!("parameter `{name}`: a register of 128 bits is not supported by the software driver"),
        ));
    }
    let elements = variable::dimensions(cursor)?;
    if is_register && elements.is_some() {
        return Err(PtxError::new(line, format!("parameter `{name}`: a register cannot be an array")));
    }
    let size = match elements {
        None => Some(u64::from(ty.bytes())),
        // An array without a size is the rest of a variadic call: nothing is passed in it.
        Some(None) => Some(0),
        Some(Some(count)) => count.checked_mul(u64::from(ty.bytes())),
    };
    let size = size.and_then(|size| u32::try_from(size).ok()).filter(|&size| size <= 1 << 16);
    let size = size.ok_or_else(|| PtxError::new(line, format!("parameter `{name}` is too large")))?;
    let align = align.unwrap_or(u64::from(ty.bytes())) as u32;
    Ok(Parameter { line, name, ty, size, align, is_register })
}
