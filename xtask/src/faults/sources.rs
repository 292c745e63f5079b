//! What the sources say: which tests sweep, and which public functions make driver calls.
//!
//! This reads text, and relies on rustfmt's layout.

use core::fmt;
use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::stats::rust_files;

/// The libraries whose functions are swept.
const LIBRARIES: [&str; 3] = ["graph", "handles", "launch"];

/// A public function whose documentation names driver calls.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) library: String,
    /// The type or trait, or the file's module for a free function.
    pub(super) owner: String,
    pub(super) name: String,
    /// Where it is written; in several places if it is of a type with several parameters.
    pub(super) places: Vec<Place>,
}

/// The lines of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file's path in the repository, with slashes.
    pub(super) file: String,
    pub(super) lines: RangeInclusive<usize>,
}

impl fmt::Display for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}::{}", self.library, self.owner, self.name)
    }
}

/// The functions of all libraries, sorted.
pub(super) fn functions(root: &Path) -> Result<Vec<Function>> {
    let mut functions = BTreeMap::<_, Vec<Place>>::new();
    for library in LIBRARIES {
        for file in rust_files(&root.join("crates").join(library).join("src"))? {
            let text = std::fs::read_to_string(&file)?;
            let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            for Found { owner, name, lines } in functions_in(&text) {
                let owner = owner.unwrap_or_else(|| module(&file));
                let place = Place { file: path.clone(), lines };
                functions.entry((format!("cuda-{library}"), owner, name)).or_default().push(place);
            }
        }
    }
    let function = |((library, owner, name), places)| Function { library, owner, name, places };
    Ok(functions.into_iter().map(function).collect())
}

/// The name of a file's module.
fn module(file: &Path) -> String {
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let own = name(file);
    if own == "mod" { file.parent().map(name).unwrap_or_default() } else { own }
}

/// A function of a file.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// None for a free function.
    owner: Option<String>,
    name: String,
    lines: RangeInclusive<usize>,
}

fn functions_in(text: &str) -> Vec<Found> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut owner, mut functions) = (None, Vec::new());
    let (mut names_calls, mut is_trait) = (false, false);
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if let Some(found) = owner_of(line) {
            is_trait = line.starts_with("pub trait");
            owner = Some(found);
        } else if *line == "}" {
            owner = None;
        }
        if code.starts_with("///") {
            names_calls |= code.contains("Calls `cu") || code.contains("calls `cu");
        } else if !code.starts_with("#[") {
            let name = function(code, is_trait && owner.is_some());
            if let Some(name) = name.filter(|_| names_calls) {
                let lines = at + 1..=at + length(&lines[at..]);
                functions.push(Found { owner: owner.clone(), name, lines });
            }
            names_calls = false;
        }
    }
    functions
}

/// The number of lines of the function that begins with the first of these.
fn length(lines: &[&str]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = lines.first().map_or(0, |line| indent(line));
    let ends = |line: &&str| indent(line) == own && line.ends_with(['}', ';']);
    lines.iter().position(ends).map_or(1, |last| last + 1)
}

/// The type or trait whose functions follow.
fn owner_of(line: &str) -> Option<String> {
    let rest = match line.strip_prefix("pub trait ") {
        Some(rest) => rest,
        None => {
            let rest = line.strip_prefix("impl").or_else(|| line.strip_prefix("unsafe impl"))?;
            let rest = behind_generics(rest).trim_start();
            rest.split_once(" for ").map_or(rest, |(_, owner)| owner)
        }
    };
    let path = rest.split(['<', ' ', '{', ':']).next()?;
    Some(path.rsplit("::").next().unwrap_or(path).to_owned())
}

/// The text behind generic parameters, if it begins with some.
fn behind_generics(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    text
}

/// The name of the function that a line begins, if others can call it.
fn function(code: &str, in_trait: bool) -> Option<String> {
    let rest = match code.strip_prefix("pub ") {
        Some(rest) => rest,
        None if in_trait => code,
        None => return None,
    };
    let rest = ["const ", "unsafe ", "async "].iter().fold(rest, |rest, word| rest.trim_start_matches(word));
    let name = rest.strip_prefix("fn ")?.split(['(', '<']).next()?;
    Some(name.to_owned())
}

/// The full names of the tests that sweep.
pub(super) fn sweeps(root: &Path) -> Result<Vec<String>> {
    let suites = root.join("tests/suites");
    let mut tests = Vec::new();
    for file in rust_files(&suites)? {
        let text = std::fs::read_to_string(&file)?;
        let path = path_of(file.strip_prefix(&suites).unwrap_or(&file));
        tests.extend(sweeps_in(&text).into_iter().map(|test| format!("tests::{path}::{test}")));
    }
    tests.sort();
    Ok(tests)
}

/// The module path of a file of a suite.
fn path_of(file: &Path) -> String {
    let path: PathBuf = file.with_extension("");
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| part != "mod" && part != "main").collect::<Vec<_>>().join("::")
}

/// The tests of a file that call a sweep, or a function of the file that does.
fn sweeps_in(text: &str) -> Vec<String> {
    let mut functions: Vec<(String, bool, String)> = Vec::new();
    let mut is_test = false;
    for line in text.lines() {
        is_test |= line == "#[test]";
        let code = line.strip_prefix("pub(crate) ").unwrap_or(line);
        if let Some(name) = code.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next()) {
            functions.push((name.to_owned(), is_test, String::new()));
            is_test = false;
        } else if let Some((.., body)) = functions.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    let mut sweeping = vec!["sweep".to_owned(), "every_failure".to_owned()];
    let calls = |body: &str, names: &[String]| names.iter().any(|name| body.contains(&format!("{name}(")));
    let helpers = functions.iter().filter(|(_, is_test, body)| !is_test && calls(body, &sweeping));
    let helpers: Vec<String> = helpers.map(|(name, ..)| name.clone()).collect();
    sweeping.extend(helpers);
    let tests = functions.into_iter().filter(|(_, is_test, body)| *is_test && calls(body, &sweeping));
    tests.map(|(name, ..)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_documentation() {
        let text = "\
impl<'g, N: Into<X>> Frontier<'g, N> {
    /// Adds.
    ///
    /// Calls `cuGraphAddNode`.
    #[must_use]
    pub fn add<T>(&self) -> T {
        x
    }

    /// Says.
    pub fn say(&self) {}
}

impl Ext for Context {
    /// Calls `cuX`.
    fn hidden(&self) {}
}

pub trait Ext {
    /// Calls `cuX`.
    fn shown(&self);
}

/// Calls `cuX`.
pub unsafe fn free() {}
";
        let expected =
            [(Some("Frontier"), "add", 6..=8), (Some("Ext"), "shown", 21..=21), (None, "free", 25..=25)].map(
                |(owner, name, lines)| Found {
                    owner: owner.map(str::to_owned),
                    name: name.to_owned(),
                    lines,
                },
            );
        assert_eq!(functions_in(text), expected);
    }

    #[test]
    fn tests_that_sweep_are_found() {
        let text = "\
fn helper() {
    sweep(\"x\", || Ok(()));
}

#[test]
fn directly() {
    every_failure(|| Ok(()));
}

#[test]
fn not_at_all() {}

#[test]
fn by_a_helper() {
    helper();
}
";
        assert_eq!(sweeps_in(text), ["directly", "by_a_helper"]);
        assert_eq!(path_of(Path::new("graph/rollback/mod.rs")), "graph::rollback");
    }
}
