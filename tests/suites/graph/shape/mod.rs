//! Shapes: executables of other graphs than the ones drawn, which do the same.

mod bodies;
mod by_data;
mod by_kernels;
mod conditionals;
mod in_flight;

mod left;
mod programmatic;
mod reports;
mod results;
mod steps_in_bodies;
mod updates;

use core::num::NonZeroU16;

use cuda_graph::{Graph, GraphExec, InstantiateOptions, Shape};
use cuda_handles::{Buffer, Stream};

/// All shapes but the drawn one.
pub(crate) fn shapes() -> [Shape; 4] {
    let lanes = |count| Shape::Lanes(NonZeroU16::new(count).unwrap());
    [Shape::Reduced, lanes(1), lanes(3), Shape::Auto]
}

pub(crate) fn shaped(graph: &Graph, shape: Shape) -> GraphExec {
    graph.instantiate_with(InstantiateOptions::new().shape(shape)).unwrap()
}

/// The first number of a buffer.
pub(crate) fn first(numbers: &Buffer<u32>, stream: &Stream) -> u32 {
    numbers.read_blocking(stream).unwrap()[0]
}
