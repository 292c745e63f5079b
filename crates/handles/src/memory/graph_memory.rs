//! What becomes of the memory of allocation nodes: what cuda-graph says of it, and what launches
//! leave. No part of the public interface.

use std::sync::Arc;

use cuda_sys::CUdeviceptr;

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::graph_life::{GraphMemory, Life};
use super::space::MemorySpace;
use crate::context::Context;
use crate::error::Result;
use crate::reclaim;
use crate::stream::Stream;

impl Allocation {
    /// The number of the hierarchy of graphs whose nodes alone can use it: that of an allocation
    /// node. `None` for all other memory, that which came out of a launch included.
    #[must_use]
    #[inline]
    pub fn graph(&self) -> Option<u64> {
        Some(self.graph_memory()?.graph())
    }
}

/// Where the memory of an allocation node lies.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its start.
    pub address: CUdeviceptr,
    /// Its size.
    pub bytes: usize,
    /// Of which memory.
    pub space: MemorySpace,
}

/// The memory of an allocation node in a hierarchy of graphs with this number.
///
/// # Safety
/// The driver has given the node this address and size.
#[must_use]
pub unsafe fn of_node(context: &Context, graph: u64, place: Place) -> Arc<Allocation> {
    let memory = GraphMemory::new(graph, place.space);
    Arc::new(Allocation::of_graph(context, place.address, place.bytes, memory))
}

/// The node is in a hierarchy with another number now.
///
/// # Safety
/// It is: nodes there may use the memory.
pub unsafe fn moved(memory: &Allocation, graph: u64) {
    if let Some(memory) = memory.graph_memory() {
        memory.move_to(graph);
    }
}

/// Whether somebody has what the last launch left of it.
#[must_use]
pub fn is_out(memory: &Allocation) -> bool {
    memory.graph_memory().is_some_and(|memory| memory.life() == Life::Out)
}

/// Whether a launch has ever left some of it.
#[must_use]
pub fn was_left(memory: &Allocation) -> bool {
    memory.graph_memory().is_some_and(|memory| memory.last().is_some())
}

/// Prepares a launch that will allocate each of these: makes sure that what the last one left is
/// freed, and that `stream` waits for that, or tells the place of the first that is not. With
/// `frees`, the launch frees itself what an executable has.
///
/// # Errors
/// Why what an earlier launch left could not be freed; what the driver answers, or a stream that is
/// capturing ([`Capturing`](crate::Error::Capturing)), where that keeps what is to be freed as
/// well. Nothing has changed then but what the stream waits for.
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

/// What a launch on `home`, enqueued just now, left of it; freed in the order of that stream when
/// the last owner drops it. `kept` if an executable has it that frees it at its next launch. `None`
/// for memory of no allocation node.
///
/// # Safety
/// The launch left this memory, and nobody else frees it: only after [`forget`] somebody may.
#[must_use]
pub unsafe fn output(memory: &Allocation, home: &Stream, kept: bool) -> Option<Buffer<u8>> {
    let own = memory.graph_memory()?;
    own.leave(home, if kept { Life::Left } else { Life::Out });
    Some(Buffer::<u8>::of(Arc::new(Allocation::output(memory, own, home))))
}

/// Lets go of what a launch left without freeing it: the next launch does.
pub fn forget(mut output: Buffer<u8>) {
    if let Some(allocation) = output.sole_allocation() {
        allocation.forget();
    }
}
