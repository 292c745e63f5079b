//! What can go wrong.

/// The result of calls of this package.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// An error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment does not keep NCCL from NVLink multicast.
    #[error(
        "NCCL is loaded with NCCL_NVLS_ENABLE=0 alone, and the environment has {found}: NVLink multicast takes \
         resources that all processes on the devices share; set the variable before the program starts"
    )]
    Multicast {
        /// What the environment has.
        found: String,
    },
    /// There is no NCCL.
    #[error("no NCCL was found: {}; CUDA_NCCL can name the library or its folder", tried.join("; "))]
    NotFound {
        /// The places, each with the reason.
        tried: Vec<String>,
    },
    /// The library cannot be used.
    #[error("the NCCL at {path} cannot be used: {why}")]
    Unusable {
        /// The library.
        path: String,
        /// The reason.
        why: String,
    },
    /// NCCL refused a call.
    #[error("{call} answered {status} ({words}){}{last}", if last.is_empty() { "" } else { ": " })]
    Refused {
        /// The C function.
        call: &'static str,
        /// Its result.
        status: i32,
        /// NCCL's words for the result.
        words: String,
        /// NCCL's last message.
        last: String,
    },
    /// A group of these communicators has failed before.
    #[error("a group of these communicators has failed ({why}); make other ones (`Communicator::all`)")]
    Broken {
        /// The first failure.
        why: String,
    },
    /// A device cannot have a communicator.
    #[error("a communicator of device {device} cannot be made: {why}")]
    Device {
        /// The number of the device.
        device: usize,
        /// The reason.
        why: &'static str,
    },
    /// The calls of a group do not fit together. None of them was made.
    #[error("a group was not enqueued: {why}")]
    Group {
        /// The reason.
        why: String,
    },
    /// An error of these crates.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
}
