//! Comparing graphs: in words, everything for which an executable of one cannot be updated from the
//! other.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cuda_handles::{CopyLayout, FillLayout};
use cuda_sys::CUmemorytype;

use crate::error::wrong_context::ensure_spans;
use crate::error::{Refusal, RefusalReason, Result};
use crate::graph::Graph;
use crate::node_kind::NodeKind;
use crate::node_name::NodeName;
use crate::state::guard::{GraphGuard, GuardPair};
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::params::{ConditionSource, Conditional, NodeParams};
use crate::update::pairing::{Counted, Difference, Pair, pair};
use crate::update::rules::{PoolChange, ShapeChange, are_alike};
use crate::update::shape::shape;
use crate::wording::{A, Count, Named};

impl Graph {
    /// Compares the graph with another one: everything for which an executable of this graph cannot
    /// be [updated](crate::GraphExec::update) from `new`, node by node, in words. Empty if nothing
    /// is found.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # fn example(graph: &Graph, new: &Graph) -> Result<()> {
    /// for refusal in graph.check_update(new)? {
    ///     println!("{refusal}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Nodes are compared with their counterparts, as an update pairs them: from the nodes that no
    /// other waits for backwards, in the orders in which nodes and edges were added. Where the
    /// structure differs, nodes beyond that place are not compared.
    ///
    /// The drivers decide by rules of their own, which may change; this knows those of CUDA 13.0.
    ///
    /// Calls `cuGraphGetNodes` for each graph, and `cuGraphNodeGetDependencies` for each node (CUDA
    /// 10.0; 12.3 for edges that are not full).
    ///
    /// # Errors
    /// A graph is embedded in a node ([`EmbedError::Embedded`](crate::EmbedError::Embedded)); the
    /// graphs are of different contexts; or the driver's error.
    #[doc(alias = "compare")]
    #[doc(alias = "diff")]
    #[doc(alias = "cuGraphExecUpdate")]
    pub fn check_update(&self, new: &Self) -> Result<Vec<Refusal>> {
        for graph in [self, new] {
            if !graph.subgraph().is_root() {
                return Err(graph.refuse_embedded("compared"));
            }
        }
        ensure_spans(self, new, || "the graph to update from")?;
        let mut guards = self.enter_with(new)?;
        let memory = guards.other().0.refusal_of_memory();
        let mut found: Vec<Refusal> = memory.into_iter().collect();
        if !guards.are_in_one_hierarchy() {
            found.extend(differences(&mut guards, |guard, id| {
                guard.record(id).map(|record| &record.node_params)
            })?);
        }
        Ok(found)
    }
}

impl GraphGuard<'_> {
    /// The refusal of a graph with memory nodes, from which no executable is updated.
    pub(super) fn refusal_of_memory(&self) -> Option<Refusal> {
        let is_memory = |node_params: &NodeParams| {
            matches!(node_params, NodeParams::Alloc { .. } | NodeParams::Free { .. })
        };
        if !self.has_memory_nodes() {
            return None;
        }
        let node = self.records().find(|(_, record)| is_memory(&record.node_params));
        let why = "an executable is not updated from a graph with allocation or free nodes, whose memory is its own";
        let refusal = Refusal::new(RefusalReason::MemoryNodes, why);
        Some(match node {
            Some((id, record)) => refusal.at(record.display_name(id).into()),
            None => refusal,
        })
    }
}

/// The differences between the graph of an executable, ours, and another graph. `old` tells the
/// parameters of the executable's nodes, as far as they are known.
pub(super) fn differences(
    guards: &mut GuardPair<'_>,
    old: impl for<'g> Fn(&'g GraphGuard<'_>, NodeId) -> Option<&'g NodeParams>,
) -> Result<Vec<Refusal>> {
    let before = shape(&mut guards.ours)?;
    let after = shape(guards.other().0)?;
    let found = pair(&before, &after);
    let (ours, other) = guards.both();
    let (ours, other) = (&*ours, other.as_deref());
    let other = other.unwrap_or(ours);
    let words = Words { old: ours, new: other };
    let mut refusals: Vec<Refusal> =
        found.differences.iter().map(|difference| words.of_structure(difference)).collect();
    for &pair in &found.pairs {
        let params = old(ours, pair.0).zip(other.record(pair.1).map(|record| &record.node_params));
        refusals.extend(params.and_then(|(old, new)| words.of_params(pair, old, new)));
    }
    Ok(refusals)
}

/// Two graphs, whose differences are told.
struct Words<'w, 'g> {
    old: &'w GraphGuard<'g>,
    new: &'w GraphGuard<'g>,
}

