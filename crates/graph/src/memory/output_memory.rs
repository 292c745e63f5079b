//! The graph memory that launches of an executable leave: allocated by its nodes, freed by none.

use std::sync::Arc;

use cuda_handles::internal::graph_memory;
use cuda_handles::{Allocation, Buffer, Context, Stream};

use crate::error::{Error, MemoryError, Result};
use crate::state::guard::GraphGuard;
use crate::state::params::NodeParams;

/// The graph memory that launches of an executable leave.
pub(crate) struct OutputMemory {
    /// The memory that each launch leaves. Until the first launch, it is followed by memory that
    /// this executable frees, but the previous one has left.
    memory: Vec<Arc<Allocation>>,
    /// The names of the allocation nodes.
    names: Vec<String>,
    /// How many of the allocations each launch leaves.
    leaves: usize,
    /// Whether a launch first frees what the previous one left (`auto_free`).
    frees: bool,
    /// Memory that the last launch left and the caller did not want, if the next launch frees it.
    left: Vec<Buffer<u8>>,
}

impl OutputMemory {
    /// The memory that launches of an executable made now leave; `None` if it frees all that it
    /// allocates, and the previous executable left nothing of that.
    pub(crate) fn of(guard: &GraphGuard<'_>, frees: bool) -> Option<Box<Self>> {
        let (mut memory, mut names, mut leaves) = (Vec::new(), Vec::new(), 0);
        let mut lives = guard.memory.lives();
        lives.sort_by_key(|life| life.free.is_some());
        for life in lives {
            if let Some(record) = guard.record(life.alloc)
                && let NodeParams::Alloc { memory: one, .. } = &record.node_params
                && (life.free.is_none() || graph_memory::was_left(one))
            {
                memory.push(Arc::clone(one));
                names.push(record.display_name(life.alloc));
                leaves += usize::from(life.free.is_none());
            }
        }
        (!memory.is_empty()).then(|| Box::new(Self { memory, names, leaves, frees, left: Vec::new() }))
    }

    /// Whether all of it is of a context. Memory of a graph that was moved into a node is of that
    /// graph's context.
    pub(crate) fn is_of(&self, context: &Context) -> bool {
        self.memory.iter().all(|memory| memory.context().is_same(context))
    }

    /// Whether further launches leave nothing.
    pub(crate) fn is_spent(&self) -> bool {
        self.memory.is_empty()
    }

    pub(super) fn allocations(&self) -> &[Arc<Allocation>] {
        &self.memory
    }

    /// Before a launch on `stream`: frees what the last launch left, and makes `stream` wait for
    /// that.
    pub(crate) fn make_ready(&self, stream: &Stream) -> Result<()> {
        let memory: Vec<&Arc<Allocation>> = self.memory.iter().collect();
        match graph_memory::make_ready(&memory, stream, self.frees)? {
            None => Ok(()),
            Some(number) => {
                Err(Error::Memory(MemoryError::OutputInUse { node: self.names[number].as_str().into() }))
            }
        }
    }

    /// After a launch on `stream`: returns what it left, if the caller wants it. Otherwise frees it
    /// or, for an executable that frees by itself, keeps it for the next launch.
    pub(crate) fn launched(&mut self, stream: &Stream, is_wanted: bool) -> Vec<Buffer<u8>> {
        // The next launches come after this one, which has waited for what the previous executable
        // left.
        self.memory.truncate(self.leaves);
        self.names.truncate(self.leaves);
        // The launch has freed these.
        self.left.drain(..).for_each(graph_memory::forget);
        let keeps = self.frees && !is_wanted;
        // SAFETY: the launch has just been enqueued; the graph does not free this memory. The next
        // launch frees what is kept here, and nothing else, since it is refused while anybody else
        // has some.
        let output = |memory: &Arc<Allocation>| unsafe { graph_memory::output(memory, stream, keeps) };
        let outputs: Vec<Buffer<u8>> = self.memory.iter().filter_map(output).collect();
        match (keeps, is_wanted) {
            (true, _) => self.left = outputs,
            (false, true) => return outputs,
            (false, false) => {}
        }
        Vec::new()
    }
}
