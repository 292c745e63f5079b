//! Text for pictures: which characters can appear, how wide text is at most, and how it is
//! shortened.
//!
//! Whoever opens a picture has other fonts than whoever made it, so widths are upper bounds: a
//! column is as wide as a character of the widest common monospaced font, and characters that such
//! fonts lack count as more than one column.

use crate::wording;

/// Width of one column in units of the font's size; common monospaced fonts have 0.55 to 0.61.
const COLUMN: f64 = 0.62;

/// The most columns that a character takes.
fn columns_of(character: char) -> usize {
    match u32::from(character) {
        0..0x1100 => 1,
        // Latin, Greek and common punctuation. Dashes and the like may come from other fonts.
        0x1e00..0x2010 => 1,
        // A single character that is a whole sentence.
        0xfdfd => 16,
        // Cuneiform and other wide historic scripts.
        0x1_2000..0x1_4700 => 4,
        // East Asian characters, symbols and emoji are about as wide as the font's size.
        _ => 2,
    }
}

/// The most columns that a line takes.
pub(crate) fn columns(line: &str) -> usize {
    line.chars().map(columns_of).sum()
}

/// The most width that a line takes, in the unit of the font's size.
pub(crate) fn width(line: &str, font_size: f64) -> f64 {
    columns(line) as f64 * COLUMN * font_size
}

/// The text as one line of at most `most` columns: without characters that break lines or change
/// the direction of text, and without its middle if it is longer.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let clean: String =
        text.chars().map(|character| if is_plain(character) { character } else { ' ' }).collect();
    let clean = clean.trim();
    if columns(clean) <= most {
        return clean.to_owned();
    }
    let room = most.saturating_sub(columns_of('…'));
    // The end of a name distinguishes more names than its beginning, but people read the beginning
    // first.
    let head = prefix(clean.chars(), room - room / 2);
    let tail = prefix(clean.chars().rev(), room / 2);
    let tail: String = tail.chars().rev().collect();
    format!("{}…{}", head.trim_end(), tail.trim_start())
}

/// The text as lines of at most `most` columns, broken after commas; a longer part without commas
/// is shortened.
pub(crate) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if columns(line) + columns(part.trim_end()) <= most => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| shortened(line, most)).collect()
}

/// As many of the characters as fit.
fn prefix(characters: impl Iterator<Item = char>, most: usize) -> String {
    let mut taken = 0;
    let fits = |character: &char| {
        taken += columns_of(*character);
        taken <= most
    };
    characters.take_while(fits).collect()
}

/// Whether a character can appear in a line as it is: it is allowed in XML, breaks no line and
/// changes no direction.
fn is_plain(character: char) -> bool {
    is_xml(character) && wording::is_plain(character)
}

/// Whether XML 1.0 allows a character.
pub(crate) fn is_xml(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\0'..'\u{20}' => false,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_stays() {
        assert_eq!(shortened("memcpy#7", 8), "memcpy#7");
        assert_eq!(shortened("", 8), "");
        assert_eq!(shortened("a\tb\nc\u{202e}", 8), "a b c");
    }

    #[test]
    fn long_text_loses_its_middle() {
        assert_eq!(shortened("abcdefghijklmnop", 10), "abcd…mnop");
        assert_eq!(columns("abcd…mnop"), 10);
        assert_eq!(shortened("漢字漢字漢字", 8), "漢…字");
        assert_eq!(shortened("anything", 2), "…");
    }

    #[test]
    fn lists_are_wrapped() {
        let text = "grid 128, group 256, 4096 bytes of shared memory";
        assert_eq!(wrapped(text, 30), ["grid 128, group 256,", "4096 bytes of shared memory"]);
        assert_eq!(wrapped("grid 128, group 256", 19), ["grid 128, group 256"]);
        assert!(wrapped("", 19).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn wrapped_lines_fit(text in ".*", most in 2_usize..60) {
            assert!(wrapped(&text, most).iter().all(|line| columns(line) <= most));
        }

        #[test]
        fn shortened_text_fits_and_is_one_plain_line(text in ".*", most in 2_usize..60) {
            let short = shortened(&text, most);
            assert!(columns(&short) <= most);
            assert!(short.chars().all(is_plain));
        }
    }
}
