//! The example of the README, which is compiled with the other examples.

#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
struct Readme;
