//! The errors of this crate.

pub(crate) mod instantiate;
pub(crate) mod memory_order;
pub(crate) mod wrong_context;

use core::fmt;
use std::borrow::Cow;

use crate::alloc_options::AllocPlace;
use crate::edge_kind::EdgeKind;
use crate::error::instantiate::InstantiateError;
use crate::error::memory_order::MemoryOrder;
use crate::node_name::NodeName;
use crate::wording::{A, At, Count, Found, Listed, More, Named, Names};

/// The result of this crate's functions.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why an operation on a graph failed.
///
/// After an error the graph is as it was before, except after [`Broken`](Self::Broken) and
/// [`RemovedSome`](Self::RemovedSome). (The order in which the driver lists edges may differ.)
///
/// Nodes are given by [name](crate::Node::name). In an error message a name is one line of bounded
/// length, and a long list is cut after a dozen entries.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver failed, or an argument such as a stream or a buffer does not fit.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
    /// The configuration or the arguments of a kernel node do not match the kernel.
    #[error(transparent)]
    Launch(#[from] cuda_launch::Error),
    /// A node belongs to another graph.
    #[error("node `{node}` belongs to another graph; edges connect nodes of one graph only")]
    Foreign {
        /// The node's name.
        node: NodeName,
    },
    /// A node was removed from its graph.
    #[error("node `{node}` has been removed from its graph")]
    Removed {
        /// The node's name, or its default name if that is no longer remembered.
        node: NodeName,
    },
    /// A graph was removed together with the node that it was embedded in.
    #[error("the graph was embedded in a node that has been removed; a removed node takes its graph with it")]
    GraphRemoved,
    /// An edge would lead from a node to itself.
    #[error("an edge from node `{node}` to itself would make it wait for its own end")]
    SelfEdge {
        /// The node's name.
        node: NodeName,
    },
    /// An edge exists already.
    #[error("there is already an edge from `{from}` to `{to}`")]
    DuplicateEdge {
        /// The node that the edge leaves.
        from: NodeName,
        /// The node that the edge enters.
        to: NodeName,
    },
    /// An edge to remove or to change does not exist.
    #[error("there is no edge from `{from}` to `{to}`")]
    NoEdge {
        /// The node that the edge would leave.
        from: NodeName,
        /// The node that the edge would enter.
        to: NodeName,
    },
    /// An edge would close a cycle.
    #[error("the edge would close a cycle: {}", Path(path))]
    Cycle {
        /// The nodes of the cycle: each has an edge to the next. The new edge leads from the last
        /// to the first.
        path: Vec<String>,
    },
    /// A memcpy or memset node would process no bytes; the driver has no such nodes.
    #[error(
        "{} needs at least one element; for a slice of none, leave the node out or add an empty one",
        A(format_args!("{what} node"))
    )]
    NoElements {
        /// The kind of node.
        what: &'static str,
    },
    /// The graph cannot be instantiated for launches by kernels.
    #[error("the graph cannot be launched by kernels{}: {why}", At(node.as_deref()))]
    DeviceLaunch {
        /// The node that prevents it, by name.
        node: Option<NodeName>,
        /// The reason.
        why: &'static str,
    },
    /// A graph that other code may have changed has a structure that drivers refuse to instantiate;
    /// see [`Graph::check`](crate::Graph::check).
    #[error("the graph cannot be instantiated: {}", Found(findings))]
    Unsound {
        /// The defects found.
        findings: Vec<String>,
    },
    /// The driver could not instantiate the graph.
    #[error(transparent)]
    Instantiate(Box<InstantiateError>),
    /// An edge of this kind must lead from a kernel to a kernel.
    #[error("{} from `{from}` to another node needs kernels at both ends; use a full edge", A(format_args!("{kind} edge")))]
    EdgeKind {
        /// The kind of the edge.
        kind: EdgeKind,
        /// The node that the edge would leave.
        from: NodeName,
    },
    /// The driver's graph has a node that this library did not add or read: other code changed the
    /// graph.
    #[error("the driver's graph has a node ({raw:#x}) that was not added through this library")]
    UnknownNode {
        /// The raw node.
        raw: usize,
    },
    /// A graph embedded in a node counts as a root graph, since it was adopted before the graph
    /// around it.
    #[error(
        "graph {raw:#x} lies in a node, and is known as a graph of its own, since it was adopted first; drop all handles of it and of its nodes, \
         adopt the graph that it lies in, and take it from there (ChildGraphNode::embedded)"
    )]
    AdoptedAlone {
        /// The raw graph.
        raw: usize,
    },
    /// A graph cannot be taken over, since this library has it already.
    #[error(
        "graph {raw:#x} cannot be taken over, since it is known here already: by handles that do not own it, as one of this library's own, or as \
         one that lies in a node; only a graph of which there is no handle can"
    )]
    KnownAlready {
        /// The raw graph.
        raw: usize,
    },
    /// The graph was moved into a node of another graph.
    #[error(
        "the graph has been moved into a node of another graph, and this handle leads nowhere now; use the node's embedded graph \
         (ChildGraphNode::embedded), and find its nodes there by find_clone_of"
    )]
    GraphMoved,
    /// A graph would be embedded in itself, or in a graph embedded in it.
    #[error(
        "a graph cannot be embedded in itself or in a graph that lies in it; embed a clone of it (Graph::clone_graph)"
    )]
    EmbedsItself,
    /// The embedded graph of a node would be replaced by a graph inside it, which goes with it.
    #[error(
        "the graph of node `{node}` cannot be replaced by one that lies in it; take a clone of that (Graph::clone_graph)"
    )]
    ReplacesItself {
        /// The node's name.
        node: NodeName,
    },
    /// An embedded graph cannot do what only a root graph can.
    #[error(
        "a graph that is embedded in a node cannot be {what}; make a graph of its own of it first (Graph::clone_graph)"
    )]
    Embedded {
        /// The operation, as in `instantiated`.
        what: &'static str,
    },
    /// The driver refused to clone an embedded graph that has child graph nodes itself.
    #[error(
        "this driver does not clone a graph alone that is embedded in a node and has child graph nodes itself; clone the whole \
         (Graph::clone_graph of the graph that it lies in), or remove those nodes first"
    )]
    HoldsChildren,
    /// A graph of other code cannot be moved.
    #[error(
        "a graph of other code cannot be moved into a node, as that code would still destroy it; embed a clone of it (Frontier::child)"
    )]
    NotOwned,
    /// The driver is too old to move graphs; it can only clone them.
    #[error(
        "moving a graph into a node needs a CUDA driver of version {} or newer; this one is {found}. Embed a clone of it (Frontier::child)",
        cuda_sys::Feature::ChildGraphMove.since()
    )]
    CannotMove {
        /// The version of the driver.
        found: cuda_sys::Version,
    },
    /// A node has no counterpart in the graph.
    #[error(
        "node `{node}` has no counterpart in this graph: it is no clone of the node's graph, or the node was added after it was cloned"
    )]
    NotCloned {
        /// The node's name.
        node: NodeName,
    },
    /// The driver knows no memory at an address.
    #[error(
        "{what}: the driver knows no memory at {address:#x}. Pageable memory of the host goes with RawMemory::pageable for copies, and not at all \
         for fills: pin it (Context::pinned_zeros); arrays are not taken here: copy through linear memory; else it was freed or never allocated"
    )]
    UnknownMemory {
        /// The argument.
        what: &'static str,
        /// The address.
        address: u64,
    },
    /// The memory at an address is too small.
    #[error("{what} needs {} at {address:#x}, where only {} of that memory can be had", Count(*need, "byte"), Count(*room, "byte"))]
    PastEnd {
        /// The argument.
        what: &'static str,
        /// The address.
        address: u64,
        /// The bytes needed.
        need: usize,
        /// The bytes available.
        room: usize,
    },
    /// An edge was given twice in one call.
    #[error("the edge from `{from}` to `{to}` is given twice")]
    EdgeTwice {
        /// The node that the edge leaves.
        from: NodeName,
        /// The node that the edge enters.
        to: NodeName,
    },
    /// A graph cannot be moved into a node before other nodes: if adding the edges to them failed,
    /// it could not be moved back.
    #[error(
        "a graph cannot be moved into a node before others: should the edges to them fail, it could not be given back; add the node without \
         them, and the edges after it"
    )]
    MovesBefore,
    /// A change failed, now or earlier, and so did undoing it. The contents of the driver's graph
    /// are unknown, so the graph and all graphs embedded in its nodes refuse every further use.
    /// Executables made before still work.
    #[error(transparent)]
    Broken(Box<Broken>),
    /// A change of a node could not be undone, since the driver does not return what the node had.
    #[error("the driver does not tell what node `{node}` had before")]
    NotRestored {
        /// The node's name.
        node: NodeName,
    },
    /// The driver failed to remove a node after others were removed in the same call.
    #[error("{}, then the driver failed: {cause}", Listed(removed))]
    RemovedSome {
        /// The removed nodes, in words.
        removed: Vec<String>,
        /// Why the next node could not be removed.
        cause: Box<Self>,
    },
    /// An attribute of a kernel node cannot be changed alone, since the kernel may rely on it.
    #[error(
        "{what} can be changed with the whole launch only (KernelNode::set), as the kernel may rely on it"
    )]
    FixedAttribute {
        /// The attribute.
        what: &'static str,
    },
    /// A kernel node cannot have this access policy window.
    #[error("the access policy window of a kernel node is not possible: {why}")]
    AccessPolicyWindow {
        /// The reason.
        why: Cow<'static, str>,
    },
    /// A graph is too large to be drawn.
    #[error(
        "a graph with {} and {} is too large for a picture; take one of an embedded graph, or Graph::to_dot for other tools",
        Count(*nodes, "node"), Count(*edges, "edge")
    )]
    PictureTooLarge {
        /// The number of nodes.
        nodes: usize,
        /// The number of edges.
        edges: usize,
    },
    /// A condition belongs to another graph, or its graph was moved.
    #[error(
        "node `{node}` was given a condition of another graph; a condition goes by the graph that it was made on (Graph::condition)"
    )]
    ForeignCondition {
        /// The name of the node, or of its kernel.
        node: NodeName,
    },
    /// A condition belongs to another conditional node already.
    #[error(
        "condition {number} is that of node `{node}` already; each conditional node needs one of its own (Graph::condition)"
    )]
    ConditionInUse {
        /// The condition's number.
        number: u64,
        /// The conditional node, by name.
        node: NodeName,
    },
    /// A graph with a condition that no conditional node uses cannot be instantiated: the driver
    /// refuses it.
    #[error(
        "condition {number} ({}) is used by no conditional node{}; the driver makes no executable of such a graph: add the node, or use the condition for \
         another one (a new condition with the same default takes its place once its handles are gone)",
        Default(*default), Setters(setters)
    )]
    UnusedCondition {
        /// The condition's number.
        number: u64,
        /// The condition's default.
        default: Option<u32>,
        /// The kernel nodes that set it, by name.
        setters: Vec<String>,
    },
    /// A body, or a graph embedded in one, cannot contain such a node.
    #[error(
        "{} cannot be in a body, here of node `{conditional}`: there can be kernels, copies and fills of device and pinned memory, empty nodes, \
         conditional nodes, and child graphs of all these",
        A(format_args!("{kind} node"))
    )]
    NotInBody {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
        /// The conditional node, by name.
        conditional: NodeName,
    },
    /// A conditional node with two bodies cannot contain child graphs on this driver, which mixes
    /// them up.
    #[error(
        "node `{conditional}` has two bodies, and CUDA drivers of versions 12.8 and 12.9 mix up child graphs in these; add the nodes of the graph to the body \
         itself, use two if nodes with a condition each, or a newer driver"
    )]
    ChildInTwoBodies {
        /// The conditional node, by name.
        conditional: NodeName,
    },
    /// A graph with conditional nodes or conditions cannot be cloned or embedded.
    #[error(
        "a graph with conditions cannot be {what}: the driver refuses it; build it a second time, or build it where it is to be (a body can hold conditional nodes, and \
         so can a graph that is embedded already)"
    )]
    HasConditions {
        /// The operation, as in `cloned`.
        what: &'static str,
    },
    /// The graph allows one executable at a time, and there is one.
    #[error("a graph with {of} has one executable at a time, and there is one; drop it first")]
    OneExecutable {
        /// The part of the graph that limits it.
        of: &'static str,
    },
    /// Nodes may use memory of the graph before it is allocated or after it is freed: no edges
    /// prevent that.
    #[error("the graph cannot be instantiated, since its memory may not be there when it is used: {}{}; add edges", Orders(found), More(*more))]
    MemoryOrder {
        /// The pairs of nodes in the wrong order.
        found: Vec<MemoryOrder>,
        /// The number of further pairs.
        more: usize,
    },
    /// A node would use memory of an allocation node of another graph.
    #[error(
        "node `{node}` was given memory of an allocation node of another graph; such memory is for the nodes of its own graph. What a launch leaves of it is for \
         all (GraphExec::launch_with_outputs)"
    )]
    ForeignMemory {
        /// The node, by its name or its kind.
        node: NodeName,
    },
    /// Memory of a graph is freed by another node already.
    #[error("the memory of node `{memory}` is freed by node `{free}` already")]
    FreedTwice {
        /// The allocation node, by name.
        memory: NodeName,
        /// The free node, by name.
        free: NodeName,
    },
    /// Memory of a graph cannot be freed by a new node, since the graph was instantiated without
    /// one.
    #[error(
        "the memory of node `{memory}` can no longer be freed by a node of the graph, since an executable was made of that with the allocation node and without a \
         free node: the driver refuses it for good. Add the free node before the first executable, or let go of what launches leave: drop it, or have the next \
         launch free it (InstantiateOptions::auto_free)"
    )]
    FreedTooLate {
        /// The allocation node, by name.
        memory: NodeName,
    },
    /// The driver refused a free node for a reason that this library does not know.
    #[error(
        "the driver takes no free node for the memory of node `{memory}`: {cause}. Other code has made an executable of the graph, or frees the memory in another \
         graph; if it does not, let go of what launches leave: drop it, or have the next launch free it (InstantiateOptions::auto_free)"
    )]
    FreeRefused {
        /// The allocation node, by name.
        memory: NodeName,
        /// The driver's error.
        cause: Box<Self>,
    },
    /// A copy or fill node cannot use memory of a graph for which there is a free node already.
    #[error(
        "{} cannot be added with the memory of node `{memory}`, since there is node `{free}`, which frees it: from then on the driver refuses that, whatever \
         the nodes wait for. Add copies and fills first and the free node last; kernels can still be added",
        A(format_args!("{kind} node"))
    )]
    FreedBefore {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
        /// The allocation node, by name.
        memory: NodeName,
        /// The free node, by name.
        free: NodeName,
    },
    /// An allocation node would allocate more memory than its device has.
    #[error(
        "an allocation node of {} cannot be, since device {device} has {total}; the driver would say so at a launch only, and keep all memory of the device \
         for itself from then on. Allocate less, or let the graph work in parts",
        Count(*bytes, "byte")
    )]
    LargerThanDevice {
        /// The bytes requested.
        bytes: usize,
        /// The number of the device.
        device: usize,
        /// The memory of the device, in bytes.
        total: usize,
    },
    /// A copy node would use memory from a pool of another device that the graph's device may not
    /// access.
    #[error(
        "device {own} may not access the pool on device {of} that memory of the copy is from, as it has to for a node: let it (MemPool::grant_access), or take plain memory \
         (Context::alloc_blocking); a copy on a stream needs neither"
    )]
    PoolOutOfReach {
        /// The number of the graph's device.
        own: usize,
        /// The number of the pool's device.
        of: usize,
    },
    /// An embedded graph cannot have allocation and free nodes.
    #[error(
        "{kind} nodes cannot be in a graph that is embedded in a node, as the driver refuses it; add it to the graph around it that is in no node, or before the \
         graph is moved into the node (Frontier::child_moved)"
    )]
    MemoryEmbedded {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
    },
    /// A graph with allocation or free nodes, or with nodes that use their memory, cannot be
    /// cloned.
    #[error(
        "a graph with allocation or free nodes, or with nodes that use their memory, can be neither cloned nor embedded as a clone: the driver refuses it. Move \
         it into the node (Frontier::child_moved), or build it a second time"
    )]
    HasMemory,
    /// The driver removes nothing from a graph with allocation or free nodes.
    #[error(
        "no {what} can be taken out of a graph with allocation or free nodes: the driver refuses it; build the graph without them"
    )]
    KeepsAll {
        /// The things to remove: `nodes` or `edges`.
        what: &'static str,
    },
    /// The driver cannot allocate memory of graphs at this place.
    #[error("the driver has no memory of graphs at this place ({place}): {cause}")]
    NoMemoryThere {
        /// The place.
        place: AllocPlace,
        /// The driver's error.
        cause: Box<Self>,
    },
    /// A graph cannot be launched while memory from an earlier launch is in use.
    #[error(
        "what an earlier launch left of the memory of node `{node}` is still in use, or being freed; drop it first, and what keeps it: nodes of other graphs, \
         holders of arguments"
    )]
    OutputInUse {
        /// The allocation node, by name.
        node: NodeName,
    },
    /// A launch leaves nothing of the memory that was asked for.
    #[error(
        "the launch leaves nothing of the memory at {address:#x}: it is freed by the graph, or of another graph"
    )]
    NoOutput {
        /// The address of the memory.
        address: u64,
    },
    /// The memory that a launch left was taken before.
    #[error("what the launch left of the memory at {address:#x} was taken already")]
    OutputTaken {
        /// The address of the memory.
        address: u64,
    },
    /// The driver is too old for something in a graph.
    #[error(transparent)]
    TooOld(#[from] cuda_sys::DriverTooOld),
    /// A graph with a ready-made loop or branch for which the driver has no conditional node cannot
    /// be instantiated or lent.
    #[error(
        "node `{node}` goes by a test, which needs a CUDA driver of version {needs} or newer; this one is {found}. The host can decide in its place, and wait for each \
         test: Graph::instantiate_with_fallback with Fallback::HostLoop"
    )]
    NeedsHost {
        /// The loop or branch, by name.
        node: NodeName,
        /// The first version that has such nodes.
        needs: cuda_sys::Version,
        /// The version of the driver.
        found: cuda_sys::Version,
    },
    /// A conditional node with a condition cannot be in a body for which the host decides.
    #[error(
        "a node of kind {kind} that goes by a condition cannot be in a body of node `{node}`, as the driver has no node for that one, so that it and all in it are for the host to \
         decide; add a ready-made loop or branch (Frontier::while_loop, Frontier::if_then)"
    )]
    HostDecides {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
        /// The loop or branch, by name.
        node: NodeName,
    },
    /// The host cannot run a graph, since something in it needs the driver's own decision.
    #[error("the host cannot run this graph because of node `{node}`: {why}")]
    NotOnHost {
        /// The node, by name.
        node: NodeName,
        /// The reason.
        why: &'static str,
    },
    /// A run in which the host decides failed on its way.
    #[error(transparent)]
    HostLoop(Box<HostLoopError>),
    /// A switch cannot have this number of branches.
    #[error("a switch has 1 to {} branches, not {branches}", Self::MOST_BRANCHES)]
    Branches {
        /// The number requested.
        branches: usize,
    },
    /// A do-while loop runs its body at least once, so its limit cannot be 0.
    #[error(
        "a do-while loop runs its body at least once, so its limit is 1 or more, not 0; for a loop that may run no round, use Frontier::while_loop"
    )]
    NoRounds,
    /// A loop or branch cannot test memory without elements.
    #[error("a test needs a number to look at, and the memory given has no elements; give it a slice of one")]
    NothingToTest,
    /// The closure that fills the body of a loop or branch failed. Its own error is lost, since the
    /// nodes that were added before could not be removed again.
    #[error("the closure that fills the body failed")]
    NotFilled,
    /// A file path contains a NUL byte, which no system call accepts.
    #[error("the path `{}` has a NUL byte in it", Named(path))]
    PathWithNul {
        /// The path.
        path: Box<str>,
    },
}

