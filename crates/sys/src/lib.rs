#![doc = include_str!("../README.md")]

#[macro_use]
mod generated;

mod driver;
mod feature;
mod load;
mod observe;
mod printable;
mod result_code;
mod table;
mod version;

pub use driver::Driver;
pub use feature::{DriverTooOld, Feature};
pub use generated::bindings::*;
pub use load::{GetProcAddress, LoadError, Loader, driver, installed};
pub use observe::{Interceptor, Observer};
pub use printable::{Printable, PrintableLog};
pub use table::{Call, Missing, Table};
pub use version::Version;
