//! Text from outside in messages, with control characters escaped.

use core::fmt::{self, Write};

/// Text from outside, such as a name or a path, for use in a message. Control characters and
/// characters that change the direction of writing are escaped, so that a terminal or a log only
/// shows the message.
///
/// ```
/// assert_eq!(cuda_sys::Printable("a\u{1b}[31m\n").to_string(), r"a\u{1b}[31m\n");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(formatter, self.0, |_| false)
    }
}

/// [`Printable`] for logs of several lines: line ends and tabs are not escaped.
///
/// ```
/// let log = cuda_sys::PrintableLog("line 1\n\tline 2\u{7}");
/// assert_eq!(log.to_string(), "line 1\n\tline 2\\u{7}");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PrintableLog<'a>(pub &'a str);

impl fmt::Display for PrintableLog<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(formatter, self.0, |one| matches!(one, '\n' | '\t'))
    }
}

fn write(formatter: &mut fmt::Formatter<'_>, text: &str, stays: fn(char) -> bool) -> fmt::Result {
    text.chars().try_for_each(|one| match one.is_control() || turns(one) {
        true if !stays(one) => write!(formatter, "{}", one.escape_default()),
        _ => formatter.write_char(one),
    })
}

/// Whether a character changes the direction of text or separates lines invisibly.
fn turns(one: char) -> bool {
    matches!(one, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_escaped_and_what_reads_stays() {
        let shown = |text| Printable(text).to_string();
        assert_eq!(shown("größe `x` \"y\" \\ 木"), "größe `x` \"y\" \\ 木");
        assert_eq!(shown("a\0b\r\n\t\u{7f}\u{9b}"), r"a\u{0}b\r\n\t\u{7f}\u{9b}");
        assert_eq!(shown("a\u{202e}b\u{2069}"), r"a\u{202e}b\u{2069}");
        assert_eq!(PrintableLog("a\r\n\u{1b}b\t").to_string(), "a\\r\n\\u{1b}b\t");
    }
}
