//! What is checked before an executable is made.

use cuda_sys::{CUgraphInstantiateResult as Outcome, CUgraphNodeType, CUresult};

use super::payload::Payload;
use super::store::{Graphs, Owner};
use crate::code::{INVALID_CONTEXT, INVALID_VALUE, NOT_SUPPORTED};
use crate::copy::{Place, Promised};
use crate::event;
use crate::fault::crash;

/// Free what the graph still holds when it is launched again.
pub(crate) const AUTO_FREE: u64 = 1;
pub(crate) const UPLOAD: u64 = 2;
pub(crate) const DEVICE_LAUNCH: u64 = 4;
pub(crate) const NODE_PRIORITY: u64 = 8;

/// Why no executable was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    pub(crate) code: CUresult,
    pub(crate) outcome: Outcome,
    pub(crate) node: u64,
}

impl Refused {
    pub(crate) fn new(code: CUresult, outcome: Outcome, node: u64) -> Self {
        Self { code, outcome, node }
    }
}

impl From<CUresult> for Refused {
    fn from(code: CUresult) -> Self {
        Self::new(code, Outcome::CUDA_GRAPH_INSTANTIATE_ERROR, 0)
    }
}

const UNSUPPORTED: Outcome = Outcome::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;

impl Graphs {
    /// Whether the graph or anything in it allocates or frees memory.
    pub(crate) fn holds_memory_nodes(&self, graph: u64) -> bool {
        self.any_node(graph, |payload| matches!(payload, Payload::Alloc(_) | Payload::Free(_)))
    }

    /// All checks but the one for cycles.
    pub(crate) fn check_instantiable(&self, graph: u64, flags: u64) -> Result<(), Refused> {
        let own = self.graph(graph)?;
        if flags & !(AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY) != 0 {
            return Err(INVALID_VALUE.into());
        }
        if crate::context::current_handle() == 0 {
            return Err(INVALID_CONTEXT.into());
        }
        match own.owner {
            Owner::Body { .. } | Owner::Child { moved: true, .. } => return Err(NOT_SUPPORTED.into()),
            Owner::Child { .. } | Owner::User if own.is_lost => return Err(NOT_SUPPORTED.into()),
            Owner::Child { .. } | Owner::User => {}
        }
        if own.live_execs > 0 && (self.holds_memory_nodes(graph) || self.holds_conditionals(graph)) {
            return Err(NOT_SUPPORTED.into());
        }
        let unused = own.conditions.values().any(|condition| condition.node.is_none());
        if unused {
            let outcome = Outcome::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
            return Err(Refused::new(INVALID_VALUE, outcome, 0));
        }
        if flags & DEVICE_LAUNCH != 0 {
            self.check_device_launch(graph, flags)?;
        }
        for part in self.tree(graph) {
            let in_body = self.is_in_body(part);
            for node in self.nodes_of(part)? {
                self.check_node(node, in_body)?;
            }
        }
        Ok(())
    }

    fn is_in_body(&self, mut graph: u64) -> bool {
        loop {
            match self.graph(graph).map(|graph| graph.owner) {
                Ok(Owner::Body { .. }) => return true,
                Ok(Owner::Child { node, .. }) => match self.node(node) {
                    Ok(node) => graph = node.graph,
                    Err(_) => return false,
                },
                _ => return false,
            }
        }
    }

    fn check_node(&self, handle: u64, in_body: bool) -> Result<(), Refused> {
        let payload = &self.node(handle)?.payload;
        match payload {
            Payload::Kernel(kernel) if !kernel.spec.function.module.is_alive() => {
                crash("a graph is instantiated whose kernel's module or library is unloaded")
            }
            Payload::EventWait(event) | Payload::EventRecord(event) if !event::exists(*event) => {
                crash("a graph is instantiated whose event is destroyed")
            }
            Payload::Fill(fill) if fill.fill.check(Promised::Yes).is_err() => Err(INVALID_VALUE.into()),
            Payload::Host(_) | Payload::EventWait(_) | Payload::Free(_) if in_body => {
                Err(Refused::new(INVALID_VALUE, UNSUPPORTED, handle))
            }
            Payload::Copy(copy)
                if in_body && [copy.copy.src.place, copy.copy.dst.place].contains(&Place::Pageable) =>
            {
                let outcome = Outcome::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
                Err(Refused::new(INVALID_VALUE, outcome, handle))
            }
            _ => Ok(()),
        }
    }

    fn check_device_launch(&self, graph: u64, flags: u64) -> Result<(), Refused> {
        let nodes = self.nodes_of(graph)?;
        if nodes.is_empty() || flags & AUTO_FREE != 0 {
            return Err(INVALID_VALUE.into());
        }
        for handle in nodes {
            type T = CUgraphNodeType;
            match self.node(handle)?.payload.kind() {
                T::CU_GRAPH_NODE_TYPE_KERNEL
                | T::CU_GRAPH_NODE_TYPE_MEMCPY
                | T::CU_GRAPH_NODE_TYPE_MEMSET
                | T::CU_GRAPH_NODE_TYPE_GRAPH => {}
                T::CU_GRAPH_NODE_TYPE_HOST | T::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
                    return Err(Refused::new(INVALID_VALUE, UNSUPPORTED, handle));
                }
                _ => return Err(Refused::new(INVALID_VALUE, UNSUPPORTED, 0)),
            }
        }
        Ok(())
    }
}
