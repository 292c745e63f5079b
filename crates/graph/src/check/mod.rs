//! Checks of graphs: what a driver would refuse, and what it would run wrongly without an error.
//!
//! A check takes one look at the graph under its lock ([`collect`](mod@collect)) and copies what it
//! needs into plain data, the [`model`]. The rules look at nothing else, so the graph can be used
//! meanwhile:
//!
//! | Rule | Finds | File |
//! | --- | --- | --- |
//! | structure | cycles, unused conditions, faulty nodes | [`structure`](mod@structure) |
//! | endless loops | loops that no kernel in their bodies ends | [`endless_loops`] |
//! | memory order | uses of graph memory outside of its lifetime | [`memory_order`] |
//! | data races | unordered accesses to the same bytes | [`race_search`] |
//!
//! # What counts as ordered
//!
//! **Access.** A node accesses byte ranges ([`region`]), each for reading or writing. Copies, fills
//! and batches state theirs; for a typed kernel its declaration does ([`accesses`]). Nodes whose
//! accesses are unknown are opaque: they are listed, not compared.
//!
//! **Conflict.** Two accesses of different nodes conflict if they share a byte and one of them
//! writes. Two accesses made for concurrent use do not: those of batches, and those of kernels that
//! set the same condition.
//!
//! **Order.** Each node has three events: it starts, it accesses memory, it ends. Node A is ordered
//! before node B if a path of arrows leads from the end of A to the accesses of B:
//!
//! ```text
//!   within a node       start ──► access ──► end
//!
//!   full edge A ─► B                       end A ──► start B
//!   programmatic edge   start A ──► start B
//!                       (if B waits:)      end A ┄┄► access B
//!   launch-order edge   start A ──► start B
//! ```
//!
//! | Edge | [`EdgeOrder`](model::EdgeOrder) | Arrows |
//! | --- | --- | --- |
//! | full | `Always` | end to start |
//! | programmatic, programmatic launch order, other | `IfWaitedFor` | both dotted and solid |
//! | launch order | `Never` | start to start |
//!
//! So what ends before A starts also ends before B starts, over an edge of any kind. Whether a
//! kernel waits (`griddepcontrol.wait`) is not visible from outside; the search looks once without
//! the dotted arrows and once with them. The outcome for two nodes is a
//! [`Relation`](order::Relation):
//!
//! | Relation | Meaning | Conflicting accesses are |
//! | --- | --- | --- |
//! | `Before` | ordered, whatever kernels do | fine |
//! | `IfWaitedFor` | ordered if the kernels on the path wait | a note |
//! | `Exclusive` | only one of them runs (bodies of a conditional node), or one holds the other | fine |
//! | `Concurrent` | no order | a data race (an error) |
//!
//! **Graphs in graphs.** What is in a child graph or body belongs to the node that holds it. Two
//! nodes are compared in the innermost graph that both are in, directly or by a node around them.
//!
//! **Conditions** are compared as if each were one byte: kernels write it, its conditional node
//! reads it.
//!
//! **No order** comes from events, semaphores, waits of batches, streams, or work outside of the
//! launch. A graph in a node that is checked by itself is checked without what is around it.
//!
//! # Files
//!
//! | File | Contents |
//! | --- | --- |
//! | [`order`] | the arrows above: how two nodes relate, across graphs in graphs |
//! | [`reachability`] | paths in one graph, in near-constant time |
//! | [`race_search`], [`history`] | which pairs are compared, and which are reported |
//! | [`namer`], [`assemble`] | from numbers in the model to named findings; the report |
//! | [`report`] | the public types, their texts and JSON |
//! | [`shared_writes`] | writes of memory that all executables of a graph share, for pools |

pub(crate) mod accesses;
mod assemble;
pub(crate) mod collect;
mod endless_loops;
mod history;
mod memory_order;
pub(crate) mod model;
mod namer;
mod options;
mod order;
mod race_search;
pub(crate) mod reachability;
pub(crate) mod region;
mod report;
mod shared_writes;
mod structure;

#[cfg(test)]
mod tests;

pub use model::Opaqueness;
pub use options::CheckOptions;
pub use report::{
    Finding, FoundNode, NotCompared, OpaqueNode, Race, RacingAccess, RacingMemory, Report, Severity, Stopped,
};

use collect::{Depth, collect};
use namer::Namer;

use crate::error::Result;
use crate::graph::Graph;
use crate::graph::node::Node;
use crate::state::guard::GraphGuard;

