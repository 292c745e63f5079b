//! Adopted graphs and lent raw handles.

use core::ptr;

use cuda_graph::Graph;
use cuda_sys::CUgraph;
use cuda_tests::raw::{driver, ok};
use cuda_tests::states::{CALLS, CHECKS, Refusal, Row, Things, done, drops, prepared};

use super::empty;

/// A graph of other code. What is not taken over is never destroyed.
struct Raw(CUgraph);

// SAFETY: the driver takes its handles on every thread.
unsafe impl Send for Raw {}

impl Raw {
    fn get(&self) -> CUgraph {
        self.0
    }
}

fn raw(_: &Things) -> Result<Raw, Refusal> {
    let (mut graph, mut node) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the out pointers are valid, and there are no dependencies.
    unsafe {
        ok(driver().cuGraphCreate(&raw mut graph, 0));
        ok(driver().cuGraphAddEmptyNode(&raw mut node, graph, ptr::null(), 0));
    }
    Ok(Raw(graph))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared("Graph::as_raw, Node::as_raw", CHECKS, empty, |_, (graph, first, _)| {
            graph.as_raw()?;
            done(first.as_raw()?)
        }),
        prepared("Graph::from_raw", CALLS, raw, |things, raw| {
            // SAFETY: the graph is never destroyed, and its node uses nothing.
            done(unsafe { Graph::from_raw(&things.context, raw.get()) }?)
        }),
        prepared("Graph::from_raw_with", CALLS, raw, |things, raw| {
            // SAFETY: as above.
            done(unsafe { Graph::from_raw_with(&things.context, raw.get(), &things.buffer) }?)
        }),
        prepared("Graph::from_raw_owned", CALLS, raw, |things, raw| {
            // SAFETY: nobody else knows the graph.
            done(unsafe { Graph::from_raw_owned(&things.context, raw.get()) }?)
        }),
        drops("drop of a graph taken over", |things| {
            // SAFETY: nobody else knows the graph.
            Ok(unsafe { Graph::from_raw_owned(&things.context, raw(things)?.get()) }?)
        }),
    ]
}
