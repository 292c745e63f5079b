//! Pools and caches of executables.

mod bounds;
mod builds;
mod hits;
mod host_loops;
mod losses;
mod owners;
mod pool;
mod pool_of;
mod streams;
mod sweep;
mod threads;
mod user_code;
mod verify;

use cuda_graph::{ContextExt, Graph, GraphCache, GraphExec, GraphParam, Result};
use cuda_handles::{Buffer, Context, Stream};

/// What goes with the executable of [`filling`]: the target, and the value.
type Fill = (GraphParam<[u32]>, GraphParam<u32>);

type Cache = GraphCache<u32, Fill>;

/// A graph that fills memory by way of memory of its own. Target and value are parameters.
fn filling(context: &Context, target: &Buffer<u32>) -> Result<(Graph, Fill)> {
    let own = context.stream()?.zeros::<u32>(target.len())?;
    let graph = context.graph()?;
    let (to, value) = (graph.param(target)?, graph.param(0_u32)?);
    graph.root().fill(&own, &value)?.then().copy(&own, &to)?;
    Ok((graph, (to, value)))
}

/// Launches such an executable.
fn fill_with(
    exec: &mut GraphExec,
    (to, value): &Fill,
    stream: &Stream,
    target: &Buffer<u32>,
    with: u32,
) -> Result<()> {
    exec.launch_with(stream, ((to, target), (value, with)))
}
