//! Kernels of this library in place of fills and copies that the host submits at every launch.
//!
//! | File | Contents |
//! | --- | --- |
//! | `mod.rs` | [`Substitutes`], the nodes in whose place a kernel runs |
//! | [`work`] | fills and copies, and whether the host submits them |
//! | [`memory`] | the memory that a kernel is certain to reach |
//! | [`launch`] | the launches of the kernels |

pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod work;

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Context};

use crate::shape::planning::drawn::{HostSubmitted, HostSubmittedKind, Overlap, Substitute};
use crate::shape::substitute::launch::{SubstituteKernels, SubstituteLaunch};
use crate::shape::substitute::memory::Place;
use crate::shape::substitute::work::MemoryWork;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// The nodes of an executable in whose place a kernel of this library runs.
#[derive(Debug)]
pub(crate) struct Substitutes {
    kernels: SubstituteKernels,
    nodes: HashMap<NodeId, Substituted>,
}

/// The kind of node in whose place a kernel runs. An update keeps to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Substituted {
    Fill,
    /// A copy between memory of these kinds.
    Copy([Place; 2]),
}

impl Substitutes {
    pub(super) fn new(kernels: SubstituteKernels) -> Self {
        Self { kernels, nodes: HashMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether a kernel runs in place of a node.
    pub(crate) fn has(&self, id: NodeId) -> bool {
        self.nodes.contains_key(&id)
    }

    /// Notes that a kernel runs in place of a node, with the node's parameters.
    pub(super) fn add(&mut self, guard: &GraphGuard<'_>, id: NodeId) {
        let work = guard.record(id).and_then(|record| MemoryWork::of(&record.node_params));
        let substituted = work.and_then(|work| Substituted::of(guard.context(), &work, &guard.memory_of(id)));
        if let Some(substituted) = substituted {
            self.nodes.insert(id, substituted);
        }
    }

    /// The nodes in whose place kernels run.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.keys()
    }

    /// The launch in place of a node that fills or copies this; `None` if the node is a copy of the
    /// user's.
    pub(crate) fn launch(&self, id: NodeId, work: &MemoryWork) -> Option<SubstituteLaunch<'_>> {
        if self.has(id) { self.kernels.launch(work) } else { None }
    }

    /// The programmatic edges that the kernel in place of a node can be at, if one runs there.
    pub(super) fn overlap(
        &self,
        context: &Context,
        id: NodeId,
        work: &MemoryWork,
        memory: &[&Arc<Allocation>],
    ) -> Option<Overlap> {
        let launch = self.launch(id, work)?;
        Some(launch.overlap(context, work, memory))
    }

    /// Why the kernel in place of a node cannot fill or copy this, if so. `memory` is all that the
    /// new parameters keep alive.
    pub(crate) fn refusal(
        &self,
        context: &Context,
        id: NodeId,
        work: &MemoryWork,
        memory: &[&Arc<Allocation>],
    ) -> Option<&'static str> {
        let known = self.nodes.get(&id)?;
        if Substituted::of(context, work, memory) == Some(*known) {
            return None;
        }
        Some(match known {
            Substituted::Fill => {
                "a kernel of the library runs in its place, which fills device memory and pinned memory of this \
                 library alone; instantiate again, or with `fills_by_kernels(false)`"
            }
            Substituted::Copy(_) => {
                "a kernel of the library runs in its place, which copies between device memory and pinned memory of \
                 this library alone, in the direction of before; instantiate again, or with \
                 `copies_by_kernels(false)`"
            }
        })
    }
}

impl Substituted {
    /// `None` if it is not certain that a kernel reaches the memory, or no kernel is of use.
    fn of(context: &Context, work: &MemoryWork, memory: &[&Arc<Allocation>]) -> Option<Self> {
        match (work.kind(), work.places(context, memory)) {
            (HostSubmittedKind::Fill, [Some(_), _]) => Some(Self::Fill),
            (HostSubmittedKind::Copy, [Some(one), Some(other)]) if one != other => {
                Some(Self::Copy([one, other]))
            }
            _ => None,
        }
    }
}

/// A fill or copy as the plan sees it; `None` if the device starts it. `kernel` is called for one
/// that a kernel can do.
pub(super) fn host_submitted(
    context: &Context,
    work: &MemoryWork,
    memory: &[&Arc<Allocation>],
    kernels: &SubstituteKernels,
    kernel: impl FnOnce(&SubstituteLaunch<'_>) -> Substitute,
) -> Option<HostSubmitted> {
    let places = work.places(context, memory);
    if !work.is_submitted_by_host(places) {
        return None;
    }
    let substitute = match kernels.launch(work) {
        None => Substitute::Unwanted,
        Some(_) if Substituted::of(context, work, memory).is_none() => Substitute::OtherMemory,
        Some(_) if work.is_large() => Substitute::Large,
        Some(launch) => kernel(&launch),
    };
    Some(HostSubmitted { kind: work.kind(), substitute })
}
