//! The table of all drawings and variants, as Markdown.

use super::Row;
use super::variants::VARIANTS;
use crate::statistics::Summary;

/// The head of the table.
pub(super) fn header() {
    let names: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
    println!("\n| graph | | {} |", names.join(" | "));
    println!("| --- | --- |{}", " --- |".repeat(names.len()));
}

/// The rows of one drawing: a line for each of the three times.
pub(super) fn row(row: &Row) {
    let line = |what: &str, median: fn(&super::Times) -> Summary| {
        let cells: Vec<String> = row.times.iter().map(|times| cell(median(times))).collect();
        println!("| {} | {what} | {} |", row.name, cells.join(" | "));
    };
    line("launch", |times| times.launch);
    line("run", |times| times.run);
    line("instantiate", |times| times.instantiate);
}

/// What the numbers are.
pub(super) fn legend() {
    println!("\nMicroseconds, medians; in brackets the interquartile range.");
}

fn cell(summary: Summary) -> String {
    let (value, spread) = (summary.median, summary.spread());
    let digits = if value < 100.0 { 1 } else { 0 };
    format!("{value:.digits$} ({spread:.digits$})")
}
