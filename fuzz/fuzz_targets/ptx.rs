//! Any text is loaded or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| cuda_tests::fuzz::run(cuda_tests::fuzz::ptx, bytes));
