//! The arithmetic of PTX as plain functions over registers.
//!
//! A register has 64 bits. A function reads the low bits of its type and returns its result sign-
//! or zero-extended, so that upper bits never matter.
//!
//! Native code recognises operations by the addresses of their functions (`jit/compile/known.rs`).
//! Those functions are `#[inline(never)]`: an optimised build copies others into each part of the
//! crate that names them, and each copy has an address of its own.

pub(super) mod approx;
pub(super) mod bits;
pub(super) mod compare;
pub(super) mod convert;
pub(super) mod float;
pub(super) mod fp8;
pub(super) mod fragment;
pub(super) mod integer;
pub(super) mod matrix;
pub(super) mod mbarrier;
pub(super) mod rounding;
pub(super) mod swizzle;
pub(super) mod texture;
pub(super) mod value;
pub(super) mod video;

/// Register functions by number of sources.
pub(super) type F1 = fn(u64) -> u64;
pub(super) type F2 = fn(u64, u64) -> u64;
pub(super) type F3 = fn(u64, u64, u64) -> u64;
pub(super) type F4 = fn(u64, u64, u64, u64) -> u64;
