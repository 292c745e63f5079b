//! What can be wrong with a graph.

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

/// Why an operation on a graph failed. The graph is as it was before, but for
/// [`Broken`](Self::Broken) and [`RemovedSome`](Self::RemovedSome); the order in which the driver
/// lists edges may be another one.
///
/// Nodes are named as in [`Node::name`](crate::Node::name); in the text of an error such a name is
/// one line of bounded length, and of long lists a dozen is told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver refused, or a handle does not fit.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
    /// The configuration or the arguments of a kernel node are not what the kernel takes.
    #[error(transparent)]
    Launch(#[from] cuda_launch::Error),
    /// A node of another graph was given.
    #[error("node `{node}` belongs to another graph; edges connect nodes of one graph only")]
    Foreign {
        /// The node's name.
        node: NodeName,
    },
    /// A node was given that is no longer in its graph.
    #[error("node `{node}` has been removed from its graph")]
    Removed {
        /// What the node was called by default.
        node: NodeName,
    },
    /// A graph was used whose node, in which it was embedded, has been removed.
    #[error("the graph was embedded in a node that has been removed; a removed node takes its graph with it")]
    GraphRemoved,
    /// An edge from a node to itself was asked for.
    #[error("an edge from node `{node}` to itself would make it wait for its own end")]
    SelfEdge {
        /// The node's name.
        node: NodeName,
    },
    /// The edge is there already.
    #[error("there is already an edge from `{from}` to `{to}`")]
    DuplicateEdge {
        /// The node that the edge leaves.
        from: NodeName,
        /// The node that the edge enters.
        to: NodeName,
    },
    /// The edge to remove is not there.
    #[error("there is no edge from `{from}` to `{to}`")]
    NoEdge {
        /// The node that the edge would leave.
        from: NodeName,
        /// The node that the edge would enter.
        to: NodeName,
    },
    /// The edge would close a cycle.
    #[error("the edge would close a cycle: {}", Path(path))]
    Cycle {
        /// The nodes of the cycle: each has an edge to the next. The edge asked for leads from the
        /// last to the first.
        path: Vec<String>,
    },
    /// A memcpy or memset node over no bytes was asked for; the driver has no such nodes.
    #[error(
        "{} needs at least one element; for a slice of none, leave the node out or add an empty one",
        A(format_args!("{what} node"))
    )]
    NoElements {
        /// The kind of node.
        what: &'static str,
    },
    /// An executable that kernels may launch was asked for, and the graph cannot be one.
    #[error("the graph cannot be launched by kernels{}: {why}", At(node.as_deref()))]
    DeviceLaunch {
        /// The node that is in the way, by name.
        node: Option<NodeName>,
        /// What is wrong.
        why: &'static str,
    },
    /// A graph that other code may have changed was to be instantiated, and its structure is one
    /// that drivers refuse; see [`Graph::check`](crate::Graph::check).
    #[error("the graph cannot be instantiated: {}", Found(findings))]
    Unsound {
        /// What is wrong, in words.
        findings: Vec<String>,
    },
    /// The driver could not make an executable.
    #[error(transparent)]
    Instantiate(Box<InstantiateError>),
    /// An edge of this kind can lead from a kernel to a kernel only.
    #[error("{} from `{from}` to another node needs kernels at both ends; use a full edge", A(format_args!("{kind} edge")))]
    EdgeKind {
        /// What was asked for.
        kind: EdgeKind,
        /// The node that the edge would leave.
        from: NodeName,
    },
    /// The driver named a node that is not in the graph's table: somebody changed the raw graph.
    #[error("the driver's graph has a node ({raw:#x}) that was not added through this library")]
    UnknownNode {
        /// The raw node.
        raw: usize,
    },
    /// A graph that lies in a node was met there, and is known as a graph of its own: it was
    /// adopted before the graph that it lies in.
    #[error(
        "graph {raw:#x} lies in a node, and is known as a graph of its own, since it was adopted first; drop all handles of it and of its nodes, \
         adopt the graph that it lies in, and take it from there (ChildGraphNode::embedded)"
    )]
    AdoptedAlone {
        /// The raw graph.
        raw: usize,
    },
    /// A graph was to be taken over that is known already.
    #[error(
        "graph {raw:#x} cannot be taken over, since it is known here already: by handles that do not own it, as one of this library's own, or as \
         one that lies in a node; only a graph of which there is no handle can"
    )]
    KnownAlready {
        /// The raw graph.
        raw: usize,
    },
    /// A graph was used that has been moved into a node of another graph.
    #[error(
        "the graph has been moved into a node of another graph, and this handle leads nowhere now; use the node's embedded graph \
         (ChildGraphNode::embedded), and find its nodes there by find_clone_of"
    )]
    GraphMoved,
    /// A graph was to be embedded in itself, or in a graph that is embedded in it.
    #[error(
        "a graph cannot be embedded in itself or in a graph that lies in it; embed a clone of it (Graph::clone_graph)"
    )]
    EmbedsItself,
    /// A node's graph was to be replaced by one that lies in it and would go with it.
    #[error(
        "the graph of node `{node}` cannot be replaced by one that lies in it; take a clone of that (Graph::clone_graph)"
    )]
    ReplacesItself {
        /// The node's name.
        node: NodeName,
    },
    /// Something was asked of an embedded graph that only a graph of its own can do.
    #[error(
        "a graph that is embedded in a node cannot be {what}; make a graph of its own of it first (Graph::clone_graph)"
    )]
    Embedded {
        /// What was asked, as in `instantiated`.
        what: &'static str,
    },
    /// A graph that is embedded in a node and has child graph nodes was to be cloned by itself, and
    /// the driver refused.
    #[error(
        "this driver does not clone a graph alone that is embedded in a node and has child graph nodes itself; clone the whole \
         (Graph::clone_graph of the graph that it lies in), or remove those nodes first"
    )]
    HoldsChildren,
    /// A graph was to be moved that is not this library's.
    #[error(
        "a graph of other code cannot be moved into a node, as that code would still destroy it; embed a clone of it (Frontier::child)"
    )]
    NotOwned,
    /// A graph was to be moved by a driver that can only clone.
    #[error(
        "moving a graph into a node needs a CUDA driver of version {} or newer; this one is {found}. Embed a clone of it (Frontier::child)",
        Self::MOVES
    )]
    CannotMove {
        /// The version of the driver that runs.
        found: cuda_sys::Version,
    },
    /// A node was looked up in a graph that has no counterpart for it.
    #[error(
        "node `{node}` has no counterpart in this graph: it is no clone of the node's graph, or the node was added after it was cloned"
    )]
    NotCloned {
        /// The node's name.
        node: NodeName,
    },
    /// Memory was given by an address at which the driver knows none.
    #[error(
        "{what}: the driver knows no memory at {address:#x}. Pageable memory of the host goes with RawMemory::pageable for copies, and not at all \
         for fills: pin it (Context::pinned_zeros); arrays are not taken here: copy through linear memory; else it was freed or never allocated"
    )]
    UnknownMemory {
        /// What was to be there.
        what: &'static str,
        /// The address.
        address: u64,
    },
    /// Memory was given by an address, and ends before what was asked of it does.
    #[error("{what} needs {} at {address:#x}, where only {} of that memory can be had", Count(*need, "byte"), Count(*room, "byte"))]
    PastEnd {
        /// What was to be there.
        what: &'static str,
        /// The address.
        address: u64,
        /// The bytes needed.
        need: usize,
        /// The bytes there are.
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
    /// A graph was to be moved into a node that others, which are there already, wait for.
    #[error(
        "a graph cannot be moved into a node before others: should the edges to them fail, it could not be given back; add the node without \
         them, and the edges after it"
    )]
    MovesBefore,
    /// A change failed on its way, now or before, and so did taking it back. What the driver has is
    /// not known any more, so that the graph and all graphs embedded in its nodes refuse every
    /// further use. Executables made before go on.
    #[error(transparent)]
    Broken(Box<Broken>),
    /// A change of a node could not be taken back, since the driver does not tell what the node had.
    #[error("the driver does not tell what node `{node}` had before")]
    NotRestored {
        /// The node's name.
        node: NodeName,
    },
    /// The driver failed to remove one of several nodes after others had been removed.
    #[error("{}, then the driver failed: {cause}", Listed(removed))]
    RemovedSome {
        /// The nodes that are removed, in words, by their names.
        removed: Vec<String>,
        /// Why the next one could not be removed.
        cause: Box<Self>,
    },
    /// An attribute of a kernel node was to be changed by itself that its kernel may rely on.
    #[error(
        "{what} can be changed with the whole launch only (KernelNode::set), as the kernel may rely on it"
    )]
    FixedAttribute {
        /// The attribute, in words.
        what: &'static str,
    },
    /// A window for the cache that a kernel node cannot have.
    #[error("the access policy window of a kernel node is not possible: {why}")]
    AccessPolicyWindow {
        /// Why.
        why: Cow<'static, str>,
    },
    /// A picture was asked for of a graph with too much in it to be laid out.
    #[error(
        "a graph with {} and {} is too large for a picture; take one of an embedded graph, or Graph::to_dot for other tools",
        Count(*nodes, "node"), Count(*edges, "edge")
    )]
    PictureTooLarge {
        /// Its nodes.
        nodes: usize,
        /// Its edges.
        edges: usize,
    },
    /// A kernel or a conditional node was given a condition of another graph, or one whose graph
    /// was moved away.
    #[error(
        "node `{node}` was given a condition of another graph; a condition goes by the graph that it was made on (Graph::condition)"
    )]
    ForeignCondition {
        /// The name of the node, or of its kernel.
        node: NodeName,
    },
    /// A condition was given to a second conditional node.
    #[error(
        "condition {number} is that of node `{node}` already; each conditional node needs one of its own (Graph::condition)"
    )]
    ConditionInUse {
        /// The condition's number.
        number: u64,
        /// The node that goes by it.
        node: NodeName,
    },
    /// A graph was to be instantiated that has a condition which no conditional node uses: the
    /// driver refuses that.
    #[error(
        "condition {number} ({}) is used by no conditional node{}; the driver makes no executable of such a graph: add the node, or use the condition for \
         another one (a new condition with the same default takes its place once its handles are gone)",
        Default(*default), Setters(setters)
    )]
    UnusedCondition {
        /// The condition's number.
        number: u64,
        /// Its default.
        default: Option<u32>,
        /// The kernel nodes that set it, by name.
        setters: Vec<String>,
    },
    /// A node was to be added to a body, or to a graph embedded in one, that cannot be in there.
    #[error(
        "{} cannot be in a body, here of node `{conditional}`: there can be kernels, copies and fills of device and pinned memory, empty nodes, \
         conditional nodes, and child graphs of all these",
        A(format_args!("{kind} node"))
    )]
    NotInBody {
        /// What was to be added.
        kind: crate::node_kind::NodeKind,
        /// The conditional node, by name.
        conditional: NodeName,
    },
    /// A child graph was to be added to a body of a node with two, on a driver that mixes these up.
    #[error(
        "node `{conditional}` has two bodies, and CUDA drivers of versions 12.8 and 12.9 mix up child graphs in these; add the nodes of the graph to the body \
         itself, use two if nodes with a condition each, or a newer driver"
    )]
    ChildInTwoBodies {
        /// The conditional node, by name.
        conditional: NodeName,
    },
    /// A graph with a conditional node, or with a condition that waits for one, was to be copied.
    #[error(
        "a graph with conditions cannot be {what}: the driver refuses it; build it a second time, or build it where it is to be (a body can hold conditional nodes, and \
         so can a graph that is embedded already)"
    )]
    HasConditions {
        /// What was asked, as in `cloned`.
        what: &'static str,
    },
    /// A second executable was to be made of a graph that can have one at a time.
    #[error("a graph with {of} has one executable at a time, and there is one; drop it first")]
    OneExecutable {
        /// What the graph has that makes it so.
        of: &'static str,
    },
    /// Nodes use memory of the graph, and it may not be there yet, or no more: no edges say that it
    /// is.
    #[error("the graph cannot be instantiated, since its memory may not be there when it is used: {}{}; add edges", Orders(found), More(*more))]
    MemoryOrder {
        /// What is not in order.
        found: Vec<MemoryOrder>,
        /// How much more of the kind there is.
        more: usize,
    },
    /// A node was given memory of an allocation node of another graph.
    #[error(
        "node `{node}` was given memory of an allocation node of another graph; such memory is for the nodes of its own graph. What a launch leaves of it is for \
         all (GraphExec::launch_with_outputs)"
    )]
    ForeignMemory {
        /// The node, by its name or its kind.
        node: NodeName,
    },
    /// Memory of a graph was to be freed by a second node.
    #[error("the memory of node `{memory}` is freed by node `{free}` already")]
    FreedTwice {
        /// The allocation node, by name.
        memory: NodeName,
        /// The free node, by name.
        free: NodeName,
    },
    /// Memory of a graph was to be freed by a node that was added after an executable of the graph
    /// was made.
    #[error(
        "the memory of node `{memory}` can no longer be freed by a node of the graph, since an executable was made of that with the allocation node and without a \
         free node: the driver refuses it for good. Add the free node before the first executable, or let go of what launches leave: drop it, or have the next \
         launch free it (InstantiateOptions::auto_free)"
    )]
    FreedTooLate {
        /// The allocation node, by name.
        memory: NodeName,
    },
    /// The driver took no free node for memory of a graph, though nothing is known here that would
    /// speak against it.
    #[error(
        "the driver takes no free node for the memory of node `{memory}`: {cause}. Other code has made an executable of the graph, or frees the memory in another \
         graph; if it does not, let go of what launches leave: drop it, or have the next launch free it (InstantiateOptions::auto_free)"
    )]
    FreeRefused {
        /// The allocation node, by name.
        memory: NodeName,
        /// What the driver answered.
        cause: Box<Self>,
    },
    /// A copy or a fill was to be added with memory of a graph for which there is a free node.
    #[error(
        "{} cannot be added with the memory of node `{memory}`, since there is node `{free}`, which frees it: from then on the driver refuses that, whatever \
         the nodes wait for. Add copies and fills first and the free node last; kernels can still be added",
        A(format_args!("{kind} node"))
    )]
    FreedBefore {
        /// What was to be added.
        kind: crate::node_kind::NodeKind,
        /// The allocation node, by name.
        memory: NodeName,
        /// The free node, by name.
        free: NodeName,
    },
    /// An allocation node was to be added for more memory than its device has.
    #[error(
        "an allocation node of {} cannot be, since device {device} has {total}; the driver would say so at a launch only, and keep all memory of the device \
         for itself from then on. Allocate less, or let the graph work in parts",
        Count(*bytes, "byte")
    )]
    LargerThanDevice {
        /// What was asked for.
        bytes: usize,
        /// The number of the device.
        device: usize,
        /// The memory of the device, in bytes.
        total: usize,
    },
    /// A copy node was to copy memory from a pool of another device that the graph's device may not
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
    /// An allocation or free node was to be added to a graph that is embedded in a node.
    #[error(
        "{kind} nodes cannot be in a graph that is embedded in a node, as the driver refuses it; add it to the graph around it that is in no node, or before the \
         graph is moved into the node (Frontier::child_moved)"
    )]
    MemoryEmbedded {
        /// What was to be added.
        kind: crate::node_kind::NodeKind,
    },
    /// A graph with allocation or free nodes was to be copied.
    #[error(
        "a graph with allocation or free nodes, or with nodes that use their memory, can be neither cloned nor embedded as a clone: the driver refuses it. Move \
         it into the node (Frontier::child_moved), or build it a second time"
    )]
    HasMemory,
    /// Something was to be taken out of a graph with allocation or free nodes.
    #[error(
        "no {what} can be taken out of a graph with allocation or free nodes: the driver refuses it; build the graph without them"
    )]
    KeepsAll {
        /// What was asked.
        what: &'static str,
    },
    /// Memory of a graph was asked for at a place where the driver has none.
    #[error("the driver has no memory of graphs at this place ({place}): {cause}")]
    NoMemoryThere {
        /// The place.
        place: AllocPlace,
        /// What the driver answered.
        cause: Box<Self>,
    },
    /// A graph was to be launched while memory that an earlier launch left is in use.
    #[error(
        "what an earlier launch left of the memory of node `{node}` is still in use, or being freed; drop it first, and what keeps it: nodes of other graphs, \
         holders of arguments"
    )]
    OutputInUse {
        /// The allocation node, by name.
        node: NodeName,
    },
    /// Memory was asked for of which a launch leaves nothing.
    #[error(
        "the launch leaves nothing of the memory at {address:#x}: it is freed by the graph, or of another graph"
    )]
    NoOutput {
        /// Where the memory is.
        address: u64,
    },
    /// Memory was asked for that was taken already.
    #[error("what the launch left of the memory at {address:#x} was taken already")]
    OutputTaken {
        /// Where the memory is.
        address: u64,
    },
    /// The driver is too old for something in a graph.
    #[error("{what} needs a CUDA driver of version {needs} or newer; this one is {found}")]
    TooOld {
        /// What was asked.
        what: &'static str,
        /// The version that has it.
        needs: cuda_sys::Version,
        /// The version of the driver that runs.
        found: cuda_sys::Version,
    },
    /// A graph was to be instantiated or lent in which a ready-made loop or branch stands for a
    /// conditional node that the driver does not have.
    #[error(
        "node `{node}` goes by a test, which needs a CUDA driver of version {needs} or newer; this one is {found}. The host can decide in its place, and wait for each \
         test: Graph::instantiate_with_fallback with Fallback::HostLoop"
    )]
    NeedsHost {
        /// The loop or branch, by name.
        node: NodeName,
        /// The version that has such nodes.
        needs: cuda_sys::Version,
        /// The version of the driver that runs.
        found: cuda_sys::Version,
    },
    /// A conditional node that goes by a condition was to be added to a body of a loop or branch
    /// about which the host decides.
    #[error(
        "a node of kind {kind} that goes by a condition cannot be in a body of node `{node}`, as the driver has no node for that one, so that it and all in it are for the host to \
         decide; add a ready-made loop or branch (Frontier::while_loop, Frontier::if_then)"
    )]
    HostDecides {
        /// What was to be added.
        kind: crate::node_kind::NodeKind,
        /// The loop or branch, by name.
        node: NodeName,
    },
    /// A graph was to be run by the host in which something needs the driver's own decision.
    #[error("the host cannot run this graph because of node `{node}`: {why}")]
    NotOnHost {
        /// The node, by name.
        node: NodeName,
        /// What is in the way.
        why: &'static str,
    },
    /// A run in which the host decides failed on its way.
    #[error(transparent)]
    HostLoop(Box<HostLoopError>),
    /// A switch was asked for with a number of branches that the driver does not take.
    #[error("a switch has 1 to {} branches, not {branches}", Self::MOST_BRANCHES)]
    Branches {
        /// What was asked.
        branches: usize,
    },
    /// A loop that runs its body at least once was to have a limit of no rounds.
    #[error(
        "a do-while loop runs its body at least once, so its limit is 1 or more, not 0; for a loop that may run no round, use Frontier::while_loop"
    )]
    NoRounds,
    /// A loop or a branch was to go by memory without elements.
    #[error("a test needs a number to look at, and the memory given has no elements; give it a slice of one")]
    NothingToTest,
    /// The closure that was to fill the body of a loop or a branch failed; its own error is lost,
    /// as what was added before could not be taken out again.
    #[error("the closure that fills the body failed")]
    NotFilled,
    /// A file was to be written at a path that no system call takes.
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
    /// Why it could not be taken back.
    pub undo: Error,
}

