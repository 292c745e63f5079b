//! Lines of programs in other languages, which measure the same operations: one JSON object each.

use std::path::Path;

use serde::Deserialize;

use crate::Outcome;
use crate::record::{Part, Row, Side, Version};

/// A line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    /// An operation of a peer, by the name of its row.
    Measured { peer: String, version: String, operation: String, samples_ns: Vec<f64> },
    /// Why a peer, or one of its operations, was not measured.
    Absent { peer: String, absent: String },
}

/// What the lines of a file say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told {
    sides: Vec<(String, Side)>,
    pub(crate) peers: Vec<Version>,
    pub(crate) notes: Vec<String>,
}

impl Told {
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn parse(text: &str) -> Outcome<Self> {
        let mut told = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
            told.add(line);
        }
        Ok(told)
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Absent { peer, absent } => self.notes.push(format!("without {peer}: {absent}")),
            Line::Measured { peer, version, operation, samples_ns } => {
                self.sides.push((operation, Side::new(&peer, samples_ns)));
                let version = Version { name: peer, version };
                if !self.peers.contains(&version) {
                    self.peers.push(version);
                }
            }
        }
    }

    /// Adds to a row what was told of its operation.
    pub(crate) fn complete(&self, row: &mut Row) {
        if row.part == Part::Paths {
            let sides = self.sides.iter().filter(|(operation, _)| *operation == row.name);
            row.sides.extend(sides.map(|(_, side)| side.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;

    const LINES: &str = r#"
{"peer":"cuda.core","version":"1.1.0","operation":"graph launch","samples_ns":[3.0,5.0,4.0]}
{"peer":"cuda.core","version":"1.1.0","operation":"fill","samples_ns":[1.0]}
{"peer":"warp","absent":"No module named 'warp'"}
"#;

    #[test]
    fn lines_complete_the_rows_of_their_operations() {
        let told = Told::parse(LINES).expect("the lines are right");
        assert_eq!(told.peers, [Version { name: "cuda.core".to_owned(), version: "1.1.0".to_owned() }]);
        assert_eq!(told.notes, ["without warp: No module named 'warp'"]);
        let mut row = row("graph launch", &[2.0], &[1.0]);
        told.complete(&mut row);
        assert_eq!(row.sides.len(), 3);
        assert_eq!(row.summary("cuda.core").map(|summary| summary.median), Some(4.0));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = Told::parse("\n{\"peer\":\"x\"}\n").expect_err("it says nothing of the peer");
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
