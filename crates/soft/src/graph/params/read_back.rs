//! Returning node parameters to the user.

use core::ffi::c_uint;

use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_CONDITIONAL_NODE_PARAMS,
    CUDA_HOST_NODE_PARAMS_v1, CUDA_HOST_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS_v2,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUDA_MEMCPY_NODE_PARAMS,
    CUDA_MEMSET_NODE_PARAMS_v1, CUDA_MEMSET_NODE_PARAMS_v2, CUcontext, CUexternalSemaphore,
    CUgraphChildGraphNodeOwnership, CUgraphConditionalNodeType, CUgraphNodeParams,
    CUgraphNodeParams_st__bindgen_ty_1, CUmemAllocationType, CUmemLocationType, CUmemPoolProps,
};

use super::generic;
use crate::driver::handle::to_raw;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::model::node::Node;
use crate::graph::model::param_block::ParamBlock;
use crate::graph::model::payload::{ConditionalNode, Payload};
use crate::graph::model::task::{AllocNode, BatchNode, SemaphoreNode, Task};
use crate::memory::fill::Fill;
use crate::stream::callback::Callback;

impl Node {
    /// The parameters of a kernel node, with pointers into the node's own block.
    pub(crate) fn kernel_params(&mut self) -> Answer<CUDA_KERNEL_NODE_PARAMS_v2> {
        let spec = self.payload.kernel().ok_or(INVALID_VALUE)?;
        let (values, extra) = self.block.get_or_insert_with(|| ParamBlock::new(spec)).raw();
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (spec.sizes.grid, spec.sizes.block);
        Ok(CUDA_KERNEL_NODE_PARAMS_v2 {
            func: to_raw(spec.function.handle),
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: spec.sizes.shared,
            kernelParams: values,
            extra,
            kern: to_raw(spec.function.kernel),
            ctx: to_raw(spec.function.module.context.handle),
        })
    }

    /// The parameters of any node for the generic call.
    pub(crate) fn generic_params(&mut self) -> Answer<CUgraphNodeParams> {
        let mut params = CUgraphNodeParams { type_: self.payload.kind(), ..CUgraphNodeParams::default() };
        let fields = &mut params.__bindgen_anon_1;
        if self.payload.kernel().is_some() {
            fields.kernel = generic::as_v3(&self.kernel_params()?);
            return Ok(params);
        }
        match &mut self.payload {
            Payload::Task(task) => write_task(task, fields),
            Payload::Child(child) => {
                fields.graph.graph = to_raw(*child);
                fields.graph.ownership =
                    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID;
            }
            Payload::Conditional(node) => fields.conditional = conditional_params(node),
        }
        Ok(params)
    }
}

/// Writes the parameters of a task, except of a kernel, which needs its node.
fn write_task(task: &Task, fields: &mut CUgraphNodeParams_st__bindgen_ty_1) {
    match task {
        Task::Kernel(_) | Task::Empty => {}
        Task::Copy(node) => {
            fields.memcpy = CUDA_MEMCPY_NODE_PARAMS {
                copyCtx: to_raw(node.context),
                copyParams: node.raw,
                ..Default::default()
            };
        }
        Task::Fill(node) => {
            fields.memset = with_context(&fill_params(&node.fill), to_raw(node.context));
        }
        Task::Host(callback) => {
            fields.host = CUDA_HOST_NODE_PARAMS_v2 {
                fn_: Some(callback.function),
                userData: callback.data,
                ..Default::default()
            };
        }
        Task::EventWait(event) => fields.eventWait.event = to_raw(*event),
        Task::EventRecord(event) => fields.eventRecord.event = to_raw(*event),
        Task::Alloc(alloc) => {
            fields.alloc = CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
                poolProps: pool_props(alloc),
                bytesize: alloc.memory.len,
                dptr: alloc.memory.start,
                ..Default::default()
            };
        }
        Task::Free(memory) => fields.free.dptr = memory.start,
        Task::Batch(node) => {
            let batch = batch_params(node);
            fields.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                ctx: batch.ctx,
                count: batch.count,
                paramArray: batch.paramArray,
                flags: batch.flags,
            };
        }
        Task::Signal(node) => {
            let (handles, count) = (handles(node), count(&node.params));
            (fields.extSemSignal.extSemArray, fields.extSemSignal.numExtSems) = (handles, count);
            fields.extSemSignal.paramsArray = node.params.as_ptr().cast();
            fields.extSemSignal.__bindgen_anon_1.ctx = to_raw(node.context);
        }
        Task::Wait(node) => {
            let (handles, count) = (handles(node), count(&node.params));
            (fields.extSemWait.extSemArray, fields.extSemWait.numExtSems) = (handles, count);
            fields.extSemWait.paramsArray = node.params.as_ptr().cast();
            fields.extSemWait.__bindgen_anon_1.ctx = to_raw(node.context);
        }
    }
}

fn count<T>(list: &[T]) -> c_uint {
    c_uint::try_from(list.len()).unwrap_or(c_uint::MAX)
}

/// The array of handles of a semaphore node. It belongs to the node and must not be written.
pub(crate) fn handles<P>(node: &SemaphoreNode<P>) -> *mut CUexternalSemaphore {
    node.handles.as_ptr().cast_mut().cast()
}

/// The parameters of a batch node. The array belongs to the node and must not be written.
pub(crate) fn batch_params(node: &BatchNode) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: to_raw(node.context),
        count: count(&node.ops),
        paramArray: node.ops.as_ptr().cast_mut().cast(),
        flags: 0,
    }
}

pub(crate) fn host_params(callback: &Callback) -> CUDA_HOST_NODE_PARAMS_v1 {
    CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(callback.function), userData: callback.data }
}

pub(crate) fn alloc_params(alloc: &AllocNode) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    CUDA_MEM_ALLOC_NODE_PARAMS {
        poolProps: pool_props(alloc),
        bytesize: alloc.memory.len,
        dptr: alloc.memory.start,
        ..Default::default()
    }
}

pub(crate) fn fill_params(fill: &Fill) -> CUDA_MEMSET_NODE_PARAMS_v1 {
    CUDA_MEMSET_NODE_PARAMS_v1 {
        dst: fill.address,
        pitch: fill.pitch,
        value: fill.value,
        elementSize: fill.element,
        width: fill.width,
        height: fill.height,
    }
}

/// The newer layout of fill parameters.
pub(crate) fn with_context(raw: &CUDA_MEMSET_NODE_PARAMS_v1, ctx: CUcontext) -> CUDA_MEMSET_NODE_PARAMS_v2 {
    CUDA_MEMSET_NODE_PARAMS_v2 {
        dst: raw.dst,
        pitch: raw.pitch,
        value: raw.value,
        elementSize: raw.elementSize,
        width: raw.width,
        height: raw.height,
        ctx,
    }
}

/// The pool's part of an allocation node's parameters.
fn pool_props(alloc: &AllocNode) -> CUmemPoolProps {
    let mut props = CUmemPoolProps { maxSize: alloc.max, ..CUmemPoolProps::default() };
    props.allocType = if alloc.is_managed {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED
    } else {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.__bindgen_anon_1.id = alloc.memory.device;
    props
}

fn conditional_params(node: &mut ConditionalNode) -> CUDA_CONDITIONAL_NODE_PARAMS {
    CUDA_CONDITIONAL_NODE_PARAMS {
        handle: node.handle,
        type_: CUgraphConditionalNodeType(node.condition as c_uint),
        size: count(&node.bodies),
        phGraph_out: node.bodies.as_mut_ptr().cast(),
        ctx: to_raw(node.context),
    }
}
