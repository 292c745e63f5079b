//! Valid structures by the names of their types. The sweep changes single words of them.

use std::ffi::c_void;
use std::ptr::without_provenance_mut;

use cuda_sys::*;

use crate::live_objects::{LiveObjects, nothing};

/// The bytes of a structure.
fn bytes<T>(value: &T) -> Vec<u8> {
    let (start, len) = (std::ptr::from_ref(value).cast::<u8>(), size_of::<T>());
    // Padding has no value; of these structures it was zeroed with the rest.
    (0..len).map(|at| unsafe { start.add(at).read_volatile() }).collect()
}

fn word(value: u64) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

fn raw<T>(objects: &LiveObjects, kind: &str) -> *mut T {
    without_provenance_mut(objects.handle(kind) as usize)
}

pub(crate) fn pool_props() -> CUmemPoolProps {
    let mut props = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    props
}

pub(crate) fn copy(objects: &LiveObjects) -> CUDA_MEMCPY3D_v2 {
    CUDA_MEMCPY3D_v2 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: objects.device,
        srcPitch: 64,
        srcHeight: 4,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: without_provenance_mut(objects.pinned as usize),
        dstPitch: 64,
        dstHeight: 4,
        WidthInBytes: 16,
        Height: 2,
        Depth: 2,
        ..Default::default()
    }
}

pub(crate) fn kernel_v3(objects: &LiveObjects, function: CUfunction) -> CUDA_KERNEL_NODE_PARAMS_v3 {
    CUDA_KERNEL_NODE_PARAMS_v3 {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: objects.pointers.as_ptr().cast::<*mut c_void>().cast_mut(),
        ..Default::default()
    }
}

fn kernel_v2(objects: &LiveObjects) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: raw(objects, "CUfunction"),
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: objects.pointers.as_ptr().cast::<*mut c_void>().cast_mut(),
        ..Default::default()
    }
}

fn launch_config(objects: &LiveObjects) -> CUlaunchConfig {
    let one = Box::leak(Box::new(CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        ..Default::default()
    }));
    one.value.clusterDim = CUlaunchAttributeValue_union__bindgen_ty_1 { x: 1, y: 1, z: 1 };
    CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: objects.stream,
        attrs: one,
        numAttrs: 1,
        ..Default::default()
    }
}

fn write_value(objects: &LiveObjects) -> CUstreamBatchMemOpParams {
    let mut op = CUstreamBatchMemOpParams::default();
    op.writeValue = CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st {
        operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32,
        address: objects.device,
        ..Default::default()
    };
    op
}

/// Contents for memory of a type.
pub(crate) fn of(kind: &str, objects: &LiveObjects) -> Vec<Vec<u8>> {
    let location =
        || CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ..Default::default() };
    if kind.starts_with("*mut") && kind.ends_with("c_void") {
        return vec![objects.pointers.iter().flat_map(|pointer| pointer.to_ne_bytes()).collect()];
    }
    match kind.rsplit("::").next().unwrap_or(kind) {
        "CUDA_MEMCPY3D_st" => vec![bytes(&copy(objects))],
        "CUDA_MEMCPY2D_st" => {
            let from = copy(objects);
            vec![bytes(&CUDA_MEMCPY2D_v2 {
                srcMemoryType: from.srcMemoryType,
                srcDevice: from.srcDevice,
                srcPitch: 64,
                dstMemoryType: from.dstMemoryType,
                dstHost: from.dstHost,
                dstPitch: 64,
                WidthInBytes: 16,
                Height: 2,
                ..Default::default()
            })]
        }
        "CUDA_MEMCPY3D_PEER_st" => {
            let from = copy(objects);
            vec![bytes(&CUDA_MEMCPY3D_PEER {
                srcMemoryType: from.srcMemoryType,
                srcDevice: from.srcDevice,
                srcContext: objects.context,
                dstContext: objects.context,
                srcPitch: 64,
                srcHeight: 4,
                dstMemoryType: from.dstMemoryType,
                dstHost: from.dstHost,
                dstPitch: 64,
                dstHeight: 4,
                WidthInBytes: 16,
                Height: 2,
                Depth: 2,
                ..Default::default()
            })]
        }
        "CUDA_KERNEL_NODE_PARAMS_v2_st" => vec![bytes(&kernel_v2(objects))],
        "CUDA_KERNEL_NODE_PARAMS_v3_st" => vec![bytes(&kernel_v3(objects, raw(objects, "CUfunction")))],
        "CUDA_LAUNCH_PARAMS_st" => vec![bytes(&kernel_v2(objects))],
        "CUDA_MEMSET_NODE_PARAMS_st" => vec![bytes(&CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: objects.device,
            pitch: 64,
            elementSize: 4,
            width: 4,
            height: 2,
            ..Default::default()
        })],
        "CUDA_HOST_NODE_PARAMS_st" => {
            vec![bytes(&CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), ..Default::default() })]
        }
        "CUDA_MEM_ALLOC_NODE_PARAMS_v1_st" => vec![bytes(&CUDA_MEM_ALLOC_NODE_PARAMS {
            poolProps: pool_props(),
            bytesize: 64,
            ..Default::default()
        })],
        "CUstreamBatchMemOpParams_union" => vec![bytes(&write_value(objects))],
        "CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st" => {
            let operation = Box::leak(Box::new(write_value(objects)));
            vec![bytes(&CUDA_BATCH_MEM_OP_NODE_PARAMS {
                ctx: objects.context,
                count: 1,
                paramArray: operation,
                ..Default::default()
            })]
        }
        "CUlaunchConfig_st" => vec![bytes(&launch_config(objects))],
        "CUmemPoolProps_st" => vec![bytes(&pool_props())],
        "CUmemLocation_st" => vec![bytes(&location())],
        "CUmemAccessDesc_st" => vec![bytes(&CUmemAccessDesc {
            location: location(),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        })],
        "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st" | "CUDA_EXT_SEM_WAIT_NODE_PARAMS_st" => {
            let handles = Box::leak(Box::new(raw(objects, "CUexternalSemaphore")));
            let signal = Box::leak(Box::new(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default()));
            vec![bytes(&CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1 {
                extSemArray: handles,
                paramsArray: signal,
                numExtSems: 1,
            })]
        }
        "CUgraphNodeParams_st" => objects
            .node_params(raw(objects, "CUfunction"), raw(objects, "CUevent"), raw(objects, "CUgraph"))
            .iter()
            .map(|(_, params)| bytes(params))
            .collect(),
        "c_char" | "i8" | "u8" => {
            objects.texts.iter().map(|text| text.to_bytes_with_nul().to_vec()).collect()
        }
        "c_void" => vec![
            objects.texts.last().map(|text| text.to_bytes_with_nul().to_vec()).unwrap_or_default(),
            word(objects.device),
        ],
        _ => Vec::new(),
    }
}
