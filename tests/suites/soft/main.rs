//! cuda-soft: where the software driver is stricter or tells more than a GPU. On other drivers
//! these tests are skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod agreement;
mod faults;
mod images;
mod null;
mod poses;
