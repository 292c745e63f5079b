//! The guide, `docs/guide`: the names and links on its pages are checked with the documentation,
//! and `cargo xtask book` makes the book.
//!
//! - [`names`]: the items of the libraries that the pages name exist;
//! - [`places`]: a link to a part of a page leads to a heading;
//! - a page links to each example of cuda-graph;
//! - [`book`]: the book, by mdBook, with links from the names to the documentation.
//!
//! Programs on the pages are compiled and run with the other examples of the documentation.

pub(crate) mod book;
mod names;
mod places;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::documentation::Pages;
use names::Items;

/// The folder of the pages.
const PAGES: &str = "docs/guide/src";

/// The folder of the examples.
const EXAMPLES: &str = "crates/graph/examples";

/// A page of the guide.
struct Page {
    /// The name of its file.
    name: String,
    text: String,
}

/// Checks the pages; says how many names of items they have.
pub(crate) fn check(root: &Path, documentation: &Pages, libraries: &BTreeSet<String>) -> Result<usize> {
    let pages = read(root)?;
    let items = Items::of(documentation, libraries);
    let (mut found, mut findings) = (0, Vec::new());
    for page in &pages {
        for name in names::named(&page.name, &page.text) {
            match items.place(name) {
                Some(_) => found += 1,
                None => findings.push(format!("{}: there is no item {name}", page.name)),
            }
        }
        findings.extend(places::dead(page, &pages));
    }
    findings.extend(examples_without_link(root, &pages)?);
    for finding in &findings {
        println!("{finding}");
    }
    let count = findings.len();
    ensure!(findings.is_empty(), "{count} names or links of the guide lead nowhere or are missing");
    Ok(found)
}

/// One finding for each example of cuda-graph that no page links to.
fn examples_without_link(root: &Path, pages: &[Page]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for entry in std::fs::read_dir(root.join(EXAMPLES))? {
        let path = entry?.path();
        let program = if path.is_dir() { path.join("main.rs") } else { path };
        let is_program = program.is_file() && program.extension().is_some_and(|extension| extension == "rs");
        let name = program.strip_prefix(root)?.display().to_string();
        if is_program && !pages.iter().any(|page| page.text.contains(&format!("/{name})"))) {
            findings.push(format!("no page links to the example {name}"));
        }
    }
    Ok(findings)
}

fn read(root: &Path) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(root.join(PAGES))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            pages.push(Page { name, text: std::fs::read_to_string(&path)? });
        }
    }
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_linked_from_the_guide() {
        let root = xtask::workspace();
        let pages = read(&root).unwrap();
        assert_eq!(examples_without_link(&root, &pages).unwrap(), Vec::<String>::new());
        let all = examples_without_link(&root, &[]).unwrap();
        assert!(all.len() > 20 && all.iter().all(|finding| finding.ends_with(".rs")), "{all:?}");
    }
}
