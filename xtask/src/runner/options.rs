//! The command line that `xtask` and the bundle's runner share.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::Driver;
use super::schedule::Settings;

/// Options of a test run.
#[derive(Clone, Debug, clap::Args)]
pub struct TestOptions {
    /// Run only tests whose name has this text in it; given several times, one of the texts
    #[arg(long, value_name = "SUBSTRING")]
    pub filter: Vec<String>,
    /// The driver: soft, system or the path of a library
    #[arg(long, env = "CUDA_TEST_DRIVER", default_value = "soft", value_parser = Driver::parse_for_tests)]
    pub driver: Driver,
    /// The version of a driver that the software driver is to pose as, such as 12.2 [default: its
    /// own]
    #[arg(long, value_name = "VERSION")]
    pub soft_version: Option<String>,
    /// The shape of executables whose options name none: reduced, lanes or auto; tests that are
    /// about graphs as drawn are skipped then, and say why [default: as drawn]
    #[arg(long, value_name = "SHAPE", value_parser = ["reduced", "lanes", "auto"])]
    pub shape: Option<String>,
    /// The compiler for CUDA C++ that tests use, or its folder [default: where CUDA_NVRTC says, or
    /// where it is found; else they are skipped]
    #[arg(long, value_name = "PATH", value_parser = existing)]
    pub nvrtc: Option<PathBuf>,
    /// Tests at a time [default: one a core; on a GPU at most 4]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Seconds after which a test is stopped and counts as failed
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = clap::value_parser!(u64).range(1..=MOST_SECONDS))]
    pub timeout: u64,
    /// Run a test that failed again, alone, up to so many times; if it passes then, it is reported
    /// as flaky
    #[arg(long, value_name = "N", default_value = "0")]
    pub retries: u32,
    /// Write the outcome of every test to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Further environment variables of each test.
    #[arg(skip)]
    pub variables: Vec<(&'static str, OsString)>,
}

/// A week: nobody waits longer for a test.
pub(crate) const MOST_SECONDS: u64 = 7 * 24 * 3600;

/// The path of a file or folder. It becomes absolute, since tests run in other folders.
pub(crate) fn existing(path: &str) -> std::io::Result<PathBuf> {
    std::fs::metadata(path)?;
    std::path::absolute(path)
}

/// On a GPU every process has a context of its own, which costs memory and time to start.
const JOBS_ON_A_GPU: usize = 4;

impl TestOptions {
    /// The environment variables that select a program's driver.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let version = self.soft_version.as_ref().map(|version| ("CUDA_SOFT_VERSION", version.into()));
        let compiler = self.nvrtc.as_ref().map(|path| ("CUDA_NVRTC", path.into()));
        let shape = self.shape.as_ref().map(|shape| ("CUDA_TEST_SHAPE", shape.into()));
        let driver = ("CUDA_TEST_DRIVER", self.driver.argument());
        let named = [driver].into_iter().chain(version).chain(compiler).chain(shape);
        named.chain(self.variables.iter().cloned())
    }

    /// How the tests are started.
    pub(crate) fn settings(&self) -> Settings {
        let environment = self.environment().map(|(name, value)| (name, Some(value))).collect();
        let (limit, jobs, retries) = (self.limit(), jobs(self.jobs, &self.driver), self.retries);
        Settings { environment, wrapper: None, limit, jobs, retries, end: None }
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// The number of tests at a time, if nobody names one.
pub(crate) fn jobs(asked: Option<NonZeroUsize>, driver: &Driver) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let usual = if *driver == Driver::Soft { cores } else { cores.min(JOBS_ON_A_GPU) };
    asked.map_or(usual, NonZeroUsize::get)
}

/// Options of the demo.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoOptions {
    /// The driver: auto (the system's if it has a device, else soft), soft, system or the path of a
    /// library
    #[arg(long, default_value = "auto", value_parser = Driver::parse)]
    pub driver: Driver,
    /// Cells along each side of the plate [default: 1024; on the software driver 128]
    #[arg(long, value_name = "N")]
    pub size: Option<u32>,
    /// Steps in the graph [default: 200; on the software driver 100]
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
}
