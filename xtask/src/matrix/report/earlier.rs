//! The report of an earlier run, to go on with.

use anyhow::{Context, Result, ensure};

use super::{JSON, MatrixReport, RowReport};
use crate::detect::FoundDriver;
use crate::matrix::options::MatrixOptions;
use crate::matrix::origin::Origin;

/// What a later run needs of a report.
#[derive(Clone, Debug, serde::Deserialize)]
pub(in crate::matrix) struct Earlier {
    origin: Origin,
    machine: Drivers,
    rows: Vec<RowReport>,
}

#[derive(Clone, Debug, serde::Deserialize)]
struct Drivers {
    drivers: Vec<FoundDriver>,
}

impl Earlier {
    /// The report that the command line asks to go on with; `None` if there is none yet.
    pub(in crate::matrix) fn read(options: &MatrixOptions) -> Result<Option<Self>> {
        let Some(folder) = options.report_dir.as_ref().filter(|_| options.resume) else { return Ok(None) };
        let path = folder.join(JSON);
        if !path.exists() {
            return Ok(None);
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let read = Self::parse(&text);
        read.map(Some).with_context(|| format!("{} is no report to go on with", path.display()))
    }

    pub(in crate::matrix) fn parse(text: &str) -> Result<Self> {
        Ok(serde_json::from_str(text)?)
    }

    /// Puts the rows into a report that has none yet. It must be of the same build, driver and
    /// devices.
    pub(in crate::matrix) fn go_on(self, report: &mut MatrixReport) -> Result<()> {
        let same = |what: &str, then: &str, now: &str| {
            ensure!(
                then == now,
                "the earlier report is of another {what}: {then} then, {now} now; name another folder"
            );
            Ok(())
        };
        same("build", &self.origin.build(), &report.origin.build())?;
        let version = |driver: Option<&FoundDriver>| driver.and_then(|driver| driver.version.clone());
        let driver = |driver| version(driver).unwrap_or_else(|| "none".to_owned());
        let (then, now) = (self.machine.drivers.first(), report.machine.driver());
        same("driver", &driver(then), &driver(Some(now)))?;
        let devices = |driver: Option<&FoundDriver>| {
            let devices = driver.map(|driver| driver.devices.as_slice()).unwrap_or_default();
            devices.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        same("machine", &devices(then), &devices(Some(now)))?;
        report.origin.began = self.origin.began;
        report.rows = self.rows;
        Ok(())
    }
}
