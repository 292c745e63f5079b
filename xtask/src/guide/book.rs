//! `cargo xtask book`: the guide as HTML, beside the documentation of the libraries.
//!
//! mdBook makes the pages. Then names of items become links to the documentation, and files of the
//! workspace that the pages link to are copied to the book.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::PAGES;
use super::names::Items;
use crate::cargo::Cargo;
use crate::documentation::{self, Pages, resolved};

/// The book's folder in that of the documentation.
const FOLDER: &str = "guide";

const MISSING: &str = "mdbook does not start. It makes the book; install it by `cargo install mdbook --locked` or \
                       by another way of https://rust-lang.github.io/mdBook, or name the program in MDBOOK";

/// Makes documentation and book; returns the first page.
pub(crate) fn run(cargo: &Cargo) -> Result<PathBuf> {
    // Before the documentation is built, which takes minutes.
    let program = std::env::var_os("MDBOOK").unwrap_or_else(|| "mdbook".into());
    ensure_runs(&program)?;
    documentation::run(cargo)?;
    let folder = documentation::folder(cargo);
    let book = folder.join(FOLDER);
    let mut mdbook = Command::new(program);
    mdbook.arg("build").arg(cargo.root().join("docs/guide")).arg("--dest-dir").arg(&book);
    let status = mdbook.status()?;
    ensure!(status.success(), "mdbook ended with {status}");

    let pages = Pages::read(&folder)?;
    let items = Items::of(&pages, &documentation::libraries(cargo, &folder)?);
    for (path, text) in pages.texts().filter(|(path, _)| path.starts_with(FOLDER)) {
        let foreign = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("from-"));
        let text = with_items(text, &items, foreign);
        std::fs::write(folder.join(path), with_files(&text, cargo.root(), &book)?)?;
    }
    let dead = Pages::read(&folder)?.dead_links(&[FOLDER.to_owned()].into());
    dead.iter().for_each(|link| println!("{link}"));
    ensure!(dead.is_empty(), "{} links of the book are dead; they are listed above", dead.len());
    Ok(book.join("index.html"))
}

fn ensure_runs(mdbook: &OsStr) -> Result<()> {
    let asked = Command::new(mdbook).arg("--version").output().context(MISSING)?;
    let program = Path::new(mdbook).display();
    ensure!(asked.status.success(), "{program} --version ended with {}; is it mdBook?", asked.status);
    Ok(())
}

/// A page with links from the names of items. With `foreign`, the first column of its tables has
/// names of others.
fn with_items(text: &str, items: &Items, foreign: bool) -> String {
    let mut out = String::new();
    let mut parts = text.split("<code>");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let name = part.split("</code>").next().unwrap_or_default();
        // Not in a link already.
        let is_free = out.matches("<a ").count() == out.matches("</a>").count()
            && !(foreign && is_in_first_column(&out));
        match items.place(name).filter(|_| is_free) {
            Some(place) => {
                let rest = part.get(name.len() + "</code>".len()..).unwrap_or_default();
                out.push_str(&format!("<a href=\"../{place}\"><code>{name}</code></a>{rest}"));
            }
            None => {
                out.push_str("<code>");
                out.push_str(part);
            }
        }
    }
    out
}

/// Whether a page breaks off in the first column of a table.
fn is_in_first_column(text: &str) -> bool {
    let row = text.rsplit("<tr>").next().unwrap_or_default();
    row.len() < text.len() && row.matches("<td").count() == 1 && !row.contains("</tr>")
}

/// A page whose links out of the book lead to copies of the files.
fn with_files(text: &str, root: &Path, book: &Path) -> Result<String> {
    let mut out = String::new();
    let mut parts = text.split("href=\"");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let link = part.split('"').next().unwrap_or_default();
        out.push_str("href=\"");
        match file(link, root) {
            Some(file) => {
                let copy = book.join("files").join(&file);
                std::fs::create_dir_all(copy.parent().unwrap_or(book))?;
                std::fs::copy(root.join(&file), copy)?;
                out.push_str("files/");
                out.push_str(&file.to_string_lossy());
                out.push_str(part.get(link.len()..).unwrap_or_default());
            }
            None => out.push_str(part),
        }
    }
    Ok(out)
}

/// The file of the workspace that a link of a page leads to. mdBook has changed `.md` to `.html`.
fn file(link: &str, root: &Path) -> Option<PathBuf> {
    let path = link.split('#').next().filter(|path| path.starts_with("../"))?;
    let page = Path::new(PAGES).join("page.md");
    let found = resolved(&page, path);
    [found.with_extension("md"), found].into_iter().find(|file| root.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_column_is_told_from_others() {
        assert!(is_in_first_column("<table><tr><td>a</td></tr><tr><td>"));
        assert!(!is_in_first_column("<tr><td>a</td><td>"));
        assert!(!is_in_first_column("<tr><td>a</td></tr></table><p>"));
        assert!(!is_in_first_column("<p>"));
    }

    #[test]
    fn a_missing_mdbook_is_told_with_how_to_get_it() {
        let error = ensure_runs(OsStr::new("/no/such/mdbook")).unwrap_err();
        assert!(format!("{error:#}").contains("cargo install mdbook"), "{error:#}");
    }

    #[test]
    fn links_out_of_the_book_lead_to_files() {
        let root = xtask::workspace();
        assert_eq!(file("../../shapes.html", &root), Some(PathBuf::from("docs/shapes.md")));
        assert_eq!(file("../../../Cargo.toml", &root), Some(PathBuf::from("Cargo.toml")));
        assert_eq!(file("start.html", &root), None);
        assert_eq!(file("../cuda_graph/index.html", &root), None);
    }
}
