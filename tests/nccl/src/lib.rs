//! NCCL loaded at run time: its collectives on streams of these crates, and in their captures.
//!
//! ```no_run
//! use cuda_handles::{Buffer, Context, Stream};
//! use cuda_tests_nccl::{Communicator, Group, Nccl, Result};
//!
//! fn sum(contexts: [&Context; 2], streams: &[Stream; 2], x: &[Buffer<f32>; 2]) -> Result<()> {
//!     let communicators = Communicator::all(&Nccl::load()?, &contexts)?;
//!     let mut group = Group::new();
//!     for ((communicator, stream), x) in communicators.iter().zip(streams).zip(x) {
//!         group.all_reduce_sum(communicator, stream, x, x);
//!     }
//!     group.enqueue()
//! }
//! ```
//!
//! If the streams capture, the calls become nodes, and the graph keeps communicators and buffers.
//!
//! The package is outside of what is published: it is the pattern by which a program uses a library
//! of C, and the base of tests, an example and a benchmark. NCCL has no header here, so
//! [`Api`] declares the calls by hand.
//!
//! NCCL opens the system's driver by itself. For the software driver there is a
//! [stand-in](Nccl::stand_in) with the same table of functions.

mod api;
mod communicator;
mod error;
mod group;
mod nccl;
mod number;
mod stand_in;

pub use api::{Api, RawCommunicator, SUM};
pub use communicator::{Communicator, settle};
pub use error::{Error, Result};
pub use group::Group;
pub use nccl::{MULTICAST, Nccl};
pub use number::Number;