/// Where a run failed in which the host decides, and why. What was enqueued before has run or runs;
/// the next run begins anew.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the run failed {}{doing}: {cause}", Rounds(within))]
#[non_exhaustive]
pub struct HostLoopError {
    /// Why.
    pub cause: Error,
    /// The loops and branches that it was in, from the outside in.
    pub within: Vec<HostRound>,
    /// What was being done, as in `launching what comes next`.
    pub doing: Box<str>,
}

/// A loop that was being run, and how far it had come, or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostRound {
    /// The loop or branch, by name.
    pub node: String,
    /// The round, from 1 on; of a branch `None`.
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
    /// The first version that can move graphs into nodes.
    pub(crate) const MOVES: cuda_sys::Version = cuda_sys::Version::new(12, 9);
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
    /// Long cycles are told by their ends.
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

    /// A name that no text is the worse for.
    fn hostile() -> String {
        format!("a\0b\n\u{1b}[31m\u{202e}{}", "x".repeat(100_000))
    }

    /// One error of each kind, and of those with numbers or words in them some.
    fn every_error(name: &str) -> Vec<Error> {
        use crate::node_kind::NodeKind;
        use cuda_sys::{CUgraphInstantiateResult, CUresult, Version};
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
            Error::TooOld { what: "a switch", needs, found },
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

    /// What is wrong with the language of a text.
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

    /// To be read as well: `cargo test -p cuda-graph every_error -- --nocapture`.
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
        // Those that are other crates' are checked there.
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
