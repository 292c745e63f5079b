//! Features that not every driver or device has.

use cuda_handles::Device;
use cuda_sys::{Feature, Version};

use super::conditionals::host_decides;
use super::device::device;
use super::raw::driver;

/// A feature that came with a version of the driver or with a generation of devices.
/// [`needs!`](crate::needs) skips a test where it is absent. This is the tests' one table of
/// versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Programmatic edges.
    EdgeKinds,
    /// Conditional nodes with one body.
    Conditionals,
    /// Events that a launch completes.
    CompletionEvents,
    /// The layout of a kernel's parameters.
    ParameterLayouts,
    /// The names of a library's kernels.
    KernelNames,
    /// A shared-memory carve-out for one launch.
    Carveouts,
    /// Conditional nodes with two bodies, and switches.
    Branches,
    /// Bodies without nodes; on older drivers each has a node more.
    EmptyBodies,
    /// Clusters of a preferred size.
    PreferredClusters,
    /// Graphs that are moved into a node.
    MovedGraphs,
    /// PTX of version 8.4.
    Ptx84,
    /// PTX of version 8.7.
    Ptx87,
    /// PTX of version 8.8.
    Ptx88,
    /// PTX of version 9.0.
    Ptx9,
    /// Clusters, domains of memory and programmatic launches.
    LaunchAttributes,
    /// A second device.
    TwoDevices,
}

impl Need {
    /// The first driver with the feature; `None` if that depends on the devices.
    fn version(self) -> Option<Version> {
        let feature = match self {
            Self::EdgeKinds => Feature::EdgeData,
            Self::Conditionals => Feature::Conditional,
            Self::CompletionEvents => Feature::CompletionEvent,
            Self::ParameterLayouts => Feature::ParameterLayout,
            Self::KernelNames => Feature::KernelNames,
            Self::Carveouts => Feature::SharedCarveout,
            Self::Branches => Feature::IfElse,
            Self::EmptyBodies => Feature::EmptyBody,
            Self::PreferredClusters => Feature::PreferredCluster,
            Self::MovedGraphs => Feature::ChildGraphMove,
            Self::Ptx84 => return Some(Version::new(12, 4)),
            Self::Ptx87 => return Some(Version::new(12, 8)),
            Self::Ptx88 => return Some(Version::new(12, 9)),
            Self::Ptx9 => return Some(Version::new(13, 0)),
            Self::LaunchAttributes | Self::TwoDevices => return None,
        };
        Some(feature.since())
    }

    /// Whether it is about conditional nodes.
    fn is_of_conditionals(self) -> bool {
        matches!(self, Self::Conditionals | Self::Branches | Self::EmptyBodies)
    }

    /// Whether driver and devices have the feature.
    ///
    /// # Panics
    /// No driver is installed, or there is no device.
    #[must_use]
    pub fn is_met(self) -> bool {
        self.lacking().is_none()
    }

    /// Why the feature is absent; `None` if it is there.
    ///
    /// # Panics
    /// No driver is installed, or there is no device.
    #[must_use]
    pub fn lacking(self) -> Option<String> {
        if host_decides() && self.is_of_conditionals() {
            return Some(format!("{self:?}: the host decides in this run"));
        }
        if let Some(needed) = self.version() {
            let found = driver().version();
            return (found < needed)
                .then(|| format!("{self:?} came with driver version {needed}; this one is {found}"));
        }
        let is_met = match self {
            Self::TwoDevices => Device::count().is_ok_and(|count| count > 1),
            _ => capability() >= (9, 0),
        };
        let needed = if self == Self::TwoDevices { "a second device" } else { "compute capability 9.0" };
        (!is_met).then(|| format!("{self:?} needs {needed}"))
    }
}

/// The compute capability of the device under test.
fn capability() -> (u32, u32) {
    let found = device().compute_capability();
    found.unwrap_or_else(|error| panic!("the device under test: {error}"))
}

/// Skips the test if the driver or the devices lack a feature: `needs!(Branches);`, after
/// `setup()`.
#[macro_export]
macro_rules! needs {
    ($($need:ident),+) => {$(
        if let Some(lacking) = $crate::Need::$need.lacking() {
            $crate::skip!("{lacking}");
        }
    )+};
}

/// Runs the rest of the test in a process of its own, on two devices; skips it where there is one.
#[macro_export]
macro_rules! on_two_devices {
    () => {
        $crate::alone!("CUDA_SOFT_DEVICES" = "2");
        drop($crate::setup());
        $crate::needs!(TwoDevices);
    };
}
