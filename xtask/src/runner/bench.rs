//! The benchmark: overhead over the raw driver, launches beside drops, memory of replays, shapes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The kernels that the benchmark launches, for the script.
const KERNELS: &str = include_str!("../../../tests/suites/ptx/small.ptx");

/// The environment variable by which NCCL takes NVLink multicast or leaves it.
const MULTICAST: &str = "NCCL_NVLS_ENABLE";

/// Options of the benchmark.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct BenchOptions {
    /// The driver: null (does nothing, so that only the library's own time is left), soft, system
    /// or the path of a library [default: null; with --latency, --replays or --shapes soft; with
    /// --peers system]
    #[arg(long)]
    pub driver: Option<String>,
    /// Measure one part alone: paths (hot paths), graphs (forms and sizes), sizes (costs for each
    /// node) or collectives (all-reduces of two devices); may be given more than once
    #[arg(long = "part", value_name = "PART", value_parser = ["paths", "graphs", "sizes", "collectives"])]
    pub parts: Vec<String>,
    /// Measure only rows whose name has this text in it
    #[arg(long, value_name = "SUBSTRING")]
    pub filter: Option<String>,
    /// Measure just enough to show that everything runs; the times mean nothing
    #[arg(long)]
    pub quick: bool,
    /// One line of JSON for each row, with all figures of each side
    #[arg(long)]
    pub json: bool,
    /// Write the run to this file, to compare others with
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Compare with the run that was saved in this file
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Draw: costs over size and times of launches, into this folder; with --shapes a file
    #[arg(long, value_name = "PATH")]
    pub svg: Option<PathBuf>,
    /// Measure other projects as well: cudarc in the same process, and those that Python has
    #[arg(long, conflicts_with_all = ["latency", "replays", "shapes"])]
    pub peers: bool,
    /// The Python that has cuda.core, Warp or CuPy
    #[arg(long, value_name = "PROGRAM", requires = "peers", default_value = "python3")]
    pub python: PathBuf,
    /// Look for the slowest launch while memory, libraries and streams are dropped on another
    /// thread; on a GPU one above 1 ms fails
    #[arg(long, conflicts_with_all = ["json", "filter", "parts", "quick", "save", "compare", "svg"])]
    pub latency: bool,
    /// Replay a graph so many times, with a new buffer each time; fails if memory grows
    #[arg(long, value_name = "COUNT", conflicts_with_all =
        ["json", "filter", "parts", "quick", "save", "compare", "svg", "latency"])]
    pub replays: Option<u32>,
    /// Measure graphs as drawn and in all shapes: launch call, run and instantiation, as a table
    #[arg(long, conflicts_with_all =
        ["json", "parts", "quick", "save", "compare", "latency", "replays"])]
    pub shapes: bool,
}

/// The benchmark.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Bench {
    /// The program.
    pub program: PathBuf,
    /// The commit that it was built of.
    pub commit: Option<String>,
    /// The measurements beside other projects.
    pub peers: Option<Peers>,
}

/// Measurements beside other projects.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Peers {
    /// The benchmark that has other projects in it.
    pub program: PathBuf,
    /// The Python script that measures more of them.
    pub script: PathBuf,
    /// The software driver as a library, if that is the driver.
    pub library: Option<PathBuf>,
}

impl Bench {
    /// A benchmark alone.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, commit: None, peers: None }
    }

    /// The same with all paths below a folder.
    #[must_use]
    pub(crate) fn below(self, folder: &Path) -> Self {
        let peers = self.peers.map(|peers| Peers {
            program: folder.join(peers.program),
            script: folder.join(peers.script),
            library: peers.library,
        });
        Self { program: folder.join(self.program), peers, ..self }
    }

    /// Runs the benchmark and returns its exit code.
    ///
    /// # Errors
    /// The program does not start, or there are no peers but they were asked for.
    pub fn run(&self, options: &BenchOptions) -> Result<u8> {
        let lines = Lines(std::env::temp_dir().join(format!("cuda-peers-{}.jsonl", std::process::id())));
        let mut command = if options.peers {
            self.peers.as_ref().context("there are no peers here")?.command(options, &lines.0)?
        } else {
            let mut command = Command::new(&self.program);
            value(&mut command, "--driver", options.driver.as_ref());
            command
        };
        give(&mut command, options);
        // NCCL is loaded without NVLink multicast alone, whose resources all processes share.
        if std::env::var_os(MULTICAST).is_none() {
            command.env(MULTICAST, "0");
        }
        if !(options.latency || options.shapes || options.replays.is_some()) {
            value(&mut command, "--commit", self.commit.as_ref());
        }
        let status = command.status().with_context(|| format!("{command:?} does not start"))?;
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}

