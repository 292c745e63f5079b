//! The file of ceilings: the instructions of each operation when they were last recorded.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Above the recorded count by more than this, an operation has become more expensive. Compilers
/// lay out the same code a little differently in another folder.
const PART: f64 = 0.05;
const INSTRUCTIONS: f64 = 3.0;

const HEAD: &str = "\
# Do not edit: `cargo xtask instructions --record` writes this file.
# Instructions of one operation on the driver that does nothing, counted by callgrind on x86-64.
";

/// A count of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Count {
    pub(super) operation: String,
    pub(super) instructions: f64,
}

pub(super) fn read(path: &Path) -> Result<Vec<Count>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    parse(&text).with_context(|| format!("{} is damaged", path.display()))
}

pub(super) fn write(path: &Path, counts: &[Count]) -> Result<()> {
    Ok(std::fs::write(path, render(counts))?)
}

fn render(counts: &[Count]) -> String {
    let lines = counts.iter().map(|count| format!("{:8.0}  {}\n", count.instructions, count.operation));
    HEAD.to_owned() + &lines.collect::<String>()
}

fn parse(text: &str) -> Result<Vec<Count>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let (count, operation) = line.trim_start().split_once("  ").context(line.to_owned())?;
            ensure!(!operation.trim().is_empty(), "{line}");
            Ok(Count { operation: operation.trim().to_owned(), instructions: count.parse()? })
        })
        .collect()
}

/// Whether a count is above the ceiling.
pub(super) fn is_above(found: f64, recorded: f64) -> bool {
    found > recorded * (1.0 + PART) + INSTRUCTIONS
}

/// Whether a count is so far below the recorded one that the ceiling guards little.
pub(super) fn is_far_below(found: f64, recorded: f64) -> bool {
    is_above(recorded, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let count = |operation: &str, instructions| Count { operation: operation.to_owned(), instructions };
        let counts = [count("launch, built per call", 412.0), count("fill", 90.0)];
        assert_eq!(parse(&render(&counts)).expect("it was just written"), counts);
        assert!(render(&counts).starts_with("# Do not edit"));
        assert!(parse("many  fill").is_err() && parse("12").is_err());
    }

    #[test]
    fn a_little_more_is_no_change() {
        assert!(!is_above(1050.0, 1000.0) && is_above(1060.0, 1000.0));
        assert!(!is_above(13.0, 10.0) && is_above(14.0, 10.0));
        assert!(is_far_below(900.0, 1000.0) && !is_far_below(970.0, 1000.0));
    }
}
