//! Conditions of declarations: in which rows, on which drivers and devices they hold.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::axes::{Axes, Axis};
use crate::detect::{FoundDriver, Machine};

/// One text or several, of which one is enough.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum OneOf {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl OneOf {
    fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    fn has(&self, value: &str) -> bool {
        self.all().iter().any(|one| one == value)
    }
}

/// When a declaration holds: everything that it names is so. One that names nothing always holds.
#[derive(Clone, Debug, Default, serde::Deserialize)]
pub(super) struct Condition {
    /// Versions of CUDA that the driver has, such as `>=12.8, <13.1`.
    version: Option<String>,
    /// Compute capabilities of the device, such as `9.0`.
    capability: Option<OneOf>,
    /// Values of axes.
    #[serde(flatten)]
    axes: BTreeMap<Axis, OneOf>,
}

/// What a condition is asked about: a row on the machine.
pub(super) struct Place<'a> {
    /// The row's values.
    pub(super) axes: &'a Axes,
    /// The row's driver.
    pub(super) driver: &'a FoundDriver,
    /// The number of the row's device.
    pub(super) device: usize,
}

impl<'a> Place<'a> {
    /// The place of a row.
    pub(super) fn new(machine: &'a Machine, axes: &'a Axes, driver: usize, device: usize) -> Self {
        Self { axes, driver: machine.drivers.get(driver).unwrap_or(machine.driver()), device }
    }
}

impl Condition {
    /// Fails unless everything named can be.
    pub(super) fn check(&self) -> Result<()> {
        for (axis, values) in &self.axes {
            values.all().iter().try_for_each(|value| ensure_value(*axis, value))?;
        }
        self.range().map(drop)
    }

    fn range(&self) -> Result<Option<semver::VersionReq>> {
        let Some(text) = &self.version else { return Ok(None) };
        let range = semver::VersionReq::parse(text);
        range.map(Some).with_context(|| format!("`{text}` is no range of versions, such as `>=12.8, <13.1`"))
    }

    /// Whether it holds. What is not known of a driver or device is not so.
    pub(super) fn holds(&self, place: &Place<'_>) -> bool {
        let capability =
            place.driver.devices.get(place.device).and_then(|device| device.capability.as_deref());
        let is_capable = |wanted: &OneOf| capability.is_some_and(|found| wanted.has(found));
        self.axes.iter().all(|(axis, values)| values.has(place.axes.get(*axis)))
            && self.capability.as_ref().is_none_or(is_capable)
            && self.is_version_of(place.driver)
    }

    fn is_version_of(&self, driver: &FoundDriver) -> bool {
        match self.range() {
            Ok(None) => true,
            Ok(Some(range)) => {
                let found = driver.version.as_ref().and_then(|text| format!("{text}.0").parse().ok());
                found.is_some_and(|version| range.matches(&version))
            }
            Err(_) => false,
        }
    }
}

/// Fails unless the axis has such a value.
pub(super) fn ensure_value(axis: Axis, value: &str) -> Result<()> {
    ensure!(
        axis.values().contains(&value),
        "the axis `{axis}` has no value `{value}`; it has {}",
        axis.values().join(", ")
    );
    Ok(())
}
