//! The graph as shaping sees it, and why some graphs are left as drawn.

use std::collections::HashMap;

use cuda_handles::{Context, Kernel};
use cuda_launch::Dim;

use crate::clone::flattened::{Action, FlatGraph};
use crate::edge_kind::EdgeKind;
use crate::error::Result;
use crate::error::wrong_context::Spans;
use crate::exec::options::InstantiateOptions;
use crate::shape::overlap::overlap_of_kernel;
use crate::shape::planning::drawn::{Drawn, DrawnEdge, DrawnNode, Overlap, Role, Substitute};
use crate::shape::substitute::host_submitted;
use crate::shape::substitute::launch::{SubstituteKernels, SubstituteLaunch};
use crate::shape::substitute::work::MemoryWork;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::kernel_config::KernelConfig;
use crate::state::params::{ConditionSource, Conditional, ConditionalKind, NodeParams};

impl GraphGuard<'_> {
    /// Why an executable is made of the graph as drawn, if shaping leaves it.
    pub(crate) fn reason_to_leave(&self, options: &InstantiateOptions) -> Option<&'static str> {
        if self.is_shared() {
            return Some("other code knows the graph");
        }
        if self.has_conditionals_of_others() {
            return Some("it has conditional nodes or conditions of other code");
        }
        if !self.memory.is_empty() {
            return Some("it has allocation or free nodes");
        }
        if options.is_for_device_launch() {
            return Some("kernels launch it");
        }
        if self.records().any(|(_, record)| matches!(record.node_params, NodeParams::Other { .. })) {
            return Some("other code added nodes to it of which too little is known");
        }
        (self.is_wide() || self.has_others_contexts())
            .then_some("its nodes or their memory are of several contexts")
    }

    /// Whether there is a conditional node that does not go by a condition of this library.
    fn has_conditionals_of_others(&self) -> bool {
        let is_own = |id: NodeId| match self.record(id).map(|record| &record.node_params) {
            Some(NodeParams::Conditional(Conditional { source, .. })) => {
                matches!(source, ConditionSource::Condition(_))
            }
            Some(_) | None => false,
        };
        let nodes = self.records().filter(|(_, record)| record.node_params.is_conditional());
        self.has_conditionals() && !nodes.map(|(id, _)| id).all(is_own)
    }

    /// Whether a kernel or memory is of another context than the graph.
    fn has_others_contexts(&self) -> bool {
        let is_other = |context: &Context| context != self.context();
        let kernel_is = |params: &NodeParams| match params {
            NodeParams::Kernel { kernel, .. } => is_other(kernel.context()),
            _ => false,
        };
        self.records().any(|(_, record)| kernel_is(&record.node_params))
            || self.allocations().any(|allocation| is_other(allocation.context()))
    }

    /// The root graph, or a body, with its child graphs expanded, and the same in numbers.
    /// `substitutes` are the kernels that may take the place of nodes which the host submits. It
    /// submits none of a body.
    pub(super) fn read_for_shape(
        &mut self,
        subgraph: SubgraphId,
        substitutes: Option<&SubstituteKernels>,
    ) -> Result<(FlatGraph, Drawn)> {
        let flat = FlatGraph::of_device(self, subgraph)?;
        let mut kinds = Kinds::default();
        let nodes = flat.nodes.iter().map(|node| {
            let role = match node.action {
                Action::Run(_) => self.role(node.id, &mut kinds, substitutes),
                // The host decides about no loops and branches here.
                Action::Nothing | Action::Decide(..) | Action::Enter(_) => Role::Empty,
            };
            DrawnNode { role }
        });
        let nodes = nodes.collect();
        let edges = flat.edges.iter().map(|&(from, to, kind)| DrawnEdge {
            from: from as u32,
            to: to as u32,
            is_full: kind == EdgeKind::Full,
        });
        let drawn = Drawn { nodes, edges: edges.collect() };
        Ok((flat, drawn))
    }

    /// The role of a node that the device runs.
    fn role(&self, id: NodeId, kinds: &mut Kinds, substitutes: Option<&SubstituteKernels>) -> Role {
        match self.record(id).map(|record| &record.node_params) {
            Some(params @ NodeParams::Kernel { kernel, config, accesses }) => {
                let overlap = match self.overlaps_never(id) {
                    true => Overlap::Never,
                    false => overlap_of_kernel(self.context(), params, &self.memory_of(id)),
                };
                let promises_progress = accesses.ends_alone();
                Role::Kernel { like: kinds.number(kernel, config), promises_progress, overlap }
            }
            Some(params @ (NodeParams::Memcpy(_) | NodeParams::Memset(_))) => {
                let Some(substitutes) = substitutes else { return Role::Other };
                let memory = self.memory_of(id);
                let submitted = MemoryWork::of(params).and_then(|work| {
                    let kernel = |launch: &SubstituteLaunch<'_>| Substitute::Kernel {
                        like: kinds.number_of(launch),
                        overlap: match launch.overlap(self.context(), &work, &memory) {
                            _ if self.overlaps_never(id) => Overlap::Never,
                            // Begun early, copies to the host took a tenth longer (seen on an
                            // H200).
                            Overlap::Behind => Overlap::Never,
                            other => other,
                        },
                    };
                    host_submitted(self.context(), &work, &memory, substitutes, kernel)
                });
                submitted.map_or(Role::Other, Role::HostSubmitted)
            }
            Some(NodeParams::EventRecord(_) | NodeParams::SignalSemaphores(_)) => Role::Other,
            // A loop may go on until something beside it happens. What is in the bodies of a branch
            // is looked at later.
            Some(NodeParams::Conditional(Conditional { kind, .. })) => match kind {
                ConditionalKind::While => Role::Waits,
                ConditionalKind::If | ConditionalKind::IfElse | ConditionalKind::Switch => Role::Other,
            },
            // The others may wait for what runs beside them.
            Some(_) | None => Role::Waits,
        }
    }
}

/// A kernel with a configuration without attributes.
type Launch = (usize, Dim, Dim, u32);

/// The numbers of launches that are alike.
#[derive(Default)]
struct Kinds {
    known: HashMap<Launch, u32>,
    next: u32,
}

impl Kinds {
    /// The number of a launch. One with attributes is like no other.
    fn number(&mut self, kernel: &Kernel, config: &KernelConfig) -> u32 {
        let KernelConfig::Plain { grid, block, shared } = config else { return self.unique() };
        self.known((kernel.as_raw().addr(), *grid, *block, *shared))
    }

    /// The number of a launch of one of the library's kernels.
    fn number_of(&mut self, launch: &SubstituteLaunch<'_>) -> u32 {
        self.known((launch.kernel.as_raw().addr(), launch.grid, launch.block, 0))
    }

    fn known(&mut self, launch: Launch) -> u32 {
        match self.known.get(&launch) {
            Some(known) => *known,
            None => {
                let number = self.unique();
                self.known.insert(launch, number);
                number
            }
        }
    }

    /// The number of a node that is like no other.
    fn unique(&mut self) -> u32 {
        self.next += 1;
        self.next
    }
}
