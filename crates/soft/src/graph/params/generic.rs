//! The parameters of the generic node calls.

use core::ffi::c_char;

use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    CUDA_EXT_SEM_WAIT_NODE_PARAMS, CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2,
    CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUDA_MEMSET_NODE_PARAMS_v2, CUgraphChildGraphNodeOwnership,
    CUgraphNodeParams, CUgraphNodeType, Version,
};

use crate::driver;
use crate::driver::handle::number;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::model::task::Task;
use crate::graph::params::parse::{self, NewMemory};
use crate::stream::attribute::Attributes;

/// The number of bytes that a type of parameters uses.
fn used_bytes(kind: CUgraphNodeType) -> Option<usize> {
    type T = CUgraphNodeType;
    Some(match kind {
        T::CU_GRAPH_NODE_TYPE_KERNEL => size_of::<CUDA_KERNEL_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_MEMCPY => size_of::<cuda_sys::CUDA_MEMCPY_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_MEMSET => size_of::<CUDA_MEMSET_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_HOST => size_of::<cuda_sys::CUDA_HOST_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_GRAPH => size_of::<cuda_sys::CUDA_CHILD_GRAPH_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_EMPTY => 0,
        T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => size_of::<cuda_sys::CUDA_EVENT_WAIT_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => size_of::<cuda_sys::CUDA_EVENT_RECORD_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_MEM_ALLOC => size_of::<CUDA_MEM_ALLOC_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_MEM_FREE => size_of::<cuda_sys::CUDA_MEM_FREE_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => size_of::<cuda_sys::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => size_of::<cuda_sys::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => size_of::<cuda_sys::CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_CONDITIONAL => size_of::<CUDA_CONDITIONAL_NODE_PARAMS>(),
        _ => return None,
    })
}

/// Checks that reserved and unused bytes are zero.
pub(crate) fn check_padding(raw: &CUgraphNodeParams) -> Answer {
    let used = used_bytes(raw.type_).ok_or(INVALID_VALUE)?;
    // SAFETY: every byte of the parameters was given by the caller.
    let bytes: [c_char; 232] = unsafe { raw.__bindgen_anon_1.asBytes };
    let clean = bytes.iter().skip(used).all(|byte| *byte == 0);
    if clean && raw.reserved0 == [0; 3] && raw.reserved2 == 0 { Ok(()) } else { Err(INVALID_VALUE) }
}

/// A node to be added: a task, or something that needs the graph itself.
#[derive(Debug)]
pub(crate) enum NewNode {
    Task(Task),
    Child {
        graph: u64,
        by_move: bool,
    },
    Conditional(CUDA_CONDITIONAL_NODE_PARAMS),
    Alloc(NewMemory),
    /// The address.
    Free(u64),
}

