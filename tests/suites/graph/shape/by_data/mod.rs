//! Order by data: executables that keep the order that accesses need.

mod opaque;
mod orders;
mod random;
mod values;

use cuda_graph::{Graph, GraphExec, InstantiateOptions, Order, Shape};

fn by_data(graph: &Graph) -> GraphExec {
    in_shape(graph, Shape::AsBuilt)
}

fn in_shape(graph: &Graph, shape: Shape) -> GraphExec {
    let exec = graph.instantiate_with(InstantiateOptions::new().shape(shape).order(Order::ByData)).unwrap();
    let report = exec.shape_report().unwrap();
    let reason = report.reason_to_leave();
    assert!(reason.is_none_or(|why| why == "no change would make it faster"), "{report}");
    exec
}

/// The roots, the edges and the widest level of an executable.
fn figures(exec: &GraphExec) -> (usize, usize, usize) {
    let after = exec.shape_report().unwrap().after().unwrap();
    (after.roots, after.edges, after.widest)
}
