//! Call layouts that are older than the bindings, for programs that look a call up with an old
//! version or by the plain symbol. Each forwards to the current layout.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cuda_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUcontext,
    CUdevice, CUdeviceptr, CUgraph, CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphNode, CUmem_advise, CUmemLocation, CUmemLocationType, CUresult, CUstream, CUstreamCaptureMode,
    CUstreamCaptureStatus, Version, cuuint64_t,
};

use super::graph::{add_node, exec, node_params};
use super::table::Found;
use super::{capture, context, device, event, ipc, link, managed, mem_op, memory, stream};
use crate::driver::pointer::put_if;
use crate::driver::result_code::INVALID_VALUE;

macro_rules! define {
    ($($name:ident $symbol:literal $since:literal ($($arg:ident: $ty:ty),*);)*) => {
        #[allow(non_snake_case)]
        pub(super) struct Layouts {
            $($name: unsafe extern "C" fn($($ty),*) -> CUresult,)*
        }

        /// The layouts that are not implemented, mostly those with 32-bit addresses.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod missing {
            $(pub(crate) unsafe extern "C" fn $name($(_: $ty),*) -> cuda_sys::CUresult {
                crate::abi::gate::missing(concat!(stringify!($name), " in an old layout"))
            })*
        }

        const MISSING: Layouts = Layouts { $($name: missing::$name),* };

        impl Layouts {
            /// Each as name, version and pointer.
            fn all(&self) -> impl Iterator<Item = (&'static CStr, Version, *mut c_void)> + use<> {
                [$(($symbol, Version::from_raw($since), self.$name as *mut c_void)),*].into_iter()
            }
        }
    };
}

cuda_sys::for_each_old_layout!(define);

impl Layouts {
    /// The newest old layout of a call that the requested version has.
    pub(super) fn find(&self, symbol: &CStr, asked: Version) -> Found {
        let mut named = self.all().filter(|(name, ..)| *name == symbol).peekable();
        if named.peek().is_none() {
            return Found::NoSuchCall;
        }
        let newest = named.filter(|(_, since, _)| *since <= asked).max_by_key(|(_, since, _)| *since);
        newest.map_or(Found::NotInThatVersion, |(.., pointer)| Found::Entry(pointer))
    }
}

type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, cuuint64_t) -> CUresult;

/// All old layouts. The lookup passes its own old layout.
#[allow(non_snake_case)]
pub(super) const fn layouts(cuGetProcAddress: GetProcAddress) -> Layouts {
    Layouts {
        // The same arguments as today.
        cuCtxDestroy: context::cuCtxDestroy,
        cuCtxPopCurrent: context::cuCtxPopCurrent,
        cuCtxPushCurrent: context::cuCtxPushCurrent,
        cuDeviceGetUuid: device::cuDeviceGetUuid,
        cuDevicePrimaryCtxRelease: device::cuDevicePrimaryCtxRelease,
        cuDevicePrimaryCtxReset: device::cuDevicePrimaryCtxReset,
        cuDevicePrimaryCtxSetFlags: device::cuDevicePrimaryCtxSetFlags,
        cuEventDestroy: event::cuEventDestroy,
        cuIpcOpenMemHandle: ipc::cuIpcOpenMemHandle,
        cuLinkAddData: link::cuLinkAddData,
        cuLinkAddFile: link::cuLinkAddFile,
        cuLinkCreate: link::cuLinkCreate,
        cuMemHostRegister: memory::cuMemHostRegister,
        cuStreamBatchMemOp: mem_op::cuStreamBatchMemOp,
        cuStreamDestroy: stream::cuStreamDestroy,
        cuStreamWaitValue32: mem_op::cuStreamWaitValue32,
        cuStreamWaitValue64: mem_op::cuStreamWaitValue64,
        cuStreamWriteValue32: mem_op::cuStreamWriteValue32,
        cuStreamWriteValue64: mem_op::cuStreamWriteValue64,
        // Other arguments.
        cuCtxCreate,
        cuCtxCreate_v2: cuCtxCreate,
        cuGetProcAddress,
        cuGraphAddKernelNode,
        cuGraphExecKernelNodeSetParams,
        cuGraphExecUpdate,
        cuGraphInstantiate,
        cuGraphInstantiate_v2: cuGraphInstantiate,
        cuGraphKernelNodeGetParams,
        cuGraphKernelNodeSetParams,
        cuMemAdvise,
        cuMemAllocHost,
        cuMemPrefetchAsync,
        cuStreamBeginCapture,
        cuStreamGetCaptureInfo,
        ..MISSING
    }
}

