//! Any operations on streams, events and captures do what a model says.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| cuda_tests::fuzz::run(cuda_tests::fuzz::capture, bytes));
