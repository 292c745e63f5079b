//! `cargo xtask stats`: how large each package is.
//!
//! It reads text, and relies on rustfmt's layout: an item ends with the first line that closes its
//! brace at the item's own indentation. `unreachable_pub` is denied in the workspace, so what is
//! `pub` can be reached from outside of its crate.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo::Cargo;

const LONG: usize = 60;

/// The totals of one package.
#[derive(Default)]
struct Totals {
    files: usize,
    lines: usize,
    items: usize,
    methods: usize,
    functions: usize,
    wide: usize,
    long: Vec<String>,
}

/// Prints a table of the packages of the workspace, or of another checkout of it, then the
/// functions of more than 60 lines.
pub(crate) fn run(cargo: &Cargo, checkout: Option<&Path>) -> Result<()> {
    let root = checkout.unwrap_or(cargo.root());
    println!(
        "{:20} {:>6} {:>7} {:>7} {:>8} {:>10} {:>10} {:>8} {:>8}",
        "folder", "files", "lines", "pub", "pub fns", "functions", "over 60", "wide", "at root"
    );
    let mut long = Vec::new();
    for folder in folders(root)? {
        let totals = Totals::of(root, &folder)?;
        println!(
            "{:20} {:6} {:7} {:7} {:8} {:10} {:10} {:8} {:8}",
            folder,
            totals.files,
            totals.lines,
            totals.items,
            totals.methods,
            totals.functions,
            totals.long.len(),
            totals.wide,
            entries(&root.join(&folder))?
        );
        long.extend(totals.long);
    }
    println!("\npub: public items and macros; pub fns: public functions and methods; wide: comment");
    println!("lines of more than 100 columns; at root: files and folders in the folder itself.");
    long.iter().for_each(|function| println!("{function}"));
    Ok(())
}

/// The sources of each crate, the harness, each suite and the runner.
fn folders(root: &Path) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    for (parent, inner) in [("crates", "src"), ("crates", "tests"), ("tests/suites", ""), ("", "tests/src")] {
        let mut found = Vec::new();
        if parent.is_empty() {
            found.push(inner.to_owned());
        } else {
            for entry in std::fs::read_dir(root.join(parent))? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                found.push(format!("{parent}/{name}/{inner}").trim_end_matches('/').to_owned());
            }
        }
        found.retain(|folder| root.join(folder).is_dir());
        found.sort();
        folders.extend(found);
    }
    folders.push("xtask/src".to_owned());
    Ok(folders)
}

fn entries(folder: &Path) -> Result<usize> {
    Ok(std::fs::read_dir(folder)?.count())
}

impl Totals {
    fn of(root: &Path, folder: &str) -> Result<Self> {
        let mut totals = Self::default();
        for file in rust_files(&root.join(folder))? {
            let text = std::fs::read_to_string(&file)?;
            let is_generated = text.lines().next().is_some_and(|line| line.contains("Do not edit"));
            if !is_generated {
                totals.add(&file.strip_prefix(root).unwrap_or(&file).to_string_lossy(), &text);
            }
        }
        Ok(totals)
    }

    fn add(&mut self, path: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        self.files += 1;
        self.lines += lines.len();
        for (index, line) in lines.iter().enumerate() {
            let item = line.trim_start();
            let is_comment = item.starts_with("//");
            self.wide += usize::from(is_comment && line.chars().count() > 100);
            self.items += usize::from(is_public_item(item));
            let Some(name) = function(item) else { continue };
            self.functions += 1;
            self.methods += usize::from(item.starts_with("pub "));
            let length = length(&lines[index..]);
            if length > LONG {
                self.long.push(format!("{path}:{}: `{name}` has {length} lines", index + 1));
            }
        }
    }
}

/// The Rust files in a folder and below it.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(&inner).with_context(|| format!("no folder {}", inner.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Functions and methods are counted apart.
fn is_public_item(item: &str) -> bool {
    let kinds = ["struct ", "enum ", "union ", "trait ", "unsafe trait ", "type ", "static ", "const "];
    let public = item.strip_prefix("pub ").filter(|rest| !rest.starts_with("const fn "));
    let is_item = public.is_some_and(|rest| kinds.iter().any(|kind| rest.starts_with(kind)));
    is_item && function(item).is_none() || item.starts_with("#[macro_export]")
}

/// The name of the function that a line begins.
fn function(item: &str) -> Option<&str> {
    let mut words = item.split_whitespace().skip_while(|word| {
        matches!(*word, "const" | "async" | "unsafe" | "extern" | "\"C\"" | "\"system\"")
            || word.starts_with("pub")
    });
    (words.next() == Some("fn")).then(|| words.next())??.split(['(', '<']).next()
}

/// The number of lines up to the one that closes the item.
fn length(lines: &[&str]) -> usize {
    let Some(first) = lines.first() else { return 0 };
    let indentation = &first[..first.len() - first.trim_start().len()];
    let is_last = |line: &&str| {
        let rest = line.strip_prefix(indentation).unwrap_or_default();
        rest.starts_with('}') || (!rest.starts_with(' ') && (rest.ends_with(';') || rest.ends_with('}')))
    };
    lines.iter().position(is_last).map_or(lines.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_functions_are_counted() {
        let body = "        step();\n".repeat(59);
        let text = format!(
            "pub struct A;\npub(crate) struct B;\n#[macro_export]\nmacro_rules! c {{ () => {{}} }}\n\
             impl A {{\n    pub const fn new() -> Self {{ A }}\n    unsafe fn long(&self) {{\n{body}    }}\n}}\n\
             pub fn short(\n    a: u32,\n) {{\n}}\n"
        );
        let mut totals = Totals::default();
        totals.add("a.rs", &text);
        assert_eq!((totals.items, totals.methods, totals.functions), (2, 2, 3));
        assert_eq!(totals.long, ["a.rs:7: `long` has 61 lines"]);
    }
}
