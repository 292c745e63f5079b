//! The harness of the test suites: the driver under test, exact counts of its calls and objects,
//! failures on demand.
//!
//! ```no_run
//! use cuda_tests::{count, no_leaks, setup};
//!
//! let context = setup();
//! no_leaks(|| {
//!     let (stream, cost) = count(|| context.stream());
//!     assert_eq!(cost.calls("cuStreamCreateWithPriority"), 1, "{cost}");
//! });
//! ```
#![allow(clippy::expect_used, clippy::panic)] // This is how a test fails.

mod child;
mod count;
mod created;
#[cfg(unix)]
mod fork;
mod gate;
mod graph_memory;
mod heap;
mod hold;
mod inject;
mod install;
mod kernels;
mod leaks;
mod live;
mod moved;
mod need;
mod poll;
pub mod raw;
mod readme;
mod scale;
pub mod states;
mod sweep;
mod user_object;
#[cfg(unix)]
mod vulkan;
mod watch;

pub use child::{printed_by_child, ran_as_child};
pub use count::{Counts, count};
pub use created::last_graph;
#[cfg(unix)]
pub use fork::in_forked_child;
pub use gate::{Gate, in_callback};
pub use hold::{Hold, hold};
pub use inject::{Injection, fail, fail_any};
pub use install::{Setup, chosen, install, is_soft, setup};
pub use kernels::{SMALL, UNKNOWN_INSTRUCTION, VARIABLES, kernel};
pub use leaks::{every_failure, no_leaks, settle};
pub use live::{Kind, Live, live};
pub use need::Need;
pub use poll::{SOON, until};
pub use scale::{Scale, scale};
pub use sweep::{sweep, used_stream};
pub use user_object::allocations_in_destructors;
#[cfg(unix)]
pub use vulkan::VulkanSemaphore;
pub use watch::{Step, calls_from_destructors, trace};

/// Prints `skipped: ` with the reason and returns from the test.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        println!("skipped: {}", format_args!($($reason)*));
        return;
    }};
}

/// Skips the test on a GPU, unless the environment says that nothing runs beside it: no other
/// process finds memory then.
#[macro_export]
macro_rules! takes_all_memory {
    () => {
        drop($crate::setup());
        if !$crate::is_soft() && std::env::var_os("CUDA_TESTS_ALL_MEMORY").is_none() {
            $crate::skip!("it takes all memory of the GPU, which CUDA_TESTS_ALL_MEMORY=1 allows");
        }
    };
}
