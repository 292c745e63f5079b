//! Every entry point with extreme arguments: each call returns success or an error, without a
//! signal, panic or overflow.
//!
//! The calls come from the table of cuda-sys, so that a new one is swept automatically. Each is
//! called in child processes of its own, so that a crash is reported with the call and its
//! arguments. `cargo test --release --package cuda-soft --test sweep` sweeps the driver as users
//! build it, without the checks of debug builds.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

mod calls;
mod candidates;
mod child;
mod configuration;
mod live_objects;
mod parent;
mod templates;

use child::State;

/// The calls with live objects are many: each of these tests has every fourth entry point.
macro_rules! quarter {
    ($name:ident, $quarter:literal) => {
        #[test]
        fn $name() {
            parent::sweep(State::Live { quarter: $quarter });
        }
    };
}

quarter!(no_call_with_live_objects_ends_the_process_1, 0);
quarter!(no_call_with_live_objects_ends_the_process_2, 1);
quarter!(no_call_with_live_objects_ends_the_process_3, 2);
quarter!(no_call_with_live_objects_ends_the_process_4, 3);

#[test]
fn no_call_without_a_context_ends_the_process() {
    parent::sweep(State::NoContext);
}

#[test]
fn no_call_before_the_initialisation_ends_the_process() {
    parent::sweep(State::Uninitialised);
}

#[test]
fn no_call_after_a_loss_ends_the_process() {
    parent::sweep(State::Lost);
}
