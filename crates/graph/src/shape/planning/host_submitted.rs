//! Kernels in place of fills and copies that the host submits at every launch.
//!
//! The device starts a kernel by itself. But a kernel needs a multiprocessor, and a fill or a copy
//! needs none: where kernels beside it fill the device and wait for something behind it, a kernel
//! would never begin. So a node that runs beside a kernel which does not promise progress stays.

use super::drawn::{HostSubmittedKind, Substitute};
use super::progress::Concerned;
use super::sketch::Sketch;

/// What became of the nodes of a kind that the host submits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Substituted {
    /// Became kernels.
    pub(super) substituted: usize,
    /// Stay, since it is not certain that a kernel reaches their memory.
    pub(super) left_for_memory: usize,
    /// Stay, since they copy so much that a copy engine is as fast.
    pub(super) left_as_large: usize,
    /// Stay, since kernels beside them may wait for each other.
    pub(super) left_for_progress: usize,
}

/// Puts kernels in place of the nodes of a kind.
pub(super) fn substitute(
    sketch: &mut Sketch<'_>,
    kind: HostSubmittedKind,
    concerned: &Concerned,
) -> Substituted {
    let mut outcome = Substituted::default();
    for node in 0..sketch.nodes.len() as u32 {
        let Some(submitted) = sketch.host_submitted(node).filter(|node| node.kind == kind) else { continue };
        match submitted.substitute {
            Substitute::Kernel { .. } if concerned.has(node) => outcome.left_for_progress += 1,
            Substitute::Kernel { .. } => {
                sketch.substitute(node);
                outcome.substituted += 1;
            }
            Substitute::OtherMemory => outcome.left_for_memory += 1,
            Substitute::Large => outcome.left_as_large += 1,
            Substitute::Unwanted => {}
        }
    }
    outcome
}
