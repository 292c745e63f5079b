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
pub(super) struct Function {
    pub(super) library: String,
    /// The type or trait, or the file's module for a free function.
    pub(super) owner: String,
    pub(super) name: String,
    /// Several for a function of a trait.
    pub(super) bodies: Vec<Body>,
}

/// The lines of a function in its file, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    /// Such as `graph/src/exec/mod.rs`.
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
    let crates = root.join("crates");
    let mut functions = Vec::new();
    for library in LIBRARIES {
        let mut bodies: BTreeMap<_, (bool, Vec<Body>)> = BTreeMap::new();
        for path in rust_files(&crates.join(library).join("src"))? {
            let file = path.strip_prefix(&crates).unwrap_or(&path);
            let file = file.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
            for found in functions_in(&std::fs::read_to_string(&path)?) {
                let owner = found.owner.unwrap_or_else(|| module(&path));
                let (names_calls, bodies) = bodies.entry((owner, found.name)).or_default();
                *names_calls |= found.names_calls;
                bodies.push(Body { file: file.clone(), lines: found.lines });
            }
        }
        let named = bodies.into_iter().filter(|(_, (names_calls, _))| *names_calls);
        functions.extend(named.map(|((owner, name), (_, bodies))| Function {
            library: format!("cuda-{library}"),
            owner,
            name,
            bodies,
        }));
    }
    Ok(functions)
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
    /// The trait that an `impl` is of, or else the type.
    owner: Option<String>,
    name: String,
    /// Whether it is public, and its documentation names driver calls.
    names_calls: bool,
    lines: RangeInclusive<usize>,
}

fn functions_in(text: &str) -> Vec<Found> {
    let lines: Vec<&str> = text.lines().collect();
    // The owner, with the line that ends it.
    let mut owner: Option<(String, String)> = None;
    let (mut functions, mut names_calls, mut is_trait) = (Vec::new(), false, false);
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if let Some(found) = owner_of(code) {
            is_trait = code.starts_with("pub trait");
            owner = Some((found, format!("{}}}", indent(line))));
        } else if owner.as_ref().is_some_and(|(_, end)| end == line) {
            owner = None;
        }
        if code.starts_with("///") {
            names_calls |= code.contains("Calls `cu") || code.contains("calls `cu");
        } else if !code.starts_with("#[") {
            if let Some((name, is_public)) = function(code, is_trait && owner.is_some()) {
                let owner = owner.as_ref().map(|(name, _)| name.clone());
                let lines = at + 1..=at + length(&lines[at..]);
                functions.push(Found { owner, name, names_calls: names_calls && is_public, lines });
            }
            names_calls = false;
        }
    }
    functions
}

/// The blanks before the code of a line.
fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// The number of lines of the function that begins the lines.
fn length(lines: &[&str]) -> usize {
    let end = lines.first().map(|line| format!("{}}}", indent(line))).unwrap_or_default();
    let mut is_open = false;
    for (line, number) in lines.iter().zip(1..) {
        is_open |= line.ends_with('{');
        let is_last = if is_open { *line == end } else { line.ends_with([';', '}']) };
        if is_last {
            return number;
        }
    }
    lines.len()
}

/// The type or trait whose functions follow. A type has its last generic argument, if that is not
/// one letter: `ExecNode<HostCallbackNode>`.
fn owner_of(code: &str) -> Option<String> {
    if let Some(rest) = code.strip_prefix("pub trait ") {
        return Some(last_name(rest));
    }
    let rest = code.strip_prefix("impl").or_else(|| code.strip_prefix("unsafe impl"))?;
    let rest = rest.strip_prefix(' ').or(rest.starts_with('<').then_some(rest))?;
    let rest = behind_generics(rest).trim_start();
    if let Some((of_trait, _)) = rest.split_once(" for ") {
        return Some(last_name(of_trait));
    }
    let argument = rest.split_once('<').and_then(|(_, rest)| rest.split(['<', '>']).next());
    let argument = argument.and_then(|arguments| arguments.split(", ").last());
    let argument = argument.filter(|last| last.len() > 1 && !last.starts_with('\''));
    let argument = argument.map(|last| format!("<{last}>")).unwrap_or_default();
    Some(last_name(rest) + &argument)
}

/// The last name of the path that the code begins with, without generic arguments.
fn last_name(code: &str) -> String {
    let path = code.split(['<', ' ', '{']).next().unwrap_or(code).trim_end_matches(':');
    path.rsplit("::").next().unwrap_or(path).to_owned()
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

/// The name of the function that a line begins, and whether others can call it.
fn function(code: &str, in_trait: bool) -> Option<(String, bool)> {
    let public = code.strip_prefix("pub ");
    let of_crate = code.strip_prefix("pub(").and_then(|rest| Some(rest.split_once(") ")?.1));
    let rest = public.or(of_crate).unwrap_or(code);
    let rest = ["const ", "unsafe ", "async "].iter().fold(rest, |rest, word| rest.trim_start_matches(word));
    let name = rest.strip_prefix("fn ")?.split(['(', '<']).next()?;
    Some((name.to_owned(), public.is_some() || in_trait))
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
    fn functions_are_found_with_their_documentation() {
        let text = "\
impl<'g, N: Into<X>> Frontier<'g, N> {
    /// Adds.
    ///
    /// Calls `cuGraphAddNode`.
    #[must_use]
    pub fn add<T>(&self) -> T {
        if x {
            y
        }
    }

    /// Says.
    pub(crate) fn say(&self) {}
}

impl Ext for Context {
    fn shown(
        &self,
    ) {
        x
    }
}

pub trait Ext: Sized {
    /// Calls `cuX`.
    fn shown(
        &self,
    );
}

/// Calls `cuX`.
pub unsafe fn free() {}

macro_rules! more {
    () => {
        impl crate::Node<'_, $node> {
            /// Calls `cuX`.
            pub fn set(&self) {
            }
        }
    };
}
";
        let found = |owner: Option<&str>, name: &str, names_calls, lines| Found {
            owner: owner.map(str::to_owned),
            name: name.to_owned(),
            names_calls,
            lines,
        };
        let expected = [
            found(Some("Frontier"), "add", true, 6..=10),
            found(Some("Frontier"), "say", false, 13..=13),
            found(Some("Ext"), "shown", false, 17..=21),
            found(Some("Ext"), "shown", true, 26..=28),
            found(None, "free", true, 32..=32),
            found(Some("Node<$node>"), "set", true, 38..=39),
        ];
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
