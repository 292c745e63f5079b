#![doc = include_str!("../README.md")]

mod arg;
mod config;
mod error;
mod launch;
mod layout;
mod params;

pub use arg::{KernelArg, ParamBytes, Scalar};
pub use config::{Dim, LaunchConfig, per, per_2d};
pub use error::{Error, LimitExceeded, Result};
pub use launch::Launch;
pub use layout::{Place, WrongArguments};
pub use params::{Arguments, OwnedParams, Params};
