//! The checks before instantiation.

use crate::graph::edit::conditional;
use crate::graph::model::hierarchy;
use crate::graph::model::node_limits;
use std::collections::HashMap;

use cuda_sys::{CUgraphInstantiateResult as Outcome, CUresult};

use crate::device::context;
use crate::driver::abort::crash;
use crate::driver::result_code::{INVALID_CONTEXT, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::payload::Payload;
use crate::graph::model::task::{FillNode, Task};
use crate::memory::copy::Copy3;
use crate::memory::memory_kind::{Accept, MemoryKind};
use crate::memory::peer_access;
use crate::stream::event;

/// Frees memory that the graph still holds at the next launch.
pub(crate) const AUTO_FREE: u64 = 1;
pub(crate) const UPLOAD: u64 = 2;
pub(crate) const DEVICE_LAUNCH: u64 = 4;
pub(crate) const NODE_PRIORITY: u64 = 8;

/// Why a graph could not be instantiated.
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

/// All checks except the one for cycles.
pub(crate) fn check(graphs: &Graphs, graph: u64, flags: u64) -> Result<(), Refused> {
    let own = graphs.graph(graph)?;
    if flags & !(AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY) != 0 {
        return Err(INVALID_VALUE.into());
    }
    if context::current_handle() == 0 {
        return Err(INVALID_CONTEXT.into());
    }
    match own.owner {
        Owner::Body { .. } | Owner::Child { .. } => return Err(NOT_SUPPORTED.into()),
        Owner::User if own.is_lost => return Err(NOT_SUPPORTED.into()),
        Owner::User => {}
    }
    if own.live_execs > 0
        && (node_limits::is_unique(graphs, graph) || node_limits::holds_conditionals(graphs, graph))
    {
        return Err(NOT_SUPPORTED.into());
    }
    let unused = own.conditions.values().any(|condition| !conditional::is_used(graphs, condition));
    if unused {
        let outcome = Outcome::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        return Err(Refused::new(INVALID_VALUE, outcome, 0));
    }
    if flags & DEVICE_LAUNCH != 0 {
        check_device_launch(graphs, graph, flags)?;
    }
    hierarchy::ensure_whole(graphs, graphs.nodes_of(graph)?, "a graph is instantiated");
    // Each part is in the body that its parent is in: cheap even for deep nesting.
    let mut bodies: HashMap<u64, Option<i32>> = HashMap::new();
    for part in hierarchy::tree(graphs, graph) {
        let body = match graphs.graph(part)?.owner {
            Owner::Body { node } => device_of_conditional(graphs, node),
            Owner::Child { node, .. } => match bodies.get(&graphs.node(node)?.graph) {
                Some(body) => *body,
                None => body_around(graphs, part),
            },
            Owner::User => None,
        };
        bodies.insert(part, body);
        for node in graphs.nodes_of(part)? {
            check_node(graphs, node, body)?;
        }
    }
    Ok(())
}

/// The device of the conditional node in whose body a graph lies.
fn body_around(graphs: &Graphs, mut graph: u64) -> Option<i32> {
    loop {
        match graphs.graph(graph).map(|graph| graph.owner) {
            Ok(Owner::Body { node }) => return device_of_conditional(graphs, node),
            Ok(Owner::Child { node, .. }) => match graphs.node(node) {
                Ok(node) => graph = node.graph,
                Err(_) => return None,
            },
            Ok(Owner::User) | Err(_) => return None,
        }
    }
}

/// The device of a conditional node; -1 if its context has ended.
fn device_of_conditional(graphs: &Graphs, node: u64) -> Option<i32> {
    let Ok(Payload::Conditional(conditional)) = graphs.node(node).map(|node| &node.payload) else {
        return None;
    };
    Some(context::get(conditional.context).map_or(-1, |context| context.device))
}

/// The check of a node, which may lie in a body of a conditional node of this device.
fn check_node(graphs: &Graphs, handle: u64, body: Option<i32>) -> Result<(), Refused> {
    let in_body = body.is_some();
    let elsewhere =
        Refused::new(INVALID_VALUE, Outcome::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, handle);
    let Payload::Task(task) = &graphs.node(handle)?.payload else { return Ok(()) };
    match task {
        Task::Kernel(spec) if !spec.function.module.is_alive() => {
            crash("a graph is instantiated whose kernel's module or library is unloaded")
        }
        Task::EventWait(event) | Task::EventRecord(event) if !event::exists(*event) => {
            crash("a graph is instantiated whose event is destroyed")
        }
        Task::Signal(node) if !node.is_alive() => crash(SEMAPHORE_GONE),
        Task::Wait(node) if !node.is_alive() => crash(SEMAPHORE_GONE),
        Task::Fill(fill) if fill.fill.check(Accept::Reserved).is_err() => Err(INVALID_VALUE.into()),
        Task::Fill(fill) if fill.is_captured && !is_at_home(fill) => Err(INVALID_VALUE.into()),
        _ if body.is_some_and(|device| touches_another(task, device)) => Err(elsewhere),
        Task::Kernel(_) | Task::Fill(_) | Task::Empty => Ok(()),
        Task::Copy(copy) if in_body && is_pageable(&copy.copy) => Err(elsewhere),
        Task::Copy(_) => Ok(()),
        Task::Host(_)
        | Task::EventWait(_)
        | Task::EventRecord(_)
        | Task::Alloc(_)
        | Task::Free(_)
        | Task::Batch(_)
        | Task::Signal(_)
        | Task::Wait(_) => {
            if in_body {
                Err(Refused::new(INVALID_VALUE, UNSUPPORTED, handle))
            } else {
                Ok(())
            }
        }
    }
}

/// Whether a captured fill is of memory on the device of its stream, or of a pool that grants this
/// device access.
fn is_at_home(fill: &FillNode) -> bool {
    let device = context::get(fill.context).map(|context| context.device);
    let is_there = |device| peer_access::is_in_reach_of_captured_fill(fill.fill.address, device);
    device.map_or_else(|_| peer_access::device_of(fill.fill.address).is_none(), is_there)
}

/// Whether a node is of another device, or touches memory there.
fn touches_another(task: &Task, device: i32) -> bool {
    let lies_elsewhere = |address| peer_access::device_of(address).is_some_and(|found| found != device);
    match task {
        Task::Kernel(spec) => spec.function.module.context.device != device,
        Task::Copy(node) => [node.copy.src.address, node.copy.dst.address].into_iter().any(lies_elsewhere),
        Task::Fill(node) => lies_elsewhere(node.fill.address),
        _ => false,
    }
}

fn check_device_launch(graphs: &Graphs, graph: u64, flags: u64) -> Result<(), Refused> {
    if graphs.graph(graph)?.order.is_empty() || flags & AUTO_FREE != 0 {
        return Err(INVALID_VALUE.into());
    }
    for part in hierarchy::tree(graphs, graph) {
        for handle in graphs.nodes_of(part)? {
            let node = match &graphs.node(handle)?.payload {
                Payload::Task(Task::Kernel(_) | Task::Fill(_)) | Payload::Child(_) => continue,
                Payload::Task(Task::Copy(copy)) if !is_pageable(&copy.copy) => continue,
                // For these the driver does not report the node.
                Payload::Task(Task::Empty) | Payload::Conditional(_) => 0,
                Payload::Task(_) => handle,
            };
            return Err(Refused::new(INVALID_VALUE, UNSUPPORTED, node));
        }
    }
    Ok(())
}

const SEMAPHORE_GONE: &str = "a graph is instantiated whose semaphore is destroyed";

fn is_pageable(copy: &Copy3) -> bool {
    [copy.src.place, copy.dst.place].contains(&MemoryKind::Pageable)
}