/// Why a graph is [broken](Error::Broken).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the graph cannot be used any more, as a change of it failed ({cause}) and taking that back failed, too ({undo}); build it anew"
)]
#[non_exhaustive]
pub struct Broken {
    /// Why the change failed.
    pub cause: Error,
    /// Why the change could not be undone.
    pub undo: Error,
}

/// Where and why a run failed in which the host decides. Work enqueued before has run or still
/// runs; the next run starts anew.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the run failed {}{doing}: {cause}", Rounds(within))]
#[non_exhaustive]
pub struct HostLoopError {
    /// The reason.
    pub cause: Error,
    /// The loops and branches around the failure, from the outside in.
    pub within: Vec<HostRound>,
    /// The failed step, as in `launching what comes next`.
    pub doing: Box<str>,
}

/// A loop in progress with the current round, or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostRound {
    /// The loop or branch, by name.
    pub node: String,
    /// The round, counted from 1; `None` for a branch.
    pub round: Option<u64>,
}

struct Rounds<'a>(&'a [HostRound]);

impl fmt::Display for Rounds<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|HostRound { node, round }| match round {
            Some(round) => write!(formatter, "in round {round} of `{}`, ", Named(node)),
            None => write!(formatter, "in `{}`, ", Named(node)),
        })
    }
}

