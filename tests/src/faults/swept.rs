//! The full mode of the sweeps, and notes of what they sweep, for `cargo xtask faults`.

use std::backtrace::Backtrace;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use cuda_sys::Call;

/// `full`: sweeps also try codes that a call is not known for, and pairs of failures.
const MODE: &str = "CUDA_TESTS_FAULTS";
/// The folder for the notes, a file for each process.
const NOTES: &str = "CUDA_TESTS_SWEPT";

static FOLDER: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os(NOTES).map(PathBuf::from));
/// What is noted already.
static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether the sweeps run in full.
pub(crate) fn is_full() -> bool {
    std::env::var_os(MODE).is_some_and(|mode| mode == "full")
}

/// Notes the lines of the libraries in which this call fails now, if somebody asks for them.
pub(crate) fn note(call: Call) {
    let Some(folder) = &*FOLDER else { return };
    let trace = Backtrace::force_capture().to_string();
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    let new: Vec<String> = lines(&trace)
        .map(|line| format!("{}\t{line}", call.name()))
        .filter(|line| noted.insert(line.clone()))
        .collect();
    if new.is_empty() {
        return;
    }
    let file = folder.join(std::process::id().to_string());
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| writeln!(file, "{}", new.join("\n")));
    written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// The lines of the libraries in a trace, as `graph/src/exec/mod.rs:80`. An inlined function has a
/// line, too, but may have no path in its name.
fn lines(trace: &str) -> impl Iterator<Item = &str> {
    const LIBRARIES: [&str; 3] = ["graph/src/", "handles/src/", "launch/src/"];
    let places = trace.lines().filter_map(|line| {
        let (_, place) = line.trim_start().strip_prefix("at ")?.rsplit_once("crates/")?;
        Some(place.rsplit_once(':')?.0)
    });
    places.filter(|place| LIBRARIES.iter().any(|library| place.starts_with(library)))
}
