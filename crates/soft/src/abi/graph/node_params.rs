//! Node parameter calls.

use crate::graph::edit::child;
use crate::graph::edit::insert;
use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D_v2,
    CUDA_MEMSET_NODE_PARAMS_v1, CUdeviceptr, CUevent, CUgraph, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType,
};

use crate::abi::gate::refuse_in_callbacks;
use crate::abi::graph::add_node::is_light;
use crate::abi::table::Entries;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{given, put, required};
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::model::node_memory;
use crate::graph::model::payload::Payload;
use crate::graph::model::store::store;
use crate::graph::model::task::{KernelSpec, Task};
use crate::graph::params::generic::{self, NewNode};
use crate::graph::params::parse;
use crate::graph::params::read_back::{
    alloc_params, batch_params, fill_params, handles, host_params, with_context,
};
use crate::launch;
use crate::stream::attribute::Attributes;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphNodeGetType,
        cuGraphNodeSetParams,
        cuGraphNodeGetParams,
        cuGraphNodeSetParams_v13040: cuGraphNodeSetParams,
        cuGraphKernelNodeGetParams,
        cuGraphKernelNodeSetParams,
        cuGraphMemcpyNodeGetParams,
        cuGraphMemcpyNodeSetParams,
        cuGraphMemsetNodeGetParams,
        cuGraphMemsetNodeSetParams,
        cuGraphHostNodeGetParams,
        cuGraphHostNodeSetParams,
        cuGraphChildGraphNodeGetGraph,
        cuGraphEventRecordNodeGetEvent,
        cuGraphEventRecordNodeSetEvent,
        cuGraphEventWaitNodeGetEvent,
        cuGraphEventWaitNodeSetEvent,
        cuGraphBatchMemOpNodeGetParams,
        cuGraphBatchMemOpNodeSetParams,
        cuGraphExternalSemaphoresSignalNodeGetParams,
        cuGraphExternalSemaphoresSignalNodeSetParams,
        cuGraphExternalSemaphoresWaitNodeGetParams,
        cuGraphExternalSemaphoresWaitNodeSetParams,
        cuGraphMemAllocNodeGetParams,
        cuGraphMemFreeNodeGetParams,
        ..entries
    }
}

/// Replaces the task of a node by one of the same type. The attributes of a kernel node stay.
fn set_task(node: u64, task: Task) -> Answer {
    let replaced = {
        let mut store = store();
        let own = store.graphs.node(node)?;
        if own.payload.kind() != task.kind() {
            return Err(INVALID_VALUE);
        }
        let task = match (own.payload.kernel(), task) {
            (Some(old), Task::Kernel(new)) => {
                let spec = KernelSpec { attributes: old.attributes.clone(), ..KernelSpec::clone(&new) };
                launch::check(&spec.function.code, &spec.sizes, &spec.attributes)?;
                Task::Kernel(spec.into())
            }
            (_, Task::Alloc(_) | Task::Free(_)) => return Err(NOT_SUPPORTED),
            (_, task) => task,
        };
        insert::replace(&mut store.graphs, node, Payload::Task(task))?
    };
    replaced.end();
    Ok(())
}

/// Reads from the task of a node; `None` means another type.
fn of_task<R>(node: CUgraphNode, read: impl FnOnce(&Task) -> Option<R>) -> Answer<R> {
    match &store().graphs.node(number(node))?.payload {
        Payload::Task(task) => read(task).ok_or(INVALID_VALUE),
        _ => Err(INVALID_VALUE),
    }
}

/// Sets the task of a node. Its type is checked before the parameters.
fn set_checked(node: CUgraphNode, kind: CUgraphNodeType, task: impl FnOnce() -> Answer<Task>) -> Answer {
    if store().graphs.node(number(node))?.payload.kind() != kind {
        return Err(INVALID_VALUE);
    }
    set_task(number(node), task()?)
}

/// The context of a fill or copy node, which the typed set-params call lacks.
fn context_of(node: CUgraphNode) -> Answer<u64> {
    of_task(node, |task| match task {
        Task::Copy(node) => Some(node.context),
        Task::Fill(node) => Some(node.context),
        _ => None,
    })
}

type T = CUgraphNodeType;

