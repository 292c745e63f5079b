//! The kinds of edges.

use core::fmt;

use cuda_sys::CUgraphEdgeData;

/// How far the second node of an edge waits for the first.
///
/// Every kind but [`Full`](Self::Full) leads from a kernel to a kernel, and needs CUDA 12.3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
#[doc(alias = "cudaGraphEdgeData")]
#[doc(alias = "CUgraphEdgeData")]
pub enum EdgeKind {
    /// The second node waits until the first has completed, and sees everything that it wrote.
    #[default]
    Full,
    /// The second kernel waits until every block of the first has triggered it
    /// (`griddepcontrol.launch_dependents`, or `cudaTriggerProgrammaticLaunchCompletion`) or ended.
    /// It sees what the first kernel wrote only after it has waited itself (`griddepcontrol.wait`,
    /// or `cudaGridDependencySynchronize`).
    #[doc(alias = "CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC")]
    #[doc(alias = "CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC")]
    #[doc(alias = "cudaGraphDependencyTypeProgrammatic")]
    #[doc(alias = "cudaGraphKernelNodePortProgrammatic")]
    Programmatic,
    /// The second kernel waits until every block of the first has started. It does not wait for
    /// anything that the first kernel writes.
    #[doc(alias = "CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER")]
    #[doc(alias = "cudaGraphKernelNodePortLaunchCompletion")]
    LaunchOrder,
    /// As [`LaunchOrder`](Self::LaunchOrder), but the second kernel sees what the first wrote after
    /// it has waited itself (`griddepcontrol.wait`).
    ProgrammaticLaunchOrder,
    /// A kind from a newer driver, on an edge that other code added.
    Other {
        /// The port that the edge leaves.
        from_port: u8,
        /// The port that the edge enters.
        to_port: u8,
        /// The type of dependency.
        kind: u8,
    },
}

impl EdgeKind {
    /// The driver's form.
    pub(crate) fn data(self) -> CUgraphEdgeData {
        let (from_port, to_port, kind) = match self {
            Self::Full => (0, 0, 0),
            Self::Programmatic => (1, 0, 1),
            Self::LaunchOrder => (2, 0, 0),
            Self::ProgrammaticLaunchOrder => (2, 0, 1),
            Self::Other { from_port, to_port, kind } => (from_port, to_port, kind),
        };
        CUgraphEdgeData { from_port, to_port, type_: kind, reserved: [0; 5] }
    }

    /// The same kind, by its name if it has one.
    pub(crate) fn plain(self) -> Self {
        Self::of(&self.data())
    }

    /// The kind of the driver's edge data.
    pub(crate) fn of(data: &CUgraphEdgeData) -> Self {
        match (data.from_port, data.to_port, data.type_) {
            (0, 0, 0) => Self::Full,
            (1, 0, 1) => Self::Programmatic,
            (2, 0, 0) => Self::LaunchOrder,
            (2, 0, 1) => Self::ProgrammaticLaunchOrder,
            (from_port, to_port, kind) => Self::Other { from_port, to_port, kind },
        }
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => formatter.write_str("full"),
            Self::Programmatic => formatter.write_str("programmatic"),
            Self::LaunchOrder => formatter.write_str("launch order"),
            Self::ProgrammaticLaunchOrder => formatter.write_str("programmatic launch order"),
            Self::Other { from_port, to_port, kind } => {
                write!(formatter, "type {kind} from port {from_port} to port {to_port}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_back() {
        let other = EdgeKind::Other { from_port: 3, to_port: 1, kind: 2 };
        for kind in [
            EdgeKind::Full,
            EdgeKind::Programmatic,
            EdgeKind::LaunchOrder,
            EdgeKind::ProgrammaticLaunchOrder,
            other,
        ] {
            assert_eq!(EdgeKind::of(&kind.data()), kind);
            assert_eq!(kind.plain(), kind);
        }
        assert_eq!(EdgeKind::Other { from_port: 0, to_port: 0, kind: 0 }.plain(), EdgeKind::Full);
    }
}
