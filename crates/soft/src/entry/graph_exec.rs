//! Executables: instantiate, launch, update.

use core::ffi::{c_uint, c_ulonglong, c_void};

use cuda_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D_v2,
    CUDA_MEMSET_NODE_PARAMS_v1, CUcontext, CUdevice, CUevent, CUgraph, CUgraphExec, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphMem_attribute, CUgraphNode,
    CUgraphNodeParams, CUstream, cuuint64_t,
};

use super::Entries;
use super::graph_build::with_context;
use crate::code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::context::check_device;
use crate::gate::{put, put_if, required};
use crate::graph::build::{self, Wanted, given};
use crate::graph::check::{AUTO_FREE, DEVICE_LAUNCH, Refused, UPLOAD};
use crate::graph::memory_node::with_figures;
use crate::graph::payload::{KernelNode, Payload};
use crate::graph::store::graphs;
use crate::graph::{capture, exec, update};
use crate::handle::{number, to_raw};
use crate::launch::Attributes;
use crate::stream;

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
        cuGraphExecChildGraphNodeSetParams,
        cuGraphNodeSetEnabled,
        cuGraphNodeGetEnabled,
        cuDeviceGetGraphMemAttribute,
        cuDeviceSetGraphMemAttribute,
        cuDeviceGraphMemTrim,
        ..entries
    }
}

fn instantiate(graph: CUgraph, flags: u64) -> Result<u64, Refused> {
    graphs().instantiate(number(graph), flags)
}

/// # Safety
/// The parameters are as the interface demands.
unsafe fn kernel_payload(raw: &CUDA_KERNEL_NODE_PARAMS_v2) -> Answer<Payload> {
    // SAFETY: the caller's promise.
    let spec = unsafe { build::kernel_spec(raw, Attributes::new())? };
    Ok(Payload::Kernel(KernelNode::new(spec)))
}

/// The executable and the node exist before anything is said of the parameters.
fn known(exec: CUgraphExec, node: CUgraphNode) -> Answer {
    graphs().step_of(number(exec), number(node)).map(drop)
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
        required(params)?;
        let params = &mut *params;
        params.hErrNode_out = core::ptr::null_mut();
        params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS;
        let handle = instantiate(graph, params.flags).map_err(|refused| {
            params.result_out = refused.outcome;
            params.hErrNode_out = to_raw(refused.node);
            refused.code
        })?;
        if params.flags & UPLOAD != 0 {
            exec::upload(handle, &stream::get(number(params.hUploadStream))?)?;
        }
        put(out, to_raw(handle))
    }

    guarded_init fn cuGraphExecDestroy(exec: CUgraphExec) {
        exec::destroy(number(exec))
    }

    init fn cuGraphExecGetFlags(exec: CUgraphExec, flags: *mut cuuint64_t) {
        put(flags, graphs().exec(number(exec))?.flags & (AUTO_FREE | DEVICE_LAUNCH))
    }

    owned fn cuGraphLaunch(exec: CUgraphExec, h_stream: CUstream) {
        graphs().exec(number(exec))?;
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        exec::launch(number(exec), &stream)
    }

    owned fn cuGraphUpload(exec: CUgraphExec, h_stream: CUstream) {
        graphs().exec(number(exec))?;
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        exec::upload(number(exec), &stream)
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

    init fn cuGraphExecNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *mut CUgraphNodeParams) {
        required(params)?;
        known(exec, node)?;
        match build::wanted(&mut *params)? {
            Wanted::Free(_) | Wanted::Conditional(_) => Err(NOT_SUPPORTED),
            Wanted::Plain(payload) if matches!(*payload, Payload::Alloc(_)) => Err(NOT_SUPPORTED),
            Wanted::Plain(payload) => exec::set_params(number(exec), number(node), &payload),
            Wanted::Child { graph, .. } => update::set_child(number(exec), number(node), graph),
        }
    }

    live fn cuGraphExecKernelNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2,
    ) {
        known(exec, node)?;
        exec::set_params(number(exec), number(node), &kernel_payload(given(params)?)?)
    }

    init fn cuGraphExecMemcpyNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMCPY3D_v2,
        ctx: CUcontext,
    ) {
        known(exec, node)?;
        let payload = Payload::Copy(build::copy_node(given(params)?, number(ctx))?);
        exec::set_params(number(exec), number(node), &payload)
    }

    init fn cuGraphExecMemsetNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS_v1,
        ctx: CUcontext,
    ) {
        known(exec, node)?;
        let payload = Payload::Fill(build::fill_node(&with_context(given(params)?, ctx))?);
        exec::set_params(number(exec), number(node), &payload)
    }

    init fn cuGraphExecHostNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_HOST_NODE_PARAMS_v1,
    ) {
        known(exec, node)?;
        exec::set_params(number(exec), number(node), &Payload::Host(build::host_node(given(params)?)?))
    }

    init fn cuGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        known(exec, node)?;
        exec::set_params(number(exec), number(node), &Payload::EventRecord(build::event_node(event)?))
    }

    init fn cuGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        known(exec, node)?;
        exec::set_params(number(exec), number(node), &Payload::EventWait(build::event_node(event)?))
    }

    init fn cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        update::set_child(number(exec), number(node), number(child))
    }

    init fn cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        let mut all = graphs();
        let step = all.step_of(number(exec), number(node))?;
        all.exec_mut(number(exec))?.set_enabled(step, enabled != 0)
    }

    init fn cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint) {
        let all = graphs();
        let step = all.step_of(number(exec), number(node))?;
        put(enabled, all.exec(number(exec))?.enabled(step)?.into())
    }

    live fn cuDeviceGetGraphMemAttribute(dev: CUdevice, attribute: CUgraphMem_attribute, value: *mut c_void) {
        check_device(dev)?;
        let figures = with_figures(dev, |figures| *figures);
        let bytes = match attribute {
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => figures.used,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => figures.used_high,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => figures.reserved,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => figures.reserved_high,
            _ => return Err(INVALID_VALUE),
        };
        put(value.cast::<cuuint64_t>(), bytes)
    }

    live fn cuDeviceSetGraphMemAttribute(dev: CUdevice, attribute: CUgraphMem_attribute, value: *mut c_void) {
        check_device(dev)?;
        required(value)?;
        if value.cast::<cuuint64_t>().read() != 0 {
            return Err(INVALID_VALUE);
        }
        with_figures(dev, |figures| match attribute {
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => {
                figures.used_high = figures.used;
                Ok(())
            }
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => {
                figures.reserved_high = figures.reserved;
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        })
    }

    live fn cuDeviceGraphMemTrim(dev: CUdevice) {
        check_device(dev)?;
        with_figures(dev, |figures| (figures.used, figures.reserved) = (0, 0));
        Ok(())
    }
}
