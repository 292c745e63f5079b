//! Locks, waiting, and the state of the process: what every other room stands on.

mod atomic;
pub mod panics;
pub(crate) mod process;
mod spin_lock;
mod wait;

pub(crate) use atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, spin_loop};
pub use process::is_forked;
pub(crate) use spin_lock::{SpinGuard, SpinLock};
pub(crate) use wait::{for_a_moment, for_at_most, try_lock};
pub use wait::{patience, set_patience};
