//! Captures end valid, whoever works beside them.

mod beside_captures;
mod foreign;
mod states;