/// The file of what Python measures, gone in the end.
struct Lines(PathBuf);

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Peers {
    /// Measures in Python, and prepares the command for the rest.
    fn command(&self, options: &BenchOptions, lines: &Path) -> Result<Command> {
        let driver = options.driver.as_deref().unwrap_or("system");
        ensure!(
            self.library.is_some() || !["null", "soft"].contains(&driver),
            "other projects open the driver by its name, and there is no library of {driver} here"
        );
        let mut command = Command::new(&self.program);
        if self.has_lines(options, lines)? {
            command.arg("--peer-lines").arg(lines);
        }
        match &self.library {
            Some(library) => self.on_library(command.arg("--driver").arg(library).arg("--smoke-test")),
            None => command.args(["--driver", driver]),
        };
        Ok(command)
    }

    /// Runs the script, which writes a line for each operation, or for why there is none.
    fn has_lines(&self, options: &BenchOptions, lines: &Path) -> Result<bool> {
        let mut script = Command::new(&options.python);
        script.arg(&self.script);
        if options.quick {
            script.arg("--quick");
        }
        self.on_library(&mut script);
        script.stdin(Stdio::piped()).stdout(std::fs::File::create(lines)?);
        let mut child = match script.spawn() {
            Ok(child) => child,
            Err(error) => {
                eprintln!("without projects in Python: {} does not start: {error}", options.python.display());
                return Ok(false);
            }
        };
        // The end of this pipe is the end of the text.
        child.stdin.take().context("the script has no input")?.write_all(KERNELS.as_bytes())?;
        let status = child.wait()?;
        ensure!(status.success(), "{} ended with {status}", self.script.display());
        Ok(true)
    }

    /// Puts the library where programs look for the driver.
    fn on_library<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        match self.library.as_deref().and_then(Path::parent) {
            Some(folder) => command.env("LD_LIBRARY_PATH", folder),
            None => command,
        }
    }
}

/// Gives a program the options that all have.
fn give(command: &mut Command, options: &BenchOptions) {
    value(command, "--filter", options.filter.as_ref());
    value(command, "--save", options.save.as_ref());
    value(command, "--compare", options.compare.as_ref());
    value(command, "--svg", options.svg.as_ref());
    value(command, "--replays", options.replays.map(|count| count.to_string()).as_ref());
    options.parts.iter().for_each(|part| value(command, "--part", Some(part)));
    let flags = [
        ("--json", options.json),
        ("--quick", options.quick),
        ("--latency", options.latency),
        ("--shapes", options.shapes),
    ];
    command.args(flags.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)));
}

fn value(command: &mut Command, name: &str, value: Option<&impl AsRef<std::ffi::OsStr>>) {
    if let Some(value) = value {
        command.arg(name).arg(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_handed_on() {
        let options = BenchOptions {
            parts: vec!["paths".to_owned(), "sizes".to_owned()],
            save: Some(PathBuf::from("run.json")),
            quick: true,
            ..BenchOptions::default()
        };
        let mut command = Command::new("bench");
        give(&mut command, &options);
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!(arguments, ["--save", "run.json", "--part", "paths", "--part", "sizes", "--quick"]);
    }

    #[test]
    fn peers_need_a_driver_that_they_find() {
        let bench = Bench::new(PathBuf::from("bench"));
        let peers = Peers { program: "peers".into(), script: "peers.py".into(), library: None };
        let options =
            BenchOptions { peers: true, driver: Some("null".to_owned()), ..BenchOptions::default() };
        assert!(bench.run(&options).is_err());
        assert!(peers.command(&options, Path::new("lines")).is_err());
        let below = Bench { peers: Some(peers), ..bench }.below(Path::new("bundle"));
        assert_eq!(below.program, Path::new("bundle/bench"));
        assert_eq!(below.peers.expect("they stay").script, Path::new("bundle/peers.py"));
    }
}
