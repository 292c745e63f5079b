#![doc = include_str!("../README.md")]

mod arguments;
mod config;
mod error;
#[doc(hidden)]
pub mod internal;
mod kernel;
mod launch;
mod limits;
mod observe;
mod tensor_map;

pub use arguments::access::Access;
pub use arguments::conditional_handle::ConditionalHandle;
pub use arguments::holder::Arguments;
pub use arguments::kernel_arg::{ParamBytes, Scalar};
pub use arguments::owned_params::OwnedParams;
pub use arguments::params::{KernelArg, Params};
pub use arguments::slot::ParameterSlot;
pub use config::attribute::MemorySyncDomain;
pub use config::dim::Dim;
pub use config::launch_config::{GridLength, LaunchConfig, per, per_2d};
pub use config::stream_config::{StreamConfig, Trigger};
pub use error::{
    AttributeRefused, BrokenCondition, Error, LimitExceeded, OverlappingArguments, Result, WrongArguments,
};
pub use kernel::condition;
pub use kernel::fields::ConditionValue;
pub use kernel::parameter::{
    Argument, Fields, FixedArgument, In, InOut, Out, Parameter, PlainArgument, PlainParameter, ReadOnly,
    Struct, Tensor, read_only,
};
pub use kernel::signature::{ArgumentsOf, FixedArgumentsOf, PlainArgumentsOf, PlainSignature, Signature};
pub use kernel::typed::{Prepared, SafeKernel, TypedKernel};
pub use launch::Launch;
pub use limits::occupancy::{BestBlock, Occupancy};
pub use tensor_map::{L2Promotion, Swizzle, TensorElement, TensorMap, Tiled};

/// Names that the expansion of [`kernel!`] refers to.
#[doc(hidden)]
pub mod __private {
    pub use cuda_handles::{AsStream, Buffer, Context, Image, Library};

    pub use crate::kernel::typed::{Loaded, launch};
    pub use crate::kernel::variable::variable;
}
