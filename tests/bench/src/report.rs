//! The report: tables for people, or lines of JSON.

use std::io::{IsTerminal, stderr};

use serde::Serialize;

use crate::Outcome;
use crate::collectives::GROUP;
use crate::driver::Choice;
use crate::graphs::SHAPED;
use crate::options::Measure;
use crate::record::{OURS, Origin, Part, RAW, Row, Run};
use crate::statistics::Summary;
use crate::table::{Table, time};

/// Where a run is made, line by line.
pub(crate) fn head(origin: &Origin) -> Vec<String> {
    let commit = origin.commit.as_deref().map(|commit| format!(" ({commit})")).unwrap_or_default();
    let mut lines = vec![format!("version {}{commit}, {}", origin.version, origin.date)];
    lines.extend(origin.processor.iter().map(|processor| format!("host    {processor}")));
    match (&origin.driver_version, &origin.device) {
        (Some(driver), Some(device)) => {
            lines.extend([format!("driver  {driver}"), format!("device  {device}")]);
        }
        _ => {
            lines.push(format!(
                "driver  {}, which does nothing: only the library's own time is left",
                origin.driver
            ));
        }
    }
    lines.extend(origin.peers.iter().map(|peer| format!("peer    {} {}", peer.name, peer.version)));
    lines
}

/// What a reader of the figures should know.
pub(crate) fn notes(driver: &Choice, options: &Measure, more: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    if *driver == Choice::Soft || options.is_smoke_test {
        notes.push("the software driver runs work on the CPU; times on it mean nothing");
    }
    if options.is_quick {
        notes.push("a quick run shows that everything runs; its times mean nothing");
    }
    notes.extend(more.iter().map(String::as_str));
    notes.into_iter().map(|note| format!("note: {note}")).collect()
}

/// Tells which row was measured, where somebody watches.
pub(crate) fn progress(row: &Row) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{}", row.name);
    }
}

pub(crate) fn end_of_progress() {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// Prints a line that belongs to no row; beside lines of JSON, to standard error.
pub(crate) fn line(is_json: bool, line: &str) {
    if is_json { eprintln!("{line}") } else { println!("{line}") }
}

/// Prints a row as a line of JSON.
pub(crate) fn json(origin: &Origin, row: &Row) -> Outcome<()> {
    println!("{}", json_line(origin, row)?);
    Ok(())
}

fn json_line(origin: &Origin, row: &Row) -> Outcome<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        driver: &'a str,
        #[serde(flatten)]
        row: &'a Row,
        ratio: Option<f64>,
    }
    Ok(serde_json::to_string(&Line { driver: &origin.driver, row, ratio: row.ratio() })?)
}

/// Prints the table of a part.
pub(crate) fn part(part: Part, run: &Run) {
    if let Some(table) = table(part, run) {
        println!("\n{}\n\n{table}", legend(part));
    }
}

/// The run as Markdown: the tables that are printed, with where it was made and what to know.
pub(crate) fn markdown(run: &Run, notes: &[String]) -> String {
    let mut text = "# Measurements\n\n".to_owned();
    for line in head(&run.origin).iter().chain(notes) {
        let words: Vec<&str> = line.split_whitespace().collect();
        text += &format!("- {}\n", words.join(" "));
    }
    for part in Part::ALL {
        if let Some(table) = table(part, run) {
            text += &format!("\n## {}\n\n{}\n\n{}", part.name(), legend(part), table.markdown());
        }
    }
    text
}

/// The table of a part, if it has rows.
fn table(part: Part, run: &Run) -> Option<Table> {
    let rows: Vec<&Row> = run.rows.iter().filter(|row| row.part == part).collect();
    (!rows.is_empty()).then(|| match part {
        Part::Paths => paths(&run.origin, &rows),
        Part::Graphs => graphs(&rows),
        Part::Sizes => sizes(&rows),
        Part::Collectives => collectives(&rows),
    })
}

fn legend(part: Part) -> &'static str {
    match part {
        Part::Paths => {
            "Hot paths: the host's time of one operation, medians of batches. over: what the library adds, and \
             the spread (interquartile range) of that. outliers: batches of ours and of raw, counted and kept."
        }
        Part::Graphs => {
            "Graphs: single calls, each on an idle stream; device: from the begin of a run to its end, by events. \
             shaped: Shape::Auto. p99: of a hundred samples at least."
        }
        Part::Sizes => "Sizes: for each node of a line, medians.",
        Part::Collectives => {
            "Collectives of two devices, medians. group: NCCL's calls each time. raw: the replay of a graph that raw \
             calls have captured, as a program in C has it. Each call finds idle streams."
        }
    }
}

fn paths(origin: &Origin, rows: &[&Row]) -> Table {
    let peers = || origin.peers.iter().map(|peer| peer.name.as_str());
    let head = ["operation", OURS, RAW, "over", "spread", "ratio", "outliers"].into_iter().chain(peers());
    let mut table = Table::new(&head.collect::<Vec<_>>());
    for row in rows {
        let outliers = |side| row.summary(side).map_or(0, |summary| summary.outliers);
        let mut cells = beside_raw(row);
        cells.push(format!("{}+{}", outliers(OURS), outliers(RAW)));
        cells.extend(peers().map(|peer| median(row.summary(peer))));
        table.push(cells);
    }
    table
}

