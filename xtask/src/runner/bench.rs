//! The benchmark: overhead over the raw driver, launches beside drops, memory of replays, shapes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::process::status_within;

/// The kernels that the benchmark launches, for the script.
const KERNELS: &str = include_str!("../../../tests/suites/ptx/small.ptx");

/// How long the script may take: it measures each operation for two seconds, and its projects
/// compile kernels before.
const SCRIPT_LIMIT: Duration = Duration::from_secs(300);

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
    /// Write the run to this file, to compare others with; after each part, so that a run that is
    /// interrupted loses the part in progress alone
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Compare with the run that was saved in this file
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Write the tables to this file as Markdown, after each part
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
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
    #[arg(long, conflicts_with_all = ["json", "filter", "parts", "quick", "save", "compare", "markdown", "svg"])]
    pub latency: bool,
    /// Replay a graph so many times, with a new buffer each time; fails if memory grows
    #[arg(long, value_name = "COUNT", conflicts_with_all =
        ["json", "filter", "parts", "quick", "save", "compare", "markdown", "svg", "latency"])]
    pub replays: Option<u32>,
    /// Measure graphs as drawn and in all shapes: launch call, run and instantiation, as a table
    #[arg(long, conflicts_with_all =
        ["json", "parts", "quick", "save", "compare", "markdown", "latency", "replays"])]
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
        let lines = TemporaryFile::new("lines");
        let mut command = if options.peers {
            self.peers.as_ref().context("there are no peers here")?.command(
                options,
                &lines.0,
                SCRIPT_LIMIT,
            )?
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

/// A file for the script, gone in the end.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("cuda-peers-{name}-{}", std::process::id())))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Peers {
    /// Measures in Python for as long as `limit`, and prepares the command for the rest.
    fn command(&self, options: &BenchOptions, lines: &Path, limit: Duration) -> Result<Command> {
        let driver = options.driver.as_deref().unwrap_or("system");
        ensure!(
            self.library.is_some() || !["null", "soft"].contains(&driver),
            "other projects open the driver by its name, and there is no library of {driver} here"
        );
        let mut command = Command::new(&self.program);
        self.measure_in_python(options, lines, limit)?;
        command.arg("--peer-lines").arg(lines);
        match &self.library {
            Some(library) => self.on_library(command.arg("--driver").arg(library).arg("--smoke-test")),
            None => command.args(["--driver", driver]),
        };
        Ok(command)
    }

    /// Runs the script, which writes a line for each operation, or for why there is none. If it
    /// fails, what it has measured stays, and a line tells why there is no more.
    fn measure_in_python(&self, options: &BenchOptions, lines: &Path, limit: Duration) -> Result<()> {
        let kernels = TemporaryFile::new("kernels");
        std::fs::write(&kernels.0, KERNELS)?;
        let mut script = Command::new(&options.python);
        script.arg(&self.script);
        if options.quick {
            script.arg("--quick");
        }
        self.on_library(&mut script).stdin(File::open(&kernels.0)?).stdout(File::create(lines)?);
        let name = self.script.file_name().unwrap_or_default().display();
        let failure = match status_within(script, limit) {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => format!("{name} ended with {status}"),
            Ok(None) => format!("{name} had not ended after {} s and was stopped", limit.as_secs()),
            Err(error) => format!("{} does not start: {error}", options.python.display()),
        };
        let measured = std::fs::read(lines)?;
        Ok(std::fs::write(lines, with_failure(&String::from_utf8_lossy(&measured), &failure))?)
    }

    /// Puts the library where programs look for the driver.
    fn on_library<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        match self.library.as_deref().and_then(Path::parent) {
            Some(folder) => command.env("LD_LIBRARY_PATH", folder),
            None => command,
        }
    }
}

/// The whole lines that a script has written, and one for why there are no more.
fn with_failure(lines: &str, failure: &str) -> String {
    let is_whole = |line: &&str| serde_json::from_str::<Value>(line).is_ok();
    let whole: String = lines.lines().filter(is_whole).map(|line| format!("{line}\n")).collect();
    whole + &json!({ "peer": "peers in Python", "absent": failure }).to_string() + "\n"
}

/// Gives a program the options that all have.
fn give(command: &mut Command, options: &BenchOptions) {
    value(command, "--filter", options.filter.as_ref());
    value(command, "--save", options.save.as_ref());
    value(command, "--compare", options.compare.as_ref());
    value(command, "--markdown", options.markdown.as_ref());
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

    /// What the lines say of a script, which `sh` runs in Python's place.
    fn lines_of(name: &str, script: &str, limit: Duration) -> String {
        let (file, lines) = (TemporaryFile::new(name), TemporaryFile::new(&format!("{name}-lines")));
        std::fs::write(&file.0, script).unwrap();
        let peers = Peers { program: "peers".into(), script: file.0.clone(), library: None };
        let options = BenchOptions { python: PathBuf::from("sh"), ..BenchOptions::default() };
        peers.command(&options, &lines.0, limit).unwrap();
        std::fs::read_to_string(&lines.0).unwrap()
    }

    #[test]
    fn a_script_that_fails_or_hangs_leaves_its_whole_lines_and_a_reason() {
        let long = Duration::from_secs(60);
        assert_eq!(lines_of("good", r#"cat > /dev/null; echo '{"peer":"x"}'"#, long), "{\"peer\":\"x\"}\n");
        let failed = lines_of("fails", r#"echo '{"peer":"x"}'; printf '{"peer":"y'; exit 3"#, long);
        assert!(failed.starts_with("{\"peer\":\"x\"}\n") && failed.lines().count() == 2, "{failed}");
        assert!(failed.contains("peers in Python") && failed.contains("exit status: 3"), "{failed}");
        let hung = lines_of("hangs", "sleep 60", Duration::from_millis(200));
        assert!(hung.contains("had not ended") && hung.lines().count() == 1, "{hung}");
    }

    #[test]
    fn a_python_that_does_not_start_is_a_note() {
        let lines = TemporaryFile::new("no-python");
        let peers = Peers { program: "peers".into(), script: "peers.py".into(), library: None };
        let options = BenchOptions { python: PathBuf::from("/no/such/python"), ..BenchOptions::default() };
        peers.command(&options, &lines.0, SCRIPT_LIMIT).unwrap();
        let text = std::fs::read_to_string(&lines.0).unwrap();
        assert!(text.contains("/no/such/python does not start"), "{text}");
    }

    #[test]
    fn peers_need_a_driver_that_they_find() {
        let bench = Bench::new(PathBuf::from("bench"));
        let peers = Peers { program: "peers".into(), script: "peers.py".into(), library: None };
        let options =
            BenchOptions { peers: true, driver: Some("null".to_owned()), ..BenchOptions::default() };
        assert!(bench.run(&options).is_err());
        assert!(peers.command(&options, Path::new("lines"), SCRIPT_LIMIT).is_err());
        let below = Bench { peers: Some(peers), ..bench }.below(Path::new("bundle"));
        assert_eq!(below.program, Path::new("bundle/bench"));
        assert_eq!(below.peers.expect("they stay").script, Path::new("bundle/peers.py"));
    }
}
