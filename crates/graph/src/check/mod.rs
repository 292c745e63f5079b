//! Checks of graphs: what a driver would refuse, and what it would do wrong without a word.
//!
//! A [collection](collect) takes what there is to know of the graph under its lock; the rules look
//! at that as plain data. Each rule is a module: [structure], [races], [lives].

mod collect;
mod found;
mod history;
mod json;
mod lives;
mod namer;
mod options;
mod order;
mod race;
mod races;
mod reachability;
mod region;
mod report;
mod structure;
mod subject;
mod touches;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use found::FoundNode;
pub use options::CheckOptions;
pub use race::{Race, RacingAccess, RacingMemory};
pub use report::{Finding, NotCompared, OpaqueNode, Report, Severity, Stopped};
pub use subject::Opaqueness;

use collect::{Depth, collect};
use namer::Namer;
use order::Order;
use races::{Bounds, Left, Pair, races};
use subject::Space;

use crate::error::Result;
use crate::graph::Graph;
use crate::state::guard::GraphGuard;

impl Graph {
    /// Looks for what is wrong with the graph and all that is in its nodes, and says it by the
    /// names of nodes:
    ///
    /// - nodes that wait for each other in a cycle (other code can make one),
    /// - nodes in bodies of conditional nodes that cannot be there, and kernels of other contexts
    ///   there,
    /// - conditions that no conditional node uses, and kernels that set one without a path between
    ///   them and its node,
    /// - kernel nodes with a part of a launch only, loops and branches that were not built to their
    ///   end,
    /// - nodes that may use [memory of the graph](crate::Frontier::alloc) before it is allocated or
    ///   after it is freed,
    /// - as a note: memory of the graph that no node frees,
    /// - data races: two nodes without a path between them that touch the same bytes, one of them
    ///   writing.
    ///
    /// What a node touches is known of copies, fills and batches of memory operations, to the byte,
    /// rectangles and boxes included, and of [typed kernels](cuda_launch::kernel), which declare
    /// what they do with the slices that they are given; a tensor map counts for all that lies
    /// between its first element and its last. Untyped kernels, functions of the host and most
    /// nodes of other code are listed as [opaque](Report::opaque). What is in a child graph or in a
    /// body counts for the node when it is compared with nodes outside; the bodies of one node are
    /// not compared, since one of them runs. What comes before or after a launch of the graph, by
    /// events or otherwise, is not looked at; nor is what happens outside of an embedded graph, if
    /// that is checked by itself. Numbers that batches write and wait for are made for being used
    /// at the same time, so batches are not compared with each other; a wait puts nothing in order
    /// here.
    ///
    /// Edges that do not wait for the end of a kernel
    /// ([`EdgeKind::Programmatic`](crate::EdgeKind::Programmatic) and the like) put it in order
    /// only if the second kernel waits, which nobody can see from here: pairs whose order hangs on
    /// that are notes. [`EdgeKind::LaunchOrder`](crate::EdgeKind::LaunchOrder) does not put its
    /// nodes in order. What ends before a kernel starts also ends before those start that such
    /// edges lead to from there.
    ///
    /// Not every racing pair is told, but those that say it all: of any two nodes that race, one is
    /// the first of a pair that is told or comes before it, and the other is the second or comes
    /// after that, by edges of any kind. So the edges that the findings propose mend all, and if
    /// nothing is found (and the search did not [stop](Report::stopped)), there is no race between
    /// declared accesses.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// let report = graph.check()?;
    /// print!("{report}");
    /// assert!(report.is_clean());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`instantiate`](Self::instantiate) looks by itself for what drivers refuse: in a graph that
    /// other code may have changed, or after the driver's no.
    ///
    /// The work is bounded, see [`CheckOptions`]; a graph of 100 000 nodes without races takes a
    /// fraction of a second. The graph can be used by others while it is compared.
    ///
    /// Stands on `cuGraphGetNodes` and `cuGraphGetEdges`, CUDA 10.0, and on
    /// `cuGraphKernelNodeGetParams`, CUDA 12.0.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn check(&self) -> Result<Report> {
        self.check_with(CheckOptions::new())
    }

    /// [`check`](Self::check) with other limits.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_with(&self, options: CheckOptions) -> Result<Report> {
        let (subject, around) = {
            let mut guard = self.enter()?;
            (collect(&mut guard, Depth::Accesses)?, guard.body_of_subject())
        };
        let around = around.map(|(subgraph, id, name, kind)| FoundNode {
            node: crate::graph::node::Node::new(self.at(subgraph), id, kind),
            name,
            within: Vec::new(),
        });
        let namer = Namer { graph: self, subject: &subject, around };
        Ok(namer.report(options))
    }
}

