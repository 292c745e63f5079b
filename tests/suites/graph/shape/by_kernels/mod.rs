//! Kernels in place of fills and copies that the host submits.

mod bytes;
mod left;
mod updates;

use cuda_graph::{InstantiateOptions, Shape};

/// The options of executables in which kernels take the place of all that they can.
fn by_kernels() -> [InstantiateOptions; 2] {
    let reduced = InstantiateOptions::new().shape(Shape::Reduced);
    [reduced.fills_by_kernels(true).copies_by_kernels(true), InstantiateOptions::new().shape(Shape::Auto)]
}
