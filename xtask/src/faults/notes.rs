//! The notes of the harness: a line for each driver call that failed in a function.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::sources::Function;

/// The driver calls that failed.
#[derive(Default)]
pub(super) struct Notes {
    /// By type and function, or by trait and function.
    by_name: BTreeMap<(String, String), BTreeSet<String>>,
    /// By file and line. An inlined function has no type in a backtrace.
    by_line: BTreeMap<String, BTreeMap<usize, BTreeSet<String>>>,
}

impl Notes {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut notes = Self::default();
        for entry in std::fs::read_dir(folder)? {
            for line in std::fs::read_to_string(entry?.path())?.lines() {
                notes.add(line);
            }
        }
        Ok(notes)
    }

    /// Adds a line: the call, the symbol, and its file and line.
    fn add(&mut self, line: &str) {
        let mut fields = line.split('\t');
        let (Some(call), Some(symbol)) = (fields.next(), fields.next()) else { return };
        for name in names(symbol) {
            self.by_name.entry(name).or_default().insert(call.to_owned());
        }
        let place = fields.next().and_then(|place| place.rsplit_once(':'));
        if let Some((file, Ok(line))) = place.map(|(file, line)| (file, line.parse())) {
            let lines = self.by_line.entry(file.to_owned()).or_default();
            lines.entry(line).or_default().insert(call.to_owned());
        }
    }

    /// The number of driver calls that failed in a function.
    pub(super) fn calls_in(&self, function: &Function) -> usize {
        let key = (function.owner.clone(), function.name.clone());
        let named = self.by_name.get(&key);
        let placed = function.places.iter().flat_map(|place| {
            let lines = self.by_line.get(&place.file).into_iter();
            lines.flat_map(|lines| lines.range(place.lines.clone()).map(|(_, calls)| calls))
        });
        named.into_iter().chain(placed).flatten().collect::<BTreeSet<_>>().len()
    }
}

/// Type and function of a symbol, as in `krate::room::<impl krate::Type>::function`; for a function
/// of a trait also the trait and the function.
fn names(symbol: &str) -> Vec<(String, String)> {
    let symbol = symbol.split("::{{closure}}").next().unwrap_or(symbol);
    let symbol = symbol.split("::{closure#").next().unwrap_or(symbol);
    let Some((owner, function)) = split_last(symbol) else { return Vec::new() };
    let Some(inside) = owner.strip_suffix('>').and_then(|owner| opened(owner)) else {
        return vec![(last(owner), last(function))];
    };
    let inside = inside.trim_start_matches("impl ");
    let both = inside.split_once(" as ").or_else(|| inside.split_once(" for "));
    let owners = both.map_or(vec![inside], |(one, other)| vec![one, other]);
    owners.into_iter().map(|owner| (last(owner), last(function))).collect()
}

/// The text behind the bracket that the end of the text is in.
fn opened(text: &str) -> Option<&str> {
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b'>' => depth += 1,
            b'<' if depth == 0 => return text.get(at + 1..),
            b'<' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The path of the owner and the function.
fn split_last(symbol: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    let bytes = symbol.as_bytes();
    let mut end = symbol.len();
    // Generic arguments of the function.
    if symbol.ends_with("::<_>") {
        end -= "::<_>".len();
    }
    for at in (1..end).rev() {
        match bytes[at] {
            b'>' => depth += 1,
            b'<' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes[at - 1] == b':' => {
                return Some((symbol.get(..at - 1)?, symbol.get(at + 1..end)?));
            }
            _ => {}
        }
    }
    None
}

/// The last name of a path, without generic arguments.
fn last(path: &str) -> String {
    let path = path.split('<').next().unwrap_or(path).trim_end_matches("::");
    path.rsplit("::").next().unwrap_or(path).trim_start_matches('&').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::sources::Place;
    use super::*;

    #[test]
    fn functions_are_found_by_name_or_by_lines() {
        let mut notes = Notes::default();
        notes.add("cuA\tkrate::Type::function\tcrates/a.rs:3");
        notes.add("cuB\tfunction<u32>\tcrates/a.rs:8");
        notes.add("cuB\tfunction<u32>\tcrates/a.rs:9");
        let function = |owner: &str, lines| Function {
            library: "krate".to_owned(),
            owner: owner.to_owned(),
            name: "function".to_owned(),
            places: vec![Place { file: "crates/a.rs".to_owned(), lines }],
        };
        assert_eq!(notes.calls_in(&function("Type", 8..=9)), 2);
        assert_eq!(notes.calls_in(&function("Other", 8..=9)), 1);
        assert_eq!(notes.calls_in(&function("Other", 4..=7)), 0);
    }

    #[test]
    fn symbols_name_types_and_traits() {
        let name = |owner: &str, function: &str| (owner.to_owned(), function.to_owned());
        let table = [
            ("cuda_graph::graph::Graph::len", vec![name("Graph", "len")]),
            (
                "cuda_graph::clone::<impl cuda_graph::graph::Graph>::clone_graph",
                vec![name("Graph", "clone_graph")],
            ),
            (
                "cuda_graph::update::kernel::<impl cuda_graph::update::ExecNode<cuda_graph::KernelNode>>::set",
                vec![name("ExecNode", "set")],
            ),
            (
                "<cuda_handles::Stream as cuda_graph::StreamExt>::graph_builder",
                vec![name("Stream", "graph_builder"), name("StreamExt", "graph_builder")],
            ),
            ("cuda_handles::stream::Stream::fill::{{closure}}", vec![name("Stream", "fill")]),
        ];
        for (symbol, expected) in table {
            assert_eq!(names(symbol), expected, "{symbol}");
        }
    }
}
