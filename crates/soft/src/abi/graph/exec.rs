//! Executable calls: instantiate, launch, update.

use crate::graph::exec::instantiate;
use core::ffi::{c_uint, c_ulonglong};

use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D_v2,
    CUDA_MEMSET_NODE_PARAMS_v1, CUcontext, CUevent, CUgraph, CUgraphExec, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphNode, CUgraphNodeParams, CUgraphNodeType,
    CUresult, CUstream, cuuint64_t,
};

use crate::abi::graph::node_params::takes_no_params;
use crate::abi::table::Entries;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{given, given_mut, put, put_if, required};
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_PERMITTED, NOT_SUPPORTED};
use crate::graph::capture;
use crate::graph::exec::instantiable::{AUTO_FREE, DEVICE_LAUNCH, Refused, UPLOAD};
use crate::graph::exec::{launch, set_params, update};
use crate::graph::model::store::store;
use crate::graph::model::task::Task;
use crate::graph::params::generic::{self, NewNode};
use crate::graph::params::parse;
use crate::graph::params::read_back::with_context;
use crate::stream;
use crate::stream::attribute::Attributes;
use crate::stream::callback;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphInstantiateWithFlags,
        cuGraphInstantiateWithParams,
        cuGraphExecDestroy,
        cuGraphExecGetFlags,
        cuGraphLaunch,
        cuGraphUpload,
        cuGraphExecUpdate,
        cuGraphExecNodeSetParams,
        cuGraphExecKernelNodeSetParams,
        cuGraphExecMemcpyNodeSetParams,
        cuGraphExecMemsetNodeSetParams,
        cuGraphExecHostNodeSetParams,
        cuGraphExecEventRecordNodeSetEvent,
        cuGraphExecEventWaitNodeSetEvent,
        cuGraphExecBatchMemOpNodeSetParams,
        cuGraphExecExternalSemaphoresSignalNodeSetParams,
        cuGraphExecExternalSemaphoresWaitNodeSetParams,
        cuGraphExecChildGraphNodeSetParams,
        cuGraphNodeSetEnabled,
        cuGraphNodeGetEnabled,
        ..entries
    }
}

fn instantiate(graph: CUgraph, flags: u64) -> Result<u64, Refused> {
    instantiate::instantiate(&mut store(), number(graph), flags)
}

/// Sets the parameters of a node of an executable. Both must exist before the parameters are
/// checked.
fn set(exec: CUgraphExec, node: CUgraphNode, task: impl FnOnce() -> Answer<Task>) -> Answer {
    store().step_of(number(exec), number(node))?;
    set_params::set_params(number(exec), number(node), task()?)
}

/// The answer to new parameters of a node inside a host function or a destructor.
fn code_inside_callbacks(kind: CUgraphNodeType) -> CUresult {
    match kind {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => NOT_PERMITTED,
        _ => INVALID_VALUE,
    }
}

