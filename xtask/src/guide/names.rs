//! Names of items on the pages: `Graph::instantiate` in a span of code is a method, variant or
//! constant of a type in the documentation.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::documentation::Pages;

/// What a page may document, by the beginnings of its places in rustdoc's pages.
const KINDS: [&str; 5] = ["method.", "tymethod.", "variant.", "associatedconstant.", "structfield."];

/// The types of the documentation with their pages.
pub(super) struct Items<'p> {
    types: HashMap<&'p str, Vec<(&'p Path, &'p str)>>,
}

impl<'p> Items<'p> {
    pub(super) fn of(documentation: &'p Pages, libraries: &BTreeSet<String>) -> Self {
        let mut types: HashMap<&str, Vec<_>> = HashMap::new();
        for (path, text) in documentation.texts() {
            if !libraries.iter().any(|library| path.starts_with(library)) {
                continue;
            }
            let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let parts: Vec<&str> = file.split('.').collect();
            if let ["struct" | "enum" | "trait" | "macro", name, "html"] = parts[..] {
                types.entry(name).or_default().push((path, text));
            }
        }
        // Of types of one name, that of the uppermost library comes first.
        types
            .values_mut()
            .for_each(|pages| pages.sort_by_key(|(path, _)| (path.components().count(), *path)));
        Self { types }
    }

    /// The place in the documentation of `Type::item`, of `Type`, or of `macro!`.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        let (of, item) = name.split_once("::").unwrap_or((name.trim_end_matches('!'), ""));
        let pages = self.types.get(of)?;
        if item.is_empty() {
            return pages.first().map(|(path, _)| written(path));
        }
        pages.iter().find_map(|(path, text)| {
            let place = KINDS.iter().map(|kind| format!("{kind}{item}"));
            let place = place.into_iter().find(|place| text.contains(&format!("id=\"{place}\"")))?;
            Some(format!("{}#{place}", written(path)))
        })
    }
}

fn written(path: &Path) -> String {
    let parts: PathBuf = path.components().collect();
    parts.to_string_lossy().replace('\\', "/")
}

/// The spans of a page that are of the form `Type::item`. In the tables of `from-….md` the first
/// column has names of others.
pub(super) fn named<'t>(page: &str, text: &'t str) -> Vec<&'t str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let is_row = page.starts_with("from-") && line.starts_with('|');
        let own = if is_row { line.splitn(3, '|').nth(2).unwrap_or_default() } else { line };
        if !is_code {
            found.extend(own.split('`').skip(1).step_by(2).filter(|span| is_item(span)));
        }
    }
    found
}

/// Whether a span is of the form `Type::item`.
pub(super) fn is_item(span: &str) -> bool {
    let is_word =
        |part: &str| !part.is_empty() && part.chars().all(|one| one.is_alphanumeric() || one == '_');
    let is_type = |part: &str| is_word(part) && part.starts_with(|one: char| one.is_ascii_uppercase());
    span.split_once("::").is_some_and(|(of, item)| is_type(of) && is_word(item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spans_of_a_type_and_an_item() {
        let text = "`Graph::nodes`, `graph.nodes()`, `Config::new()`, `std::mem`\n```\n`A::b`\n```\n`B::C`";
        assert_eq!(named("graphs.md", text), ["Graph::nodes", "B::C"]);
        let row = "| `CudaStream::join` | `Stream::wait_for` |";
        assert_eq!(named("from-cudarc.md", row), ["Stream::wait_for"]);
    }
}
