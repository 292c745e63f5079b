//! From the declaration and the machine to the rows that run.

use anyhow::{Result, ensure};

use super::axes::{Axes, Axis};
use super::declaration::Declaration;
use crate::detect::{FoundDriver, Machine};

/// The name of the row in which all axes are as usual.
pub(super) const BASE: &str = "base";

/// A row of the matrix on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) name: String,
    /// Its name in the declaration, which rows for several drivers or devices have in common.
    pub(super) declared: String,
    pub(super) axes: Axes,
    pub(super) groups: Vec<String>,
    /// The position of its driver among those of the machine.
    pub(super) driver: usize,
    /// The number of its device.
    pub(super) device: usize,
    /// Groups of the declaration that do not run in the row, with the reasons.
    pub(super) left_out: Vec<(String, String)>,
    /// Why the row does not run.
    pub(super) skipped: Option<String>,
}

/// The rows that the command line asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// Rows by name; all if it is empty.
    pub(super) rows: Vec<String>,
    /// The base row alone.
    pub(super) quick: bool,
    /// The only device to use.
    pub(super) device: Option<usize>,
}

/// All rows in the order of the declaration, those that cannot run with the reasons.
pub(super) fn rows(
    declaration: &Declaration,
    machine: &Machine,
    selection: &Selection,
) -> Result<Vec<Planned>> {
    let plan = Plan { declaration, machine, device: selection.device.unwrap_or(0), only: selection.device };
    let all = plan.all();
    for name in &selection.rows {
        let names: Vec<_> = all.iter().map(|row| row.name.as_str()).collect();
        let is_known = all.iter().any(|row| row.is_called(name));
        ensure!(is_known, "there is no row `{name}`; there are: {}", names.join(", "));
    }
    let wanted = |row: &Planned| match (selection.quick, selection.rows.is_empty()) {
        (_, false) => selection.rows.iter().any(|name| row.is_called(name)),
        (true, true) => row.name == BASE,
        (false, true) => true,
    };
    Ok(all.into_iter().filter(wanted).collect())
}

impl Planned {
    /// Whether the command line can name it so.
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.declared == name
    }
}

struct Plan<'a> {
    declaration: &'a Declaration,
    machine: &'a Machine,
    /// The device of rows that name no other.
    device: usize,
    /// Whether there is to be no other.
    only: Option<usize>,
}

impl Plan<'_> {
    fn all(&self) -> Vec<Planned> {
        let Declaration { base, vary, row, .. } = self.declaration;
        let mut rows = self.of(BASE, Axes::default(), &base.groups);
        for vary in vary {
            for value in &vary.values {
                let name = format!("{}={value}", vary.axis);
                rows.extend(self.of(&name, Axes::default().with(vary.axis, value), &vary.groups));
            }
        }
        for row in row {
            rows.extend(self.of(&row.name, row.set.clone(), &row.groups));
        }
        rows
    }

    /// The rows of one declared row: one, or one for each driver or device.
    fn of(&self, name: &str, axes: Axes, groups: &[String]) -> Vec<Planned> {
        let row = Planned {
            name: name.to_owned(),
            declared: name.to_owned(),
            axes,
            groups: groups.to_vec(),
            driver: 0,
            device: self.device,
            left_out: Vec::new(),
            skipped: None,
        };
        let drivers = self.each_driver(row);
        let devices = drivers.into_iter().flat_map(|row| self.each_device(row));
        devices.map(|row| self.fitted(row)).collect()
    }

    fn each_driver(&self, row: Planned) -> Vec<Planned> {
        if row.axes.get(Axis::Driver) == Axis::Driver.usual() {
            return vec![row];
        }
        let beside = self.machine.drivers.iter().enumerate().skip(1);
        let each = beside.map(|(driver, found)| Planned {
            name: row.name.replace("driver=beside", &format!("driver={}", found.name)),
            skipped: self.missing_driver(found),
            driver,
            ..row.clone()
        });
        or_skipped(each.collect(), &row, "no other driver is installed beside the chosen one")
    }

    /// Why a driver beside the chosen one cannot be used, or not with the device of the row.
    fn missing_driver(&self, found: &FoundDriver) -> Option<String> {
        let lacks_device = || match found.devices.len() {
            0 => Some("the driver finds no device".to_owned()),
            count if count <= self.device => Some(format!(
                "the command line names device {}, and the driver finds {count} in all, numbered from 0",
                self.device
            )),
            _ => None,
        };
        match &found.problem {
            Some(problem) => Some(format!("the driver cannot be used: {problem}")),
            None => lacks_device(),
        }
    }

    fn each_device(&self, row: Planned) -> Vec<Planned> {
        if row.skipped.is_some() || row.axes.get(Axis::Device) == Axis::Device.usual() {
            return vec![row];
        }
        if let Some(only) = self.only {
            return or_skipped(Vec::new(), &row, &format!("the command line names device {only} alone"));
        }
        let others = (0..self.devices(&row)).filter(|device| *device != self.device);
        let each = others.map(|device| Planned {
            name: row.name.replace("device=others", &format!("device={device}")),
            device,
            ..row.clone()
        });
        or_skipped(each.collect(), &row, "there is one device")
    }

    fn devices(&self, row: &Planned) -> usize {
        self.machine.drivers.get(row.driver).map_or(0, |driver| driver.devices.len())
    }

    /// The row without what cannot run here.
    fn fitted(&self, mut row: Planned) -> Planned {
        if row.skipped.is_none() {
            row.skipped = self.missing_tool(&row);
        }
        for group in std::mem::take(&mut row.groups) {
            match self.misfit(&group, &row) {
                Some(reason) => row.left_out.push((group, reason)),
                None => row.groups.push(group),
            }
        }
        if let (true, None, Some((_, reason))) = (row.groups.is_empty(), &row.skipped, row.left_out.first()) {
            row.skipped = Some(reason.clone());
        }
        row
    }

    /// Why a group cannot run in a row.
    fn misfit(&self, group: &str, row: &Planned) -> Option<String> {
        let group = self.declaration.groups.get(group)?;
        let (needed, devices) = (group.devices, self.devices(row));
        if needed > devices {
            return Some(format!("it needs {needed} devices, and there are {devices}"));
        }
        let only = group.only_device.filter(|only| *only != row.device)?;
        Some(format!("its tests use device {only} alone, and the row is for device {}", row.device))
    }

    fn missing_tool(&self, row: &Planned) -> Option<String> {
        let tool = row.axes.get(Axis::Tool);
        if tool == Axis::Tool.usual() {
            None
        } else if !self.declaration.tools.contains_key(tool) {
            Some(format!("the declaration does not say how {tool} is called"))
        } else if self.machine.driver().name == "soft" {
            Some("compute-sanitizer watches NVIDIA's driver, and this is the software driver".to_owned())
        } else if self.machine.sanitizer.is_none() {
            Some("there is no compute-sanitizer; CUDA's toolkit and the Python package nvidia-cuda-sanitizer-api have it, and \
                 CUDA_SANITIZER can name it"
                    .to_owned())
        } else {
            None
        }
    }
}

/// The rows, or where there are none the row that says why.
fn or_skipped(rows: Vec<Planned>, row: &Planned, reason: &str) -> Vec<Planned> {
    if rows.is_empty() { vec![Planned { skipped: Some(reason.to_owned()), ..row.clone() }] } else { rows }
}