entries! {
    init fn cuGraphNodeGetType(node: CUgraphNode, kind: *mut CUgraphNodeType) {
        put(kind, store().graphs.kind(number(node))?)
    }

    init fn cuGraphNodeGetParams(node: CUgraphNode, params: *mut CUgraphNodeParams) {
        required(params)?;
        put(params, store().graphs.node_mut(number(node))?.generic_params()?)
    }

    initialised fn cuGraphNodeSetParams(node: CUgraphNode, params: *mut CUgraphNodeParams) {
        let params = given(params)?;
        if !is_light(params.type_) {
            refuse_in_callbacks()?;
        }
        let kind = store().graphs.node(number(node))?.payload.kind();
        if kind != params.type_ {
            return Err(INVALID_VALUE);
        }
        if kind == T::CU_GRAPH_NODE_TYPE_CONDITIONAL {
            return Err(NOT_SUPPORTED);
        }
        match generic::parse_node(params)? {
            NewNode::Free(address) if node_memory::find(address).is_none() => Err(INVALID_VALUE),
            NewNode::Task(task) => set_task(number(node), task),
            NewNode::Child { graph, by_move } => {
                let replaced = child::replace_child(&mut store().graphs, number(node), graph, by_move)?;
                replaced.end();
                Ok(())
            }
            NewNode::Free(_) | NewNode::Alloc(_) | NewNode::Conditional(_) => Err(NOT_SUPPORTED),
        }
    }

    init fn cuGraphKernelNodeGetParams(node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v2) {
        required(params)?;
        put(params, store().graphs.node_mut(number(node))?.kernel_params()?)
    }

    live fn cuGraphKernelNodeSetParams(node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v2) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_KERNEL, || {
            Ok(Task::Kernel(parse::kernel_spec(given(params)?, Attributes::new())?))
        })
    }

    init fn cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMCPY3D_v2) {
        put(params, of_task(node, |task| if let Task::Copy(node) = task { Some(node.raw) } else { None })?)
    }

    init fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMCPY3D_v2) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_MEMCPY, || {
            Ok(Task::Copy(parse::copy_node(given(params)?, context_of(node)?)?))
        })
    }

    init fn cuGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS_v1) {
        put(params, of_task(node, |task| if let Task::Fill(node) = task { Some(fill_params(&node.fill)) } else { None })?)
    }

    init fn cuGraphMemsetNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS_v1) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_MEMSET, || {
            Ok(Task::Fill(parse::fill_node(&with_context(given(params)?, to_raw(context_of(node)?)))?))
        })
    }

    init fn cuGraphHostNodeGetParams(node: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS_v1) {
        put(params, of_task(node, |task| if let Task::Host(callback) = task { Some(host_params(callback)) } else { None })?)
    }

    init fn cuGraphHostNodeSetParams(node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS_v1) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_HOST, || Ok(Task::Host(parse::host_node(given(params)?)?)))
    }

    init fn cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph) {
        match &store().graphs.node(number(node))?.payload {
            Payload::Child(child) => put(graph, to_raw(*child)),
            _ => Err(INVALID_VALUE),
        }
    }

    init fn cuGraphEventRecordNodeGetEvent(node: CUgraphNode, out: *mut CUevent) {
        put(out, to_raw(of_task(node, |task| if let Task::EventRecord(event) = task { Some(*event) } else { None })?))
    }

    init fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_EVENT_RECORD, || Ok(Task::EventRecord(parse::event_node(event)?)))
    }

    init fn cuGraphEventWaitNodeGetEvent(node: CUgraphNode, out: *mut CUevent) {
        put(out, to_raw(of_task(node, |task| if let Task::EventWait(event) = task { Some(*event) } else { None })?))
    }

    init fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_WAIT_EVENT, || Ok(Task::EventWait(parse::event_node(event)?)))
    }

    init fn cuGraphBatchMemOpNodeGetParams(node: CUgraphNode, params: *mut CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        put(params, of_task(node, |task| if let Task::Batch(node) = task { Some(batch_params(node)) } else { None })?)
    }

    init fn cuGraphBatchMemOpNodeSetParams(node: CUgraphNode, params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, || Ok(Task::Batch(parse::batch_node(given(params)?)?)))
    }

    init fn cuGraphExternalSemaphoresSignalNodeGetParams(
        node: CUgraphNode,
        out: *mut CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) {
        put(out, of_task(node, |task| {
            let Task::Signal(node) = task else { return None };
            Some(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
                extSemArray: handles(node),
                paramsArray: node.params.as_ptr().cast(),
                numExtSems: node.params.len() as u32,
            })
        })?)
    }

    init fn cuGraphExternalSemaphoresSignalNodeSetParams(
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, || {
            parse::signal_node(given(params)?, core::ptr::null_mut())
        })
    }

    init fn cuGraphExternalSemaphoresWaitNodeGetParams(
        node: CUgraphNode,
        out: *mut CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) {
        put(out, of_task(node, |task| {
            let Task::Wait(node) = task else { return None };
            Some(CUDA_EXT_SEM_WAIT_NODE_PARAMS {
                extSemArray: handles(node),
                paramsArray: node.params.as_ptr().cast(),
                numExtSems: node.params.len() as u32,
            })
        })?)
    }

    init fn cuGraphExternalSemaphoresWaitNodeSetParams(
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) {
        set_checked(node, T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, || {
            parse::wait_node(given(params)?, core::ptr::null_mut())
        })
    }

    init fn cuGraphMemAllocNodeGetParams(node: CUgraphNode, out: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        put(out, of_task(node, |task| if let Task::Alloc(alloc) = task { Some(alloc_params(alloc)) } else { None })?)
    }

    init fn cuGraphMemFreeNodeGetParams(node: CUgraphNode, out: *mut CUdeviceptr) {
        put(out, of_task(node, |task| if let Task::Free(memory) = task { Some(memory.start) } else { None })?)
    }
}
