//! Captures end valid, whoever works beside them, and keep what captured calls use.

mod beside_captures;
mod first_use;
mod foreign;
mod memory;
mod states;
