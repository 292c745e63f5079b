//! The knowledge of dataflows about the nodes of their graphs, as plain data.
//!
//! A [`Flow`] answers which nodes a new one waits for: those before it whose accesses conflict with
//! its own. It knows the nodes in an order that the graph keeps. All that it says follows from the
//! graph, so it can be forgotten at any time and made anew.

use std::collections::{BTreeSet, HashMap, HashSet};

use smallvec::SmallVec;

use crate::footprint::index::{AccessIndex, Key};
use crate::footprint::{Footprint, Touch};
use crate::state::ids::{NodeId, SubgraphId};

/// The flows of a hierarchy. Empty unless there are dataflows.
#[derive(Debug, Default)]
pub(crate) struct Flows(HashMap<SubgraphId, OpenFlow>);

/// The flow of a graph with dataflows.
#[derive(Debug, Default)]
struct OpenFlow {
    dataflows: usize,
    /// `None` if it is to be made anew.
    flow: Option<Flow>,
    /// The nodes that were added since, in order.
    added: Vec<NodeId>,
}

impl Flows {
    /// Notes a new dataflow.
    pub(crate) fn open(&mut self, subgraph: SubgraphId) {
        self.0.entry(subgraph).or_default().dataflows += 1;
    }

    /// Forgets a dataflow. With the last one, the flow goes.
    pub(crate) fn close(&mut self, subgraph: SubgraphId) {
        if let Some(open) = self.0.get_mut(&subgraph) {
            open.dataflows = open.dataflows.saturating_sub(1);
            if open.dataflows == 0 {
                self.0.remove(&subgraph);
            }
        }
    }

    /// Notes a node that was added to a graph.
    #[inline]
    pub(crate) fn note_added(&mut self, within: SubgraphId, id: NodeId) {
        if !self.0.is_empty()
            && let Some(open) = self.0.get_mut(&within)
        {
            open.added.push(id);
        }
    }

    /// Takes the flow of a graph out, with the nodes that it does not know yet.
    pub(crate) fn take(&mut self, subgraph: SubgraphId) -> (Option<Flow>, Vec<NodeId>) {
        let open = self.0.get_mut(&subgraph);
        open.map_or_else(Default::default, |open| (open.flow.take(), core::mem::take(&mut open.added)))
    }

    /// Puts the flow of a graph back, which knows all of its nodes. Without dataflows it is
    /// dropped.
    pub(crate) fn put(&mut self, subgraph: SubgraphId, flow: Flow) {
        if let Some(open) = self.0.get_mut(&subgraph) {
            open.flow = Some(flow);
            open.added.clear();
        }
    }
}

/// The nodes of a graph, numbered in an order that the graph keeps, and their accesses.
#[derive(Debug)]
pub(crate) struct Flow {
    /// The count of other changes than adds for which it holds.
    pub(crate) holds_at: u64,
    nodes: Vec<FlowNode>,
    numbers: HashMap<NodeId, u32>,
    /// The accesses that later nodes may have to wait for.
    index: AccessIndex<u32>,
    /// The opaque nodes that every later node waits for.
    opaque: Vec<u32>,
    /// The nodes that no other waits for.
    ends: BTreeSet<u32>,
}

#[derive(Debug)]
struct FlowNode {
    id: NodeId,
    /// The nodes that it waits for.
    before: SmallVec<[u32; 4]>,
}

/// Steps taken to see which nodes to wait for follow from others.
const STEPS: usize = 256;

impl Flow {
    pub(crate) fn new(holds_at: u64) -> Self {
        Self {
            holds_at,
            nodes: Vec::new(),
            numbers: HashMap::new(),
            index: AccessIndex::default(),
            opaque: Vec::new(),
            ends: BTreeSet::new(),
        }
    }

