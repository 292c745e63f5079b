//! The command line of the matrix, which `xtask` and the bundle's runner share.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::expand::Selection;
use crate::runner::Driver;
use crate::runner::options::{MOST_SECONDS, existing};

/// The exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  all went as declared
  1  a test failed that is not declared, a declared failure did not happen, no test ran, or the run
     ended with an error
  2  the command line is wrong
  3  tests are left, which --resume runs
  4  no test can run here: there is no driver or no device";

/// Options of the matrix.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct MatrixOptions {
    /// Print the rows, and what is skipped and why; build and run nothing
    #[arg(long)]
    pub list: bool,
    /// Run the base row alone
    #[arg(long, conflicts_with = "row")]
    pub quick: bool,
    /// Run this row alone; it can be given again for more. The rows that --list names, and
    /// `device=others` and `driver=beside` for all of these
    #[arg(long, value_name = "NAME")]
    pub row: Vec<String>,
    /// Run only tests whose name has this text in it; given several times, one of the texts
    #[arg(long, value_name = "SUBSTRING")]
    pub filter: Vec<String>,
    /// The device, by its number, in place of device 0 and of rows for each other device
    #[arg(long, value_name = "N")]
    pub device: Option<usize>,
    /// The driver: system, soft (to try the matrix without a GPU) or the path of a library
    #[arg(long, default_value = "system", value_parser = Driver::parse_for_tests)]
    pub driver: Driver,
    /// The compiler for CUDA C++ that tests use, or its folder [default: where CUDA_NVRTC says, or
    /// where it is found; else they are skipped]
    #[arg(long, value_name = "PATH", value_parser = existing)]
    pub nvrtc: Option<PathBuf>,
    /// Tests at a time [default: one a core; on a GPU at most 4]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Seconds after which a test is stopped and counts as failed; more where a tool watches
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds())]
    pub timeout: u64,
    /// Run a test that failed again, alone, up to so many times; if it passes then, it is reported
    /// as flaky
    #[arg(long, value_name = "N", default_value = "0")]
    pub retries: u32,
    /// Write matrix.md, matrix.json and junit.xml into this folder, every few seconds
    #[arg(long, value_name = "FOLDER")]
    pub report_dir: Option<PathBuf>,
    /// Go on with the report in --report-dir, of the same build and machine: keep its outcomes, and
    /// run the tests that it lacks
    #[arg(long, requires = "report_dir")]
    pub resume: bool,
    /// Start no more tests after so many seconds; with tests left, the exit code is 3, and --resume
    /// runs these
    #[arg(long, value_name = "SECONDS", value_parser = seconds(), requires = "report_dir")]
    pub stop_after: Option<u64>,
    /// The declaration of the matrix [default: tests/matrix.toml; in a bundle the one beside the
    /// runner]
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
}

fn seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=MOST_SECONDS)
}

impl MatrixOptions {
    pub(super) fn selection(&self) -> Selection {
        Selection { rows: self.row.clone(), quick: self.quick, device: self.device }
    }
}
