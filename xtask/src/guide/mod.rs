//! The guide, `docs/guide`: the names and links on its pages are checked with the documentation,
//! and `cargo xtask book` makes the book.
//!
//! - [`names`]: the items of the libraries that the pages name exist;
//! - [`places`]: a link to a part of a page leads to a heading;
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
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "{} names or links of the guide lead nowhere", findings.len());
    Ok(found)
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
