//! Errors about graph parameters.

use crate::node_name::NodeName;
use crate::wording::Named;

/// A graph parameter cannot be used or set as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// The parameter belongs to another graph.
    #[error(
        "the parameter belongs to another graph; make one of this graph, or of the graph around it \
         (Graph::param)"
    )]
    Foreign,
    /// The parameter was made after the executable, whose nodes do not use it.
    #[error("the parameter was made after the executable, which has no node with it; instantiate again")]
    MadeLater,
    /// A kernel of another context than the graph's home has a parameter in the place of memory.
    #[error(
        "the kernel `{kernel}` is not of the graph's home context, and takes no parameter in the place of memory: \
         the values of such parameters are memory of the home; give it the memory itself, and set the node"
    )]
    MemoryElsewhere {
        /// The kernel's name.
        kernel: NodeName,
    },
    /// The memory of a parameter is that of an allocation node.
    #[error(
        "the memory at {address:#x} is of an allocation node, and no value of a parameter: whether nodes use it \
         between its allocation and its free is checked when an executable is made; give it to the nodes \
         themselves"
    )]
    GraphMemory {
        /// The address.
        address: u64,
    },
    /// The memory of a parameter is one that a launch of the same graph has left.
    #[error(
        "the memory at {address:#x} was left by a launch of this graph, which cannot be launched again as long as \
         its parameter keeps the memory; copy it to a buffer first"
    )]
    OwnOutput {
        /// The address.
        address: u64,
    },
    /// A launch configuration has other attributes than the parameter.
    #[error(
        "the configuration has other attributes than the one that the parameter was made with; an executable takes \
         another grid, block and size of shared memory alone; make the parameter with these attributes"
    )]
    Attributes,
    /// A parameter was given where none can be.
    #[error(
        "a graph parameter cannot be given to {call}; nodes take parameters as they are added, by `launch`, `fill`, \
         `clear` and `copy`"
    )]
    NotTaken {
        /// The call.
        call: &'static str,
    },
    /// A parameter stands for a value of another type than the node takes.
    #[error("a parameter stands for a value of another type than the node takes")]
    WrongType,
    /// An argument of the kernel cannot be stored, so the others cannot be parameters.
    #[error(
        "kernel `{kernel}` takes a tensor map, and its other arguments cannot be parameters; set the node \
         as a whole (KernelNode::set, GraphExec::node)"
    )]
    NotStorable {
        /// The kernel's name.
        kernel: NodeName,
    },
    /// The length of a parameter's memory does not fit into an argument.
    #[error(
        "the length of a parameter is an argument of node `{node}`, and {len} elements do not fit: {longest} \
         is the most that the argument can express"
    )]
    TooLong {
        /// The node's name, or the kernel's.
        node: NodeName,
        /// The length.
        len: u64,
        /// The longest possible one.
        longest: u64,
    },
    /// The memory of a parameter is longer than the fixed side of a copy.
    #[error("node `{node}` copies {bytes} bytes, the memory of a parameter, and its other side has {room}")]
    NoRoom {
        /// The node's name.
        node: NodeName,
        /// The bytes of the parameter's memory.
        bytes: u64,
        /// The bytes of the other side.
        room: u64,
    },
    /// Memory of a pool would replace memory of no pool in a copy, or the reverse.
    #[error(
        "node `{node}` copies with memory of {} as its {side}, which an executable's copy does not exchange for \
         memory of {}; give the parameter memory that is allocated as its first value was",
        of_pool(!is_pooled),
        of_pool(*is_pooled)
    )]
    Exchanged {
        /// The node's name.
        node: NodeName,
        /// The side of the copy: source or destination.
        side: &'static str,
        /// Whether the new memory is of a pool ([`Stream::zeros`](cuda_handles::Stream::zeros)).
        is_pooled: bool,
    },
    /// A node would have to be disabled, and cannot be.
    #[error(
        "node `{node}` would be disabled, as the memory of its parameter is empty or its flag is false; it decides \
         about a condition, and a loop might never end"
    )]
    NotDisabled {
        /// The node's name.
        node: NodeName,
    },
    /// The node takes parameters, and was to be set by hand.
    #[error("node `{node}` takes a graph parameter; set the parameter (GraphExec::set)")]
    Bound {
        /// The node's name.
        node: NodeName,
    },
    /// Not all parameters were named.
    #[error(
        "{missing} of {all} parameters of the graph are not named: the first of them is {}; name all of them, or use \
         `launch_with`",
        Named(first)
    )]
    NotAllNamed {
        /// The first parameter that is not named, by a place that it fills, as in "argument `x` of
        /// node `scale`".
        first: String,
        /// How many are not named.
        missing: usize,
        /// How many there are.
        all: usize,
    },
    /// With the values of the parameters, a node's kernel cannot be launched.
    #[error("node `{node}` cannot take the values of its parameters: {cause}")]
    Launch {
        /// The node's name.
        node: NodeName,
        /// The reason.
        cause: Box<cuda_launch::Error>,
    },
    /// A node takes other parameters, or takes them otherwise, than the value at hand.
    #[error("node `{node}` takes another kind of value than the parameter has")]
    WrongValue {
        /// The node's name.
        node: NodeName,
    },
}

shown!(ParamError);

fn of_pool(is_pooled: bool) -> &'static str {
    if is_pooled { "a pool" } else { "no pool" }
}
