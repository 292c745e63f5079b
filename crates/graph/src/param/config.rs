//! Launch configurations that depend on graph parameters.

use cuda_handles::Placeholder;
use cuda_launch::{GridLength, LaunchConfig, per};

use crate::param::graph_param::{GraphParam, ParamLen};
use crate::state::bindings::Place;

/// A launch configuration for a kernel node: a [`LaunchConfig`], a parameter, or one whose grid
/// follows the length of a parameter's memory.
pub trait NodeConfig {
    /// The configuration with the value that the parameter was made with.
    #[doc(hidden)]
    fn config(&self) -> LaunchConfig;

    /// The parameter that it depends on.
    #[doc(hidden)]
    fn source(&self) -> Option<ConfigSource> {
        None
    }
}

/// The parameter that a configuration depends on.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ConfigSource {
    pub(crate) placeholder: Placeholder,
    pub(crate) place: Place,
}

/// A launch configuration whose grid follows the length of a parameter's memory; made by
/// [`per`](cuda_launch::per).
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ParamConfig {
    config: LaunchConfig,
    placeholder: Placeholder,
    block: u32,
}

impl GridLength for ParamLen {
    type Config = ParamConfig;

    fn per(self, block: u32) -> ParamConfig {
        ParamConfig { config: per(self.len, block), placeholder: self.placeholder, block }
    }
}

impl ParamConfig {
    /// Sets the bytes of dynamic shared memory.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.config = self.config.shared_bytes(bytes);
        self
    }
}

impl NodeConfig for LaunchConfig {
    #[inline]
    fn config(&self) -> LaunchConfig {
        *self
    }
}

impl NodeConfig for ParamConfig {
    fn config(&self) -> LaunchConfig {
        self.config
    }

    fn source(&self) -> Option<ConfigSource> {
        Some(ConfigSource {
            placeholder: self.placeholder,
            place: Place::Grid(self.block, self.placeholder.element()),
        })
    }
}

impl NodeConfig for &GraphParam<LaunchConfig> {
    fn config(&self) -> LaunchConfig {
        self.initial
    }

    fn source(&self) -> Option<ConfigSource> {
        Some(ConfigSource { placeholder: self.placeholder, place: Place::Config })
    }
}
