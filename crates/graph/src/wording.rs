//! Formatting that several errors share.

use core::fmt::{self, Write as _};

/// The number of names or findings of a list that are shown.
const SHOWN: usize = 12;

/// A text with every character escaped that ends a line or controls a terminal.
pub(crate) struct OneLine<'t>(pub(crate) &'t str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| write_one(character, formatter))
    }
}

fn write_one(character: char, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match is_plain(character) {
        true => formatter.write_char(character),
        false => write!(formatter, "{}", character.escape_default()),
    }
}

/// Whether a character is shown as it is: it is no control character, breaks no line, and does not
/// change the direction of text.
pub(crate) fn is_plain(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}');
    let breaks = matches!(character, '\u{2028}' | '\u{2029}');
    !character.is_control() && !turns && !breaks
}

/// A name in one line. The middle of a very long name is left out.
pub(crate) struct Named<'t>(pub(crate) &'t str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEAD: usize = 80;
        const TAIL: usize = 40;
        let count = self.0.chars().count();
        if count <= HEAD + TAIL {
            return OneLine(self.0).fmt(formatter);
        }
        self.0.chars().take(HEAD).try_for_each(|character| write_one(character, formatter))?;
        formatter.write_str("…")?;
        self.0.chars().skip(count - TAIL).try_for_each(|character| write_one(character, formatter))
    }
}

/// Names in quotes, and the number of those left out.
pub(crate) struct Names<'a>(pub(crate) &'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, name) in self.0.iter().take(SHOWN).enumerate() {
            write!(formatter, "{}`{}`", if number > 0 { ", " } else { "" }, Named(name))?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// Descriptions, and the number of those left out.
pub(crate) struct Listed<'a>(pub(crate) &'a [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, thing) in self.0.iter().take(SHOWN).enumerate() {
            write!(formatter, "{}{thing}", if number > 0 { ", " } else { "" })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// The first findings, and the number of those left out.
pub(crate) struct Found<'a>(pub(crate) &'a [String]);

impl fmt::Display for Found<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        for (number, finding) in self.0.iter().take(SHOWN).enumerate() {
            write!(formatter, "{}{finding}", if number > 0 { "; " } else { "" })?;
        }
        More(self.0.len().saturating_sub(SHOWN)).fmt(formatter)
    }
}

/// The number of items left out, if any.
pub(crate) struct More(pub(crate) usize);

impl fmt::Display for More {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(formatter, "; and {} more", self.0) } else { Ok(()) }
    }
}

/// The node that is the cause, if it is known.
pub(crate) struct At<'a>(pub(crate) Option<&'a str>);

impl fmt::Display for At<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |node| write!(formatter, " because of node `{}`", Named(node)))
    }
}

/// A word after its indefinite article.
pub(crate) struct A<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for A<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.0.to_string();
        let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        write!(formatter, "{article} {word}")
    }
}

/// A number of things: the word gets an `s` unless there is one.
pub(crate) struct Count(pub(crate) usize, pub(crate) &'static str);

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

pub(crate) struct Path<'a>(pub(crate) &'a [String]);

impl fmt::Display for Path<'_> {
    /// Long cycles are shown by their ends.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        let left_out = self.0.len().saturating_sub(SHOWN);
        let ends = SHOWN / 2;
        for (index, node) in self.0.iter().enumerate() {
            match index {
                _ if left_out == 0 || index < ends || index >= ends + left_out => {
                    write!(formatter, "`{}` -> ", Named(node))?;
                }
                _ if index == ends => write!(formatter, "{left_out} more -> ")?,
                _ => {}
            }
        }
        self.0.first().map_or(Ok(()), |first| write!(formatter, "`{}`", Named(first)))
    }
}

pub(crate) struct Default(pub(crate) Option<u32>);

impl fmt::Display for Default {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(formatter, "default {value}"),
            None => formatter.write_str("without default"),
        }
    }
}

pub(crate) struct Setters<'a>(pub(crate) &'a [String]);

impl fmt::Display for Setters<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            setters => write!(formatter, ", though set by {}", Names(setters)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_bounded_length() {
        assert_eq!(Named("a\0b\n\u{1b}[31m\u{202e}").to_string(), "a\\u{0}b\\n\\u{1b}[31m\\u{202e}");
        let long = Named(&"漢".repeat(100_000)).to_string();
        assert_eq!((long.chars().count(), long.contains('…')), (121, true));
    }

    #[test]
    fn lists_are_cut_to_a_dozen() {
        let names: Vec<String> = (0..1000).map(|number| format!("n{number}")).collect();
        let text = Names(&names).to_string();
        assert!(text.starts_with("`n0`, `n1`") && text.ends_with("`n11` and 988 more"), "{text}");
        assert_eq!(Names(&names[..2]).to_string(), "`n0`, `n1`");
        assert_eq!(Listed(&names[..13]).to_string().matches("more").count(), 1);
    }

    #[test]
    fn articles_and_numbers_agree() {
        assert_eq!(
            [A("alloc"), A("event record"), A("while")].map(|a| a.to_string()),
            ["an alloc", "an event record", "a while"]
        );
        assert_eq!([Count(1, "node"), Count(0, "node")].map(|a| a.to_string()), ["1 node", "0 nodes"]);
    }
}
