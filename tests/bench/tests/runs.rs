//! Whole runs of the benchmark, as quick ones: their times mean nothing.

#![allow(clippy::expect_used)] // This is how a test fails.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder for the files of a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cuda-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The benchmark: where cargo has put it, or in the bundle.
fn program() -> Option<&'static Path> {
    [env!("CARGO_BIN_EXE_bench"), "./bench"].into_iter().map(Path::new).find(|path| path.is_file())
}

/// Runs the benchmark, and returns its standard output.
fn bench(arguments: &[&str], files: &[(&str, &Path)]) -> String {
    let mut command = Command::new(program().expect("the tests are skipped without it"));
    // A program that measures keeps some things to its end.
    command.args(arguments).env("ASAN_OPTIONS", "detect_leaks=0");
    for (name, path) in files {
        command.arg(name).arg(path);
    }
    let output = command.output().expect("the benchmark was built with this test");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

macro_rules! needs_program {
    () => {
        if program().is_none() {
            cuda_tests::skip!("the benchmark is neither where cargo has put it nor here");
        }
    };
}

#[test]
fn a_run_is_printed_saved_drawn_and_compared() {
    needs_program!();
    let folder = Folder::new("whole");
    let (file, plots, tables) = (folder.file("run.json"), folder.file("plots"), folder.file("run.md"));
    let files: [(&str, &Path); 3] = [("--save", &file), ("--svg", &plots), ("--markdown", &tables)];
    let text = bench(&["--quick", "--commit", "abc"], &files);
    for row in ["launch, built per call", "line of 10, first launch", "each of 100 nodes, build"] {
        assert!(text.contains(row), "{text}");
    }
    assert!(text.contains("(abc)") && text.contains("its times mean nothing"), "{text}");
    let saved: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("it was saved")).expect("it is JSON");
    assert_eq!(saved["origin"]["driver"].as_str(), Some("null"));
    assert!(saved["rows"].as_array().is_some_and(|rows| rows.len() > 50), "{saved}");
    assert!(plots.join("per-node.svg").exists() && plots.join("launch-latency.svg").exists());
    let tables = std::fs::read_to_string(&tables).expect("it was written");
    for line in
        ["# Measurements", "## paths", "## sizes", "| operation | ours | raw |", "- collectives were not"]
    {
        assert!(tables.contains(line), "{line}: {tables}");
    }
    let text = bench(&["--quick", "--part", "sizes"], &[("--compare", &file)]);
    assert!(text.contains("compared with") && text.contains("within the spread"), "{text}");
}

#[test]
fn lines_of_json_have_the_sides_of_peers() {
    needs_program!();
    let folder = Folder::new("lines");
    let lines = folder.file("lines");
    let line = r#"{"peer":"other","version":"1","operation":"fill","samples_ns":[5.0]}"#;
    std::fs::write(&lines, line).expect("the folder is there");
    let text =
        bench(&["--quick", "--json", "--part", "paths", "--filter", "fill"], &[("--peer-lines", &lines)]);
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let fill = rows.iter().find(|row| row["name"] == "fill").expect("it was asked for");
    let sides: Vec<_> =
        fill["sides"].as_array().into_iter().flatten().map(|side| side["name"].clone()).collect();
    assert_eq!(sides, ["ours", "raw", "other"]);
}

#[test]
fn a_filter_that_no_row_passes_and_a_file_that_cannot_be_written_fail() {
    needs_program!();
    for (arguments, words) in [
        (["--quick", "--filter", "no such row"], "no row that is measured so"),
        (["--quick", "--save", "/no/such/folder/run.json"], "cannot be written"),
    ] {
        let mut command = Command::new(program().expect("the tests are skipped without it"));
        let output = command.args(arguments).output().expect("the benchmark was built with this test");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(words), "{errors}");
    }
}

#[test]
fn all_reduces_of_two_devices_are_timed_beside_raw_replays() {
    needs_program!();
    let text = bench(&["--quick", "--driver", "soft", "--part", "collectives"], &[]);
    assert!(text.contains("all-reduce of 1 KiB, enqueued") && text.contains("group"), "{text}");
    let text = bench(&["--quick", "--part", "collectives"], &[]);
    assert!(text.contains("collectives were not measured: the driver that does nothing"), "{text}");
}

#[test]
fn devices_are_timed_where_there_is_one() {
    needs_program!();
    let text = bench(&["--quick", "--driver", "soft", "--part", "graphs", "--filter", "of 10"], &[]);
    assert!(text.contains("chains of 10, device"), "{text}");
    assert!(text.contains("times on it mean nothing"), "{text}");
}