impl GraphGuard<'_> {
    /// What drivers refuse in the structure of the graph.
    pub(crate) fn unsound(&mut self, graph: &Graph) -> Result<Vec<Finding>> {
        let subject = collect(self, Depth::Structure)?;
        Ok(structure::structure(&Namer { graph, subject: &subject, around: None }))
    }

    /// The conditional node in whose body the locked graph is.
    fn body_of_subject(
        &self,
    ) -> Option<(crate::state::ids::SubgraphId, crate::state::ids::NodeId, String, crate::node_kind::NodeKind)>
    {
        let id = self.body_around(self.subgraph())?;
        self.record(id).map(|record| (record.within, id, record.display_name(id), record.node_params.kind()))
    }
}

/// Leaves a thousand findings of each kind; how many more there were. Data races, which are bounded
/// by themselves, are not among them yet.
fn leave_out(findings: &mut Vec<Finding>) -> usize {
    const MOST: usize = 1000;
    let (before, mut counts) = (findings.len(), HashMap::new());
    findings.retain(|finding| {
        let count = counts.entry(finding.class()).or_insert(0_usize);
        *count += 1;
        *count <= MOST
    });
    before - findings.len()
}

impl Namer<'_> {
    fn report(&self, options: CheckOptions) -> Report {
        let mut findings = structure::structure(self);
        let mut left_out = leave_out(&mut findings);
        let stopped = match Order::of(self.subject) {
            None => Some(Stopped::Cycle),
            Some(mut order) => {
                let mut lives = lives::lives(self, &mut order, options.steps);
                left_out += leave_out(&mut lives);
                findings.append(&mut lives);
                let bounds = Bounds { steps: options.steps, pairs: options.races };
                let found = races(self.subject, &mut order, bounds);
                let mut pairs = found.pairs;
                pairs.sort_by_key(|pair| self.place(&order, pair));
                findings.extend(pairs.iter().map(|pair| self.finding(&order, pair)));
                found.left.map(|left| self.stopped(left))
            }
        };
        // Stable, so that the order within each severity stays.
        findings.sort_by_key(|finding| core::cmp::Reverse(finding.severity()));
        let opaque = self.subject.items.iter().enumerate().filter_map(|(number, item)| {
            Some(OpaqueNode { node: self.found(number as u32), why: item.opaque? })
        });
        Report { findings, left_out, opaque: opaque.collect(), stopped }
    }

    fn place(&self, order: &Order<'_>, pair: &Pair) -> (u32, u32) {
        let place = |touch: u32| order.places[self.subject.touches[touch as usize].item as usize];
        (place(pair.second), place(pair.first))
    }

    fn finding(&self, order: &Order<'_>, pair: &Pair) -> Finding {
        let [first, second] = [pair.first, pair.second].map(|touch| &self.subject.touches[touch as usize]);
        let Space::Condition(number) = first.space else {
            return Finding::Race(Box::new(self.race(order, pair)));
        };
        let (setter, node) = if first.access.writes() { (first, second) } else { (second, first) };
        let (from, to) = order.ends(setter.item, node.item);
        Finding::UnorderedCondition {
            number,
            setter: self.found(setter.item),
            conditional: self.found(node.item),
            edge: Box::new((self.found(from), self.found(to))),
            may_wait: pair.may_wait,
        }
    }

    fn race(&self, order: &Order<'_>, pair: &Pair) -> Race {
        let access = |touch: u32| {
            let touch = &self.subject.touches[touch as usize];
            let (access, role, is_argument) = (touch.access, touch.role, touch.is_argument);
            RacingAccess { node: self.found(touch.item), access, role, is_argument }
        };
        let [first, second] = [pair.first, pair.second].map(|touch| &self.subject.touches[touch as usize]);
        let memory = self.memory(pair.first).or_else(|| self.memory(pair.second));
        let offset = memory.map_or(0, |memory| memory.address);
        let bytes = pair.overlap.0 - offset..pair.overlap.1 - offset;
        let ends = order.ends(first.item, second.item);
        let edge = Box::new((self.found(ends.0), self.found(ends.1)));
        let are_linked = order.are_linked(ends.0, ends.1);
        let (more, may_wait) = (pair.more, pair.may_wait);
        let (first, second) = (access(pair.first), access(pair.second));
        Race { first, second, memory, bytes, more, edge, are_linked, may_wait }
    }

    fn memory(&self, touch: u32) -> Option<RacingMemory> {
        let number = self.subject.touches[touch as usize].memory?;
        let subject::Memory { address, bytes, kind } = self.subject.memories[number as usize];
        Some(RacingMemory { address, bytes, kind })
    }

    fn stopped(&self, left: Left) -> Stopped {
        let first = self.memory(left.touch);
        let not_compared = NotCompared { of: left.of, ranges: left.ranges, first };
        match left.by_pairs {
            true => Stopped::Races(not_compared),
            false => Stopped::Steps(not_compared),
        }
    }
}
