//! Spare memory, which a fill that parameters disable fills in place of its own.
//!
//! A fill of a row that the driver has disabled keeps nothing in order: what comes after it, in the
//! graph or on the stream, runs without waiting for what comes before it. Seen on an H200 with
//! driver 580. Fills of rectangles, copies and kernels keep the order.

use cuda_handles::capture_mode::relaxed;
use cuda_handles::{Buffer, FillLayout, MemorySpace};

use crate::error::Result;
use crate::graph::Graph;
use crate::state::bindings::{Binding, Place, Use};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

impl Graph {
    /// Locks the graph to make an executable. Its nodes may have
    /// [no records yet](crate::state::unread). `spare` becomes memory for fills that parameters can
    /// disable, if there are any. The caller declares it first, so that it is dropped after the
    /// lock.
    pub(crate) fn enter_with_spare(&self, spare: &mut Option<Buffer<u32>>) -> Result<GraphGuard<'_>> {
        loop {
            let guard = self.enter_unread()?;
            if spare.is_some() || !guard.has_rows() {
                return Ok(guard);
            }
            drop(guard);
            let context = self.context();
            let _relaxed = relaxed(context.driver());
            *spare = Some(context.alloc_blocking(1)?);
        }
    }
}

impl GraphGuard<'_> {
    /// Whether parameters can disable fills of rows.
    fn has_rows(&self) -> bool {
        self.bindings.nodes().any(|(id, binding)| self.row_of(id, binding).is_some())
    }

    /// The fill of a row, if parameters can disable the node.
    pub(super) fn row_of(&self, id: NodeId, binding: &Binding) -> Option<FillLayout> {
        let disables = |one: &Use| matches!(one.place, Place::Enabled | Place::Target);
        match self.record(id).map(|record| &record.node_params) {
            Some(NodeParams::Memset(layout)) if layout.height == 1 && binding.uses.iter().any(disables) => {
                Some(*layout)
            }
            _ => None,
        }
    }
}

/// The fill of spare memory in place of the fill of a row that is disabled.
pub(super) fn spare_fill(row: FillLayout, spare: &Buffer<u32>) -> FillLayout {
    FillLayout { address: spare.address(), space: MemorySpace::Device, width: 1, ..row }
}
