//! The kernels in `tests/kernels`, compared with the same computations in Rust, bit for bit, and
//! those of many compilers in `tests/kernels/compilers`, with floats within stated bounds.

mod arithmetic;
mod basics;
mod cute;
mod forms;
mod generic;
mod library;
mod memory;
mod numba;
mod rust;
mod toolkit;
mod triton;
mod triton_tiles;
mod values;
mod warp;
mod zig;

use cuda_handles::{Context, Image, Kernel, Library, Stream};
use cuda_tests::{Need, device, setup, skip};

use super::reference::with_stream;

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

/// The text of an image in `tests/kernels/compilers`.
macro_rules! text {
    ($($part:literal),+) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/compilers/", $($part),+, ".ptx"))
    };
}
use text;

/// Calls the test with an image, where the driver and its first device take it.
fn with_library(image: &str, test: impl Fn(&Library, &Stream)) {
    drop(setup());
    if let Some(lacking) = lacking(image) {
        skip!("{lacking}");
    }
    with_stream(|context, stream| {
        let library = Library::load(context, Image::Ptx(image)).unwrap_or_else(|error| panic!("{error}"));
        test(&library, stream);
    });
}

/// Why the driver or its first device does not take an image, by its version and target.
fn lacking(image: &str) -> Option<String> {
    let directive = |name: &str| {
        let line = image.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}")).trim().to_owned()
    };
    let need = match directive(".version").as_str() {
        "7.0" | "7.7" | "7.8" => None,
        "8.4" => Some(Need::Ptx84),
        "8.7" => Some(Need::Ptx87),
        "8.8" => Some(Need::Ptx88),
        "9.0" => Some(Need::Ptx9),
        other => panic!("PTX of version {other} is not in this list"),
    };
    if let Some(lacking) = need.and_then(Need::lacking) {
        return Some(lacking);
    }
    let target = directive(".target sm_");
    let digits = target.trim_end_matches(|one: char| !one.is_ascii_digit());
    let number: u32 = digits.parse().unwrap();
    let (needed, found) = ((number / 10, number % 10), device().compute_capability().unwrap());
    // `a` stands for instructions of one generation alone.
    let is_taken = if target.contains(&format!("{digits}a")) { found == needed } else { found >= needed };
    (!is_taken).then(|| format!("the image is for sm_{target}"))
}
