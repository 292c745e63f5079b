//! The kernels of the suites.

use cuda_handles::{Context, Image, Kernel, Library};
use cuda_launch::kernel;

/// Adds to a word. Launches may run at the same time.
const ADD: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .entry add_to(.param .u32 amount, .param .u64 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u32 %r1, [amount];
    ld.param.u64 %rd1, [value];
    cvta.to.global.u64 %rd2, %rd1;
    red.global.add.u32 [%rd2], %r1;
    ret;
}";

kernel! {
    // SAFETY: the kernel has these parameters, and touches the first element alone.
    unsafe in Image::Ptx(ADD);

    /// Adds to the first element, by an atomic operation.
    pub fn add_to(amount: u32, value: InOut<u32>)
    where value.len() >= 1;
}

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
