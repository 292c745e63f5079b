//! The harness of the test suites.
//!
//! A test starts with [`setup`], which installs the driver under test and gives a context, and does
//! its work inside of [`no_leaks`]:
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
//!
//! # What to use when
//!
//! | a test wants to | it uses |
//! |---|---|
//! | have a driver and a context | [`setup`], [`install`] without a context |
//! | be skipped where driver or devices lack something | [`needs!`], [`on_two_devices!`], [`Need`], [`skip!`], [`takes_all_memory!`] |
//! | behave otherwise on the software driver | [`is_soft`] |
//! | open the device under test itself, or others | [`device`], [`other_device`], [`other_context`], [`all_contexts`] |
//! | behave otherwise in a run of the matrix | [`forced_shape`], [`host_decides`], [`null_stream_is_per_thread`] |
//! | call the driver past the library | [`raw`], [`last_graph`] |
//! | know what a section costs | [`count`], [`Counts::assert_calls`]; [`trace`] for the order of calls |
//! | know how many objects there are | [`live`], [`Kind`] |
//! | know how much memory the process has | [`resident`] |
//! | show that nothing is left behind | [`no_leaks`], [`settle`] |
//! | make one driver call fail | [`fail`], [`fail_any`] |
//! | make each call of a scenario fail in turn | [`sweep`] for all calls and codes, [`every_failure`] for one section |
//! | try every operation in each of the six states of a context | [`states`], [`six_states!`] |
//! | keep work in flight | [`Gate`] holds a stream back, [`hold`] holds a driver call up |
//! | run code in a host function | [`in_callback`] |
//! | count the calls of a closure | [`closure`] |
//! | wait for another thread, with a bound | [`until`], [`ends_soon`], [`SOON`] |
//! | have a process of its own | [`alone!`], [`printed!`], [`in_forked_child`] |
//! | launch something | [`kernel`] and the kernels in `tests/kernels` and `tests/suites/ptx` |
//!
//! # Rooms
//!
//! `faults` and `record` are what the observer of driver calls consults and writes. `wrapped` sees
//! what an observer cannot. `driver` installs a driver with all of them. `things` and `process` are
//! used by tests as they are, and `promises` are whole tests to be filled in.
#![allow(clippy::expect_used, clippy::panic)] // This is how a test fails.

mod driver;
mod faults;
pub mod fuzz;
mod poll;
mod process;
mod promises;
mod readme;
mod record;
mod things;
mod wrapped;

pub use driver::{
    Need, Setup, chosen, device, forced_shape, host_decides, install, is_soft, null_stream_is_per_thread,
    other_device, raw, setup,
};
pub use faults::{Hold, Injection, fail, fail_any, hold};
pub use poll::{SOON, ends_soon, until};
#[cfg(unix)]
pub use process::in_forked_child;
pub use process::{printed_by_child, ran_as_child};
pub use promises::{
    all_contexts, every_failure, no_leaks, other_context, settle, states, sweep, used_stream,
};
pub use record::{
    Counts, Kind, Live, Step, asked_by_copies, calls_from_destructors, count, live, resident, trace,
};
#[cfg(unix)]
pub use things::VulkanSemaphore;
pub use things::{Gate, SMALL, UNKNOWN_INSTRUCTION, VARIABLES, add_to, closure, in_callback, kernel};
pub use wrapped::{allocations_in_destructors, last_graph};

/// Prints `skipped: ` with the reason and returns from the test.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        println!("skipped: {}", format_args!($($reason)*));
        return;
    }};
}

/// Skips a test of graphs as drawn in a run in which all executables are shaped, with the reason.
#[macro_export]
macro_rules! as_drawn {
    ($($reason:tt)*) => {
        if $crate::forced_shape().is_some() {
            $crate::skip!("as drawn alone: {}", format_args!($($reason)*));
        }
    };
}

/// Skips a test that takes all memory of the GPU, unless the environment says that it runs alone.
#[macro_export]
macro_rules! takes_all_memory {
    () => {
        drop($crate::setup());
        if !$crate::is_soft() && std::env::var_os("CUDA_TESTS_ALL_MEMORY").is_none() {
            $crate::skip!("it takes all memory of the GPU, which CUDA_TESTS_ALL_MEMORY=1 allows");
        }
    };
}
