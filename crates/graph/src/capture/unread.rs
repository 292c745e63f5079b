//! Captured graphs whose nodes are read when they are first needed.
//!
//! A graph is one if every node is of a call of this library, as far as the numbers of nodes of
//! each type tell, and nothing has to be known by node: kernels have no handles of conditions,
//! calls no graph parameters, and the streams were of one context. Reading takes two to nine driver
//! calls for each node, and finds only what a read at the end would have found: until then nobody
//! has the graph, or one of its nodes, to change it.

use cuda_handles::Owner;
use cuda_handles::capture::{Record, Records, Work};
use cuda_sys::{CUgraphNode, CUgraphNodeType, Call};

use crate::capture::adopted::{Matched, is_bound};
use crate::error::Result;
use crate::error::wrong_context::Spans;
use crate::exec::node_updates::has_attributes;
use crate::graph::Graph;
use crate::state::guard::GraphGuard;
use crate::state::ids::SubgraphId;
use crate::state::unread::{ReadLate, UnreadNodes};

/// The nodes of a capture, by the records of its calls.
#[derive(Debug)]
struct CapturedNodes {
    records: Records,
    /// The number of owners that the graph keeps until the nodes have them.
    owners: usize,
}

impl Graph {
    /// How many calls of the capture that made the graph match no node.
    pub(super) fn unmatched_calls(&self) -> Result<usize> {
        Ok(self.enter()?.read_late.unmatched_calls)
    }
}

impl UnreadNodes for CapturedNodes {
    fn count(&self) -> usize {
        self.records.len()
    }

    fn read(&self, guard: &mut GraphGuard<'_>) -> Result<()> {
        // It was read before, if what follows failed then.
        if guard.is_unread() {
            let structure = guard.changes.structure();
            guard.read_graph(SubgraphId::ROOT)?;
            guard.changes.back_to(structure);
        }
        let matched = Matched::new(guard, &self.records)?;
        let have_attributes = has_attributes(guard);
        guard.read_late = ReadLate { unmatched_calls: matched.unmatched(), have_attributes };
        matched.give_owners(guard, &self.records);
        guard.let_go_of_unread(self.owners);
        Ok(())
    }
}

/// The numbers of nodes of each type that calls of this library make.
#[derive(Default, PartialEq, Eq)]
struct Counts {
    kernels: usize,
    copies: usize,
    fills: usize,
    host_functions: usize,
    batches: usize,
}

impl Counts {
    /// The nodes that calls have made.
    fn of_calls(records: &Records) -> Self {
        let mut counts = Self::default();
        for record in records.iter() {
            *match record.work() {
                Work::Copy { .. } => &mut counts.copies,
                Work::Fill { .. } => &mut counts.fills,
                Work::Host { .. } => &mut counts.host_functions,
                Work::Batch { .. } => &mut counts.batches,
                _ => &mut counts.kernels,
            } += 1;
        }
        counts
    }

    /// Counts a node; false if none of these calls makes one of its type.
    fn count(&mut self, kind: CUgraphNodeType) -> bool {
        *match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => &mut self.kernels,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => &mut self.copies,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => &mut self.fills,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => &mut self.host_functions,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => &mut self.batches,
            _ => return false,
        } += 1;
        true
    }
}

impl GraphGuard<'_> {
    /// Whether the nodes of a captured graph can be read later.
    pub(super) fn can_read_later(&self, records: &Records) -> Result<bool> {
        let is_by_node = |record: Record<'_>| !record.handles().is_empty() || is_bound(&record);
        let has_to_be_read =
            !self.others().is_empty() || !self.bindings.is_empty() || records.iter().any(is_by_node);
        if has_to_be_read { Ok(false) } else { self.has_nodes_of(records) }
    }

    /// Leaves the nodes for later. The graph keeps the owners of the calls meanwhile.
    pub(super) fn read_later(&mut self, records: Records) {
        let owners: Vec<Owner> = records.owners().cloned().collect();
        let nodes = CapturedNodes { owners: owners.len(), records };
        self.keep_for_unread(owners, Box::new(nodes));
    }

    /// Whether there are as many nodes of each type as calls that make one, and no others.
    fn has_nodes_of(&self, records: &Records) -> Result<bool> {
        let (raws, mut counts) = (self.raw_nodes_beyond(records.len())?, Counts::default());
        if raws.len() != records.len() {
            return Ok(false);
        }
        for raw in raws {
            if !counts.count(self.raw_type(raw)?) {
                return Ok(false);
            }
        }
        Ok(counts == Counts::of_calls(records))
    }

    /// The raw nodes, up to one more than expected: without asking for their number first.
    fn raw_nodes_beyond(&self, expected: usize) -> Result<Vec<CUgraphNode>> {
        self.fetch(Call::cuGraphGetNodes, expected + 1, |driver, graph, nodes, count| {
            // SAFETY: the graph is live and locked, and the buffer is as long as `fetch` says.
            unsafe { driver.cuGraphGetNodes(graph, nodes, count) }
        })
    }
}
