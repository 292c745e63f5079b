//! When the driver ends what is destroyed.

mod executables;
mod streams;
mod user_objects;
