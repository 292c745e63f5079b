#![doc = include_str!("../README.md")]

mod arg;
mod attribute;
mod attribute_check;
mod bounds;
pub mod condition;
mod conditional;
mod config;
mod dim;
mod error;
mod handle;
mod kernel;
mod launch;
mod layout;
mod occupancy;
mod params;
mod place;
mod raw_config;
mod signature;
mod stream_config;
mod tensor_map;
mod typed;

pub use arg::{ParamBytes, Scalar};
pub use attribute::{AttributeList, MemorySyncDomain};
pub use config::{LaunchConfig, per, per_2d};
pub use dim::Dim;
pub use error::{
    BrokenCondition, Error, LimitExceeded, OverlappingArguments, Refused, Result, Unavailable, WrongArguments,
};
pub use handle::ConditionalHandle;
pub use launch::Launch;
pub use occupancy::{BestBlock, Occupancy};
pub use params::{Arguments, KernelArg, OwnedParams, Params};
pub use place::Place;
pub use signature::{
    Argument, ArgumentsOf, In, InOut, Memory, Out, Overlap, Parameter, PlainArgument, PlainArgumentsOf,
    PlainParameter, PlainSignature, ReadOnly, Signature, Struct, Tensor, read_only,
};
pub use stream_config::{StreamConfig, Trigger};
pub use tensor_map::{L2Promotion, Swizzle, TensorElement, TensorMap, Tiled};
pub use typed::{Prepared, SafeKernel, TypedKernel};

/// What the expansion of [`kernel!`] names.
#[doc(hidden)]
pub mod __private {
    pub use cuda_handles::{AsStream, Context, Image, Library};

    pub use crate::typed::{Loaded, launch};
}
