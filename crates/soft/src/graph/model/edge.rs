//! Edge data.

use cuda_sys::CUgraphEdgeData;

/// The data of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) struct Edge {
    pub(crate) from_port: u8,
    pub(crate) kind: u8,
}

impl Edge {
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Whether `griddepcontrol.wait` in the kernel behind waits for the end of the one in front.
    pub(crate) fn is_waited_for(self) -> bool {
        self.kind == 1
    }

    pub(crate) fn raw(self) -> CUgraphEdgeData {
        CUgraphEdgeData { from_port: self.from_port, to_port: 0, type_: self.kind, reserved: [0; 5] }
    }
}
