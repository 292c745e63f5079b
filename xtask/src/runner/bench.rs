//! The benchmark: overhead over the raw driver, launches beside drops, memory of replays, shapes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchOptions {
    /// The driver: null (does nothing, so that only the library's own time is left), soft, system
    /// or the path of a library [default: null; with --latency, --replays or --shapes soft]
    #[arg(long)]
    pub driver: Option<String>,
    /// One line of JSON for each figure: name, driver, ours_ns, raw_ns, over_ns, ratio, spread_ns
    #[arg(long)]
    pub json: bool,
    /// Measure only figures whose name has this text in it
    #[arg(long, value_name = "SUBSTRING")]
    pub filter: Option<String>,
    /// Look for the slowest launch while memory, libraries and streams are dropped on another
    /// thread; on a GPU one above 1 ms fails
    #[arg(long, conflicts_with_all = ["json", "filter"])]
    pub latency: bool,
    /// Replay a graph so many times, with a new buffer each time; fails if memory grows
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["json", "filter", "latency"])]
    pub replays: Option<u32>,
    /// Measure graphs as drawn and in all shapes: launch call, run and instantiation, as a table
    #[arg(long, conflicts_with_all = ["json", "latency", "replays"])]
    pub shapes: bool,
    /// Draw the figures of the shapes
    #[arg(long, value_name = "FILE", requires = "shapes")]
    pub svg: Option<PathBuf>,
}

/// Runs the benchmark and returns its exit code.
///
/// # Errors
/// The program does not start.
pub fn bench(program: &Path, options: &BenchOptions) -> Result<u8> {
    let mut command = Command::new(program);
    for (name, value) in [("--driver", &options.driver), ("--filter", &options.filter)] {
        if let Some(value) = value {
            command.arg(name).arg(value);
        }
    }
    if let Some(count) = options.replays {
        command.args(["--replays", &count.to_string()]);
    }
    if let Some(file) = &options.svg {
        command.arg("--svg").arg(file);
    }
    for (name, given) in
        [("--json", options.json), ("--latency", options.latency), ("--shapes", options.shapes)]
    {
        if given {
            command.arg(name);
        }
    }
    let status = command.status().with_context(|| format!("{} does not start", program.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
