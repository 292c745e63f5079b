//! `.file` and `.loc`: the source that a text was made from. They serve messages only, so a
//! directive of another form is skipped.

use super::cursor::Cursor;
use crate::ptx::lex::Kind;

/// `.file 1 "kernel.cu"`, perhaps with time and size: number and name.
pub(super) fn file<'t>(cursor: &mut Cursor<'_, 't>) -> Option<(u64, &'t str)> {
    let tokens = directive(cursor);
    match tokens.as_slice() {
        [Kind::Number(number), Kind::Text(name), ..] => Some((number.parse().ok()?, *name)),
        _ => None,
    }
}

/// `.loc 1 23 5`, perhaps with the function that was inlined: file and line.
pub(super) fn location(cursor: &mut Cursor<'_, '_>) -> Option<(u64, u32)> {
    let tokens = directive(cursor);
    match tokens.as_slice() {
        [Kind::Number(file), Kind::Number(line), ..] => Some((file.parse().ok()?, line.parse().ok()?)),
        _ => None,
    }
}

/// Takes the rest of the line; returns what follows the name of the directive.
fn directive<'t>(cursor: &mut Cursor<'_, 't>) -> Vec<Kind<'t>> {
    let line = cursor.line();
    cursor.bump();
    let mut tokens = Vec::new();
    while !cursor.is_end() && cursor.line() == line {
        tokens.extend(cursor.next());
    }
    tokens
}