impl NewNode {
    pub(crate) fn kind(&self) -> CUgraphNodeType {
        match self {
            Self::Task(task) => task.kind(),
            Self::Child { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::Conditional(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            Self::Alloc(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Self::Free(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
        }
    }
}

/// Parses the parameters of a generic call.
///
/// # Safety
/// The parameters are valid as CUDA's documentation demands.
pub(crate) unsafe fn parse_node(raw: &CUgraphNodeParams) -> Answer<NewNode> {
    type T = CUgraphNodeType;
    check_padding(raw)?;
    let fields = &raw.__bindgen_anon_1;
    // SAFETY (of all blocks): the type of the parameters says which of the fields counts; the
    // caller's promise.
    Ok(NewNode::Task(match raw.type_ {
        T::CU_GRAPH_NODE_TYPE_KERNEL => {
            // SAFETY: as above.
            Task::Kernel(unsafe { parse::kernel_spec(&as_v2(&fields.kernel), Attributes::new())? })
        }
        T::CU_GRAPH_NODE_TYPE_MEMCPY => {
            // SAFETY: as above.
            copy(unsafe { &fields.memcpy })?
        }
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_MEMSET => Task::Fill(parse::fill_node(unsafe { &fields.memset })?),
        T::CU_GRAPH_NODE_TYPE_HOST => {
            // SAFETY: as above.
            Task::Host(parse::host_node(&host_v1(unsafe { &fields.host }))?)
        }
        T::CU_GRAPH_NODE_TYPE_GRAPH => {
            // SAFETY: as above.
            return child(unsafe { &fields.graph });
        }
        T::CU_GRAPH_NODE_TYPE_EMPTY => Task::Empty,
        T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
            // SAFETY: as above.
            Task::EventWait(parse::event_node(unsafe { fields.eventWait.event })?)
        }
        T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
            // SAFETY: as above.
            Task::EventRecord(parse::event_node(unsafe { fields.eventRecord.event })?)
        }
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => unsafe {
            Task::Batch(parse::batch_node(&batch_v1(&fields.memOp))?)
        },
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => unsafe {
            let params = &fields.extSemSignal;
            parse::signal_node(&signal_v1(params), params.__bindgen_anon_1.ctx)?
        },
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => unsafe {
            let params = &fields.extSemWait;
            parse::wait_node(&wait_v1(params), params.__bindgen_anon_1.ctx)?
        },
        T::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            // SAFETY: as above.
            return Ok(NewNode::Alloc(unsafe { parse::new_memory(&fields.alloc)? }));
        }
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_MEM_FREE => return Ok(NewNode::Free(unsafe { fields.free.dptr })),
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_CONDITIONAL => return Ok(NewNode::Conditional(unsafe { fields.conditional })),
        _ => return Err(INVALID_VALUE),
    }))
}

fn copy(raw: &cuda_sys::CUDA_MEMCPY_NODE_PARAMS) -> Answer<Task> {
    if raw.flags != 0 || raw.reserved != 0 {
        return Err(INVALID_VALUE);
    }
    Ok(Task::Copy(parse::copy_node(&raw.copyParams, number(raw.copyCtx))?))
}

/// Any ownership is accepted, except from CUDA 13.2 on the one that a read-back returns. Only one
/// means a move.
fn child(raw: &cuda_sys::CUDA_CHILD_GRAPH_NODE_PARAMS) -> Answer<NewNode> {
    type O = CUgraphChildGraphNodeOwnership;
    let version = driver::version();
    if raw.ownership == O::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID && version >= Version::new(13, 2) {
        return Err(INVALID_VALUE);
    }
    let by_move = raw.ownership == O::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE && version >= Version::new(12, 9);
    Ok(NewNode::Child { graph: number(raw.graph), by_move })
}

/// The parameters of the typed call, with which those of the generic one begin.
fn host_v1(raw: &cuda_sys::CUDA_HOST_NODE_PARAMS_v2) -> CUDA_HOST_NODE_PARAMS_v1 {
    CUDA_HOST_NODE_PARAMS_v1 { fn_: raw.fn_, userData: raw.userData }
}

fn batch_v1(raw: &cuda_sys::CUDA_BATCH_MEM_OP_NODE_PARAMS_v2) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: raw.ctx,
        count: raw.count,
        paramArray: raw.paramArray,
        flags: raw.flags,
    }
}

fn signal_v1(raw: &cuda_sys::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2) -> CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
        extSemArray: raw.extSemArray,
        paramsArray: raw.paramsArray,
        numExtSems: raw.numExtSems,
    }
}

fn wait_v1(raw: &cuda_sys::CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2) -> CUDA_EXT_SEM_WAIT_NODE_PARAMS {
    CUDA_EXT_SEM_WAIT_NODE_PARAMS {
        extSemArray: raw.extSemArray,
        paramsArray: raw.paramsArray,
        numExtSems: raw.numExtSems,
    }
}

/// The third layout of kernel parameters has the fields of the second.
pub(crate) fn as_v2(raw: &cuda_sys::CUDA_KERNEL_NODE_PARAMS_v3) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: raw.func,
        gridDimX: raw.gridDimX,
        gridDimY: raw.gridDimY,
        gridDimZ: raw.gridDimZ,
        blockDimX: raw.blockDimX,
        blockDimY: raw.blockDimY,
        blockDimZ: raw.blockDimZ,
        sharedMemBytes: raw.sharedMemBytes,
        kernelParams: raw.kernelParams,
        extra: raw.extra,
        kern: raw.kern,
        ctx: raw.ctx,
    }
}

/// The second layout of kernel parameters in the third.
pub(crate) fn as_v3(raw: &CUDA_KERNEL_NODE_PARAMS_v2) -> cuda_sys::CUDA_KERNEL_NODE_PARAMS_v3 {
    cuda_sys::CUDA_KERNEL_NODE_PARAMS_v3 {
        func: raw.func,
        gridDimX: raw.gridDimX,
        gridDimY: raw.gridDimY,
        gridDimZ: raw.gridDimZ,
        blockDimX: raw.blockDimX,
        blockDimY: raw.blockDimY,
        blockDimZ: raw.blockDimZ,
        sharedMemBytes: raw.sharedMemBytes,
        kernelParams: raw.kernelParams,
        extra: raw.extra,
        kern: raw.kern,
        ctx: raw.ctx,
    }
}