/// Defines entry points that forward to the current layout, which checks the arguments.
macro_rules! older {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case)]
            unsafe extern "C" fn $name($($arg: $ty),*) -> CUresult {
                // SAFETY: the caller keeps to the interface of the call, which asks of it what
                // today's call does.
                unsafe { $body }
            }
        )*
    };
}

older! {
    fn cuCtxCreate(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) {
        context::cuCtxCreate(pctx, core::ptr::null_mut(), 0, flags, dev)
    }

    fn cuGraphAddKernelNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) {
        let Some(params) = params.as_ref() else { return INVALID_VALUE };
        add_node::cuGraphAddKernelNode(node, graph, dependencies, count, &of_today(params))
    }

    fn cuGraphKernelNodeSetParams(node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v1) {
        let Some(params) = params.as_ref() else { return INVALID_VALUE };
        node_params::cuGraphKernelNodeSetParams(node, &of_today(params))
    }

    fn cuGraphExecKernelNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) {
        let Some(params) = params.as_ref() else { return INVALID_VALUE };
        exec::cuGraphExecKernelNodeSetParams(exec, node, &of_today(params))
    }

    fn cuGraphKernelNodeGetParams(node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v1) {
        if params.is_null() {
            return INVALID_VALUE;
        }
        let mut found = CUDA_KERNEL_NODE_PARAMS_v2::default();
        let answer = node_params::cuGraphKernelNodeGetParams(node, &raw mut found);
        if answer.is_success() {
            params.write(of_then(&found));
        }
        answer
    }

    fn cuGraphExecUpdate(
        exec: CUgraphExec,
        graph: CUgraph,
        error_node: *mut CUgraphNode,
        result: *mut CUgraphExecUpdateResult,
    ) {
        let mut found = CUgraphExecUpdateResultInfo::default();
        let answer = exec::cuGraphExecUpdate(exec, graph, &raw mut found);
        put_if(error_node, found.errorNode);
        put_if(result, found.result);
        answer
    }

    fn cuGraphInstantiate(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        error_node: *mut CUgraphNode,
        log: *mut c_char,
        log_len: usize,
    ) {
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
        let answer = exec::cuGraphInstantiateWithParams(exec, graph, &raw mut params);
        put_if(error_node, params.hErrNode_out);
        if log_len > 0 {
            put_if(log, 0);
        }
        answer
    }

    fn cuMemAdvise(address: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice) {
        managed::cuMemAdvise(address, count, advice, place(device))
    }

    fn cuMemPrefetchAsync(address: CUdeviceptr, count: usize, device: CUdevice, stream: CUstream) {
        managed::cuMemPrefetchAsync(address, count, place(device), 0, stream)
    }

    fn cuMemAllocHost(out: *mut *mut c_void, bytes: c_uint) {
        memory::cuMemAllocHost(out, bytes as usize)
    }

    fn cuStreamBeginCapture(stream: CUstream) {
        capture::cuStreamBeginCapture(stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL)
    }

    fn cuStreamGetCaptureInfo(stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut cuuint64_t) {
        let none = core::ptr::null_mut();
        capture::cuStreamGetCaptureInfo(stream, status, id, none, core::ptr::null_mut(), core::ptr::null_mut())
    }
}

/// The location of a device, or of the host for a negative number.
fn place(device: CUdevice) -> CUmemLocation {
    let host = device < 0;
    let type_ = if host {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST
    } else {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE
    };
    let mut place = CUmemLocation { type_, ..CUmemLocation::default() };
    place.__bindgen_anon_1.id = if host { 0 } else { device };
    place
}

fn of_today(params: &CUDA_KERNEL_NODE_PARAMS_v1) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
        ..CUDA_KERNEL_NODE_PARAMS_v2::default()
    }
}

fn of_then(params: &CUDA_KERNEL_NODE_PARAMS_v2) -> CUDA_KERNEL_NODE_PARAMS_v1 {
    CUDA_KERNEL_NODE_PARAMS_v1 {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
    }
}
