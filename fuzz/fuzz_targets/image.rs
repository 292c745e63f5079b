//! Any bytes are refused unless a driver can read them to their end.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: cuda_tests::fuzz::write_images(),
    |bytes: &[u8]| cuda_tests::fuzz::run(cuda_tests::fuzz::image, bytes)
);
