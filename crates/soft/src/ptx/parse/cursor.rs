//! A position in the token stream, with helpers for parsing.

use crate::ptx::error::{Parsed, PtxError};
use crate::ptx::lex::{Kind, Token};
use crate::ptx::syntax::Literal;

pub(super) struct Cursor<'a, 't> {
    tokens: &'a [Token<'t>],
    at: usize,
}

impl<'a, 't> Cursor<'a, 't> {
    pub(super) fn new(tokens: &'a [Token<'t>]) -> Self {
        Cursor { tokens, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn peek(&self) -> Option<Kind<'t>> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<Kind<'t>> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    pub(super) fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    pub(super) fn bump(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len());
    }

    pub(super) fn next(&mut self) -> Option<Kind<'t>> {
        let kind = self.peek();
        self.bump();
        kind
    }

    pub(super) fn take(&mut self, mark: u8) -> bool {
        let found = self.peek() == Some(Kind::Mark(mark));
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect(&mut self, mark: u8) -> Parsed<()> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", char::from(mark)))) }
    }

    pub(super) fn word(&mut self) -> Parsed<&'t str> {
        match self.peek() {
            Some(Kind::Word(word)) => {
                self.bump();
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// A number that is an integer, without signs.
    pub(super) fn integer(&mut self) -> Parsed<u64> {
        let line = self.line();
        match self.number()? {
            Literal::Int(value) => Ok(value),
            _ => Err(PtxError::new(line, "expected an integer")),
        }
    }

    /// A number without signs.
    pub(super) fn number(&mut self) -> Parsed<Literal> {
        let line = self.line();
        let Some(Kind::Number(text)) = self.peek() else { return Err(self.unexpected("a number")) };
        self.bump();
        number(text).ok_or_else(|| PtxError::new(line, format!("`{text}` is not a number of PTX")))
    }

    /// Describes the next token, for errors.
    pub(super) fn unexpected(&self, wanted: &str) -> PtxError {
        let found = match self.peek() {
            None => "the end of the text".into(),
            Some(Kind::Word(text) | Kind::Number(text)) => format!("`{text}`"),
            Some(Kind::Dotted(text)) => format!("`.{text}`"),
            Some(Kind::Text(_)) => "a string".into(),
            Some(Kind::Mark(mark)) => format!("`{}`", char::from(mark)),
        };
        PtxError::new(self.line(), format!("expected {wanted}, found {found}"))
    }

    /// Skips past the next `mark`.
    pub(super) fn skip_past(&mut self, mark: u8) {
        while let Some(kind) = self.next() {
            if kind == Kind::Mark(mark) {
                return;
            }
        }
    }

    /// Skips the rest of the line.
    pub(super) fn skip_line(&mut self) {
        let line = self.line();
        while !self.is_end() && self.line() == line {
            self.bump();
        }
    }

    /// Recovers from an error at module scope: skips the rest of the declaration and its body.
    pub(super) fn recover_item(&mut self) {
        let mut depth = 0_u32;
        while let Some(kind) = self.next() {
            match kind {
                Kind::Mark(b'{') => depth += 1,
                Kind::Mark(b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                Kind::Mark(b';') if depth == 0 => return,
                _ => {}
            }
        }
    }

    /// Recovers from an error in a body: skips to the end of the statement or before a brace.
    pub(super) fn recover(&mut self) {
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Mark(b'{' | b'}') => return,
                Kind::Mark(b';') => return self.bump(),
                _ => self.bump(),
            }
        }
    }
}

fn number(text: &str) -> Option<Literal> {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0f") {
        return (hex.len() == 8).then(|| u32::from_str_radix(hex, 16).ok().map(Literal::F32))?;
    }
    if let Some(hex) = lower.strip_prefix("0d") {
        return (hex.len() == 16).then(|| u64::from_str_radix(hex, 16).ok().map(Literal::F64))?;
    }
    let digits = lower.strip_suffix('u').unwrap_or(&lower);
    if let Some(hex) = digits.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Literal::Int);
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return u64::from_str_radix(binary, 2).ok().map(Literal::Int);
    }
    if digits.contains(['.', 'e']) {
        return digits.parse::<f64>().ok().map(|value| Literal::F64(value.to_bits()));
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return u64::from_str_radix(digits, 8).ok().map(Literal::Int);
    }
    digits.parse().ok().map(Literal::Int)
}