impl Graph {
    /// Looks for errors in the graph and all graphs in its nodes, and reports them by the names of
    /// nodes:
    ///
    /// - nodes that wait for each other in a cycle (only other code can make one);
    /// - nodes that the body of a conditional node cannot hold, and kernels of another context
    ///   there;
    /// - conditions that no conditional node uses, and kernels that set a condition without a path
    ///   between them and its node;
    /// - loops whose condition no kernel in the body can set, if all nodes there are known: they do
    ///   not end once they begin;
    /// - kernel nodes whose launch is only half set, loops and branches that were not finished;
    /// - nodes that may use [memory of the graph](crate::Frontier::alloc) before it is allocated or
    ///   after it is freed;
    /// - data races: two nodes without a path between them that access the same bytes, one of them
    ///   writing;
    /// - as a note: memory of the graph that no node frees.
    ///
    /// # Which accesses are known
    ///
    /// The check knows the accesses of copies, fills and batches of memory operations to the byte,
    /// rectangles and boxes included, and those of [typed kernels](cuda_launch::kernel), which
    /// declare what they do with the slices they are given. A tensor map counts as everything
    /// between its first element and its last. Untyped kernels, host functions and most nodes of
    /// other code are listed as [opaque](Report::opaque).
    ///
    /// # Which nodes are ordered
    ///
    /// - A path of full edges orders two nodes.
    /// - An edge that does not wait for the end of a kernel
    ///   ([`EdgeKind::Programmatic`](crate::EdgeKind::Programmatic) and the like) orders it only if
    ///   the second kernel waits, which is not visible from outside. Races that depend on such a
    ///   wait are reported as notes.
    /// - [`EdgeKind::LaunchOrder`](crate::EdgeKind::LaunchOrder) does not order its nodes.
    /// - A node that ends before a kernel starts also ends before every kernel starts that is
    ///   reached from it by edges of these two kinds.
    /// - The contents of a child graph or body count for its node when compared with nodes outside.
    ///   Different bodies of one conditional node are not compared, since one of them runs.
    ///
    /// Events, semaphores and other work before or after the launch order nothing here, and neither
    /// do the waits of batches. Batches are not compared with each other: the numbers they write
    /// and wait for are made for concurrent use. An embedded graph that is checked by itself is
    /// checked without what happens around it.
    ///
    /// # The report is minimal
    ///
    /// Fixing every reported pair fixes every race. Of any two nodes that race, one is the first
    /// node of a reported pair or comes before it, and the other is the second or comes after it,
    /// by edges of any kind. So if nothing is found, and the search did not
    /// [stop](Report::stopped), the declared accesses have no race.
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
    /// The work is bounded, see [`CheckOptions`]; a graph of 100 000 nodes without races takes a
    /// fraction of a second. Other threads can use the graph while accesses are compared.
    /// [`instantiate`](Self::instantiate) checks the structure by itself if other code may have
    /// changed the graph, or if the driver refuses it.
    ///
    /// Calls `cuGraphGetNodes` and `cuGraphGetEdges` (CUDA 10.0) and `cuGraphKernelNodeGetParams`
    /// (CUDA 12.0).
    ///
    /// # Errors
    /// The driver fails to list nodes, edges or parameters.
    #[doc(alias = "data race")]
    #[doc(alias = "race detector")]
    #[doc(alias = "racecheck")]
    #[doc(alias = "compute-sanitizer")]
    pub fn check(&self) -> Result<Report> {
        self.check_with(CheckOptions::new())
    }

    /// [`check`](Self::check) with other limits.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_with(&self, options: CheckOptions) -> Result<Report> {
        let (model, around) = {
            let mut guard = self.enter()?;
            (collect(&mut guard, Depth::Accesses)?, guard.conditional_around(self))
        };
        Ok(Namer { graph: self, model: &model, around }.report(options))
    }
}

impl GraphGuard<'_> {
    /// Errors in the structure of the graph, for which drivers refuse it.
    pub(crate) fn unsound(&mut self, graph: &Graph) -> Result<Vec<Finding>> {
        let model = collect(self, Depth::Structure)?;
        Ok(structure::structure(&Namer { graph, model: &model, around: None }))
    }

    /// The conditional node whose body is the locked graph, or holds it.
    fn conditional_around(&self, graph: &Graph) -> Option<FoundNode> {
        let id = self.enclosing_conditional(self.subgraph())?;
        let record = self.record(id)?;
        let node = Node::new(graph.at(record.within), id, record.node_params.kind());
        Some(FoundNode { node, name: record.display_name(id), within: Vec::new() })
    }
}
