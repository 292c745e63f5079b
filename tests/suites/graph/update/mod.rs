//! Updates: executables changed without a new one.

mod nodes;
mod pairing;
mod rebuild;
mod whole;
mod whole_owners;
mod whole_table;