entries! {
    guarded fn cuGraphInstantiateWithFlags(out: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong) {
        required(out)?;
        if flags & UPLOAD != 0 {
            return Err(INVALID_VALUE);
        }
        put(out, to_raw(instantiate(graph, flags).map_err(|refused| refused.code)?))
    }

    guarded fn cuGraphInstantiateWithParams(
        out: *mut CUgraphExec,
        graph: CUgraph,
        params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ) {
        required(out)?;
        let params = given_mut(params)?;
        params.hErrNode_out = core::ptr::null_mut();
        params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS;
        let upload = match params.flags & UPLOAD {
            0 => None,
            _ => {
                let stream = stream::get(number(params.hUploadStream))?;
                capture::refuse_on(&stream)?;
                Some(stream)
            }
        };
        let handle = instantiate(graph, params.flags).map_err(|refused| {
            params.result_out = refused.outcome;
            params.hErrNode_out = to_raw(refused.node);
            refused.code
        })?;
        if let Some(stream) = upload {
            launch::upload(handle, &stream)?;
        }
        put(out, to_raw(handle))
    }

    guarded_init fn cuGraphExecDestroy(exec: CUgraphExec) {
        instantiate::destroy(number(exec))
    }

    init fn cuGraphExecGetFlags(exec: CUgraphExec, flags: *mut cuuint64_t) {
        put(flags, store().exec(number(exec))?.flags & (AUTO_FREE | DEVICE_LAUNCH))
    }

    owned_in_callbacks fn cuGraphLaunch(exec: CUgraphExec, h_stream: CUstream) {
        store().exec(number(exec))?;
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        launch::launch(number(exec), &stream)
    }

    owned_in_callbacks fn cuGraphUpload(exec: CUgraphExec, h_stream: CUstream) {
        store().exec(number(exec))?;
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        launch::upload(number(exec), &stream)
    }

    init fn cuGraphExecUpdate(exec: CUgraphExec, graph: CUgraph, result: *mut CUgraphExecUpdateResultInfo) {
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS,
            errorNode: core::ptr::null_mut(),
            errorFromNode: core::ptr::null_mut(),
        };
        let answer = match update::update(number(exec), number(graph)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(refused)) => {
                info.result = refused.outcome;
                info.errorNode = to_raw(refused.node);
                info.errorFromNode = to_raw(refused.from);
                Err(refused.code())
            }
            Err(code) => Err(code),
        };
        put_if(result, info);
        answer
    }

    initialised fn cuGraphExecNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *mut CUgraphNodeParams,
    ) {
        let params = given(params)?;
        if callback::inside() {
            return Err(code_inside_callbacks(params.type_));
        }
        {
            let store = store();
            let step = store.step_of(number(exec), number(node))?;
            if store.exec(number(exec))?.work(step)?.kind() != params.type_ {
                return Err(INVALID_VALUE);
            }
        }
        if takes_no_params(params.type_) {
            return Err(NOT_SUPPORTED);
        }
        match generic::parse_node(params)? {
            NewNode::Free(_) | NewNode::Conditional(_) | NewNode::Alloc(_) => Err(NOT_SUPPORTED),
            NewNode::Task(task) => set_params::set_params(number(exec), number(node), task),
            NewNode::Child { graph, .. } => update::set_child(number(exec), number(node), graph),
        }
    }

    live fn cuGraphExecKernelNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2,
    ) {
        set(exec, node, || Ok(Task::Kernel(parse::kernel_spec(given(params)?, Attributes::new())?)))
    }

    init fn cuGraphExecMemcpyNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMCPY3D_v2,
        ctx: CUcontext,
    ) {
        set(exec, node, || Ok(Task::Copy(parse::copy_node(given(params)?, number(ctx))?)))
    }

    init fn cuGraphExecMemsetNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS_v1,
        ctx: CUcontext,
    ) {
        set(exec, node, || Ok(Task::Fill(parse::fill_node(&with_context(given(params)?, ctx))?)))
    }

    init fn cuGraphExecHostNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_HOST_NODE_PARAMS_v1,
    ) {
        set(exec, node, || Ok(Task::Host(parse::host_node(given(params)?)?)))
    }

    init fn cuGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        set(exec, node, || Ok(Task::EventRecord(parse::event_node(event)?)))
    }

    init fn cuGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        set(exec, node, || Ok(Task::EventWait(parse::event_node(event)?)))
    }

    init fn cuGraphExecBatchMemOpNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) {
        set(exec, node, || Ok(Task::Batch(parse::batch_node(given(params)?)?)))
    }

    init fn cuGraphExecExternalSemaphoresSignalNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) {
        set(exec, node, || parse::signal_node(given(params)?, core::ptr::null_mut()))
    }

    init fn cuGraphExecExternalSemaphoresWaitNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) {
        set(exec, node, || parse::wait_node(given(params)?, core::ptr::null_mut()))
    }

    init fn cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        update::set_child(number(exec), number(node), number(child))
    }

    initialised fn cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        if callback::inside() {
            return Err(INVALID_VALUE);
        }
        let mut store = store();
        let step = store.step_of(number(exec), number(node))?;
        store.exec_mut(number(exec))?.set_enabled(step, enabled != 0)
    }

    init fn cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint) {
        let store = store();
        let step = store.step_of(number(exec), number(node))?;
        put(enabled, store.exec(number(exec))?.enabled(step)?.into())
    }
}
