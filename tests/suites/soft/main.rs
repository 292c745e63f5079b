//! cuda-soft: where the software driver is stricter or reports more than a GPU. On other drivers
//! these tests are skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod checks;
mod declarations;
mod early_kernels;
mod image_errors;
mod null_driver;
mod object_counts;
mod posing;
mod stray_accesses;
mod worker_threads;
