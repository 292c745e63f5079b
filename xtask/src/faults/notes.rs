//! The notes of the harness: the lines of the libraries in which driver calls failed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::sources::Function;

/// The driver calls that failed, by file and line.
#[derive(Default)]
pub(super) struct Notes(BTreeMap<String, BTreeMap<usize, BTreeSet<String>>>);

impl Notes {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut notes = Self::default();
        for entry in std::fs::read_dir(folder)? {
            std::fs::read_to_string(entry?.path())?.lines().for_each(|note| notes.add(note));
        }
        Ok(notes)
    }

    /// Adds a note such as `cuGraphLaunch`, a tab, and `graph/src/exec/mod.rs:80`.
    fn add(&mut self, note: &str) {
        let Some((call, place)) = note.split_once('\t') else { return };
        let Some((file, line)) = place.rsplit_once(':') else { return };
        let Ok(line) = line.parse() else { return };
        let lines = self.0.entry(file.to_owned()).or_default();
        lines.entry(line).or_default().insert(call.to_owned());
    }

    /// The number of driver calls that failed in a function.
    pub(super) fn calls_in(&self, function: &Function) -> usize {
        let places = function.bodies.iter().filter_map(|body| {
            let lines = self.0.get(&body.file)?;
            Some(lines.range(body.lines.clone()).flat_map(|(_, calls)| calls))
        });
        places.flatten().collect::<BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::Body;
    use super::*;

    #[test]
    fn calls_count_once_and_within_the_bodies() {
        let mut notes = Notes::default();
        let all = ["cuA\tgraph/src/a.rs:3", "cuA\tgraph/src/a.rs:4", "cuB\tgraph/src/a.rs:5"];
        all.iter().chain(&["cuC\tgraph/src/b.rs:9"]).for_each(|note| notes.add(note));
        let body = |file: &str, lines| Body { file: file.to_owned(), lines };
        let calls = |bodies| {
            let names = ["cuda-graph", "Graph", "new"].map(str::to_owned);
            let [library, owner, name] = names;
            notes.calls_in(&Function { library, owner, name, bodies })
        };
        assert_eq!(calls(vec![body("graph/src/a.rs", 3..=4)]), 1);
        assert_eq!(calls(vec![body("graph/src/a.rs", 4..=5), body("graph/src/b.rs", 1..=9)]), 3);
        assert_eq!(calls(vec![body("graph/src/b.rs", 3..=5)]), 0);
    }
}
