//! The axes of the matrix, and how the tests are told each.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// An axis of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Axis {
    /// The driver: the chosen one, or those installed beside it.
    Driver,
    /// The device: the chosen one, or the others.
    Device,
    /// When the driver loads modules.
    Loading,
    /// The stream that the null stream stands for.
    DefaultStream,
    /// Which side decides about ready-made loops and branches.
    Conditionals,
    /// The shape of executables whose options name none.
    Shaping,
    /// The program that watches the tests.
    Tool,
}

impl Axis {
    /// The name in declarations and reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Device => "device",
            Self::Loading => "loading",
            Self::DefaultStream => "default-stream",
            Self::Conditionals => "conditionals",
            Self::Shaping => "shaping",
            Self::Tool => "tool",
        }
    }

    /// The values that a declaration may name. The first one is the usual one.
    pub(super) fn values(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &["chosen", "beside"],
            Self::Device => &["chosen", "others"],
            Self::Loading => &["lazy", "eager"],
            Self::DefaultStream => &["legacy", "per-thread"],
            Self::Conditionals => &["native", "host"],
            Self::Shaping => &["off", "reduced", "lanes", "auto"],
            Self::Tool => &["none", "memcheck", "racecheck", "synccheck", "initcheck"],
        }
    }

    /// The value of the base row.
    pub(super) fn usual(self) -> &'static str {
        self.values().first().copied().unwrap_or_default()
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A value for each axis; axes that are absent have their usual value.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Axes(pub(super) BTreeMap<Axis, String>);

impl Axes {
    /// The value of an axis.
    pub(super) fn get(&self, axis: Axis) -> &str {
        self.0.get(&axis).map_or(axis.usual(), String::as_str)
    }

    /// These, with another value for one axis.
    pub(super) fn with(&self, axis: Axis, value: &str) -> Self {
        let mut axes = self.clone();
        axes.0.insert(axis, value.to_owned());
        axes
    }

    /// The environment variables by which tests are told of the axes, but for the driver. A
    /// variable without a value is unset.
    pub(super) fn environment(&self, device: usize, patience: u32) -> Vec<(&'static str, Option<OsString>)> {
        let other = |axis: Axis| Some(self.get(axis)).filter(|value| *value != axis.usual());
        let word = |value: Option<&str>| value.map(OsString::from);
        vec![
            ("CUDA_TEST_DEVICE", Some(device.to_string().into())),
            ("CUDA_MODULE_LOADING", Some(self.get(Axis::Loading).to_uppercase().into())),
            ("CUDA_TEST_DEFAULT_STREAM", word(other(Axis::DefaultStream))),
            ("CUDA_TEST_CONDITIONALS", word(other(Axis::Conditionals))),
            ("CUDA_TEST_SHAPE", word(other(Axis::Shaping))),
            ("CUDA_TEST_TOOL", word(other(Axis::Tool))),
            ("CUDA_TEST_PATIENCE", (patience > 1).then(|| patience.to_string().into())),
        ]
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("all axes as usual");
        }
        for (position, (axis, value)) in self.0.iter().enumerate() {
            let comma = if position > 0 { ", " } else { "" };
            write!(formatter, "{comma}{axis}={value}")?;
        }
        Ok(())
    }
}
