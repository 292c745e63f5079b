//! The bodies of the fuzz targets: each takes any bytes and panics where a promise is broken.
//!
//! `fuzz/` hands them what libFuzzer finds, and tests of the suites what proptest makes, so that CI
//! runs them, too.

mod capture;
mod graph;
mod image;
mod ptx;
mod seeds;

pub use capture::capture;
pub use graph::graph;
pub use image::image;
pub use ptx::ptx;
pub use seeds::{SEEN_CAPTURES, SEEN_GRAPHS, SEEN_TEXTS, images, write_images};

use std::sync::OnceLock;

use cuda_handles::Context;

use crate::driver::setup;
use crate::promises::no_leaks;

/// The body of a target.
pub type Body = fn(&Context, &[u8]);

/// Runs a body on the process's only context, which is set up once.
///
/// # Panics
/// A promise is broken.
pub fn run(body: Body, bytes: &[u8]) {
    static CONTEXT: OnceLock<Context> = OnceLock::new();
    check(CONTEXT.get_or_init(|| Context::clone(&setup())), body, bytes);
}

/// Runs a body, which leaves nothing behind.
///
/// # Panics
/// A promise is broken.
pub fn check(context: &Context, body: Body, bytes: &[u8]) {
    no_leaks(|| body(context, bytes));
}
