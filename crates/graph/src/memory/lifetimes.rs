//! Lifetimes of graph memory: whether every use lies between allocation and free.

use std::collections::HashMap;

use cuda_handles::Owner;
use cuda_sys::CUgraphNode;

use crate::edge_kind::EdgeKind;
use crate::error::memory_order::{Disorder, MemoryOrder};
use crate::error::{Error, MemoryError, Result};
use crate::memory::ends_before::{Dependency, ends_before};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};

/// A use, allocation or free of graph memory in the wrong order. [`MemoryOrder`] is the same by the
/// names of the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DisorderedUse {
    pub(crate) what: Disorder,
    pub(crate) alloc: NodeId,
    pub(crate) first: NodeId,
    pub(crate) second: NodeId,
}

/// A node that uses memory of an allocation node.
struct MemoryUse {
    alloc: NodeId,
    user: NodeId,
}

impl GraphGuard<'_> {
    /// All disordered uses of graph memory, in the order of the nodes: pairs of nodes of which the
    /// first has to end before the second starts, without edges that say so. Queries the edges of
    /// each graph that such a pair is in once, and none if there are no memory nodes. Nodes of
    /// other code have been read already.
    pub(crate) fn disordered_uses(&mut self) -> Result<Vec<DisorderedUse>> {
        let lives = self.memory.lives();
        let mut wanted = Vec::new();
        let mut freed = HashMap::new();
        for life in &lives {
            if let Some(free) = life.free {
                freed.insert(life.alloc, free);
                let (first, second) = (life.alloc, free);
                wanted.push(DisorderedUse {
                    what: Disorder::FreeBeforeAllocation,
                    alloc: life.alloc,
                    first,
                    second,
                });
            }
        }
        for MemoryUse { alloc, user } in self.memory_uses() {
            wanted.push(DisorderedUse {
                what: Disorder::UseBeforeAllocation,
                alloc,
                first: alloc,
                second: user,
            });
            if let Some(&free) = freed.get(&alloc) {
                wanted.push(DisorderedUse { what: Disorder::UseAfterFree, alloc, first: user, second: free });
            }
        }
        let mut by_subgraph: HashMap<SubgraphId, Vec<(NodeId, NodeId, usize)>> = HashMap::new();
        for (number, finding) in wanted.iter().enumerate() {
            if let Some((subgraph, first, second)) = self.side_by_side(finding.first, finding.second) {
                by_subgraph.entry(subgraph).or_default().push((first, second, number));
            }
        }
        let mut missing = vec![false; wanted.len()];
        for (subgraph, pairs) in by_subgraph {
            let ends: Vec<(NodeId, NodeId)> =
                pairs.iter().map(|(first, second, _)| (*first, *second)).collect();
            for (in_order, (.., number)) in self.are_in_order(subgraph, &ends)?.into_iter().zip(pairs) {
                missing[number] = !in_order;
            }
        }
        let found =
            wanted.into_iter().zip(missing).filter(|(_, missing)| *missing).map(|(finding, _)| finding);
        let mut found: Vec<DisorderedUse> = found.collect();
        found.sort_unstable_by_key(|finding| {
            (finding.alloc.number, finding.first.number, finding.second.number)
        });
        Ok(found)
    }

    /// A disordered use, by the names of the nodes.
    pub(crate) fn named(&self, finding: &DisorderedUse) -> MemoryOrder {
        let name = |id| self.name(id).into_string();
        MemoryOrder {
            what: finding.what,
            allocation: name(finding.alloc),
            first: name(finding.first),
            second: name(finding.second),
        }
    }

    /// Refuses disordered uses of graph memory: on a GPU they would read and write whatever has the
    /// address meanwhile.
    pub(crate) fn ensure_memory_in_order(&mut self) -> Result<()> {
        if self.memory.is_empty() {
            return Ok(());
        }
        let found = self.disordered_uses()?;
        if found.is_empty() {
            return Ok(());
        }
        const SHOWN: usize = 8;
        let more = found.len().saturating_sub(SHOWN);
        let found = found.iter().take(SHOWN).map(|finding| self.named(finding)).collect();
        Err(Error::Memory(MemoryError::MemoryOrder { found, more }))
    }

    /// All uses of the memory of allocation nodes.
    fn memory_uses(&self) -> Vec<MemoryUse> {
        let mut uses = Vec::new();
        if self.memory.is_empty() {
            return uses;
        }
        for (user, record) in self.records() {
            for owner in self.used_by(record).chain(record.owners.kept()) {
                if let Owner::Allocation(memory) = owner
                    && let Some(life) = self.memory.life_of(memory)
                {
                    uses.push(MemoryUse { alloc: life.alloc, user });
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

    /// The innermost graph that both nodes are in, with the two nodes of it that they are or are
    /// embedded in.
    fn side_by_side(&self, first: NodeId, second: NodeId) -> Option<(SubgraphId, NodeId, NodeId)> {
        let around: HashMap<SubgraphId, NodeId> = self.around(first).into_iter().collect();
        let meeting = self.around(second).into_iter();
        let mut meeting =
            meeting.filter_map(|(subgraph, second)| Some((subgraph, *around.get(&subgraph)?, second)));
        meeting.find(|(_, first, second)| first != second)
    }

    /// The graphs that a node is in, from the inside out, each with the node of it that the node is
    /// or is embedded in.
    fn around(&self, node: NodeId) -> Vec<(SubgraphId, NodeId)> {
        let subgraph = |id: NodeId| self.record(id).map(|record| (record.within, id));
        let outer = |&(subgraph, _): &(SubgraphId, NodeId)| {
            let node = self.embedded(subgraph)?.node;
            self.record(node).map(|record| (record.within, node))
        };
        core::iter::successors(subgraph(node), outer).collect()
    }

    /// The node of the root graph that a node is or is embedded in.
    pub(crate) fn outermost(&self, node: NodeId) -> Option<NodeId> {
        self.around(node).last().map(|(_, node)| *node)
    }

    /// For pairs of nodes of a graph, whether the first ends before the second starts, whatever
    /// happens.
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