impl Words<'_, '_> {
    fn of_structure(&self, difference: &Difference) -> Refusal {
        match difference {
            Difference::Count { within, what, numbers } => self.of_count(*within, *what, *numbers),
            Difference::Kind(pair) => {
                let (old, new) = (self.kind(self.old, pair.0), self.kind(self.new, pair.1));
                let why =
                    format!("it is {}, and its counterpart {} is {}", A(new), self.old_name(*pair), A(old));
                self.at(*pair, RefusalReason::NodeKind, why)
            }
            Difference::Waits(pair, (old, new)) => {
                let (old, new, name) = (Count(*old, "node"), Count(*new, "node"), self.old_name(*pair));
                let why = format!("it waits for {new}, and its counterpart {name} for {old}");
                self.at(*pair, RefusalReason::Topology, why)
            }
            Difference::Edge { from, to, kinds: (old, new) } => {
                let names = [*from, *to].map(|pair| self.old_name(pair));
                let why =
                    format!("the edge is {new}, and the one from {} to {} is {old}", names[0], names[1]);
                self.at(*to, RefusalReason::Topology, why).from(self.new.name(from.1))
            }
            Difference::Crossed { from, to } => {
                let why = format!(
                    "its counterpart {} waits for another node, as nodes or edges were added in another order",
                    self.old_name(*to)
                );
                self.at(*to, RefusalReason::Topology, why).from(self.new.name(*from))
            }
            Difference::Bodies(pair, (old, new)) => {
                let (old, new) = (bodies(*old), bodies(*new));
                let why = format!("it has {new}, and its counterpart {} has {old}", self.old_name(*pair));
                self.at(*pair, RefusalReason::Conditional, why)
            }
        }
    }

    fn of_count(&self, within: Option<Pair>, what: Counted, (old, new): (usize, usize)) -> Refusal {
        let graph = within.map_or("the graph", |_| "the graph in it");
        let why = match what {
            Counted::Nodes => {
                let more = self.more(within);
                format!("{graph} has {}, and the executable's graph has {old}{more}", Count(new, "node"))
            }
            Counted::Sinks => {
                let (before, after) = (Count(old, "node"), Count(new, "node"));
                format!(
                    "no other node waits for {after} of {graph}, and for {before} of the executable's graph"
                )
            }
        };
        match within {
            Some(pair) => self.at(pair, RefusalReason::Topology, why),
            None => Refusal::new(RefusalReason::Topology, why),
        }
    }