    /// The number of a node, if it is known.
    pub(crate) fn number(&self, id: NodeId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    /// The nodes that a new one with this footprint waits for, without those that follow from
    /// others.
    pub(crate) fn before(&self, footprint: &Footprint) -> Vec<NodeId> {
        let mut before: Vec<u32> = match footprint.touches() {
            None => self.ends.iter().copied().collect(),
            Some(touches) => {
                let conflicting = touches.iter().flat_map(|touch| {
                    let near = self.index.near(touch);
                    near.filter(|(_, entry)| touch.conflicts(&entry.touch)).map(|(_, entry)| entry.node)
                });
                conflicting.chain(self.opaque.iter().copied()).collect()
            }
        };
        before.sort_unstable();
        before.dedup();
        if footprint.touches().is_some() {
            self.leave_out_implied(&mut before);
        }
        before.iter().filter_map(|number| self.nodes.get(*number as usize)).map(|node| node.id).collect()
    }

    /// Leaves out nodes, in ascending order, that others of them wait for, as far as a few steps
    /// tell.
    fn leave_out_implied(&self, before: &mut Vec<u32>) {
        let Some(&first) = before.first() else { return };
        let (mut implied, mut steps) = (HashSet::new(), STEPS);
        let mut waiting: Vec<u32> = before.clone();
        while let Some(number) = waiting.pop() {
            let Some(node) = self.nodes.get(number as usize) else { continue };
            for &earlier in node.before.iter().filter(|earlier| **earlier >= first) {
                steps -= 1;
                if implied.insert(earlier) {
                    waiting.push(earlier);
                }
                if steps == 0 {
                    waiting.clear();
                    break;
                }
            }
        }
        before.retain(|number| !implied.contains(number));
    }

    /// Adds a node that [waits](Self::before) for all that it has to wait for.
    pub(crate) fn add(&mut self, id: NodeId, footprint: &Footprint, before: &[NodeId]) {
        let number = self.add_node(id, before);
        match footprint.touches() {
            None => {
                // It comes after everything, so the others matter no more.
                self.index = AccessIndex::default();
                self.opaque = vec![number];
            }
            Some(touches) => {
                for touch in touches {
                    self.overwrite(touch, |_| true);
                }
                self.enter(number, touches);
            }
        }
    }

    /// Adds a node that is in the graph already, and waits for some nodes or for none.
    /// `is_before(one, two)` tells whether one known node comes before another.
    pub(crate) fn add_existing(
        &mut self,
        id: NodeId,
        footprint: &Footprint,
        before: &[NodeId],
        mut is_before: impl FnMut(u32, u32) -> bool,
    ) {
        let number = self.add_node(id, before);
        match footprint.touches() {
            None => {
                self.opaque.retain(|opaque| !is_before(*opaque, number));
                self.opaque.push(number);
            }
            Some(touches) => {
                for touch in touches {
                    self.overwrite(touch, |earlier| is_before(earlier, number));
                }
                self.enter(number, touches);
            }
        }
    }

    fn add_node(&mut self, id: NodeId, before: &[NodeId]) -> u32 {
        // Memory runs out before the number does.
        let number = self.nodes.len() as u32;
        let before: SmallVec<[u32; 4]> =
            before.iter().filter_map(|before| self.numbers.get(before).copied()).collect();
        self.ends.retain(|end| !before.contains(end));
        self.ends.insert(number);
        self.numbers.insert(id, number);
        self.nodes.push(FlowNode { id, before });
        number
    }

    /// Takes accesses out that a later one overwrites: a node that conflicts with them conflicts
    /// with the later one, too.
    fn overwrite(&mut self, touch: &Touch, mut is_before: impl FnMut(u32) -> bool) {
        let near = self.index.near(touch).filter(|(_, entry)| touch.overwrites(&entry.touch));
        let gone: Vec<Key> = near.filter(|(_, entry)| is_before(entry.node)).map(|(key, _)| key).collect();
        gone.into_iter().for_each(|key| self.index.remove(key));
    }

    fn enter(&mut self, number: u32, touches: &[Touch]) {
        for touch in touches {
            self.index.insert(number, *touch);
        }
    }
}
