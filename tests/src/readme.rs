//! The example of the root README, compiled with the other examples.

#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
struct Readme;
