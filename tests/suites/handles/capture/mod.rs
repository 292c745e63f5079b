//! Captures: their states, records and ends. They end valid, whoever works beside them, and keep
//! what captured calls use.

mod beside_captures;
mod ends;
mod first_use;
mod foreign;
mod memory;
mod records;
mod states;
