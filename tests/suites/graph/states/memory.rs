//! Memcpy and memset nodes.

use cuda_graph::{BatchNode, ContextExt, Graph, MemcpyNode, RawCopy, RawFill, RawMemory};
use cuda_handles::{Batch, Copy2d, Copy3d, Owner, SharedHostBuffer, Slice};
use cuda_tests::states::{CALLS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, prepared};

use super::{empty, nodes};

fn pinned(things: &Things) -> Result<(Graph, SharedHostBuffer<u32>), Refusal> {
    Ok((things.context.graph()?, things.context.pinned_zeros(LEN)?.share()))
}

fn halves(things: &Things) -> Result<[Slice<'_, u32>; 2], Refusal> {
    Ok([things.buffer.slice(..32)?, things.buffer.slice(32..)?])
}

fn halved(things: &Things) -> Result<(Graph, MemcpyNode), Refusal> {
    let graph = things.context.graph()?;
    let [source, destination] = halves(things)?;
    let copy = graph.root().copy(source, destination)?;
    Ok((graph, copy))
}

fn rectangle(things: &Things) -> Result<Copy2d<'_, u32>, Refusal> {
    let [source, destination] = halves(things)?;
    Ok(Copy2d { source, source_pitch: 8, destination, destination_pitch: 8, width: 4, height: 4 })
}

fn cuboid(things: &Things) -> Result<Copy3d<'_, u32>, Refusal> {
    let [source, destination] = halves(things)?;
    Ok(Copy3d {
        source,
        source_pitch: 4,
        source_rows: 4,
        destination,
        destination_pitch: 4,
        destination_rows: 4,
        width: 3,
        height: 3,
        depth: 2,
    })
}

/// The memory of a slice by its address, and kept.
fn raw(slice: Slice<'_, u32>) -> RawMemory {
    RawMemory::at(slice.address()).keep(Owner::from(slice.allocation()))
}

fn raw_copy(things: &Things) -> Result<RawCopy, Refusal> {
    let [source, destination] = halves(things)?;
    Ok(RawCopy::new(raw(source), raw(destination), 64))
}

fn raw_fill(things: &Things) -> Result<RawFill, Refusal> {
    let [target, _] = halves(things)?;
    Ok(RawFill::new(raw(target), 4, 1, 16))
}

fn batch(things: &Things) -> Result<Batch, Refusal> {
    let mut batch = Batch::new();
    batch.write(&things.plain, 0, 1_u32)?;
    Ok(batch)
}

fn batched(things: &Things) -> Result<(Graph, BatchNode), Refusal> {
    let graph = things.context.graph()?;
    let node = graph.root().batch(&batch(things)?)?;
    Ok((graph, node))
}

pub(crate) fn rows() -> Vec<Row> {
    [copies(), fills(), batches()].into_iter().flatten().collect()
}

fn copies() -> Vec<Row> {
    vec![
        prepared("Frontier::copy to the host", CALLS, pinned, |things, (graph, pinned)| {
            done(graph.root().copy(&things.buffer, &pinned)?)
        }),
        prepared("Frontier::copy from the host", CALLS, pinned, |things, (graph, pinned)| {
            done(graph.root().copy(&pinned, &things.buffer)?)
        }),
        prepared("Frontier::copy_2d", CALLS, empty, |things, (graph, ..)| {
            done(graph.root().copy_2d(rectangle(things)?)?)
        }),
        prepared("Frontier::copy_3d", CALLS, empty, |things, (graph, ..)| {
            done(graph.root().copy_3d(cuboid(things)?)?)
        }),
        prepared("Frontier::copy_raw", CALLS, empty, |things, (graph, ..)| {
            // SAFETY: the graph is never launched.
            done(unsafe { graph.root().copy_raw(raw_copy(things)?) }?)
        }),
        prepared("MemcpyNode::layout, describe", PURE, nodes, |_, (_graph, _, copy, _)| {
            copy.layout()?;
            done(copy.describe()?)
        }),
        prepared("MemcpyNode::set", CALLS, nodes, |things, (_graph, _, copy, _)| {
            let [source, destination] = halves(things)?;
            Ok(copy.set(destination, source)?)
        }),
        prepared("MemcpyNode::set_source", CALLS, halved, |things, (_graph, copy)| {
            Ok(copy.set_source(halves(things)?[0])?)
        }),
        prepared("MemcpyNode::set_destination", CALLS, halved, |things, (_graph, copy)| {
            Ok(copy.set_destination(halves(things)?[1])?)
        }),
        prepared("MemcpyNode::set_2d", CALLS, nodes, |things, (_graph, _, copy, _)| {
            Ok(copy.set_2d(rectangle(things)?)?)
        }),
        prepared("MemcpyNode::set_3d", CALLS, nodes, |things, (_graph, _, copy, _)| {
            Ok(copy.set_3d(cuboid(things)?)?)
        }),
        prepared("MemcpyNode::set_raw", CALLS, nodes, |things, (_graph, _, copy, _)| {
            // SAFETY: the graph is never launched.
            Ok(unsafe { copy.set_raw(raw_copy(things)?) }?)
        }),
    ]
}

fn fills() -> Vec<Row> {
    vec![
        prepared("Frontier::fill_2d", CALLS, empty, |things, (graph, ..)| {
            done(graph.root().fill_2d(&things.buffer, 8, [4, 4], 1)?)
        }),
        prepared("Frontier::fill_raw", CALLS, empty, |things, (graph, ..)| {
            // SAFETY: the graph is never launched.
            done(unsafe { graph.root().fill_raw(raw_fill(things)?) }?)
        }),
        prepared("Frontier::clear", CALLS, empty, |things, (graph, ..)| {
            done(graph.root().clear(&things.buffer)?)
        }),
        prepared("MemsetNode::set_clear", CALLS, nodes, |things, (_graph, fill, ..)| {
            Ok(fill.set_clear(&things.buffer)?)
        }),
        prepared("MemsetNode::layout", PURE, nodes, |_, (_graph, fill, ..)| done(fill.layout()?)),
        prepared("MemsetNode::set", CALLS, nodes, |things, (_graph, fill, ..)| {
            Ok(fill.set(&things.buffer, 2)?)
        }),
        prepared("MemsetNode::set_target", CALLS, nodes, |things, (_graph, fill, ..)| {
            Ok(fill.set_target(&things.buffer)?)
        }),
        prepared("MemsetNode::set_value", CALLS, nodes, |_, (_graph, fill, ..)| Ok(fill.set_value(2_u32)?)),
        prepared("MemsetNode::set_2d", CALLS, nodes, |things, (_graph, fill, ..)| {
            Ok(fill.set_2d(&things.buffer, 8, [4, 4], 2)?)
        }),
        prepared("MemsetNode::set_raw", CALLS, nodes, |things, (_graph, fill, ..)| {
            // SAFETY: the graph is never launched.
            Ok(unsafe { fill.set_raw(raw_fill(things)?) }?)
        }),
    ]
}

fn batches() -> Vec<Row> {
    vec![
        prepared("Frontier::batch", PERMITTED, empty, |things, (graph, ..)| {
            done(graph.root().batch(&batch(things)?)?)
        }),
        prepared("BatchNode::operations", PURE, batched, |_, (_graph, node)| done(node.operations()?)),
        prepared("BatchNode::set", PERMITTED, batched, |things, (_graph, node)| {
            Ok(node.set(&batch(things)?)?)
        }),
        prepared("BatchNode::set_operation", PERMITTED, batched, |things, (_graph, node)| {
            Ok(node.set_operation(0, &batch(things)?)?)
        }),
    ]
}
