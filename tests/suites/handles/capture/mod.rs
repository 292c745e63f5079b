//! Captures: their states, records and ends; they end valid, whoever works beside them.

mod beside_captures;
mod ends;
mod foreign;
mod records;
mod states;
