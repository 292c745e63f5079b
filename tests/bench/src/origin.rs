//! Where a run is made.

use std::time::SystemTime;

use cuda_handles::Device;

use crate::Outcome;
use crate::driver::Choice;
use crate::record::{Origin, Version};

impl Origin {
    /// This process, now.
    pub(crate) fn of(driver: &Choice, commit: Option<String>, peers: Vec<Version>) -> Outcome<Self> {
        let (driver_version, device) = match driver {
            Choice::Null => (None, None),
            _ => {
                let device = Device::new(0)?;
                let found = device.driver();
                (Some(format!("CUDA {} from {}", found.version(), found.origin())), Some(device.name()?))
            }
        };
        Ok(Self {
            driver: driver.to_string(),
            driver_version,
            device,
            processor: processor(),
            is_quick: false,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit,
            peers,
        })
    }
}

/// The name of the first processor; `None` where Linux does not tell it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let names = text.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(':'));
    names.map(|(_, name)| name.trim().to_owned()).next()
}
