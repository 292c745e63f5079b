#![doc = include_str!("../README.md")]

#[macro_use]
#[rustfmt::skip]
mod table;

#[macro_use]
#[rustfmt::skip]
mod exports;

#[rustfmt::skip]
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code,
    unsafe_op_in_unsafe_fn,
    unpredictable_function_pointer_comparisons,
    missing_debug_implementations,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    rustdoc::all,
    unreachable_pub
)]
mod bindings;
mod call;
mod driver;
mod load;
mod observe;
mod printable;
mod status;
mod version;

pub use bindings::*;
pub use call::{Call, Missing, Table};
pub use driver::Driver;
pub use load::{GetProcAddress, LoadError, Loader, driver, installed};
pub use observe::{Interceptor, Observer};
pub use printable::{Printable, PrintableLog};
pub use version::Version;
