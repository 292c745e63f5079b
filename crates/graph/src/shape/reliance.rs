//! What a shape relies on, so that an update cannot take it away.

use std::sync::Arc;

use cuda_handles::{Allocation, Context};

use crate::shape::overlap::is_on_device;
use crate::shape::planning::drawn::Overlap;
use crate::state::params::NodeParams;

/// Properties of a node's kernel that a shape relies on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reliance {
    /// It promises to wait for no other kernel.
    pub(super) ends_alone: bool,
    /// For its place at programmatic edges that shaping made.
    pub(super) overlap: Overlap,
}

const MAY_WAIT: &str = "the kernel may wait for another one (it was not declared as `fn`), and the executable \
                        was shaped for one that does not; instantiate again, or with `assume_progress`";

const NO_WAIT: &str = "the node is at a programmatic edge that shaping made, and the kernel does not wait at its \
                       entry (`load_waiting`), or its launch has attributes, or a graph parameter enables it; \
                       instantiate again, or without `programmatic_edges`";

const OTHER_MEMORY: &str = "the node is in front of a programmatic edge that shaping made, and the kernel may use \
                            other memory than the device's own; instantiate again, or without \
                            `programmatic_edges`";

const NOT_DISABLED: &str = "the node is at a programmatic edge that shaping made: disabled, it would not wait; \
                            instantiate without `programmatic_edges`, or let a graph parameter enable it";

impl Reliance {
    /// Why a node cannot get new parameters, if it cannot. `overlap` is what these permit.
    pub(super) fn refusal(self, params: &NodeParams, overlap: Overlap) -> Option<&'static str> {
        if self.ends_alone && ends_alone(params) == Some(false) {
            return Some(MAY_WAIT);
        }
        self.refusal_of_overlap(overlap)
    }

    /// Why a node cannot get parameters that permit these programmatic edges, if it cannot.
    pub(super) fn refusal_of_overlap(self, new: Overlap) -> Option<&'static str> {
        match (self.overlap, new) {
            (Overlap::Never, _) | (Overlap::Behind, Overlap::Behind) | (_, Overlap::Both) => None,
            (Overlap::Behind | Overlap::Both, Overlap::Never) => Some(NO_WAIT),
            (Overlap::Both, Overlap::Behind) => Some(OTHER_MEMORY),
        }
    }

    /// Why a kernel cannot get memory as an argument, if it cannot.
    pub(super) fn refusal_of_memory(
        self,
        context: &Context,
        memory: &Arc<Allocation>,
    ) -> Option<&'static str> {
        let is_permitted = self.overlap != Overlap::Both || is_on_device(context, memory);
        (!is_permitted).then_some(OTHER_MEMORY)
    }

    /// Why a node cannot be disabled, if it cannot.
    pub(super) fn refusal_of_disabling(self) -> Option<&'static str> {
        (self.overlap != Overlap::Never).then_some(NOT_DISABLED)
    }
}

/// Whether a kernel waits for no other; `None` if it is another node.
pub(super) fn ends_alone(params: &NodeParams) -> Option<bool> {
    match params {
        NodeParams::Kernel { accesses, .. } => Some(accesses.ends_alone()),
        _ => None,
    }
}
