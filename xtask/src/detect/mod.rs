//! What is on this machine: drivers, devices, tools and libraries.
//!
//! The search reads folders and asks each driver in a child process; it builds, installs and
//! changes nothing.

pub mod ask;
mod beside;
mod files;
mod libraries;
mod print;
mod sanitizer;

use std::path::{Path, PathBuf};

use cuda_nvrtc::internal::Environment;

use crate::runner::Driver;
pub use libraries::FoundLibrary;

/// A device as a driver names it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FoundDevice {
    /// Its name.
    pub name: String,
    /// Its compute capability, such as `9.0`; unknown for the software driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Its memory in bytes; unknown for the software driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A driver: what it said, or why it said nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FoundDriver {
    /// The name by which tests choose it: `soft`, `system` or a path.
    pub name: String,
    /// The file that was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The newest version of CUDA that it has, such as `13.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its devices, by number.
    pub devices: Vec<FoundDevice>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What is on this machine.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Machine {
    /// The driver that tests use, then those installed beside it.
    pub drivers: Vec<FoundDriver>,
    /// NVIDIA's compute-sanitizer.
    pub sanitizer: Option<PathBuf>,
    /// Libraries that some tests use.
    pub libraries: Vec<FoundLibrary>,
}

impl Machine {
    /// Looks at the machine. `driver` is the driver that tests are to use.
    #[must_use]
    pub fn detect(driver: &Driver, environment: &(impl Environment + Sync)) -> Self {
        let (chosen, beside) = match driver {
            Driver::Soft => (soft(environment), Vec::new()),
            driver => ask::all(driver, &beside::libraries(environment)),
        };
        let is_another = |found: &FoundDriver| found.file.is_none() || found.file != chosen.file;
        let beside: Vec<_> = beside.into_iter().filter(is_another).collect();
        let drivers = [chosen].into_iter().chain(beside).collect();
        Self { sanitizer: sanitizer::find(environment), libraries: libraries::all(environment), drivers }
    }

    /// Sets where a library is, which the command line has named.
    pub(crate) fn name_library(&mut self, name: &str, file: &Path) {
        for library in self.libraries.iter_mut().filter(|library| library.name == name) {
            library.file = Some(file.to_owned());
        }
    }

    /// The driver that tests use.
    #[must_use]
    pub fn driver(&self) -> &FoundDriver {
        static NONE: FoundDriver = FoundDriver {
            name: String::new(),
            file: None,
            version: None,
            devices: Vec::new(),
            problem: None,
        };
        self.drivers.first().unwrap_or(&NONE)
    }

    /// Why no test can run, and what to do about it.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let driver = self.driver();
        let missing = match &driver.problem {
            Some(problem) => problem.clone(),
            None if driver.devices.is_empty() => {
                "the driver finds no device. Look whether `nvidia-smi` lists one, and whether CUDA_VISIBLE_DEVICES \
                 hides it"
                    .to_owned()
            }
            None => return None,
        };
        Some(format!("{missing}. Without a GPU, `--driver soft` runs the matrix on the software driver"))
    }
}

/// The software driver, which the environment configures.
fn soft(environment: &impl Environment) -> FoundDriver {
    let word = |name| environment.variable(name).map(|value| value.to_string_lossy().into_owned());
    let count = word("CUDA_SOFT_DEVICES").and_then(|count| count.parse().ok()).unwrap_or(1);
    let device = FoundDevice {
        name: "in software".to_owned(),
        capability: word("CUDA_SOFT_CAPABILITY"),
        memory: None,
    };
    FoundDriver {
        name: "soft".to_owned(),
        version: word("CUDA_SOFT_VERSION"),
        devices: vec![device; count],
        ..FoundDriver::default()
    }
}

#[cfg(test)]
mod tests;
