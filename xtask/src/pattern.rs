//! Names in which a `*` stands for any text.

/// Whether `text` is what `pattern` says, where each `*` stands for any text.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(behind) = text.strip_prefix(start) else {
        return false;
    };
    let mut ends = behind.char_indices().map(|(at, _)| at).chain([behind.len()]);
    ends.any(|at| behind.get(at..).is_some_and(|tail| matches(rest, tail)))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("a.py::*", "a.py::test[x]"));
        assert!(matches("*::test[*]", "a.py::test[x]"));
        assert!(!matches("a.py::test", "a.py::test[x]"));
        assert!(!matches("a*b", "ac"));
    }
}
