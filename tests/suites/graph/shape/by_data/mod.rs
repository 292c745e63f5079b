//! Order by data: executables that keep the order that accesses need.

mod opaque;
mod orders;
mod random;
mod values;

use cuda_graph::{Graph, GraphExec, InstantiateOptions, Order, Shape};

/// The same as `add_to`, with a constant beside it.
pub(crate) const CONSTANT: &str = "
.version 7.8
.target sm_70
.address_size 64
.const .align 4 .u32 table[2] = {1, 2};
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
