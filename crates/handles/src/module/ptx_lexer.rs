//! The tokens of a PTX text, with their places.
//!
//! It knows comments and strings, and nothing of instructions. Characters that no PTX text has
//! outside of them end the lexing: an assembler might read the rest otherwise.

use core::ops::Range;

/// A token of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// An identifier, with its `%` or `$`.
    Word(&'t str),
    /// A name after a dot, without the dot: a directive, a modifier or a type.
    Dotted(&'t str),
    /// A number as written.
    Number(&'t str),
    /// A string.
    Text,
    /// Any other character of the language.
    Mark(u8),
}

/// Reads the tokens of a text in order.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

const MARKS: &[u8] = b"{}()[]<>,;:+-|!@=~*&^/?.";

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and its place; `None` at the end of the text.
    ///
    /// # Errors
    /// What cannot be read, with its line.
    pub(super) fn next(&mut self) -> Result<Option<(Token<'t>, Range<usize>)>, String> {
        self.skip_blank()?;
        let start = self.at;
        let Some(byte) = self.byte(0) else { return Ok(None) };
        let token = match byte {
            b'.' if self.byte(1).is_some_and(is_word) => {
                self.at += 1;
                Token::Dotted(self.word())
            }
            b'%' => {
                self.at += 1;
                self.word();
                Token::Word(&self.text[start..self.at])
            }
            b'0'..=b'9' => {
                self.skip_number();
                Token::Number(&self.text[start..self.at])
            }
            byte if is_word(byte) => Token::Word(self.word()),
            b'"' => {
                self.skip_string()?;
                Token::Text
            }
            byte if MARKS.contains(&byte) => {
                self.at += 1;
                Token::Mark(byte)
            }
            _ => {
                let character = self.text[start..].chars().next().unwrap_or('?');
                return self.fail(start, &format!("{character:?} is not a character of PTX"));
            }
        };
        Ok(Some((token, start..self.at)))
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn word(&mut self) -> &'t str {
        let start = self.at;
        while self.byte(0).is_some_and(is_word) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn skip_number(&mut self) {
        while let Some(byte) = self.byte(0) {
            let is_point = byte == b'.' && self.byte(1).is_some_and(|next| next.is_ascii_digit());
            if !(byte.is_ascii_alphanumeric() || is_point) {
                return;
            }
            self.at += 1;
        }
    }

    fn skip_string(&mut self) -> Result<(), String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.byte(0) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                // The escaped character may be a quotation mark.
                Some(b'\\') => self.at += 1 + usize::from(self.byte(1).is_some_and(|next| next != b'\n')),
                None | Some(b'\n') => return self.fail(start, "a string has no end"),
                Some(_) => self.at += 1,
            }
            // The escaped character may have several bytes.
            while !self.text.is_char_boundary(self.at) {
                self.at += 1;
            }
        }
    }

    fn skip_blank(&mut self) -> Result<(), String> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c), _) => self.at += 1,
                (Some(b'/'), Some(b'/')) => self.skip_line()?,
                (Some(b'/'), Some(b'*')) => {
                    let start = self.at;
                    match self.text[start + 2..].find("*/") {
                        Some(length) => self.at = start + 2 + length + 2,
                        None => return self.fail(start, "a comment has no end"),
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips a comment up to the end of its line. A backslash there, or a carriage return without a
    /// line feed, could mean to an assembler that the line ends elsewhere.
    fn skip_line(&mut self) -> Result<(), String> {
        let start = self.at;
        let rest = &self.text[start..];
        let line = rest.split('\n').next().unwrap_or(rest);
        let comment = line.strip_suffix('\r').unwrap_or(line);
        if comment.ends_with('\\') || comment.contains('\r') {
            return self.fail(start, "the end of a comment is unclear");
        }
        self.at += line.len();
        Ok(())
    }

    fn fail<T>(&self, at: usize, what: &str) -> Result<T, String> {
        let line = 1 + self.text[..at].bytes().filter(|byte| *byte == b'\n').count();
        Err(format!("line {line}: {what}"))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        while let Some((token, range)) = lexer.next()? {
            assert!(!text[range.clone()].is_empty(), "{range:?}");
            found.push(token);
        }
        Ok(found)
    }

    #[test]
    fn words_numbers_and_marks_are_told_apart() {
        let expected = [
            Token::Dotted("version"),
            Token::Number("7.8"),
            Token::Mark(b'@'),
            Token::Word("%p1"),
            Token::Word("bra"),
            Token::Word("$L__BB0_2"),
            Token::Mark(b';'),
            Token::Number("0f3F800000"),
            Token::Word("%"),
            Token::Number("3"),
            Token::Dotted("b8"),
            Token::Word("ld"),
            Token::Dotted("global"),
            Token::Mark(b'.'),
        ];
        assert_eq!(
            tokens(".version 7.8 @%p1 bra $L__BB0_2; 0f3F800000 % 3 .b8 ld.global .").unwrap(),
            expected
        );
    }

    #[test]
    fn comments_and_strings_hide_what_is_in_them() {
        let text = "a // .entry { \" /* \r\nb /* \" // \n } */ c \".entry \\\" { // é\" d /**/ e//";
        let expected = ["a", "b", "c"].map(Token::Word).into_iter();
        let expected: Vec<_> = expected.chain([Token::Text, Token::Word("d"), Token::Word("e")]).collect();
        assert_eq!(tokens(text).unwrap(), expected);
        assert_eq!(tokens("\"\\\\\" x").unwrap(), [Token::Text, Token::Word("x")]);
    }

    #[test]
    fn what_is_unclear_is_an_error_with_its_line() {
        for (text, told) in [
            ("a\n/* b", "line 2: a comment"),
            ("a\n\n\"b\nc\"", "line 3: a string"),
            ("\"b\\\"", "line 1: a string"),
            ("\"b\\", "line 1: a string"),
            ("\"b\\\n\"", "line 1: a string"),
            ("a // b\\\nc", "line 1: the end of a comment"),
            ("a // b\rc\n", "line 1: the end of a comment"),
            ("# 1 \"a.cu\"", "line 1: '#'"),
            ("a\né", "line 2: 'é'"),
            ("\u{feff}.version", "line 1: '\\u{feff}'"),
        ] {
            let error = tokens(text).unwrap_err();
            assert!(error.starts_with(told), "{text:?}: {error}");
        }
    }
}
