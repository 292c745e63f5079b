//! The measurements, without peers.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuda_tests_bench::main(&[])
}
