//! The kernels in `tests/kernels`, compared with the same computations in Rust, bit for bit.

mod arithmetic;
mod forms;
mod generic;
mod memory;
mod triton;
mod values;

use cuda_handles::{Context, Image, Kernel, Library};

/// A kernel of an image in `tests/kernels`.
macro_rules! compiled {
    ($context:expr, $image:literal, $name:literal) => {
        $crate::results::compiled::load(
            $context,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $image, ".ptx")),
            $name,
        )
    };
}
pub(crate) use compiled;

pub(crate) fn load(context: &Context, image: &str, name: &str) -> Kernel {
    let library = Library::load(context, Image::Ptx(image)).unwrap_or_else(|error| panic!("{error}"));
    library.kernel(name).unwrap_or_else(|error| panic!("{error}"))
}
