//! The lexer: PTX text to tokens.

use super::error::{MOST_ERRORS, PtxError};

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// An identifier, with its `%` or `$`.
    Word(&'t str),
    /// A name after a dot, without it: a directive, a modifier, a type. `L1::no_allocate` is one.
    Dotted(&'t str),
    /// A number as written.
    Number(&'t str),
    /// The inside of a string.
    Text(&'t str),
    /// Any other character of the language.
    Mark(u8),
}

/// A token and its line, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) line: u32,
}

const MARKS: &[u8] = b"{}()[]<>,;:+-|!@=~*&^/?";

/// A text up to the first zero byte, where a C string ends whatever its stated length.
pub(super) fn until_zero(text: &str) -> &str {
    text.split('\0').next().unwrap_or("")
}

/// The first tokens of a text, up to an error.
pub(super) fn first_tokens(text: &str, count: usize) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1 };
    let mut tokens = Vec::new();
    while tokens.len() < count && lexer.skip_blank().is_ok() {
        let line = lexer.line;
        let Some(Ok(kind)) = lexer.peek(0).map(|byte| lexer.token(byte)) else { break };
        tokens.push(Token { kind, line });
    }
    tokens
}

/// Splits a text into tokens. Invalid characters are reported and skipped.
pub(super) fn tokens<'t>(text: &'t str, errors: &mut Vec<PtxError>) -> Vec<Token<'t>> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1 };
    let mut tokens = Vec::with_capacity(text.len() / 4);
    loop {
        if let Err(error) = lexer.skip_blank()
            && errors.len() < MOST_ERRORS
        {
            errors.push(error);
        }
        let line = lexer.line;
        let Some(byte) = lexer.peek(0) else { return tokens };
        match lexer.token(byte) {
            Ok(kind) => tokens.push(Token { kind, line }),
            Err(message) => {
                if errors.len() < MOST_ERRORS {
                    errors.push(PtxError::new(line, message));
                }
            }
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    line: u32,
}

impl<'t> Lexer<'t> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        if self.peek(0) == Some(b'\n') {
            self.line = self.line.saturating_add(1);
        }
        self.at += 1;
    }

    fn skip_blank(&mut self) -> Result<(), PtxError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c), _) => self.step(),
                (Some(b'/'), Some(b'/')) => {
                    while self.peek(0).is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                (Some(b'/'), Some(b'*')) => {
                    let line = self.line;
                    self.at += 2;
                    while !(self.peek(0) == Some(b'*') && self.peek(1) == Some(b'/')) {
                        if self.peek(0).is_none() {
                            return Err(PtxError::new(line, "this comment has no end"));
                        }
                        self.step();
                    }
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self, byte: u8) -> Result<Kind<'t>, String> {
        let start = self.at;
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%' => {
                self.at += 1;
                self.skip_word();
                Ok(Kind::Word(self.slice(start)))
            }
            b'.' if self.peek(1).is_some_and(is_word) => {
                self.at += 1;
                self.skip_word();
                while self.peek(0) == Some(b':')
                    && self.peek(1) == Some(b':')
                    && self.peek(2).is_some_and(is_word)
                {
                    self.at += 2;
                    self.skip_word();
                }
                Ok(Kind::Dotted(self.slice(start + 1)))
            }
            b'0'..=b'9' => {
                self.skip_number();
                Ok(Kind::Number(self.slice(start)))
            }
            b'"' => self.string(),
            _ if MARKS.contains(&byte) => {
                self.at += 1;
                Ok(Kind::Mark(byte))
            }
            _ => {
                let shown = self.text.get(start..).and_then(|rest| rest.chars().next());
                self.at += shown.map_or(1, char::len_utf8);
                Err(format!("{:?} is not a character of PTX", shown.unwrap_or('?')))
            }
        }
    }

    fn string(&mut self) -> Result<Kind<'t>, String> {
        self.at += 1;
        let start = self.at;
        while self.peek(0).is_some_and(|byte| byte != b'"' && byte != b'\n') {
            self.at += if self.peek(0) == Some(b'\\') && self.peek(1) == Some(b'"') { 2 } else { 1 };
        }
        let text = self.slice(start);
        if self.peek(0) != Some(b'"') {
            return Err("this string has no end".into());
        }
        self.at += 1;
        Ok(Kind::Text(text))
    }

    fn skip_word(&mut self) {
        while self.peek(0).is_some_and(|byte| is_word(byte) || byte == b'$') {
            self.at += 1;
        }
    }

    fn skip_number(&mut self) {
        let start = self.at;
        let plain =
            !(self.peek(0) == Some(b'0') && self.peek(1).is_some_and(|byte| byte.is_ascii_alphabetic()));
        while let Some(byte) = self.peek(0) {
            let dot = byte == b'.' && plain && self.peek(1).is_some_and(|next| next.is_ascii_digit());
            let sign = matches!(byte, b'+' | b'-')
                && plain
                && self.at > start
                && matches!(self.bytes.get(self.at - 1), Some(b'e' | b'E'));
            if !(byte.is_ascii_alphanumeric() || dot || sign) {
                return;
            }
            self.at += 1;
        }
    }

    fn slice(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or("")
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
