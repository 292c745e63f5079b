//! When the driver ends what is destroyed.

mod executables;
mod streams;
