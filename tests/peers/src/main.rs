//! The measurements with other projects beside these crates and the raw driver, in one process.
//!
//! Projects in other languages are measured by `peers.py`, a process of its own.

mod locked;
mod with_cudarc;

use std::process::ExitCode;

use cuda_tests_bench::Peer;

fn main() -> ExitCode {
    let version = locked::version("cudarc");
    cuda_tests_bench::main(&[
        Peer { name: "cudarc", version, operations: with_cudarc::OPERATIONS },
        Peer { name: "cudarc, events", version, operations: with_cudarc::WITH_EVENTS },
    ])
}
