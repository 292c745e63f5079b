//! Locks, waiting, and the state of the process: the base of all other rooms.

mod atomic;
mod lock;
pub mod panics;
pub(crate) mod process;
mod rank;
mod spin_lock;
mod wait;

pub(crate) use atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, spin_loop};
pub use lock::{Lock, LockGuard};
pub use process::is_forked;
pub use rank::Rank;
pub(crate) use rank::outside;
pub(crate) use spin_lock::{SpinGuard, SpinLock};
pub(crate) use wait::{for_a_moment, for_at_most};
pub use wait::{patience, set_patience};
