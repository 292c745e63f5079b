//! The graph as the user drew it: nodes by number and edges.

/// A graph without cycles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Drawn {
    /// By number, in any order.
    pub(crate) nodes: Vec<DrawnNode>,
    /// In any order; at most one full edge from one node to another.
    pub(crate) edges: Vec<DrawnEdge>,
}

/// An edge between two nodes, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrawnEdge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Whether the second node begins after the first has ended. Other edges lead from a kernel to
    /// a kernel.
    pub(crate) is_full: bool,
}

/// A node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrawnNode {
    pub(crate) role: Role,
}

/// Which full edges of a kernel the plan may make programmatic: those that both ends permit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Overlap {
    #[default]
    Never,
    /// Edges to it: it waits at its entry.
    Behind,
    /// Edges to it and from it: it waits at its entry, and writes memory of its own device alone.
    Both,
}

/// What the plan has to know of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A kernel.
    Kernel {
        /// Equal for nodes of the same kernel and configuration.
        like: u32,
        /// Whether it waits for no other kernel.
        promises_progress: bool,
        overlap: Overlap,
    },
    /// A node that may wait for what runs beside it, and is no kernel: a host function, a batch, a
    /// wait for an event or semaphore, a loop.
    Waits,
    /// An empty node. It does nothing itself, so the plan need not have it.
    Empty,
    /// A fill or a copy that the host submits at every launch. It waits for no kernel beside it.
    HostSubmitted(HostSubmitted),
    /// Any other node. It waits for no kernel beside it.
    Other,
}

/// A node that the host submits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostSubmitted {
    pub(crate) kind: HostSubmittedKind,
    pub(crate) substitute: Substitute,
}

/// The kinds of nodes that the host submits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostSubmittedKind {
    Fill,
    Copy,
}

/// Whether a kernel of the library can take the place of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Substitute {
    Kernel {
        /// As the number of [`Role::Kernel`].
        like: u32,
        overlap: Overlap,
    },
    /// It is not certain that a kernel reaches the memory.
    OtherMemory,
    /// A copy engine is as fast.
    Large,
    /// The user does not want it.
    Unwanted,
}
