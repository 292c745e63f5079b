//! The test binaries and what is in them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Bench, Driver, process};

/// A binary that lists its tests, or names its devices, for longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A test binary.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Binary {
    /// The first part of the names of its tests.
    pub name: String,
    /// The program.
    pub file: PathBuf,
    /// The folder in which it runs.
    pub folder: PathBuf,
}

/// All test binaries, the benchmark, and the demo, which also names drivers and devices.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Suite {
    /// The version of the workspace.
    pub version: String,
    /// The demo.
    pub demo: PathBuf,
    /// The benchmark.
    pub bench: Bench,
    /// The test binaries.
    pub binaries: Vec<Binary>,
}

/// A test to run.
#[derive(Debug)]
pub(crate) struct Test<'a> {
    pub(crate) binary: &'a Binary,
    pub(crate) name: String,
    pub(crate) ignored: bool,
}

impl Test<'_> {
    pub(crate) fn full_name(&self) -> String {
        format!("{}::{}", self.binary.name, self.name)
    }
}

const MANIFEST: &str = "manifest.json";

impl Suite {
    /// Reads the manifest of the bundle in `folder`.
    ///
    /// # Errors
    /// The manifest is absent or cannot be read.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("no bundle here: {} cannot be read", path.display()))?;
        let mut suite: Self =
            serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
        suite.demo = folder.join(&suite.demo);
        suite.bench = suite.bench.below(folder);
        for binary in &mut suite.binaries {
            binary.file = folder.join(&binary.file);
            binary.folder = folder.join(&binary.folder);
        }
        Ok(suite)
    }

    /// Writes the manifest. Paths are relative to `folder`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(folder.join(MANIFEST), text)?;
        Ok(())
    }

    /// Drops the binaries without tests, such as loom's models in an ordinary build.
    ///
    /// # Errors
    /// A test binary does not start or does not list its tests.
    pub fn without_empty(mut self) -> Result<Self> {
        let mut binaries = Vec::with_capacity(self.binaries.len());
        for binary in self.binaries {
            if !names(&binary, &["--list", "--format", "terse"])?.is_empty() {
                binaries.push(binary);
            }
        }
        self.binaries = binaries;
        Ok(self)
    }

    /// All tests whose full name contains one of the texts in `filter`, or all if there are none.
    pub(crate) fn list(&self, filter: &[String]) -> Result<Vec<Test<'_>>> {
        let mut tests = Vec::new();
        for binary in &self.binaries {
            let ignored = names(binary, &["--list", "--ignored", "--format", "terse"])?;
            for name in names(binary, &["--list", "--format", "terse"])? {
                let test = Test { binary, ignored: ignored.contains(&name), name };
                let full_name = test.full_name();
                if filter.is_empty() || filter.iter().any(|text| full_name.contains(text)) {
                    tests.push(test);
                }
            }
        }
        Ok(tests)
    }

    /// Names the driver and its devices, one line each.
    pub(crate) fn describe(
        &self,
        driver: &Driver,
        environment: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> Result<(String, Vec<String>)> {
        let mut command = Command::new(&self.demo);
        command.arg("--describe").arg("--driver").arg(driver.argument()).envs(environment);
        let ended = process::run(command, PATIENCE)
            .with_context(|| format!("{} does not start", self.demo.display()))?;
        let message = ended.output.trim().trim_start_matches("error: ");
        ensure!(ended.status.is_some_and(|status| status.success()), "the tests have no driver: {message}");
        let mut lines = ended.output.lines().map(str::to_owned);
        Ok((lines.next().unwrap_or_default(), lines.collect()))
    }
}

fn names(binary: &Binary, arguments: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new(&binary.file);
    command.args(arguments).current_dir(&binary.folder);
    // A test that is left out of the list would not run.
    let ended = process::run_for_output(command, PATIENCE)
        .with_context(|| format!("{} does not start", binary.file.display()))?;
    ensure!(
        ended.status.is_some_and(|status| status.success()),
        "{} does not list its tests:\n{}",
        binary.file.display(),
        ended.output
    );
    Ok(ended.output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}
