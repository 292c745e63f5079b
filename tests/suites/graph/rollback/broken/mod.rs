//! A change that fails and cannot be taken back breaks the graph: each later use says so with both
//! causes, executables made before go on, and everything that the change used stays alive as long
//! as the graph.

mod additions;
mod edges;
mod keeping;
mod kernels;
mod lost_context;
mod spread;
mod uses;

use cuda_graph::{EdgeError, Error, Graph};
use cuda_sys::CUresult;
use cuda_tests::fail_any;

pub(crate) use uses::assert_broken;

const CODE: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

/// Lets every two driver calls of an attempt fail. The attempt says whether the one and the other
/// came.
fn every_two(mut attempt: impl FnMut([u64; 2]) -> [bool; 2]) {
    for first in 1.. {
        let mut came = false;
        for second in first.. {
            let hits = attempt([first, second]);
            came |= hits[0];
            if !hits[1] {
                break;
            }
        }
        if !came {
            break;
        }
    }
}

/// Makes a change while two driver calls, by their numbers, fail.
fn failing<R>([first, second]: [u64; 2], change: impl FnOnce() -> R) -> (R, [bool; 2]) {
    let (one, two) = (fail_any(first, CODE), fail_any(second, CODE));
    let outcome = change();
    (outcome, [one.hit(), two.hit()])
}

/// The order of the nodes is what the edges say.
fn assert_ordered(graph: &Graph) {
    for edge in graph.edges().unwrap() {
        let closed = graph.add_edge(&edge.to, &edge.from);
        assert!(matches!(closed, Err(Error::Edge(EdgeError::Cycle { .. }))), "{closed:?}");
    }
}