impl Error {
    /// The most branches of a switch.
    pub(crate) const MOST_BRANCHES: usize = 1000;
}

struct Default(Option<u32>);

impl fmt::Display for Default {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(formatter, "default {value}"),
            None => formatter.write_str("without default"),
        }
    }
}

struct Setters<'a>(&'a [String]);

impl fmt::Display for Setters<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            setters => write!(formatter, ", though set by {}", Names(setters)),
        }
    }
}

struct Orders<'a>(&'a [MemoryOrder]);

impl fmt::Display for Orders<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for order in self.0 {
            write!(formatter, "{separator}{order}")?;
            separator = "; ";
        }
        Ok(())
    }
}

struct Path<'a>(&'a [String]);

impl fmt::Display for Path<'_> {
    /// Long cycles are shown by their ends.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        let left_out = self.0.len().saturating_sub(SHOWN);
        let ends = SHOWN / 2;
        for (index, node) in self.0.iter().enumerate() {
            match index {
                _ if left_out == 0 || index < ends || index >= ends + left_out => {
                    write!(formatter, "`{}` -> ", Named(node))?;
                }
                _ if index == ends => write!(formatter, "{left_out} more -> ")?,
                _ => {}
            }
        }
        self.0.first().map_or(Ok(()), |first| write!(formatter, "`{}`", Named(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(nodes: usize) -> String {
        Error::Cycle { path: (0..nodes).map(|node| format!("n{node}")).collect() }.to_string()
    }

    #[test]
    fn a_cycle_reads_as_a_path() {
        assert_eq!(cycle(2), "the edge would close a cycle: `n0` -> `n1` -> `n0`");
        let long = cycle(1000);
        assert!(long.contains("`n5` -> 988 more -> `n994`"), "{long}");
        assert!(long.ends_with("`n999` -> `n0`"));
    }

    /// A name that tries to break out of one line.
    fn hostile() -> String {
        format!("a\0b\n\u{1b}[31m\u{202e}{}", "x".repeat(100_000))
    }

    /// Every error, those with numbers or words in several forms.
    fn every_error(name: &str) -> Vec<Error> {
        use crate::node_kind::NodeKind;
        use cuda_sys::{CUgraphInstantiateResult, CUresult, Feature, Version};
        let node = || NodeName::from(name);
        let (needs, found) = (Version::new(12, 3), Version::new(12, 2));
        let cause = || Box::new(Error::GraphRemoved);
        let many = || vec![name.to_owned(); 1000];
        let broken = Broken { cause: Error::NotFilled, undo: Error::GraphMoved };
        let order = MemoryOrder {
            what: crate::error::memory_order::Disorder::UseAfterFree,
            allocation: name.into(),
            first: name.into(),
            second: name.into(),
        };
        let instantiate = InstantiateError {
            code: CUresult::CUDA_ERROR_INVALID_VALUE,
            result: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR,
            node: Some(name.into()),
            findings: vec![],
        };
        let run = HostLoopError {
            cause: Error::NotFilled,
            within: vec![
                HostRound { node: name.into(), round: Some(1) },
                HostRound { node: name.into(), round: None },
            ],
            doing: "waiting for the end".into(),
        };
        let mut all = vec![
            Error::Foreign { node: node() },
            Error::Removed { node: node() },
            Error::GraphRemoved,
            Error::SelfEdge { node: node() },
            Error::DuplicateEdge { from: node(), to: node() },
            Error::NoEdge { from: node(), to: node() },
            Error::Cycle { path: many() },
            Error::NoElements { what: "memset" },
            Error::DeviceLaunch { node: Some(node()), why: "it waits for the host" },
            Error::Unsound { findings: vec!["a cycle".into(); 1000] },
            Error::Instantiate(Box::new(instantiate)),
            Error::UnknownNode { raw: 16 },
            Error::AdoptedAlone { raw: 16 },
            Error::KnownAlready { raw: 16 },
            Error::GraphMoved,
            Error::EmbedsItself,
            Error::ReplacesItself { node: node() },
            Error::Embedded { what: "instantiated" },
            Error::HoldsChildren,
            Error::NotOwned,
            Error::CannotMove { found },
            Error::NotCloned { node: node() },
            Error::UnknownMemory { what: "the source", address: 16 },
            Error::EdgeTwice { from: node(), to: node() },
            Error::MovesBefore,
            Error::Broken(Box::new(broken)),
            Error::NotRestored { node: node() },
            Error::RemovedSome {
                removed: vec![format!("node `{}` is removed", Named(name)); 1000],
                cause: cause(),
            },
            Error::FixedAttribute { what: "the cluster" },
            Error::AccessPolicyWindow { why: "it is empty".into() },
            Error::ForeignCondition { node: node() },
            Error::ConditionInUse { number: 1, node: node() },
            Error::UnusedCondition { number: 1, default: Some(1), setters: many() },
            Error::ChildInTwoBodies { conditional: node() },
            Error::HasConditions { what: "cloned" },
            Error::OneExecutable { of: "conditional nodes" },
            Error::MemoryOrder { found: vec![order; 8], more: 1 },
            Error::ForeignMemory { node: node() },
            Error::FreedTwice { memory: node(), free: node() },
            Error::FreedTooLate { memory: node() },
            Error::FreeRefused { memory: node(), cause: cause() },
            Error::PoolOutOfReach { own: 0, of: 1 },
            Error::HasMemory,
            Error::KeepsAll { what: "node" },
            Error::NoMemoryThere { place: AllocPlace::Host, cause: cause() },
            Error::OutputInUse { node: node() },
            Error::NoOutput { address: 16 },
            Error::OutputTaken { address: 16 },
            found.ensure(Feature::Switch).unwrap_err().into(),
            Error::NeedsHost { node: node(), needs, found },
            Error::NotOnHost { node: node(), why: "it is of other code" },
            Error::HostLoop(Box::new(run)),
            Error::Branches { branches: 0 },
            Error::NoRounds,
            Error::NothingToTest,
            Error::NotFilled,
            Error::PathWithNul { path: name.into() },
        ];
        let kinds = [
            NodeKind::Empty,
            NodeKind::Kernel,
            NodeKind::Memcpy,
            NodeKind::Memset,
            NodeKind::ChildGraph,
            NodeKind::If,
            NodeKind::IfElse,
            NodeKind::While,
            NodeKind::Switch,
            NodeKind::HostCallback,
            NodeKind::EventRecord,
            NodeKind::EventWait,
            NodeKind::Batch,
            NodeKind::Alloc,
            NodeKind::Free,
            NodeKind::SemaphoreSignal,
            NodeKind::SemaphoreWait,
            NodeKind::Other(cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL),
        ];
        for kind in kinds {
            all.push(Error::NotInBody { kind, conditional: node() });
            all.push(Error::FreedBefore { kind, memory: node(), free: node() });
            all.push(Error::MemoryEmbedded { kind });
            all.push(Error::HostDecides { kind, node: node() });
        }
        for kind in
            [EdgeKind::Full, EdgeKind::Programmatic, EdgeKind::LaunchOrder, EdgeKind::ProgrammaticLaunchOrder]
        {
            all.push(Error::EdgeKind { kind, from: node() });
        }
        for number in [0, 1, 2, usize::MAX] {
            all.push(Error::PastEnd { what: "the destination", address: 16, need: number, room: number });
            all.push(Error::PictureTooLarge { nodes: number, edges: number });
            all.push(Error::LargerThanDevice { bytes: number, device: 0, total: number });
        }
        all
    }

    /// The first defect in the language of a text.
    fn fault(text: &str) -> Option<String> {
        let words: Vec<&str> =
            text.split(' ').map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric())).collect();
        for pair in words.windows(2) {
            let vowel = pair[1].starts_with(['a', 'e', 'i', 'o']) && !pair[1].starts_with("one");
            let plural = pair[1].ends_with('s') && !["is", "has", "was"].contains(&pair[1]);
            if pair[0] == "a" && vowel || pair[0] == "an" && !vowel || pair[0] == "1" && plural {
                return Some(pair.join(" "));
            }
        }
        let is_plain =
            !text.contains("  ") && !text.ends_with(['.', ' ', ',', ':', ';']) && !text.contains("``");
        let begins = text.chars().next().is_some_and(|first| !first.is_uppercase());
        let is_line = text.chars().all(crate::wording::is_plain) && text.chars().count() < 5000;
        (!is_plain || !begins || !is_line).then(|| "its form".to_owned())
    }

    /// Prints the messages to be read, too: `cargo test -p cuda-graph every_error -- --nocapture`.
    #[test]
    fn every_error_is_one_line_of_correct_language() {
        let mut kinds = std::collections::HashSet::new();
        for error in every_error("step").into_iter().chain(every_error(&hostile())) {
            kinds.insert(core::mem::discriminant(&error));
            let text = error.to_string();
            if !text.contains('…') {
                println!("{text}");
            }
            assert_eq!(fault(&text), None, "{text}");
        }
        // The messages of other crates' errors are checked there.
        let source = include_str!("mod.rs");
        let declared = source.split("pub enum Error {").nth(1).and_then(|rest| rest.split("\n}\n").next());
        let declared = declared.map_or(0, |body| body.matches("#[error(").count());
        assert_eq!(kinds.len() + 2, declared);
    }

    #[test]
    fn errors_are_small() {
        assert!(size_of::<Error>() <= 64);
    }
}
