//! Writing XML: escaped text and short numbers.

use core::fmt::{self, Write};

use crate::draw::svg::text::is_xml;

/// Text between tags or in a quoted attribute, escaped.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\r' => formatter.write_char('\n')?,
                other if is_xml(other) => formatter.write_char(other)?,
                _ => formatter.write_char(char::REPLACEMENT_CHARACTER)?,
            }
        }
        Ok(())
    }
}

/// A length or coordinate, rounded to a tenth.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(crate) f64);

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths < 0 {
            formatter.write_char('-')?;
        }
        let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
        if tenth == 0 { write!(formatter, "{whole}") } else { write!(formatter, "{whole}.{tenth}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(Escaped("<a & \"b\">\0\r\n").to_string(), "&lt;a &amp; &quot;b&quot;&gt;\u{fffd}\n\n");
    }

    #[test]
    fn numbers_are_short() {
        let short = [0.0, -0.04, 12.0, 12.34, -0.26, 1e6].map(|number| Number(number).to_string());
        assert_eq!(short, ["0", "0", "12", "12.3", "-0.3", "1000000"]);
    }
}