fn sizes(rows: &[&Row]) -> Table {
    let mut table = Table::new(&["operation", OURS, RAW, "over", "spread", "ratio"]);
    rows.iter().for_each(|row| table.push(beside_raw(row)));
    table
}

fn collectives(rows: &[&Row]) -> Table {
    let mut table = Table::new(&["operation", OURS, RAW, "over", "spread", "ratio", GROUP]);
    for row in rows {
        let mut cells = beside_raw(row);
        cells.push(median(row.summary(GROUP)));
        table.push(cells);
    }
    table
}

/// The cells of the name, of ours and of raw.
fn beside_raw(row: &Row) -> Vec<String> {
    vec![
        row.name.clone(),
        median(row.summary(OURS)),
        median(row.summary(RAW)),
        median(row.over.as_ref()),
        row.over.map_or_else(nothing, |over| time(over.spread())),
        ratio(row),
    ]
}

fn graphs(rows: &[&Row]) -> Table {
    let sides = [OURS, RAW, SHAPED];
    let columns =
        sides.iter().flat_map(|side| ["mean", "p50", "p99"].map(|column| format!("{side} {column}")));
    let head: Vec<String> =
        ["graph".to_owned()].into_iter().chain(columns).chain(["ratio".to_owned()]).collect();
    let mut table = Table::new(&head);
    for row in rows {
        let figures = sides.iter().flat_map(|side| {
            let figures = row.summary(side).map(|summary| {
                [Some(summary.mean), Some(summary.median), summary.tail()]
                    .map(|figure| figure.map_or_else(nothing, time))
            });
            figures.unwrap_or_else(|| [nothing(), nothing(), nothing()])
        });
        table.push([row.name.clone()].into_iter().chain(figures).chain([ratio(row)]));
    }
    table
}

fn median(summary: Option<&Summary>) -> String {
    summary.map_or_else(nothing, |summary| time(summary.median))
}

fn ratio(row: &Row) -> String {
    row.ratio().map_or_else(nothing, |ratio| format!("{ratio:.2}"))
}

fn nothing() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;
    use crate::record::{Side, Version};

    fn origin() -> Origin {
        let peers = vec![Version { name: "cudarc".to_owned(), version: "0.19".to_owned() }];
        Origin { driver: "a\"b".to_owned(), peers, ..Origin::default() }
    }

    #[test]
    fn hot_paths_have_a_column_for_each_peer() {
        let mut rows = [row("launch", &[12.5], &[10.0]), row("fill", &[3.0], &[0.0])];
        rows[0].sides.push(Side::new("cudarc", vec![44.0]));
        assert_eq!(
            paths(&origin(), &rows.iter().collect::<Vec<_>>()).to_string(),
            "operation     ours      raw    over  spread  ratio  outliers   cudarc\n\
             launch     12.5 ns  10.0 ns  2.5 ns  0.0 ns   1.25       0+0  44.0 ns\n\
             fill        3.0 ns   0.0 ns  3.0 ns  0.0 ns      -       0+0        -\n"
        );
    }

    #[test]
    fn graphs_have_mean_median_and_the_slowest_of_a_hundred() {
        let ours: Vec<f64> = (0..100).map(|number| if number < 10 { 100.0 } else { 2.0 }).collect();
        let text = graphs(&[&row("line of 10, launch", &ours, &[2.0])]).to_string();
        let cells: Vec<&str> = text.lines().nth(1).unwrap_or_default().split("  ").map(str::trim).collect();
        let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells[..4], ["line of 10, launch", "11.8 ns", "2.0 ns", "100 ns"], "{text}");
        // Of one sample there is no 99th percentile.
        assert_eq!(cells[4..7], ["2.0 ns", "2.0 ns", "-"], "{text}");
        assert_eq!(cells[7..], ["-", "-", "-", "1.00"], "{text}");
    }

    #[test]
    fn markdown_has_the_parts_that_were_measured() {
        let run = Run { origin: origin(), rows: vec![row("launch", &[12.5], &[10.0])] };
        let text = markdown(&run, &["note: nothing".to_owned()]);
        assert!(text.contains("- peer cudarc 0.19\n- note: nothing\n\n## paths\n\nHot paths:"), "{text}");
        assert!(
            text.ends_with("| launch | 12.5 ns | 10.0 ns | 2.5 ns | 0.0 ns | 1.25 | 0+0 | - |\n"),
            "{text}"
        );
        assert!(!text.contains("## graphs"), "{text}");
    }

    #[test]
    fn a_line_of_json_has_every_side() {
        let line = json_line(&origin(), &row("graph launch", &[12.5], &[10.0])).expect("it is plain data");
        let value: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!((value["driver"].as_str(), value["part"].as_str()), (Some("a\"b"), Some("paths")));
        assert_eq!(value["sides"][0]["summary"]["median"].as_f64(), Some(12.5));
        assert_eq!((value["over"]["median"].as_f64(), value["ratio"].as_f64()), (Some(2.5), Some(1.25)));
    }
}
