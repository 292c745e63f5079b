//! The memory of allocation nodes, for cuda-graph. No part of the public interface.

use std::sync::Arc;

use cuda_sys::CUdeviceptr;

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::graph_life::{GraphMemory, Life};
use super::space::MemorySpace;
use crate::context::{Context, Device};
use crate::error::Result;
use crate::reclaim;
use crate::stream::Stream;

impl Allocation {
    /// The number of the graph hierarchy whose nodes alone can use it, for memory of an allocation
    /// node. `None` for all other memory, including memory that came out of a launch.
    #[must_use]
    #[inline]
    pub fn graph(&self) -> Option<u64> {
        Some(self.graph_memory()?.graph())
    }
}

/// The location of the memory of an allocation node.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its start.
    pub address: CUdeviceptr,
    /// Its size.
    pub bytes: usize,
    /// Its space.
    pub space: MemorySpace,
}

/// The memory of an allocation node in a hierarchy of graphs with this number. Kernels of the
/// devices may use it, and those of the context.
///
/// # Safety
/// The driver has given the node this address and size.
#[must_use]
pub unsafe fn of_node(
    context: &Context,
    graph: u64,
    place: Place,
    devices: Box<[Device]>,
) -> Arc<Allocation> {
    let memory = GraphMemory::new(graph, place.space, devices);
    Arc::new(Allocation::of_graph(context, place.address, place.bytes, memory))
}

/// The node is in a hierarchy with another number now.
///
/// # Safety
/// The node is in that hierarchy: nodes there may use the memory.
pub unsafe fn moved(memory: &Allocation, graph: u64) {
    if let Some(memory) = memory.graph_memory() {
        memory.move_to(graph);
    }
}

/// Whether a buffer owns the memory that the last launch left.
#[must_use]
pub fn is_out(memory: &Allocation) -> bool {
    memory.graph_memory().is_some_and(|memory| memory.life() == Life::Out)
}

/// Whether a launch has ever left some of it.
#[must_use]
pub fn was_left(memory: &Allocation) -> bool {
    memory.graph_memory().is_some_and(|memory| memory.last().is_some())
}

/// Prepares a launch that will allocate each of these: makes sure that the memory that the last
/// launch left is freed, and that `stream` waits for the free. Returns the index of the first for
/// which that is not so. With `frees`, the launch itself frees what an executable holds.
///
/// # Errors
/// The reason why memory of an earlier launch could not be freed; the driver's refusal, or a
/// capturing stream ([`Capturing`](crate::Error::Capturing)), if that keeps the memory from being
/// freed. The call had no effect but on what the stream waits for.
pub fn make_ready(memory: &[&Arc<Allocation>], stream: &Stream, frees: bool) -> Result<Option<usize>> {
    let life = |memory: &Allocation| memory.graph_memory().map_or(Life::Free, |memory| memory.life());
    let any = |wanted| memory.iter().any(|memory| life(memory) == wanted);
    if any(Life::Queued) || any(Life::Fenced) {
        // The reaper may be waiting for the work that waits for a host function.
        stream.context().refuse_in_callback()?;
    }
    if any(Life::Queued) {
        reclaim::free_now(|| !any(Life::Queued))?;
    }
    let in_use = |memory: &&Arc<Allocation>| match life(memory) {
        Life::Free | Life::Fenced => false,
        Life::Left => !frees,
        Life::Out | Life::Queued => true,
    };
    if let Some(error) = memory.iter().find_map(|memory| memory.graph_memory()?.failure()) {
        return Err(error.clone());
    }
    if let Some(place) = memory.iter().position(in_use) {
        return Ok(Some(place));
    }
    if any(Life::Fenced) {
        reclaim::order_after_frees(stream.raw_stream())?;
    }
    let mut waited: Vec<Stream> = Vec::new();
    for last in memory.iter().filter_map(|memory| memory.graph_memory()?.last()) {
        if last != *stream && !waited.contains(&last) {
            stream.wait_for_uncaptured(&last)?;
            waited.push(last);
        }
    }
    Ok(None)
}

/// The memory that a launch on `home`, enqueued just now, has left; freed in the order of that
/// stream when its last owner drops it. `kept` if an executable holds it and frees it at its next
/// launch. `None` for memory of no allocation node.
///
/// # Safety
/// The launch left this memory, and nothing else frees it unless it is [forgotten](forget).
#[must_use]
pub unsafe fn output(memory: &Allocation, home: &Stream, kept: bool) -> Option<Buffer<u8>> {
    let own = memory.graph_memory()?;
    own.leave(home, if kept { Life::Left } else { Life::Out });
    Some(Buffer::<u8>::of(Arc::new(Allocation::output(memory, own, home))))
}

/// Gives up memory that a launch left, without freeing it: the next launch does.
pub fn forget(mut output: Buffer<u8>) {
    if let Some(allocation) = output.sole_allocation() {
        allocation.forget();
    }
}
