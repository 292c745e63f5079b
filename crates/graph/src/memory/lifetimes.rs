//! Whether nodes use memory of their graph while it is there.

use std::collections::HashMap;

use cuda_handles::Owner;
use cuda_sys::CUgraphNode;

use crate::edge_kind::EdgeKind;
use crate::error::memory_order::{Disorder, MemoryOrder};
use crate::error::{Error, Result};
use crate::memory::ends_before::{Dependency, ends_before};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};

/// A [`MemoryOrder`] by the nodes themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    pub(crate) what: Disorder,
    pub(crate) alloc: NodeId,
    pub(crate) first: NodeId,
    pub(crate) second: NodeId,
}

/// Memory of the hierarchy that a node uses.
struct Use {
    alloc: NodeId,
    user: NodeId,
}

impl GraphGuard<'_> {
    /// All pairs of memory nodes and nodes that use their memory which no edges keep in order, in
    /// the order of the nodes. One query for the edges of each graph in which some of them are;
    /// none where there are no memory nodes. The nodes of other code are known by now.
    pub(crate) fn memory_findings(&mut self) -> Result<Vec<Finding>> {
        let lives = self.memory.lives();
        let mut wanted = Vec::new();
        let mut freed = HashMap::new();
        for life in &lives {
            if let Some(free) = life.free {
                freed.insert(life.alloc, free);
                let (first, second) = (life.alloc, free);
                wanted.push(Finding {
                    what: Disorder::FreeBeforeAllocation,
                    alloc: life.alloc,
                    first,
                    second,
                });
            }
        }
        for Use { alloc, user } in self.memory_uses() {
            wanted.push(Finding { what: Disorder::UseBeforeAllocation, alloc, first: alloc, second: user });
            if let Some(&free) = freed.get(&alloc) {
                wanted.push(Finding { what: Disorder::UseAfterFree, alloc, first: user, second: free });
            }
        }
        let mut within: HashMap<SubgraphId, Vec<(NodeId, NodeId, usize)>> = HashMap::new();
        for (number, finding) in wanted.iter().enumerate() {
            if let Some((subgraph, first, second)) = self.side_by_side(finding.first, finding.second) {
                within.entry(subgraph).or_default().push((first, second, number));
            }
        }
        let mut missing = vec![false; wanted.len()];
        for (subgraph, pairs) in within {
            let ends: Vec<(NodeId, NodeId)> =
                pairs.iter().map(|(first, second, _)| (*first, *second)).collect();
            for (in_order, (.., number)) in self.are_in_order(subgraph, &ends)?.into_iter().zip(pairs) {
                missing[number] = !in_order;
            }
        }
        let found =
            wanted.into_iter().zip(missing).filter(|(_, missing)| *missing).map(|(finding, _)| finding);
        let mut found: Vec<Finding> = found.collect();
        found.sort_unstable_by_key(|finding| {
            (finding.alloc.number, finding.first.number, finding.second.number)
        });
        Ok(found)
    }

    /// A finding by the names of the nodes.
    pub(crate) fn told(&self, finding: &Finding) -> MemoryOrder {
        let name = |id| self.name(id).into_string();
        MemoryOrder {
            what: finding.what,
            allocation: name(finding.alloc),
            first: name(finding.first),
            second: name(finding.second),
        }
    }

    /// Refuses nodes that use memory of the graph while it may not be there: on a GPU they would
    /// read and write what has the address meanwhile.
    pub(crate) fn ensure_memory_in_order(&mut self) -> Result<()> {
        if self.memory.is_empty() {
            return Ok(());
        }
        let found = self.memory_findings()?;
        if found.is_empty() {
            return Ok(());
        }
        const TOLD: usize = 8;
        let more = found.len().saturating_sub(TOLD);
        let found = found.iter().take(TOLD).map(|finding| self.told(finding)).collect();
        Err(Error::MemoryOrder { found, more })
    }

    /// The nodes that use the memory of allocation nodes.
    fn memory_uses(&self) -> Vec<Use> {
        let mut uses = Vec::new();
        if self.memory.is_empty() {
            return uses;
        }
        for (user, record) in self.records() {
            for owner in self.used_by(record).chain(self.kept_with(user.index)) {
                if let Owner::Allocation(memory) = owner
                    && let Some(life) = self.memory.life_of(memory)
                {
                    uses.push(Use { alloc: life.alloc, user });
                }
            }
        }
        uses
    }

    /// The nodes that use the memory of an allocation node.
    pub(crate) fn users_of(&self, alloc: NodeId) -> Vec<NodeId> {
        let mut users: Vec<NodeId> =
            self.memory_uses().into_iter().filter(|one| one.alloc == alloc).map(|one| one.user).collect();
        users.dedup();
        users
    }

    /// Two nodes, or the nodes of the same graph that they are embedded in.
    fn side_by_side(&self, first: NodeId, second: NodeId) -> Option<(SubgraphId, NodeId, NodeId)> {
        let around: HashMap<SubgraphId, NodeId> = self.around(first).into_iter().collect();
        let meeting = self.around(second).into_iter();
        let mut meeting =
            meeting.filter_map(|(subgraph, second)| Some((subgraph, *around.get(&subgraph)?, second)));
        meeting.find(|(_, first, second)| first != second)
    }

    /// The graphs that a node is in, from the inside out, each with the node of it that the node is
    /// or is in.
    fn around(&self, node: NodeId) -> Vec<(SubgraphId, NodeId)> {
        let subgraph = |id: NodeId| self.record(id).map(|record| (record.within, id));
        let outer = |&(subgraph, _): &(SubgraphId, NodeId)| {
            let node = self.embedded(subgraph)?.node;
            self.record(node).map(|record| (record.within, node))
        };
        core::iter::successors(subgraph(node), outer).collect()
    }

    /// The node of the root graph that a node is or is in.
    pub(crate) fn outermost(&self, node: NodeId) -> Option<NodeId> {
        self.around(node).last().map(|(_, node)| *node)
    }

    /// For pairs of nodes of a graph whether the first surely ends before the second starts.
    fn are_in_order(&mut self, subgraph: SubgraphId, pairs: &[(NodeId, NodeId)]) -> Result<Vec<bool>> {
        let edges = self.raw_edges_of(self.graph_at(subgraph)?)?;
        let mut numbers: HashMap<CUgraphNode, u32> = HashMap::new();
        let mut number = |raw: CUgraphNode| {
            let next = numbers.len() as u32;
            *numbers.entry(raw).or_insert(next)
        };
        let edges: Vec<Dependency> = edges
            .into_iter()
            .map(|(from, to, kind)| Dependency {
                from: number(from),
                to: number(to),
                full: kind == EdgeKind::Full,
            })
            .collect();
        let mut ends = Vec::with_capacity(pairs.len());
        for &(first, second) in pairs {
            ends.push((number(self.raw_of(first)?), number(self.raw_of(second)?)));
        }
        Ok(ends_before(numbers.len(), &edges, &ends))
    }
}
