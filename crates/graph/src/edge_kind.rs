//! What an edge makes its second node wait for.

use core::fmt;

use cuda_sys::CUgraphEdgeData;

/// What an edge makes its second node wait for.
///
/// All but [`Full`](Self::Full) lead from a kernel to a kernel, and need CUDA 12.3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum EdgeKind {
    /// The first node's end, with all that it wrote.
    #[default]
    Full,
    /// That every block of the first kernel has triggered (`griddepcontrol.launch_dependents`) or
    /// ended. What it wrote before is seen only after the second kernel has waited
    /// (`griddepcontrol.wait`).
    #[doc(alias = "CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC")]
    #[doc(alias = "CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC")]
    Programmatic,
    /// That every block of the first kernel has begun; nothing that it writes is waited for.
    #[doc(alias = "CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER")]
    LaunchOrder,
    /// As [`LaunchOrder`](Self::LaunchOrder); what the first kernel wrote is seen after the second
    /// has waited (`griddepcontrol.wait`).
    ProgrammaticLaunchOrder,
    /// Something that a newer driver says of an edge that other code made.
    Other {
        /// The port that it leaves.
        from_port: u8,
        /// The port that it enters.
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

    /// The same by its name, where it has one.
    pub(crate) fn plain(self) -> Self {
        Self::of(&self.data())
    }

    /// What the driver says.
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
