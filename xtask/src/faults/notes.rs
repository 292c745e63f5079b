//! The notes of the harness: a line for each driver call that failed in a function.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::sources::Function;

/// The driver calls that failed, by type and function.
pub(super) struct Notes(BTreeMap<(String, String), BTreeSet<String>>);

impl Notes {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut notes = BTreeMap::<_, BTreeSet<String>>::new();
        for entry in std::fs::read_dir(folder)? {
            for line in std::fs::read_to_string(entry?.path())?.lines() {
                let Some((call, symbol)) = line.split_once('\t') else { continue };
                for name in names(symbol) {
                    notes.entry(name).or_default().insert(call.to_owned());
                }
            }
        }
        Ok(Self(notes))
    }

    /// The number of driver calls that failed in a function.
    pub(super) fn calls_in(&self, function: &Function) -> usize {
        let key = (function.owner.clone(), function.name.clone());
        self.0.get(&key).map_or(0, BTreeSet::len)
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
    use super::*;

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
