//! The kernels of the suites.

use cuda_handles::{Context, Image, Kernel, Library};

/// Small kernels, each doing one thing that a test can see; described in the file.
pub const SMALL: &str = include_str!("../../suites/ptx/small.ptx");

/// An image with an instruction on line 10 that no driver knows.
pub const UNKNOWN_INSTRUCTION: &str = include_str!("../../suites/ptx/unknown_instruction.ptx");

/// Kernels with variables of every kind, from `tests/kernels/variables.cu`.
pub const VARIABLES: &str = include_str!("../../kernels/variables.ptx");

/// A kernel of [`SMALL`].
///
/// # Panics
/// There is no kernel of that name.
#[must_use]
pub fn kernel(context: &Context, name: &str) -> Kernel {
    let library = Library::load(context, Image::Ptx(SMALL)).unwrap_or_else(|error| panic!("{error}"));
    library.kernel(name).unwrap_or_else(|error| panic!("{error}"))
}
