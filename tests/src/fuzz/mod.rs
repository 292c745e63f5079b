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

use arbitrary::{Arbitrary, Unstructured};
use cuda_handles::Context;

use crate::driver::setup;
use crate::promises::no_leaks;

const MAX_OPS: usize = 80;

/// Reads operations from bytes, as many as there are bytes for, and at most 80.
fn operations<'b, Op: Arbitrary<'b>>(bytes: &'b [u8]) -> impl Iterator<Item = Op> {
    let mut bytes = Unstructured::new(bytes);
    let next = move || if bytes.is_empty() { None } else { Op::arbitrary(&mut bytes).ok() };
    core::iter::from_fn(next).take(MAX_OPS)
}

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
