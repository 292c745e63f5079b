//! Errors about nodes.

use crate::node_name::NodeName;
use crate::wording::{A, Count, Named};
use std::borrow::Cow;

/// An operation on a node, or with the parameters of one, is not possible.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
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
    /// The graph was moved into a node of another graph.
    #[error(
        "the graph has been moved into a node of another graph, and this handle leads nowhere now; use the node's embedded graph \
         (ChildGraphNode::embedded), and find its nodes there by find_clone_of"
    )]
    GraphMoved,
    /// A memcpy or memset node would process no bytes; the driver has no such nodes.
    #[error(
        "{} needs at least one element; for a slice of none, leave the node out or add an empty one",
        A(format_args!("{what} node"))
    )]
    NoElements {
        /// The kind of node.
        what: &'static str,
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
    /// A part of a kernel node's launch cannot be changed alone, since the present launch is not
    /// known.
    #[error(
        "a part of the launch of node `{node}` cannot be changed alone: {why}; replace the whole launch \
         (KernelNode::set)"
    )]
    NotInPart {
        /// The node's name.
        node: NodeName,
        /// The reason.
        why: Cow<'static, str>,
    },
    /// A kernel's declaration has no parameter of a name.
    #[error("kernel `{kernel}` is declared without a parameter `{name}`; it has {}", or_none(known))]
    NoParameter {
        /// The kernel's name.
        kernel: NodeName,
        /// The name that was given.
        name: NodeName,
        /// The names of the parameters, in quotes.
        known: Box<str>,
    },
    /// A value has another type than the declared parameter.
    #[error("argument `{argument}` is declared as `{}`, and {} was given", Named(declared), Named(found))]
    ArgumentType {
        /// The parameter's name.
        argument: NodeName,
        /// The declared type.
        declared: Box<str>,
        /// The type of the value, in words.
        found: Box<str>,
    },
    /// Memory for one side of a copy has another size than the copy.
    #[error(
        "{what} has {}, and node `{node}` copies {need}; replace both sides (MemcpyNode::set)",
        Count(*given, "byte")
    )]
    CopySize {
        /// The side.
        what: &'static str,
        /// The node's name.
        node: NodeName,
        /// The bytes of a copy.
        need: usize,
        /// The bytes given.
        given: usize,
    },
    /// A value or memory for a fill has elements of another size than the fill.
    #[error(
        "node `{node}` fills elements of {}, and {what} has elements of {given}; replace both (MemsetNode::set)",
        Count(*size, "byte")
    )]
    FillElement {
        /// The node's name.
        node: NodeName,
        /// The value or the memory.
        what: &'static str,
        /// The size of the fill's elements.
        size: usize,
        /// The size of the elements given.
        given: usize,
    },
    /// A node has fewer operations or semaphores than an index says.
    #[error("node `{node}` has {}, and none with the index {index}", Count(*count, what))]
    NoEntry {
        /// The node's name.
        node: NodeName,
        /// An operation, or a semaphore.
        what: &'static str,
        /// The index.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A batch of another number of operations than one was given for one operation.
    #[error("one operation of node `{node}` is replaced by one, and a batch of {count} was given")]
    NotOneOperation {
        /// The node's name.
        node: NodeName,
        /// The number of operations in the batch.
        count: usize,
    },
    /// A change of a node could not be undone, since the driver does not return what the node had.
    #[error("the driver does not tell what node `{node}` had before")]
    NotRestored {
        /// The node's name.
        node: NodeName,
    },
}

shown!(NodeError);

fn or_none(names: &str) -> &str {
    if names.is_empty() { "none" } else { names }
}
