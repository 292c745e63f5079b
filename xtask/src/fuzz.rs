//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/`, one after the other.
//!
//! The target `ptx` begins with the PTX of the tests and a dictionary of its words, `image` with
//! the images that the harness makes, the others with noise. What is found on the way is kept in
//! `fuzz/corpus`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Cargo};

/// Options of a run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run this target alone
    #[arg(long, value_parser = TARGETS)]
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value = "60")]
    seconds: u64,
    /// Seconds after which an input counts as one that hangs
    #[arg(long, value_name = "N", default_value = "10")]
    timeout: u64,
}

const TARGETS: [&str; 4] = ["ptx", "image", "graph", "capture"];
/// Inputs are no longer than this.
const LENGTH: u64 = 10_000;
/// A process with more memory has found something.
const PROCESS_MIB: u64 = 2048;
/// The memory of the device: the variables of a text may fill it.
const DEVICE_BYTES: u64 = 256 << 20;

/// Runs the targets up to the first that finds something.
pub(crate) fn run(cargo: &Cargo, options: &Options) -> Result<()> {
    let installed = Command::new("cargo-fuzz").arg("--version").output();
    ensure!(
        installed.is_ok_and(|output| output.status.success()),
        "there is no cargo-fuzz; `cargo install cargo-fuzz` brings it"
    );
    let targets =
        TARGETS.into_iter().filter(|target| options.target.as_deref().is_none_or(|name| name == *target));
    targets.into_iter().try_for_each(|target| one(cargo, target, options))
}

fn one(cargo: &Cargo, target: &str, options: &Options) -> Result<()> {
    let corpus = cargo.root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&corpus)?;
    let mut command = cargo.nightly("cargo-fuzz needs")?;
    command.args(["fuzz", "run", "--fuzz-dir", "fuzz", target]).arg(&corpus).arg("--");
    command.arg(format!("-max_total_time={}", options.seconds)).arg(format!("-max_len={LENGTH}"));
    command.arg(format!("-timeout={}", options.timeout)).arg(format!("-rss_limit_mb={PROCESS_MIB}"));
    // It takes what the C library keeps for each thread for leaks. The targets count objects.
    command.arg("-detect_leaks=0");
    command.env("CUDA_SOFT_MEMORY", DEVICE_BYTES.to_string());
    match target {
        "ptx" => {
            let seeds = Seeds::of_ptx(cargo.root())?;
            seeds.write(&corpus)?;
            let dictionary = cargo.target().join("ptx.dict");
            std::fs::write(&dictionary, seeds.dictionary())?;
            command.arg(format!("-dict={}", std::path::absolute(dictionary)?.display()));
        }
        "image" => {
            command.env("CUDA_FUZZ_SEEDS", std::path::absolute(&corpus)?);
        }
        _ => {
            write_noise(&corpus)?;
            // Short inputs are a few operations, after which a model has little to disagree about.
            command.arg("-len_control=0");
        }
    }
    cargo::succeed(command).with_context(|| {
        format!("the target {target} found something; its input lies in fuzz/artifacts/{target}")
    })
}

/// Writes inputs to begin with that are any numbers, the same each time: for targets that read
/// operations out of whatever bytes they get.
fn write_noise(corpus: &Path) -> Result<()> {
    let mut state = 1_u64;
    for number in 0..32 {
        let words = (0..80).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        });
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        std::fs::write(corpus.join(format!("noise-{number}")), bytes)?;
    }
    Ok(())
}

/// Texts to begin with, by name.
struct Seeds(BTreeMap<String, String>);

impl Seeds {
    fn of_ptx(root: &Path) -> Result<Self> {
        let mut seeds = BTreeMap::new();
        for folder in ["tests/kernels", "tests/suites/ptx"] {
            for file in ptx_files(&root.join(folder))? {
                let text = std::fs::read_to_string(&file)?;
                let name = file.strip_prefix(root)?.to_string_lossy().replace('/', "-");
                if text.len() as u64 <= LENGTH {
                    seeds.insert(name, text);
                }
            }
        }
        let forms = std::fs::read_to_string(root.join("crates/soft/src/ptx/tests/data/forms.txt"))?;
        let forms = forms.split("\n### ").skip(1).filter_map(|form| form.split_once('\n'));
        seeds.extend(forms.map(|(head, text)| (head.replace([' ', ':', '/'], "-"), text.to_owned())));
        ensure!(seeds.len() > 1, "there is no PTX to begin with");
        Ok(Self(seeds))
    }

    fn write(&self, corpus: &Path) -> Result<()> {
        for (name, text) in &self.0 {
            std::fs::write(corpus.join(name), text)?;
        }
        Ok(())
    }

    /// The words of all texts that are in at least two, in libFuzzer's form.
    fn dictionary(&self) -> String {
        let mut counts = BTreeMap::<&str, usize>::new();
        for text in self.0.values() {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._%$:".contains(letter);
            let words = text.split(|letter| !is_part(letter)).filter(|word| word.len() > 1);
            let words: std::collections::BTreeSet<&str> = words.collect();
            words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let words = counts.into_iter().filter(|(_, count)| *count > 1);
        words.map(|(word, _)| format!("\"{word}\"\n")).collect()
    }
}

fn ptx_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(&inner)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                files.push(path);
            }
        }
    }
    Ok(files)
}
