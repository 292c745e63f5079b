#![doc = include_str!("../README.md")]

mod access;
mod arg;
mod arguments;
mod attribute;
mod attribute_check;
mod bounds;
pub mod condition;
mod conditional;
mod config;
mod dim;
mod elsewhere;
mod error;
mod handle;
mod kernel;
mod kernel_set;
mod launch;
mod layout;
mod occupancy;
mod owned_params;
mod parameter;
mod params;
mod place;
mod raw_config;
mod seen;
mod signature;
mod stream_config;
mod tensor_map;
mod typed;
mod variable;

pub use access::{Access, AccessRanges, Accesses, Declaration, Memory, MemoryParameter};
pub use arg::{ParamBytes, Scalar};
pub use arguments::Arguments;
pub use attribute::{AttributeList, MemorySyncDomain};
pub use config::{LaunchConfig, per, per_2d};
pub use dim::Dim;
pub use error::{
    BrokenCondition, Error, LimitExceeded, OverlappingArguments, Refused, Result, Unavailable, WrongArguments,
};
pub use handle::ConditionalHandle;
pub use launch::Launch;
pub use occupancy::{BestBlock, Occupancy};
pub use owned_params::OwnedParams;
pub use parameter::{
    Argument, Fields, In, InOut, Out, Parameter, PlainArgument, PlainParameter, ReadOnly, Struct, Tensor,
    read_only,
};
pub use params::{KernelArg, Params};
pub use place::Place;
pub use seen::Seen;
pub use signature::{ArgumentsOf, Overlap, PlainArgumentsOf, PlainSignature, Signature};
pub use stream_config::{StreamConfig, Trigger};
pub use tensor_map::{L2Promotion, Swizzle, TensorElement, TensorMap, Tiled};
pub use typed::{Prepared, SafeKernel, TypedKernel};

/// What the expansion of [`kernel!`] names.
#[doc(hidden)]
pub mod __private {
    pub use cuda_handles::{AsStream, Buffer, Context, Image, Library};

    pub use crate::typed::{Loaded, launch};
    pub use crate::variable::variable;
}