    /// The kinds of which one graph has more nodes, in brackets.
    fn more(&self, within: Option<Pair>) -> String {
        let graphs = |guard: &GraphGuard<'_>, node: Option<NodeId>| match node {
            None => vec![SubgraphId::ROOT],
            Some(id) => {
                guard.record(id).map(|record| record.node_params.subgraphs().to_vec()).unwrap_or_default()
            }
        };
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for (guard, node, step) in
            [(self.old, within.map(|pair| pair.0), -1), (self.new, within.map(|pair| pair.1), 1)]
        {
            let graphs = graphs(guard, node);
            for (_, record) in guard.records().filter(|(_, record)| graphs.contains(&record.within)) {
                *counts.entry(record.node_params.kind().to_string()).or_default() += step;
            }
        }
        let told = counts.into_iter().filter(|(_, count)| *count != 0).map(|(kind, count)| {
            let nodes = if count.abs() == 1 { "node" } else { "nodes" };
            let more = if count > 0 { "more" } else { "fewer" };
            format!("{} {kind} {nodes} {more}", count.unsigned_abs())
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) }
    }

    /// Parameters of a node that its counterpart in an executable cannot get.
    fn of_params(&self, pair: Pair, old: &NodeParams, new: &NodeParams) -> Option<Refusal> {
        let (reason, why) = match (old, new) {
            (
                NodeParams::Kernel { kernel: before, config: old, .. },
                NodeParams::Kernel { kernel, config: new, .. },
            ) => {
                if kernel.context() != before.context() {
                    let why = "its kernel is of another context than that of its counterpart";
                    (RefusalReason::Kernel, format!("{why} {}", self.old_name(pair)))
                } else {
                    let why = cooperative(old.get().is_cooperative(), new.get().is_cooperative())?;
                    (RefusalReason::Attributes, format!("{why} {}", self.old_name(pair)))
                }
            }
            (NodeParams::Memcpy(old), NodeParams::Memcpy(new)) => {
                let why = copies(old, new).map(Cow::Borrowed).or_else(|| self.pools(pair))?;
                (RefusalReason::Parameters, format!("{why} {}", self.old_name(pair)))
            }
            (NodeParams::Memset(old), NodeParams::Memset(new)) => {
                (RefusalReason::Parameters, format!("{} {}", fills(old, new)?, self.old_name(pair)))
            }
            (NodeParams::Batch(old), NodeParams::Batch(new)) => {
                if are_alike(old, new) {
                    return None;
                }
                let why = "it has other operations, or a different number of them, than its counterpart";
                (RefusalReason::Parameters, format!("{why} {}", self.old_name(pair)))
            }
            (NodeParams::SignalSemaphores(old), NodeParams::SignalSemaphores(new))
            | (NodeParams::WaitSemaphores(old), NodeParams::WaitSemaphores(new)) => {
                if old.len() == new.len() {
                    return None;
                }
                let (old, new) = (Count(old.len(), "semaphore"), Count(new.len(), "semaphore"));
                let why = format!("it has {new}, and its counterpart {} {old}", self.old_name(pair));
                (RefusalReason::Parameters, why)
            }
            (NodeParams::Conditional(old), NodeParams::Conditional(new)) => {
                (RefusalReason::Conditional, self.conditionals(pair, old, new)?)
            }
            // Nothing else that two nodes of one kind have stands against an update.
            (
                NodeParams::Empty
                | NodeParams::Kernel { .. }
                | NodeParams::Memcpy(_)
                | NodeParams::Memset(_)
                | NodeParams::Host(_)
                | NodeParams::EventRecord(_)
                | NodeParams::EventWait(_)
                | NodeParams::Batch(_)
                | NodeParams::Alloc { .. }
                | NodeParams::Free { .. }
                | NodeParams::SignalSemaphores(_)
                | NodeParams::WaitSemaphores(_)
                | NodeParams::Child { .. }
                | NodeParams::Conditional(_)
                | NodeParams::Other { .. },
                _,
            ) => return None,
        };
        Some(self.at(pair, reason, why))
    }

    /// A sentence that the name of the counterpart ends.
    fn pools(&self, pair: Pair) -> Option<Cow<'static, str>> {
        let contexts = (self.old.contexts_of_copy(pair.0), self.new.contexts_of_copy(pair.1));
        let PoolChange { side, is_pooled } = PoolChange::between(contexts.0, contexts.1)?;
        let of = if is_pooled { "a pool" } else { "no pool" };
        Some(format!("its {side} is memory of {of}, unlike the {side} of its counterpart").into())
    }

    fn conditionals(&self, pair: Pair, old: &Conditional, new: &Conditional) -> Option<String> {
        let name = self.old_name(pair);
        if old.kind != new.kind {
            let [old, new] = [old.kind, new.kind].map(|kind| A(kind.node_kind()));
            return Some(format!("it is {new} node, and its counterpart {name} {old} node"));
        }
        let raw = |guard: &GraphGuard<'_>, source| match source {
            ConditionSource::Condition(number) | ConditionSource::Foreign(number) => {
                guard.conditions.find(number).map(|entry| entry.raw)
            }
            ConditionSource::Host => None,
        };
        let (old, new) = (raw(self.old, old.source)?, raw(self.new, new.source)?);
        (old != new).then(|| {
            format!(
                "its condition is number {new} of its graph, and that of its counterpart {name} number {old}; they \
                 count in the order in which conditions were made"
            )
        })
    }

    fn kind(&self, guard: &GraphGuard<'_>, id: NodeId) -> NodeKind {
        guard.record(id).map_or(NodeKind::Empty, |record| record.node_params.kind())
    }

    fn at(&self, pair: Pair, reason: RefusalReason, why: String) -> Refusal {
        Refusal::new(reason, why).at(self.new.name(pair.1))
    }

    /// The name of the executable's node, in quotes.
    fn old_name(&self, pair: Pair) -> String {
        let name: NodeName = self.old.name(pair.0);
        format!("`{}`", Named(&name))
    }
}

fn bodies(count: usize) -> String {
    if count == 1 { "1 body".to_owned() } else { format!("{count} bodies") }
}

/// A sentence that the name of the counterpart ends.
fn cooperative(old: bool, new: bool) -> Option<&'static str> {
    match (old, new) {
        (false, true) => Some("its launch is cooperative, unlike that of its counterpart"),
        (true, false) => Some("its launch is not cooperative, unlike that of its counterpart"),
        (true, true) | (false, false) => None,
    }
}

/// Likewise for copies: their directions, and shapes that are no row of bytes, stay.
fn copies(old: &CopyLayout, new: &CopyLayout) -> Option<&'static str> {
    let sides = [(&old.source, &new.source), (&old.destination, &new.destination)];
    let unified = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
    let differs = sides.into_iter().any(|(old, new)| {
        let types = [old.space.memory_type(), new.space.memory_type()];
        types[0] != types[1] && !types.contains(&unified)
    });
    if differs {
        return Some("it copies between other kinds of memory than its counterpart");
    }
    ShapeChange::of_copies(old, new).map(|change| match change {
        ShapeChange::ToRow => "it copies a row of bytes, unlike its counterpart",
        ShapeChange::FromRow => "it copies a rectangle or a box, unlike its counterpart",
        ShapeChange::OtherRows => "its copy has another extent or pitch than that of its counterpart",
    })
}

/// Likewise for fills: the shape of a rectangle stays.
fn fills(old: &FillLayout, new: &FillLayout) -> Option<&'static str> {
    ShapeChange::of_fills(old, new).map(|change| match change {
        ShapeChange::ToRow => "it fills a row, unlike its counterpart",
        ShapeChange::FromRow => "it fills a rectangle, unlike its counterpart",
        ShapeChange::OtherRows => "it fills another rectangle than its counterpart",
    })
}
