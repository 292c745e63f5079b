//! Names that are there, in errors about one that is not.

use core::fmt;

use cuda_sys::Printable;

/// Names that come near to one that was asked for, and how many there are in all. The nearest comes
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The nearest names, a dozen at most.
    pub names: Box<[Box<str>]>,
    /// How many names there are in all.
    pub total: usize,
}

/// How many names a message has.
const SHOWN: usize = 12;

/// How much of a name is compared: two names of some thousand characters would be compared for
/// long.
const COMPARED: usize = 128;

impl Near {
    /// The names that come nearest to `asked`.
    pub(crate) fn of(asked: &str, names: Vec<String>) -> Self {
        let total = names.len();
        let mut ranked: Vec<(usize, String)> =
            names.into_iter().map(|name| (distance(asked, &name), name)).collect();
        // A stable sort: names that are as far off stay in their order.
        ranked.sort_by_key(|(distance, _)| *distance);
        ranked.truncate(SHOWN);
        Self { names: ranked.into_iter().map(|(_, name)| name.into_boxed_str()).collect(), total }
    }
}

impl fmt::Display for Near {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, total) = (self.names.len(), self.total);
        match shown {
            0 => return formatter.write_str("it has none at all"),
            _ if shown < total => write!(formatter, "it has {total}, of which the nearest are ")?,
            _ => formatter.write_str("it has ")?,
        }
        for (index, name) in self.names.iter().enumerate() {
            write!(formatter, "{}`{}`", if index == 0 { "" } else { ", " }, Printable(name))?;
        }
        Ok(())
    }
}

/// How many characters have to be changed, added or removed to get from one name to the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(COMPARED).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, left) in one.chars().take(COMPARED).enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (right, cell) in other.iter().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(left != *right);
            diagonal = *cell;
            before = changed.min(*cell + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (one, other, expected) in [
            ("", "", 0),
            ("saxpy", "saxpy", 0),
            ("saxpy", "", 5),
            ("", "saxpy", 5),
            ("saxpy", "daxpy", 1),
            ("saxpy", "saxpy2", 1),
            ("kitten", "sitting", 3),
            ("größe", "grösse", 2),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn few_names_are_all_told_and_the_nearest_of_many() {
        let near = |asked, names: &[&str]| {
            Near::of(asked, names.iter().map(|&name| name.to_owned()).collect()).to_string()
        };
        assert_eq!(near("f", &[]), "it has none at all");
        assert_eq!(near("f", &["g", "h"]), "it has `g`, `h`");
        let many: Vec<String> = (0..20_000).map(|number| format!("kernel_{number}")).collect();
        let text = Near::of("kernel_1777", many).to_string();
        assert!(
            text.starts_with("it has 20000, of which the nearest are `kernel_1777`, `kernel_177`"),
            "{text}"
        );
        assert_eq!(text.matches('`').count(), 2 * SHOWN);
    }
}
