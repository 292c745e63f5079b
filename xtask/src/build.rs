//! Builds the test binaries, the demo, the examples and the benchmark, and finds where cargo has
//! put them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use xtask::runner::{Bench, Binary, Suite};

use crate::cargo::Cargo;

/// The sanitiser needs an explicit target, since build scripts and macros must not be sanitised.
const ASAN_TARGET: &str = "x86_64-unknown-linux-gnu";

const DEMO: &str = "heat";

const BENCH: &str = "bench";

const PEERS: &str = "peers";

/// All features that matter on a GPU.
const GPU_FEATURES: &str = "cuda-graph/svg,cuda-graph/nvrtc,cuda-handles/tracing,cuda-launch/half";

/// Test binaries that say nothing about a GPU: those on the software driver alone, those of
/// documents and symbols, and those of the demo's and the benchmark's own code.
const NOT_FOR_A_GPU: [&str; 10] = [
    "cudarc::exported_symbols",
    "handles::lock_order",
    "tests::soft",
    "handles::deferred",
    "handles::smoke",
    "handles::tracing",
    "cuda-tests-bench",
    "bench::runs",
    "bin::heat",
    "bin::peers",
];

/// Options of a build.
pub(crate) struct Build<'a> {
    pub(crate) asan: bool,
    /// Without the software driver's own tests, which say nothing about a GPU.
    pub(crate) gpu: bool,
    /// Release binaries without symbols, built in this folder.
    pub(crate) bundle: Option<&'a Path>,
}

impl Build<'_> {
    /// Builds the test binaries of the workspace, except xtask's.
    pub(crate) fn suite(&self, cargo: &Cargo) -> Result<Suite> {
        let mut command = self.cargo(cargo)?;
        command.args(["test", "--no-run", "--workspace", "--exclude", "xtask"]);
        if self.gpu {
            // Their tests say nothing about a GPU.
            for package in ["cuda-soft", "cuda-guide"] {
                command.args(["--exclude", package]);
            }
            // Without the compiler of the software driver, which each binary would contain.
            command.args(["--features", GPU_FEATURES]);
        } else {
            command.arg("--all-features");
        }
        self.configure(&mut command, cargo);
        let artifacts = artifacts(command)?;
        let (demo, bench) = (executable(&artifacts, DEMO)?, executable(&artifacts, BENCH)?);
        let bench = Bench { commit: cargo.commit(), ..Bench::new(bench) };
        let binaries = artifacts.into_iter().filter_map(Artifact::into_test);
        let binaries =
            binaries.filter(|binary| !self.gpu || !NOT_FOR_A_GPU.contains(&binary.name.as_str())).collect();
        Ok(Suite { version: env!("CARGO_PKG_VERSION").to_owned(), demo, bench, binaries })
    }

    /// Builds one program of a package.
    pub(crate) fn program(&self, cargo: &Cargo, package: &str, name: &str) -> Result<PathBuf> {
        let mut command = self.cargo(cargo)?;
        command.args(["build", "--package", package, "--bin", name]);
        self.configure(&mut command, cargo);
        program(command, name)
    }

    fn cargo(&self, cargo: &Cargo) -> Result<Command> {
        if self.asan { cargo.nightly("AddressSanitizer needs") } else { Ok(cargo.command()) }
    }

    fn configure(&self, command: &mut Command, cargo: &Cargo) {
        if self.asan {
            command.args(["--target", ASAN_TARGET, "--target-dir"]).arg(cargo.target().join("asan"));
            // Machine code of the software driver would not be checked.
            command.env("RUSTFLAGS", "-Zsanitizer=address --cfg interpreted");
        }
        if let Some(folder) = self.bundle {
            command.args(["--release", "--config", "profile.release.strip='symbols'"]);
            command.args(["--config", "profile.release.debug=0"]);
            // Each binary contains the software driver, which a machine with a GPU has no use for.
            command.args(["--config", "profile.release.package.cuda-soft.opt-level='s'"]);
            command.arg("--target-dir").arg(folder);
        }
    }
}

/// The declaration of the matrix.
pub(crate) fn matrix(cargo: &Cargo) -> PathBuf {
    cargo.root().join("tests").join(xtask::matrix::FILE)
}

/// Builds the examples of the graph crate, which are whole programs.
pub(crate) fn examples(cargo: &Cargo) -> Result<Vec<PathBuf>> {
    let mut command = cargo.command();
    command.args(["build", "--package", "cuda-graph", "--examples", "--features", "svg,nvrtc"]);
    Ok(artifacts(command)?.iter().filter_map(Artifact::example).collect())
}

/// Builds the demo, optimised: it measures.
pub(crate) fn demo(cargo: &Cargo) -> Result<PathBuf> {
    optimised(cargo, "cuda-tests", DEMO, &["--features", "jit"])
}

/// Builds the benchmark, optimised.
pub(crate) fn bench(cargo: &Cargo) -> Result<PathBuf> {
    optimised(cargo, "cuda-tests-bench", BENCH, &["--features", "jit"])
}

/// Builds the benchmark for the driver that does nothing, optimised.
pub(crate) fn counted_bench(cargo: &Cargo) -> Result<PathBuf> {
    let mut command = cargo.command();
    command.args(["build", "--profile", "counted", "--package", "cuda-tests-bench", "--bin", BENCH]);
    program(command, BENCH)
}

/// Builds the benchmark with other projects in it, optimised.
pub(crate) fn peers(cargo: &Cargo) -> Result<PathBuf> {
    optimised(cargo, "cuda-tests-peers", PEERS, &[])
}

fn optimised(cargo: &Cargo, package: &str, name: &str, more: &[&str]) -> Result<PathBuf> {
    let mut command = cargo.command();
    command.args(["build", "--release", "--package", package, "--bin", name]).args(more);
    program(command, name)
}

fn program(command: Command, name: &str) -> Result<PathBuf> {
    executable(&artifacts(command)?, name)
}

fn executable(artifacts: &[Artifact], name: &str) -> Result<PathBuf> {
    let found = artifacts.iter().find(|artifact| artifact.is_program(name));
    found.and_then(|artifact| artifact.executable.clone()).with_context(|| format!("cargo built no {name}"))
}

/// Cargo's message about an artifact. Other messages lack these fields.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Artifact {
    fn is(&self, kind: &str) -> bool {
        self.target.kind.iter().any(|found| found == kind)
    }

    fn is_program(&self, name: &str) -> bool {
        self.is("bin") && !self.profile.test && self.target.name == name
    }

    /// The program, if it is an example that can be run.
    fn example(&self) -> Option<PathBuf> {
        self.executable.clone().filter(|_| self.is("example") && !self.profile.test)
    }

    fn into_test(self) -> Option<Binary> {
        let folder = self.manifest_path.parent()?.to_owned();
        // Two packages may have tests of one name.
        let package = folder.file_name()?.to_string_lossy();
        let name = match (self.is("test"), self.is("bin")) {
            (true, _) => format!("{package}::{}", self.target.name),
            (_, true) => format!("bin::{}", self.target.name),
            _ => self.target.name.replace('_', "-"),
        };
        self.executable.filter(|_| self.profile.test).map(|file| Binary { name, file, folder })
    }
}

fn artifacts(mut command: Command) -> Result<Vec<Artifact>> {
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().context("cargo does not start")?;
    ensure!(output.status.success(), "the build failed");
    let messages = String::from_utf8(output.stdout)?;
    Ok(messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
