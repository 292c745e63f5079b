// Made by `cargo xtask bindgen` from the headers of CUDA 13.5.37. Do not edit.

/// Passes all driver calls to the macro named: `baseline` or `optional`, name, symbol, version of
/// the layout, arguments.
#[macro_export]
macro_rules! for_each_call {
    ($($apply:tt)+) => {
        $($apply)+! {
            baseline cuArray3DCreate c"cuArray3DCreate" 3020 (p_handle: *mut $crate::CUarray, p_allocate_array: *const $crate::CUDA_ARRAY3D_DESCRIPTOR_v2);
            baseline cuArray3DGetDescriptor c"cuArray3DGetDescriptor" 3020 (p_array_descriptor: *mut $crate::CUDA_ARRAY3D_DESCRIPTOR_v2, h_array: $crate::CUarray);
            baseline cuArrayCreate c"cuArrayCreate" 3020 (p_handle: *mut $crate::CUarray, p_allocate_array: *const $crate::CUDA_ARRAY_DESCRIPTOR_v2);
            baseline cuArrayDestroy c"cuArrayDestroy" 2000 (h_array: $crate::CUarray);
            baseline cuArrayGetDescriptor c"cuArrayGetDescriptor" 3020 (p_array_descriptor: *mut $crate::CUDA_ARRAY_DESCRIPTOR_v2, h_array: $crate::CUarray);
            baseline cuArrayGetMemoryRequirements c"cuArrayGetMemoryRequirements" 11060 (memory_requirements: *mut $crate::CUDA_ARRAY_MEMORY_REQUIREMENTS_v1, array: $crate::CUarray, device: $crate::CUdevice);
            baseline cuArrayGetPlane c"cuArrayGetPlane" 11020 (p_plane_array: *mut $crate::CUarray, h_array: $crate::CUarray, plane_idx: ::core::ffi::c_uint);
            baseline cuArrayGetSparseProperties c"cuArrayGetSparseProperties" 11010 (sparse_properties: *mut $crate::CUDA_ARRAY_SPARSE_PROPERTIES_v1, array: $crate::CUarray);
            optional cuCheckpointOperationComplete c"cuCheckpointOperationComplete" 13040 (handle: $crate::CUcheckpointOperationHandle);
            optional cuCheckpointProcessCheckpoint c"cuCheckpointProcessCheckpoint" 12080 (pid: ::core::ffi::c_int, args: *mut $crate::CUcheckpointCheckpointArgs);
            optional cuCheckpointProcessGetRestoreThreadId c"cuCheckpointProcessGetRestoreThreadId" 12080 (pid: ::core::ffi::c_int, tid: *mut ::core::ffi::c_int);
            optional cuCheckpointProcessGetState c"cuCheckpointProcessGetState" 12080 (pid: ::core::ffi::c_int, state: *mut $crate::CUprocessState);
            optional cuCheckpointProcessLock c"cuCheckpointProcessLock" 12080 (pid: ::core::ffi::c_int, args: *mut $crate::CUcheckpointLockArgs);
            optional cuCheckpointProcessRestore c"cuCheckpointProcessRestore" 12080 (pid: ::core::ffi::c_int, args: *mut $crate::CUcheckpointRestoreArgs);
            optional cuCheckpointProcessUnlock c"cuCheckpointProcessUnlock" 12080 (pid: ::core::ffi::c_int, args: *mut $crate::CUcheckpointUnlockArgs);
            optional cuCoredumpDeregisterCompleteCallback c"cuCoredumpDeregisterCompleteCallback" 13020 (callback: $crate::CUcoredumpCallbackHandle);
            optional cuCoredumpDeregisterStartCallback c"cuCoredumpDeregisterStartCallback" 13020 (callback: $crate::CUcoredumpCallbackHandle);
            baseline cuCoredumpGetAttribute c"cuCoredumpGetAttribute" 12010 (get: $crate::CUcoredumpSettings, value: *mut ::core::ffi::c_void, size: *mut usize);
            baseline cuCoredumpGetAttributeGlobal c"cuCoredumpGetAttributeGlobal" 12010 (get: $crate::CUcoredumpSettings, value: *mut ::core::ffi::c_void, size: *mut usize);
            optional cuCoredumpRegisterCompleteCallback c"cuCoredumpRegisterCompleteCallback" 13020 (callback: $crate::CUcoredumpStatusCallback, user_data: *mut ::core::ffi::c_void, callback_out: *mut $crate::CUcoredumpCallbackHandle);
            optional cuCoredumpRegisterStartCallback c"cuCoredumpRegisterStartCallback" 13020 (callback: $crate::CUcoredumpStatusCallback, user_data: *mut ::core::ffi::c_void, callback_out: *mut $crate::CUcoredumpCallbackHandle);
            baseline cuCoredumpSetAttribute c"cuCoredumpSetAttribute" 12010 (set: $crate::CUcoredumpSettings, value: *mut ::core::ffi::c_void, size: *mut usize);
            baseline cuCoredumpSetAttributeGlobal c"cuCoredumpSetAttributeGlobal" 12010 (set: $crate::CUcoredumpSettings, value: *mut ::core::ffi::c_void, size: *mut usize);
            baseline cuCtxAttach c"cuCtxAttach" 2000 (pctx: *mut $crate::CUcontext, flags: ::core::ffi::c_uint);
            baseline cuCtxCreate c"cuCtxCreate" 11040 (pctx: *mut $crate::CUcontext, params_array: *mut $crate::CUexecAffinityParam, num_params: ::core::ffi::c_int, flags: ::core::ffi::c_uint, dev: $crate::CUdevice_v1);
            optional cuCtxCreate_v12050 c"cuCtxCreate" 12050 (pctx: *mut $crate::CUcontext, ctx_create_params: *mut $crate::CUctxCreateParams, flags: ::core::ffi::c_uint, dev: $crate::CUdevice);
            baseline cuCtxDestroy c"cuCtxDestroy" 4000 (ctx: $crate::CUcontext);
            baseline cuCtxDetach c"cuCtxDetach" 2000 (ctx: $crate::CUcontext);
            baseline cuCtxDisablePeerAccess c"cuCtxDisablePeerAccess" 4000 (peer_context: $crate::CUcontext);
            baseline cuCtxEnablePeerAccess c"cuCtxEnablePeerAccess" 4000 (peer_context: $crate::CUcontext, flags: ::core::ffi::c_uint);
            optional cuCtxFromGreenCtx c"cuCtxFromGreenCtx" 12040 (p_context: *mut $crate::CUcontext, h_ctx: $crate::CUgreenCtx);
            baseline cuCtxGetApiVersion c"cuCtxGetApiVersion" 3020 (ctx: $crate::CUcontext, version: *mut ::core::ffi::c_uint);
            baseline cuCtxGetCacheConfig c"cuCtxGetCacheConfig" 3020 (pconfig: *mut $crate::CUfunc_cache);
            baseline cuCtxGetCurrent c"cuCtxGetCurrent" 4000 (pctx: *mut $crate::CUcontext);
            optional cuCtxGetDevResource c"cuCtxGetDevResource" 12040 (h_ctx: $crate::CUcontext, result: *mut $crate::CUdevResource, type_: $crate::CUdevResourceType);
            baseline cuCtxGetDevice c"cuCtxGetDevice" 2000 (device: *mut $crate::CUdevice_v1);
            optional cuCtxGetDevice_v13000 c"cuCtxGetDevice" 13000 (device: *mut $crate::CUdevice, ctx: $crate::CUcontext);
            baseline cuCtxGetExecAffinity c"cuCtxGetExecAffinity" 11040 (p_exec_affinity: *mut $crate::CUexecAffinityParam, type_: $crate::CUexecAffinityType);
            baseline cuCtxGetFlags c"cuCtxGetFlags" 7000 (flags: *mut ::core::ffi::c_uint);
            baseline cuCtxGetId c"cuCtxGetId" 12000 (ctx: $crate::CUcontext, ctx_id: *mut ::core::ffi::c_ulonglong);
            baseline cuCtxGetLimit c"cuCtxGetLimit" 3010 (pvalue: *mut usize, limit: $crate::CUlimit);
            baseline cuCtxGetSharedMemConfig c"cuCtxGetSharedMemConfig" 4020 (p_config: *mut $crate::CUsharedconfig);
            baseline cuCtxGetStreamPriorityRange c"cuCtxGetStreamPriorityRange" 5050 (least_priority: *mut ::core::ffi::c_int, greatest_priority: *mut ::core::ffi::c_int);
            baseline cuCtxPopCurrent c"cuCtxPopCurrent" 4000 (pctx: *mut $crate::CUcontext);
            baseline cuCtxPushCurrent c"cuCtxPushCurrent" 4000 (ctx: $crate::CUcontext);
            optional cuCtxRecordEvent c"cuCtxRecordEvent" 12050 (h_ctx: $crate::CUcontext, h_event: $crate::CUevent);
            baseline cuCtxResetPersistingL2Cache c"cuCtxResetPersistingL2Cache" 11000 ();
            baseline cuCtxSetCacheConfig c"cuCtxSetCacheConfig" 3020 (config: $crate::CUfunc_cache);
            baseline cuCtxSetCurrent c"cuCtxSetCurrent" 4000 (ctx: $crate::CUcontext);
            baseline cuCtxSetFlags c"cuCtxSetFlags" 12010 (flags: ::core::ffi::c_uint);
            baseline cuCtxSetLimit c"cuCtxSetLimit" 3010 (limit: $crate::CUlimit, value: usize);
            baseline cuCtxSetSharedMemConfig c"cuCtxSetSharedMemConfig" 4020 (config: $crate::CUsharedconfig);
            baseline cuCtxSynchronize c"cuCtxSynchronize" 2000 ();
            optional cuCtxSynchronize_v13000 c"cuCtxSynchronize" 13000 (ctx: $crate::CUcontext);
            optional cuCtxWaitEvent c"cuCtxWaitEvent" 12050 (h_ctx: $crate::CUcontext, h_event: $crate::CUevent);
            baseline cuDestroyExternalMemory c"cuDestroyExternalMemory" 10000 (ext_mem: $crate::CUexternalMemory);
            baseline cuDestroyExternalSemaphore c"cuDestroyExternalSemaphore" 10000 (ext_sem: $crate::CUexternalSemaphore);
            optional cuDevResourceGenerateDesc c"cuDevResourceGenerateDesc" 12040 (ph_desc: *mut $crate::CUdevResourceDesc, resources: *mut $crate::CUdevResource, nb_resources: ::core::ffi::c_uint);
            optional cuDevSmResourceSplit c"cuDevSmResourceSplit" 13010 (result: *mut $crate::CUdevResource, nb_groups: ::core::ffi::c_uint, input: *const $crate::CUdevResource, remainder: *mut $crate::CUdevResource, flags: ::core::ffi::c_uint, group_params: *mut $crate::CU_DEV_SM_RESOURCE_GROUP_PARAMS);
            optional cuDevSmResourceSplitByCount c"cuDevSmResourceSplitByCount" 12040 (result: *mut $crate::CUdevResource, nb_groups: *mut ::core::ffi::c_uint, input: *const $crate::CUdevResource, remaining: *mut $crate::CUdevResource, use_flags: ::core::ffi::c_uint, min_count: ::core::ffi::c_uint);
            baseline cuDeviceCanAccessPeer c"cuDeviceCanAccessPeer" 4000 (can_access_peer: *mut ::core::ffi::c_int, dev: $crate::CUdevice_v1, peer_dev: $crate::CUdevice_v1);
            baseline cuDeviceComputeCapability c"cuDeviceComputeCapability" 2000 (major: *mut ::core::ffi::c_int, minor: *mut ::core::ffi::c_int, dev: $crate::CUdevice_v1);
            baseline cuDeviceGet c"cuDeviceGet" 2000 (device: *mut $crate::CUdevice_v1, ordinal: ::core::ffi::c_int);
            baseline cuDeviceGetAttribute c"cuDeviceGetAttribute" 2000 (pi: *mut ::core::ffi::c_int, attrib: $crate::CUdevice_attribute, dev: $crate::CUdevice_v1);
            baseline cuDeviceGetByPCIBusId c"cuDeviceGetByPCIBusId" 4010 (dev: *mut $crate::CUdevice_v1, pci_bus_id: *const ::core::ffi::c_char);
            optional cuDeviceGetCliqueCount c"cuDeviceGetCliqueCount" 13040 (count: *mut usize, dev: $crate::CUdevice);
            optional cuDeviceGetCliqueInfo c"cuDeviceGetCliqueInfo" 13040 (clique_info: *mut $crate::CUcliqueInfo, count: *mut usize, dev: $crate::CUdevice);
            baseline cuDeviceGetCount c"cuDeviceGetCount" 2000 (count: *mut ::core::ffi::c_int);
            baseline cuDeviceGetDefaultMemPool c"cuDeviceGetDefaultMemPool" 11020 (pool_out: *mut $crate::CUmemoryPool, dev: $crate::CUdevice_v1);
            optional cuDeviceGetDevResource c"cuDeviceGetDevResource" 12040 (dev: $crate::CUdevice, result: *mut $crate::CUdevResource, type_: $crate::CUdevResourceType);
            baseline cuDeviceGetExecAffinitySupport c"cuDeviceGetExecAffinitySupport" 11040 (pi: *mut ::core::ffi::c_int, type_: $crate::CUexecAffinityType, dev: $crate::CUdevice);
            optional cuDeviceGetFabricClusterUuid c"cuDeviceGetFabricClusterUuid" 13040 (uuid: *mut $crate::CUuuid, dev: $crate::CUdevice);
            baseline cuDeviceGetGraphMemAttribute c"cuDeviceGetGraphMemAttribute" 11040 (device: $crate::CUdevice, attr: $crate::CUgraphMem_attribute, value: *mut ::core::ffi::c_void);
            optional cuDeviceGetHostAtomicCapabilities c"cuDeviceGetHostAtomicCapabilities" 13000 (capabilities: *mut ::core::ffi::c_uint, operations: *const $crate::CUatomicOperation, count: ::core::ffi::c_uint, dev: $crate::CUdevice);
            baseline cuDeviceGetLuid c"cuDeviceGetLuid" 10000 (luid: *mut ::core::ffi::c_char, device_node_mask: *mut ::core::ffi::c_uint, dev: $crate::CUdevice_v1);
            baseline cuDeviceGetMemPool c"cuDeviceGetMemPool" 11020 (pool: *mut $crate::CUmemoryPool, dev: $crate::CUdevice_v1);
            baseline cuDeviceGetName c"cuDeviceGetName" 2000 (name: *mut ::core::ffi::c_char, len: ::core::ffi::c_int, dev: $crate::CUdevice_v1);
            baseline cuDeviceGetNvSciSyncAttributes c"cuDeviceGetNvSciSyncAttributes" 10020 (nv_sci_sync_attr_list: *mut ::core::ffi::c_void, dev: $crate::CUdevice_v1, flags: ::core::ffi::c_int);
            optional cuDeviceGetP2PAtomicCapabilities c"cuDeviceGetP2PAtomicCapabilities" 13000 (capabilities: *mut ::core::ffi::c_uint, operations: *const $crate::CUatomicOperation, count: ::core::ffi::c_uint, src_device: $crate::CUdevice, dst_device: $crate::CUdevice);
            baseline cuDeviceGetP2PAttribute c"cuDeviceGetP2PAttribute" 8000 (value: *mut ::core::ffi::c_int, attrib: $crate::CUdevice_P2PAttribute, src_device: $crate::CUdevice_v1, dst_device: $crate::CUdevice_v1);
            baseline cuDeviceGetPCIBusId c"cuDeviceGetPCIBusId" 4010 (pci_bus_id: *mut ::core::ffi::c_char, len: ::core::ffi::c_int, dev: $crate::CUdevice_v1);
            baseline cuDeviceGetProperties c"cuDeviceGetProperties" 2000 (prop: *mut $crate::CUdevprop_v1, dev: $crate::CUdevice_v1);
            baseline cuDeviceGetTexture1DLinearMaxWidth c"cuDeviceGetTexture1DLinearMaxWidth" 11010 (max_width_in_elements: *mut usize, format: $crate::CUarray_format, num_channels: ::core::ffi::c_uint, dev: $crate::CUdevice_v1);
            baseline cuDeviceGetUuid c"cuDeviceGetUuid" 11040 (uuid: *mut $crate::CUuuid, dev: $crate::CUdevice_v1);
            baseline cuDeviceGraphMemTrim c"cuDeviceGraphMemTrim" 11040 (device: $crate::CUdevice);
            baseline cuDevicePrimaryCtxGetState c"cuDevicePrimaryCtxGetState" 7000 (dev: $crate::CUdevice_v1, flags: *mut ::core::ffi::c_uint, active: *mut ::core::ffi::c_int);
            baseline cuDevicePrimaryCtxRelease c"cuDevicePrimaryCtxRelease" 11000 (dev: $crate::CUdevice_v1);
            baseline cuDevicePrimaryCtxReset c"cuDevicePrimaryCtxReset" 11000 (dev: $crate::CUdevice_v1);
            baseline cuDevicePrimaryCtxRetain c"cuDevicePrimaryCtxRetain" 7000 (pctx: *mut $crate::CUcontext, dev: $crate::CUdevice_v1);
            baseline cuDevicePrimaryCtxSetFlags c"cuDevicePrimaryCtxSetFlags" 11000 (dev: $crate::CUdevice_v1, flags: ::core::ffi::c_uint);
            optional cuDeviceRegisterAsyncNotification c"cuDeviceRegisterAsyncNotification" 12040 (device: $crate::CUdevice, callback_func: $crate::CUasyncCallback, user_data: *mut ::core::ffi::c_void, callback: *mut $crate::CUasyncCallbackHandle);
            baseline cuDeviceSetGraphMemAttribute c"cuDeviceSetGraphMemAttribute" 11040 (device: $crate::CUdevice, attr: $crate::CUgraphMem_attribute, value: *mut ::core::ffi::c_void);
            baseline cuDeviceSetMemPool c"cuDeviceSetMemPool" 11020 (dev: $crate::CUdevice_v1, pool: $crate::CUmemoryPool);
            baseline cuDeviceTotalMem c"cuDeviceTotalMem" 3020 (bytes: *mut usize, dev: $crate::CUdevice_v1);
            optional cuDeviceUnregisterAsyncNotification c"cuDeviceUnregisterAsyncNotification" 12040 (device: $crate::CUdevice, callback: $crate::CUasyncCallbackHandle);
            baseline cuDriverGetVersion c"cuDriverGetVersion" 2020 (driver_version: *mut ::core::ffi::c_int);
            baseline cuEventCreate c"cuEventCreate" 2000 (ph_event: *mut $crate::CUevent, flags: ::core::ffi::c_uint);
            baseline cuEventDestroy c"cuEventDestroy" 4000 (h_event: $crate::CUevent);
            baseline cuEventElapsedTime c"cuEventElapsedTime" 2000 (p_milliseconds: *mut f32, h_start: $crate::CUevent, h_end: $crate::CUevent);
            optional cuEventElapsedTime_v12080 c"cuEventElapsedTime" 12080 (p_milliseconds: *mut f32, h_start: $crate::CUevent, h_end: $crate::CUevent);
            baseline cuEventQuery c"cuEventQuery" 2000 (h_event: $crate::CUevent);
            baseline cuEventRecord c"cuEventRecord" 2000 (h_event: $crate::CUevent, h_stream: $crate::CUstream);
            baseline cuEventRecordWithFlags c"cuEventRecordWithFlags" 11010 (h_event: $crate::CUevent, h_stream: $crate::CUstream, flags: ::core::ffi::c_uint);
            baseline cuEventSynchronize c"cuEventSynchronize" 2000 (h_event: $crate::CUevent);
            baseline cuExternalMemoryGetMappedBuffer c"cuExternalMemoryGetMappedBuffer" 10000 (dev_ptr: *mut $crate::CUdeviceptr_v2, ext_mem: $crate::CUexternalMemory, buffer_desc: *const $crate::CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1);
            baseline cuExternalMemoryGetMappedMipmappedArray c"cuExternalMemoryGetMappedMipmappedArray" 10000 (mipmap: *mut $crate::CUmipmappedArray, ext_mem: $crate::CUexternalMemory, mipmap_desc: *const $crate::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1);
            optional cuFabricCpyBatchAsync c"cuFabricCpyBatchAsync" 13050 (num_ops: usize, op_list: *mut $crate::CUDA_FABRIC_COPY_BATCH_OP_v1, flags: ::core::ffi::c_ulonglong, h_stream: $crate::CUstream);
            baseline cuFlushGPUDirectRDMAWrites c"cuFlushGPUDirectRDMAWrites" 11030 (target: $crate::CUflushGPUDirectRDMAWritesTarget, scope: $crate::CUflushGPUDirectRDMAWritesScope);
            baseline cuFuncGetAttribute c"cuFuncGetAttribute" 2020 (pi: *mut ::core::ffi::c_int, attrib: $crate::CUfunction_attribute, hfunc: $crate::CUfunction);
            baseline cuFuncGetModule c"cuFuncGetModule" 11000 (hmod: *mut $crate::CUmodule, hfunc: $crate::CUfunction);
            optional cuFuncGetName c"cuFuncGetName" 12030 (name: *mut *const ::core::ffi::c_char, hfunc: $crate::CUfunction);
            optional cuFuncGetParamCount c"cuFuncGetParamCount" 13020 (func: $crate::CUfunction, param_count: *mut usize);
            optional cuFuncGetParamInfo c"cuFuncGetParamInfo" 12040 (func: $crate::CUfunction, param_index: usize, param_offset: *mut usize, param_size: *mut usize);
            optional cuFuncIsLoaded c"cuFuncIsLoaded" 12040 (state: *mut $crate::CUfunctionLoadingState, hfunc: $crate::CUfunction);
            optional cuFuncLoad c"cuFuncLoad" 12040 (hfunc: $crate::CUfunction);
            baseline cuFuncSetAttribute c"cuFuncSetAttribute" 9000 (hfunc: $crate::CUfunction, attrib: $crate::CUfunction_attribute, value: ::core::ffi::c_int);
            baseline cuFuncSetBlockShape c"cuFuncSetBlockShape" 2000 (hfunc: $crate::CUfunction, x: ::core::ffi::c_int, y: ::core::ffi::c_int, z: ::core::ffi::c_int);
            baseline cuFuncSetCacheConfig c"cuFuncSetCacheConfig" 3000 (hfunc: $crate::CUfunction, config: $crate::CUfunc_cache);
            baseline cuFuncSetSharedMemConfig c"cuFuncSetSharedMemConfig" 4020 (hfunc: $crate::CUfunction, config: $crate::CUsharedconfig);
            baseline cuFuncSetSharedSize c"cuFuncSetSharedSize" 2000 (hfunc: $crate::CUfunction, bytes: ::core::ffi::c_uint);
            baseline cuGetErrorName c"cuGetErrorName" 6000 (error: $crate::CUresult, p_str: *mut *const ::core::ffi::c_char);
            baseline cuGetErrorString c"cuGetErrorString" 6000 (error: $crate::CUresult, p_str: *mut *const ::core::ffi::c_char);
            baseline cuGetExportTable c"cuGetExportTable" 3000 (pp_export_table: *mut *const ::core::ffi::c_void, p_export_table_id: *const $crate::CUuuid);
            baseline cuGetProcAddress c"cuGetProcAddress" 12000 (symbol: *const ::core::ffi::c_char, pfn: *mut *mut ::core::ffi::c_void, driver_version: ::core::ffi::c_int, flags: $crate::cuuint64_t, symbol_found: *mut $crate::CUdriverProcAddressQueryResult);
            baseline cuGraphAddBatchMemOpNode c"cuGraphAddBatchMemOpNode" 11070 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, node_params: *const $crate::CUDA_BATCH_MEM_OP_NODE_PARAMS);
            baseline cuGraphAddChildGraphNode c"cuGraphAddChildGraphNode" 10000 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, child_graph: $crate::CUgraph);
            baseline cuGraphAddDependencies c"cuGraphAddDependencies" 10000 (h_graph: $crate::CUgraph, from: *const $crate::CUgraphNode, to: *const $crate::CUgraphNode, num_dependencies: usize);
            optional cuGraphAddDependencies_v12030 c"cuGraphAddDependencies" 12030 (h_graph: $crate::CUgraph, from: *const $crate::CUgraphNode, to: *const $crate::CUgraphNode, edge_data: *const $crate::CUgraphEdgeData, num_dependencies: usize);
            baseline cuGraphAddEmptyNode c"cuGraphAddEmptyNode" 10000 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize);
            baseline cuGraphAddEventRecordNode c"cuGraphAddEventRecordNode" 11010 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, event: $crate::CUevent);
            baseline cuGraphAddEventWaitNode c"cuGraphAddEventWaitNode" 11010 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, event: $crate::CUevent);
            baseline cuGraphAddExternalSemaphoresSignalNode c"cuGraphAddExternalSemaphoresSignalNode" 11020 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, node_params: *const $crate::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1);
            baseline cuGraphAddExternalSemaphoresWaitNode c"cuGraphAddExternalSemaphoresWaitNode" 11020 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, node_params: *const $crate::CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1);
            baseline cuGraphAddHostNode c"cuGraphAddHostNode" 10000 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, node_params: *const $crate::CUDA_HOST_NODE_PARAMS_v1);
            baseline cuGraphAddKernelNode c"cuGraphAddKernelNode" 12000 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, node_params: *const $crate::CUDA_KERNEL_NODE_PARAMS_v2);
            baseline cuGraphAddMemAllocNode c"cuGraphAddMemAllocNode" 11040 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, node_params: *mut $crate::CUDA_MEM_ALLOC_NODE_PARAMS);
            baseline cuGraphAddMemFreeNode c"cuGraphAddMemFreeNode" 11040 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, dptr: $crate::CUdeviceptr);
            baseline cuGraphAddMemcpyNode c"cuGraphAddMemcpyNode" 10000 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, copy_params: *const $crate::CUDA_MEMCPY3D_v2, ctx: $crate::CUcontext);
            baseline cuGraphAddMemsetNode c"cuGraphAddMemsetNode" 10000 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, memset_params: *const $crate::CUDA_MEMSET_NODE_PARAMS_v1, ctx: $crate::CUcontext);
            baseline cuGraphAddNode c"cuGraphAddNode" 12020 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, num_dependencies: usize, node_params: *mut $crate::CUgraphNodeParams);
            optional cuGraphAddNode_v12030 c"cuGraphAddNode" 12030 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, dependency_data: *const $crate::CUgraphEdgeData, num_dependencies: usize, node_params: *mut $crate::CUgraphNodeParams);
            optional cuGraphAddNode_v13040 c"cuGraphAddNode" 13040 (ph_graph_node: *mut $crate::CUgraphNode, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, dependency_data: *const $crate::CUgraphEdgeData, num_dependencies: usize, node_params: *mut $crate::CUgraphNodeParams);
            baseline cuGraphBatchMemOpNodeGetParams c"cuGraphBatchMemOpNodeGetParams" 11070 (h_node: $crate::CUgraphNode, node_params_out: *mut $crate::CUDA_BATCH_MEM_OP_NODE_PARAMS);
            baseline cuGraphBatchMemOpNodeSetParams c"cuGraphBatchMemOpNodeSetParams" 11070 (h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_BATCH_MEM_OP_NODE_PARAMS);
            baseline cuGraphChildGraphNodeGetGraph c"cuGraphChildGraphNodeGetGraph" 10000 (h_node: $crate::CUgraphNode, ph_graph: *mut $crate::CUgraph);
            baseline cuGraphClone c"cuGraphClone" 10000 (ph_graph_clone: *mut $crate::CUgraph, original_graph: $crate::CUgraph);
            optional cuGraphConditionalHandleCreate c"cuGraphConditionalHandleCreate" 12030 (p_handle_out: *mut $crate::CUgraphConditionalHandle, h_graph: $crate::CUgraph, ctx: $crate::CUcontext, default_launch_value: ::core::ffi::c_uint, flags: ::core::ffi::c_uint);
            baseline cuGraphCreate c"cuGraphCreate" 10000 (ph_graph: *mut $crate::CUgraph, flags: ::core::ffi::c_uint);
            baseline cuGraphDebugDotPrint c"cuGraphDebugDotPrint" 11030 (h_graph: $crate::CUgraph, path: *const ::core::ffi::c_char, flags: ::core::ffi::c_uint);
            baseline cuGraphDestroy c"cuGraphDestroy" 10000 (h_graph: $crate::CUgraph);
            baseline cuGraphDestroyNode c"cuGraphDestroyNode" 10000 (h_node: $crate::CUgraphNode);
            baseline cuGraphEventRecordNodeGetEvent c"cuGraphEventRecordNodeGetEvent" 11010 (h_node: $crate::CUgraphNode, event_out: *mut $crate::CUevent);
            baseline cuGraphEventRecordNodeSetEvent c"cuGraphEventRecordNodeSetEvent" 11010 (h_node: $crate::CUgraphNode, event: $crate::CUevent);
            baseline cuGraphEventWaitNodeGetEvent c"cuGraphEventWaitNodeGetEvent" 11010 (h_node: $crate::CUgraphNode, event_out: *mut $crate::CUevent);
            baseline cuGraphEventWaitNodeSetEvent c"cuGraphEventWaitNodeSetEvent" 11010 (h_node: $crate::CUgraphNode, event: $crate::CUevent);
            baseline cuGraphExecBatchMemOpNodeSetParams c"cuGraphExecBatchMemOpNodeSetParams" 11070 (graph_exec: $crate::CUgraphExec, node: $crate::CUgraphNode, node_params: *const $crate::CUDA_BATCH_MEM_OP_NODE_PARAMS);
            baseline cuGraphExecChildGraphNodeSetParams c"cuGraphExecChildGraphNodeSetParams" 11010 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, child_graph: $crate::CUgraph);
            baseline cuGraphExecDestroy c"cuGraphExecDestroy" 10000 (h_graph_exec: $crate::CUgraphExec);
            baseline cuGraphExecEventRecordNodeSetEvent c"cuGraphExecEventRecordNodeSetEvent" 11010 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, event: $crate::CUevent);
            baseline cuGraphExecEventWaitNodeSetEvent c"cuGraphExecEventWaitNodeSetEvent" 11010 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, event: $crate::CUevent);
            baseline cuGraphExecExternalSemaphoresSignalNodeSetParams c"cuGraphExecExternalSemaphoresSignalNodeSetParams" 11020 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1);
            baseline cuGraphExecExternalSemaphoresWaitNodeSetParams c"cuGraphExecExternalSemaphoresWaitNodeSetParams" 11020 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1);
            baseline cuGraphExecGetFlags c"cuGraphExecGetFlags" 12000 (h_graph_exec: $crate::CUgraphExec, flags: *mut $crate::cuuint64_t);
            optional cuGraphExecGetId c"cuGraphExecGetId" 13010 (h_graph_exec: $crate::CUgraphExec, graph_id: *mut ::core::ffi::c_uint);
            baseline cuGraphExecHostNodeSetParams c"cuGraphExecHostNodeSetParams" 10020 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_HOST_NODE_PARAMS_v1);
            baseline cuGraphExecKernelNodeSetParams c"cuGraphExecKernelNodeSetParams" 12000 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_KERNEL_NODE_PARAMS_v2);
            baseline cuGraphExecMemcpyNodeSetParams c"cuGraphExecMemcpyNodeSetParams" 10020 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, copy_params: *const $crate::CUDA_MEMCPY3D_v2, ctx: $crate::CUcontext);
            baseline cuGraphExecMemsetNodeSetParams c"cuGraphExecMemsetNodeSetParams" 10020 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, memset_params: *const $crate::CUDA_MEMSET_NODE_PARAMS_v1, ctx: $crate::CUcontext);
            baseline cuGraphExecNodeSetParams c"cuGraphExecNodeSetParams" 12020 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, node_params: *mut $crate::CUgraphNodeParams);
            baseline cuGraphExecUpdate c"cuGraphExecUpdate" 12000 (h_graph_exec: $crate::CUgraphExec, h_graph: $crate::CUgraph, result_info: *mut $crate::CUgraphExecUpdateResultInfo);
            baseline cuGraphExternalSemaphoresSignalNodeGetParams c"cuGraphExternalSemaphoresSignalNodeGetParams" 11020 (h_node: $crate::CUgraphNode, params_out: *mut $crate::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1);
            baseline cuGraphExternalSemaphoresSignalNodeSetParams c"cuGraphExternalSemaphoresSignalNodeSetParams" 11020 (h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1);
            baseline cuGraphExternalSemaphoresWaitNodeGetParams c"cuGraphExternalSemaphoresWaitNodeGetParams" 11020 (h_node: $crate::CUgraphNode, params_out: *mut $crate::CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1);
            baseline cuGraphExternalSemaphoresWaitNodeSetParams c"cuGraphExternalSemaphoresWaitNodeSetParams" 11020 (h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1);
            baseline cuGraphGetEdges c"cuGraphGetEdges" 10000 (h_graph: $crate::CUgraph, from: *mut $crate::CUgraphNode, to: *mut $crate::CUgraphNode, num_edges: *mut usize);
            optional cuGraphGetEdges_v12030 c"cuGraphGetEdges" 12030 (h_graph: $crate::CUgraph, from: *mut $crate::CUgraphNode, to: *mut $crate::CUgraphNode, edge_data: *mut $crate::CUgraphEdgeData, num_edges: *mut usize);
            optional cuGraphGetId c"cuGraphGetId" 13010 (h_graph: $crate::CUgraph, graph_id: *mut ::core::ffi::c_uint);
            baseline cuGraphGetNodes c"cuGraphGetNodes" 10000 (h_graph: $crate::CUgraph, nodes: *mut $crate::CUgraphNode, num_nodes: *mut usize);
            baseline cuGraphGetRootNodes c"cuGraphGetRootNodes" 10000 (h_graph: $crate::CUgraph, root_nodes: *mut $crate::CUgraphNode, num_root_nodes: *mut usize);
            baseline cuGraphHostNodeGetParams c"cuGraphHostNodeGetParams" 10000 (h_node: $crate::CUgraphNode, node_params: *mut $crate::CUDA_HOST_NODE_PARAMS_v1);
            baseline cuGraphHostNodeSetParams c"cuGraphHostNodeSetParams" 10000 (h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_HOST_NODE_PARAMS_v1);
            baseline cuGraphInstantiateWithFlags c"cuGraphInstantiateWithFlags" 11040 (ph_graph_exec: *mut $crate::CUgraphExec, h_graph: $crate::CUgraph, flags: ::core::ffi::c_ulonglong);
            baseline cuGraphInstantiateWithParams c"cuGraphInstantiateWithParams" 12000 (ph_graph_exec: *mut $crate::CUgraphExec, h_graph: $crate::CUgraph, instantiate_params: *mut $crate::CUDA_GRAPH_INSTANTIATE_PARAMS);
            baseline cuGraphKernelNodeCopyAttributes c"cuGraphKernelNodeCopyAttributes" 11000 (dst: $crate::CUgraphNode, src: $crate::CUgraphNode);
            baseline cuGraphKernelNodeGetAttribute c"cuGraphKernelNodeGetAttribute" 11000 (h_node: $crate::CUgraphNode, attr: $crate::CUkernelNodeAttrID, value_out: *mut $crate::CUkernelNodeAttrValue_v1);
            baseline cuGraphKernelNodeGetParams c"cuGraphKernelNodeGetParams" 12000 (h_node: $crate::CUgraphNode, node_params: *mut $crate::CUDA_KERNEL_NODE_PARAMS_v2);
            baseline cuGraphKernelNodeSetAttribute c"cuGraphKernelNodeSetAttribute" 11000 (h_node: $crate::CUgraphNode, attr: $crate::CUkernelNodeAttrID, value: *const $crate::CUkernelNodeAttrValue_v1);
            baseline cuGraphKernelNodeSetParams c"cuGraphKernelNodeSetParams" 12000 (h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_KERNEL_NODE_PARAMS_v2);
            baseline cuGraphLaunch c"cuGraphLaunch" 10000 (h_graph: $crate::CUgraphExec, h_stream: $crate::CUstream);
            baseline cuGraphMemAllocNodeGetParams c"cuGraphMemAllocNodeGetParams" 11040 (h_node: $crate::CUgraphNode, params_out: *mut $crate::CUDA_MEM_ALLOC_NODE_PARAMS);
            baseline cuGraphMemFreeNodeGetParams c"cuGraphMemFreeNodeGetParams" 11040 (h_node: $crate::CUgraphNode, dptr_out: *mut $crate::CUdeviceptr);
            baseline cuGraphMemcpyNodeGetParams c"cuGraphMemcpyNodeGetParams" 10000 (h_node: $crate::CUgraphNode, node_params: *mut $crate::CUDA_MEMCPY3D_v2);
            baseline cuGraphMemcpyNodeSetParams c"cuGraphMemcpyNodeSetParams" 10000 (h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_MEMCPY3D_v2);
            baseline cuGraphMemsetNodeGetParams c"cuGraphMemsetNodeGetParams" 10000 (h_node: $crate::CUgraphNode, node_params: *mut $crate::CUDA_MEMSET_NODE_PARAMS_v1);
            baseline cuGraphMemsetNodeSetParams c"cuGraphMemsetNodeSetParams" 10000 (h_node: $crate::CUgraphNode, node_params: *const $crate::CUDA_MEMSET_NODE_PARAMS_v1);
            baseline cuGraphNodeFindInClone c"cuGraphNodeFindInClone" 10000 (ph_node: *mut $crate::CUgraphNode, h_original_node: $crate::CUgraphNode, h_cloned_graph: $crate::CUgraph);
            optional cuGraphNodeGetContainingGraph c"cuGraphNodeGetContainingGraph" 13010 (h_node: $crate::CUgraphNode, ph_graph: *mut $crate::CUgraph);
            baseline cuGraphNodeGetDependencies c"cuGraphNodeGetDependencies" 10000 (h_node: $crate::CUgraphNode, dependencies: *mut $crate::CUgraphNode, num_dependencies: *mut usize);
            optional cuGraphNodeGetDependencies_v12030 c"cuGraphNodeGetDependencies" 12030 (h_node: $crate::CUgraphNode, dependencies: *mut $crate::CUgraphNode, edge_data: *mut $crate::CUgraphEdgeData, num_dependencies: *mut usize);
            baseline cuGraphNodeGetDependentNodes c"cuGraphNodeGetDependentNodes" 10000 (h_node: $crate::CUgraphNode, dependent_nodes: *mut $crate::CUgraphNode, num_dependent_nodes: *mut usize);
            optional cuGraphNodeGetDependentNodes_v12030 c"cuGraphNodeGetDependentNodes" 12030 (h_node: $crate::CUgraphNode, dependent_nodes: *mut $crate::CUgraphNode, edge_data: *mut $crate::CUgraphEdgeData, num_dependent_nodes: *mut usize);
            baseline cuGraphNodeGetEnabled c"cuGraphNodeGetEnabled" 11060 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, is_enabled: *mut ::core::ffi::c_uint);
            optional cuGraphNodeGetLocalId c"cuGraphNodeGetLocalId" 13010 (h_node: $crate::CUgraphNode, node_id: *mut ::core::ffi::c_uint);
            optional cuGraphNodeGetParams c"cuGraphNodeGetParams" 13020 (h_node: $crate::CUgraphNode, node_params: *mut $crate::CUgraphNodeParams);
            optional cuGraphNodeGetToolsId c"cuGraphNodeGetToolsId" 13010 (h_node: $crate::CUgraphNode, node_id: *mut ::core::ffi::c_ulonglong);
            baseline cuGraphNodeGetType c"cuGraphNodeGetType" 10000 (h_node: $crate::CUgraphNode, type_: *mut $crate::CUgraphNodeType);
            baseline cuGraphNodeSetEnabled c"cuGraphNodeSetEnabled" 11060 (h_graph_exec: $crate::CUgraphExec, h_node: $crate::CUgraphNode, is_enabled: ::core::ffi::c_uint);
            baseline cuGraphNodeSetParams c"cuGraphNodeSetParams" 12020 (h_node: $crate::CUgraphNode, node_params: *mut $crate::CUgraphNodeParams);
            optional cuGraphNodeSetParams_v13040 c"cuGraphNodeSetParams" 13040 (h_node: $crate::CUgraphNode, node_params: *mut $crate::CUgraphNodeParams);
            baseline cuGraphReleaseUserObject c"cuGraphReleaseUserObject" 11030 (graph: $crate::CUgraph, object: $crate::CUuserObject, count: ::core::ffi::c_uint);
            baseline cuGraphRemoveDependencies c"cuGraphRemoveDependencies" 10000 (h_graph: $crate::CUgraph, from: *const $crate::CUgraphNode, to: *const $crate::CUgraphNode, num_dependencies: usize);
            optional cuGraphRemoveDependencies_v12030 c"cuGraphRemoveDependencies" 12030 (h_graph: $crate::CUgraph, from: *const $crate::CUgraphNode, to: *const $crate::CUgraphNode, edge_data: *const $crate::CUgraphEdgeData, num_dependencies: usize);
            baseline cuGraphRetainUserObject c"cuGraphRetainUserObject" 11030 (graph: $crate::CUgraph, object: $crate::CUuserObject, count: ::core::ffi::c_uint, flags: ::core::ffi::c_uint);
            baseline cuGraphUpload c"cuGraphUpload" 11010 (h_graph: $crate::CUgraphExec, h_stream: $crate::CUstream);
            baseline cuGraphicsMapResources c"cuGraphicsMapResources" 3000 (count: ::core::ffi::c_uint, resources: *mut $crate::CUgraphicsResource, h_stream: $crate::CUstream);
            baseline cuGraphicsResourceGetMappedMipmappedArray c"cuGraphicsResourceGetMappedMipmappedArray" 5000 (p_mipmapped_array: *mut $crate::CUmipmappedArray, resource: $crate::CUgraphicsResource);
            baseline cuGraphicsResourceGetMappedPointer c"cuGraphicsResourceGetMappedPointer" 3020 (p_dev_ptr: *mut $crate::CUdeviceptr_v2, p_size: *mut usize, resource: $crate::CUgraphicsResource);
            baseline cuGraphicsResourceSetMapFlags c"cuGraphicsResourceSetMapFlags" 6050 (resource: $crate::CUgraphicsResource, flags: ::core::ffi::c_uint);
            baseline cuGraphicsSubResourceGetMappedArray c"cuGraphicsSubResourceGetMappedArray" 3000 (p_array: *mut $crate::CUarray, resource: $crate::CUgraphicsResource, array_index: ::core::ffi::c_uint, mip_level: ::core::ffi::c_uint);
            baseline cuGraphicsUnmapResources c"cuGraphicsUnmapResources" 3000 (count: ::core::ffi::c_uint, resources: *mut $crate::CUgraphicsResource, h_stream: $crate::CUstream);
            baseline cuGraphicsUnregisterResource c"cuGraphicsUnregisterResource" 3000 (resource: $crate::CUgraphicsResource);
            optional cuGreenCtxCreate c"cuGreenCtxCreate" 12040 (ph_ctx: *mut $crate::CUgreenCtx, desc: $crate::CUdevResourceDesc, dev: $crate::CUdevice, flags: ::core::ffi::c_uint);
            optional cuGreenCtxDestroy c"cuGreenCtxDestroy" 12040 (h_ctx: $crate::CUgreenCtx);
            optional cuGreenCtxGetDevResource c"cuGreenCtxGetDevResource" 12040 (h_ctx: $crate::CUgreenCtx, result: *mut $crate::CUdevResource, type_: $crate::CUdevResourceType);
            optional cuGreenCtxGetId c"cuGreenCtxGetId" 12090 (green_ctx: $crate::CUgreenCtx, green_ctx_id: *mut ::core::ffi::c_ulonglong);
            optional cuGreenCtxRecordEvent c"cuGreenCtxRecordEvent" 12040 (h_ctx: $crate::CUgreenCtx, h_event: $crate::CUevent);
            optional cuGreenCtxStreamCreate c"cuGreenCtxStreamCreate" 12050 (ph_stream: *mut $crate::CUstream, green_ctx: $crate::CUgreenCtx, flags: ::core::ffi::c_uint, priority: ::core::ffi::c_int);
            optional cuGreenCtxWaitEvent c"cuGreenCtxWaitEvent" 12040 (h_ctx: $crate::CUgreenCtx, h_event: $crate::CUevent);
            baseline cuImportExternalMemory c"cuImportExternalMemory" 10000 (ext_mem_out: *mut $crate::CUexternalMemory, mem_handle_desc: *const $crate::CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1);
            baseline cuImportExternalSemaphore c"cuImportExternalSemaphore" 10000 (ext_sem_out: *mut $crate::CUexternalSemaphore, sem_handle_desc: *const $crate::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1);
            baseline cuInit c"cuInit" 2000 (flags: ::core::ffi::c_uint);
            baseline cuIpcCloseMemHandle c"cuIpcCloseMemHandle" 4010 (dptr: $crate::CUdeviceptr_v2);
            baseline cuIpcGetEventHandle c"cuIpcGetEventHandle" 4010 (p_handle: *mut $crate::CUipcEventHandle_v1, event: $crate::CUevent);
            baseline cuIpcGetMemHandle c"cuIpcGetMemHandle" 4010 (p_handle: *mut $crate::CUipcMemHandle_v1, dptr: $crate::CUdeviceptr_v2);
            baseline cuIpcOpenEventHandle c"cuIpcOpenEventHandle" 4010 (ph_event: *mut $crate::CUevent, handle: $crate::CUipcEventHandle_v1);
            baseline cuIpcOpenMemHandle c"cuIpcOpenMemHandle" 11000 (pdptr: *mut $crate::CUdeviceptr_v2, handle: $crate::CUipcMemHandle_v1, flags: ::core::ffi::c_uint);
            baseline cuKernelGetAttribute c"cuKernelGetAttribute" 12000 (pi: *mut ::core::ffi::c_int, attrib: $crate::CUfunction_attribute, kernel: $crate::CUkernel, dev: $crate::CUdevice);
            baseline cuKernelGetFunction c"cuKernelGetFunction" 12000 (p_func: *mut $crate::CUfunction, kernel: $crate::CUkernel);
            optional cuKernelGetLibrary c"cuKernelGetLibrary" 12050 (p_lib: *mut $crate::CUlibrary, kernel: $crate::CUkernel);
            optional cuKernelGetName c"cuKernelGetName" 12030 (name: *mut *const ::core::ffi::c_char, hfunc: $crate::CUkernel);
            optional cuKernelGetParamCount c"cuKernelGetParamCount" 13020 (kernel: $crate::CUkernel, param_count: *mut usize);
            optional cuKernelGetParamInfo c"cuKernelGetParamInfo" 12040 (kernel: $crate::CUkernel, param_index: usize, param_offset: *mut usize, param_size: *mut usize);
            baseline cuKernelSetAttribute c"cuKernelSetAttribute" 12000 (attrib: $crate::CUfunction_attribute, val: ::core::ffi::c_int, kernel: $crate::CUkernel, dev: $crate::CUdevice);
            baseline cuKernelSetCacheConfig c"cuKernelSetCacheConfig" 12000 (kernel: $crate::CUkernel, config: $crate::CUfunc_cache, dev: $crate::CUdevice);
            baseline cuLaunch c"cuLaunch" 2000 (f: $crate::CUfunction);
            baseline cuLaunchCooperativeKernel c"cuLaunchCooperativeKernel" 9000 (f: $crate::CUfunction, grid_dim_x: ::core::ffi::c_uint, grid_dim_y: ::core::ffi::c_uint, grid_dim_z: ::core::ffi::c_uint, block_dim_x: ::core::ffi::c_uint, block_dim_y: ::core::ffi::c_uint, block_dim_z: ::core::ffi::c_uint, shared_mem_bytes: ::core::ffi::c_uint, h_stream: $crate::CUstream, kernel_params: *mut *mut ::core::ffi::c_void);
            baseline cuLaunchCooperativeKernelMultiDevice c"cuLaunchCooperativeKernelMultiDevice" 9000 (launch_params_list: *mut $crate::CUDA_LAUNCH_PARAMS_v1, num_devices: ::core::ffi::c_uint, flags: ::core::ffi::c_uint);
            baseline cuLaunchGrid c"cuLaunchGrid" 2000 (f: $crate::CUfunction, grid_width: ::core::ffi::c_int, grid_height: ::core::ffi::c_int);
            baseline cuLaunchGridAsync c"cuLaunchGridAsync" 2000 (f: $crate::CUfunction, grid_width: ::core::ffi::c_int, grid_height: ::core::ffi::c_int, h_stream: $crate::CUstream);
            baseline cuLaunchHostFunc c"cuLaunchHostFunc" 10000 (h_stream: $crate::CUstream, fn_: $crate::CUhostFn, user_data: *mut ::core::ffi::c_void);
            optional cuLaunchHostFunc_v13010 c"cuLaunchHostFunc" 13010 (h_stream: $crate::CUstream, fn_: $crate::CUhostFn, user_data: *mut ::core::ffi::c_void, sync_mode: ::core::ffi::c_uint);
            baseline cuLaunchKernel c"cuLaunchKernel" 4000 (f: $crate::CUfunction, grid_dim_x: ::core::ffi::c_uint, grid_dim_y: ::core::ffi::c_uint, grid_dim_z: ::core::ffi::c_uint, block_dim_x: ::core::ffi::c_uint, block_dim_y: ::core::ffi::c_uint, block_dim_z: ::core::ffi::c_uint, shared_mem_bytes: ::core::ffi::c_uint, h_stream: $crate::CUstream, kernel_params: *mut *mut ::core::ffi::c_void, extra: *mut *mut ::core::ffi::c_void);
            baseline cuLaunchKernelEx c"cuLaunchKernelEx" 11060 (config: *const $crate::CUlaunchConfig, f: $crate::CUfunction, kernel_params: *mut *mut ::core::ffi::c_void, extra: *mut *mut ::core::ffi::c_void);
            optional cuLibraryEnumerateKernels c"cuLibraryEnumerateKernels" 12040 (kernels: *mut $crate::CUkernel, num_kernels: ::core::ffi::c_uint, lib: $crate::CUlibrary);
            baseline cuLibraryGetGlobal c"cuLibraryGetGlobal" 12000 (dptr: *mut $crate::CUdeviceptr, bytes: *mut usize, library: $crate::CUlibrary, name: *const ::core::ffi::c_char);
            baseline cuLibraryGetKernel c"cuLibraryGetKernel" 12000 (p_kernel: *mut $crate::CUkernel, library: $crate::CUlibrary, name: *const ::core::ffi::c_char);
            optional cuLibraryGetKernelCount c"cuLibraryGetKernelCount" 12040 (count: *mut ::core::ffi::c_uint, lib: $crate::CUlibrary);
            baseline cuLibraryGetManaged c"cuLibraryGetManaged" 12000 (dptr: *mut $crate::CUdeviceptr, bytes: *mut usize, library: $crate::CUlibrary, name: *const ::core::ffi::c_char);
            baseline cuLibraryGetModule c"cuLibraryGetModule" 12000 (p_mod: *mut $crate::CUmodule, library: $crate::CUlibrary);
            baseline cuLibraryGetUnifiedFunction c"cuLibraryGetUnifiedFunction" 12000 (fptr: *mut *mut ::core::ffi::c_void, library: $crate::CUlibrary, symbol: *const ::core::ffi::c_char);
            baseline cuLibraryLoadData c"cuLibraryLoadData" 12000 (library: *mut $crate::CUlibrary, code: *const ::core::ffi::c_void, jit_options: *mut $crate::CUjit_option, jit_options_values: *mut *mut ::core::ffi::c_void, num_jit_options: ::core::ffi::c_uint, library_options: *mut $crate::CUlibraryOption, library_option_values: *mut *mut ::core::ffi::c_void, num_library_options: ::core::ffi::c_uint);
            baseline cuLibraryLoadFromFile c"cuLibraryLoadFromFile" 12000 (library: *mut $crate::CUlibrary, file_name: *const ::core::ffi::c_char, jit_options: *mut $crate::CUjit_option, jit_options_values: *mut *mut ::core::ffi::c_void, num_jit_options: ::core::ffi::c_uint, library_options: *mut $crate::CUlibraryOption, library_option_values: *mut *mut ::core::ffi::c_void, num_library_options: ::core::ffi::c_uint);
            baseline cuLibraryUnload c"cuLibraryUnload" 12000 (library: $crate::CUlibrary);
            baseline cuLinkAddData c"cuLinkAddData" 6050 (state: $crate::CUlinkState, type_: $crate::CUjitInputType, data: *mut ::core::ffi::c_void, size: usize, name: *const ::core::ffi::c_char, num_options: ::core::ffi::c_uint, options: *mut $crate::CUjit_option, option_values: *mut *mut ::core::ffi::c_void);
            baseline cuLinkAddFile c"cuLinkAddFile" 6050 (state: $crate::CUlinkState, type_: $crate::CUjitInputType, path: *const ::core::ffi::c_char, num_options: ::core::ffi::c_uint, options: *mut $crate::CUjit_option, option_values: *mut *mut ::core::ffi::c_void);
            baseline cuLinkComplete c"cuLinkComplete" 5050 (state: $crate::CUlinkState, cubin_out: *mut *mut ::core::ffi::c_void, size_out: *mut usize);
            baseline cuLinkCreate c"cuLinkCreate" 6050 (num_options: ::core::ffi::c_uint, options: *mut $crate::CUjit_option, option_values: *mut *mut ::core::ffi::c_void, state_out: *mut $crate::CUlinkState);
            baseline cuLinkDestroy c"cuLinkDestroy" 5050 (state: $crate::CUlinkState);
            optional cuLogicalEndpointAddDevice c"cuLogicalEndpointAddDevice" 13030 (le_id: $crate::CUlogicalEndpointId, dev: $crate::CUdevice);
            optional cuLogicalEndpointBindAddr c"cuLogicalEndpointBindAddr" 13030 (le_id: $crate::CUlogicalEndpointId, dev: $crate::CUdevice, offset: $crate::cuuint64_t, ptr: *mut ::core::ffi::c_void, size: $crate::cuuint64_t, flags: ::core::ffi::c_ulonglong);
            optional cuLogicalEndpointBindMem c"cuLogicalEndpointBindMem" 13030 (le_id: $crate::CUlogicalEndpointId, dev: $crate::CUdevice, offset: $crate::cuuint64_t, mem_handle: $crate::CUmemGenericAllocationHandle, mem_offset: $crate::cuuint64_t, size: $crate::cuuint64_t, flags: ::core::ffi::c_ulonglong);
            optional cuLogicalEndpointCreate c"cuLogicalEndpointCreate" 13030 (le_id: $crate::CUlogicalEndpointId, prop: *const $crate::CUlogicalEndpointProp);
            optional cuLogicalEndpointDestroy c"cuLogicalEndpointDestroy" 13030 (le_id: $crate::CUlogicalEndpointId);
            optional cuLogicalEndpointExport c"cuLogicalEndpointExport" 13030 (handle: *mut ::core::ffi::c_void, le_id: $crate::CUlogicalEndpointId, handle_type: $crate::CUlogicalEndpointIpcHandleType);
            optional cuLogicalEndpointGetLimits c"cuLogicalEndpointGetLimits" 13030 (bind_alignment: *mut $crate::cuuint64_t, max_size: *mut $crate::cuuint64_t, prop: *const $crate::CUlogicalEndpointProp);
            optional cuLogicalEndpointIdRelease c"cuLogicalEndpointIdRelease" 13030 (le_id: $crate::CUlogicalEndpointId, count: $crate::cuuint32_t);
            optional cuLogicalEndpointIdReserve c"cuLogicalEndpointIdReserve" 13030 (le_id: *mut $crate::CUlogicalEndpointId, count: $crate::cuuint32_t);
            optional cuLogicalEndpointImport c"cuLogicalEndpointImport" 13030 (le_id: $crate::CUlogicalEndpointId, handle: *const ::core::ffi::c_void, handle_type: $crate::CUlogicalEndpointIpcHandleType);
            optional cuLogicalEndpointQuery c"cuLogicalEndpointQuery" 13030 (le_id: $crate::CUlogicalEndpointId, count: $crate::cuuint32_t, query_status: *mut ::core::ffi::c_int);
            optional cuLogicalEndpointUnbind c"cuLogicalEndpointUnbind" 13030 (le_id: $crate::CUlogicalEndpointId, dev: $crate::CUdevice, offset: $crate::cuuint64_t, size: $crate::cuuint64_t);
            optional cuLogsCurrent c"cuLogsCurrent" 12090 (iterator: *mut $crate::CUlogIterator, flags: ::core::ffi::c_uint);
            optional cuLogsDumpToFile c"cuLogsDumpToFile" 12090 (iterator: *mut $crate::CUlogIterator, path_to_file: *const ::core::ffi::c_char, flags: ::core::ffi::c_uint);
            optional cuLogsDumpToMemory c"cuLogsDumpToMemory" 12090 (iterator: *mut $crate::CUlogIterator, buffer: *mut ::core::ffi::c_char, size: *mut usize, flags: ::core::ffi::c_uint);
            optional cuLogsRegisterCallback c"cuLogsRegisterCallback" 12090 (callback_func: $crate::CUlogsCallback, user_data: *mut ::core::ffi::c_void, callback: *mut $crate::CUlogsCallbackHandle);
            optional cuLogsUnregisterCallback c"cuLogsUnregisterCallback" 12090 (callback: $crate::CUlogsCallbackHandle);
            baseline cuMemAddressFree c"cuMemAddressFree" 10020 (ptr: $crate::CUdeviceptr_v2, size: usize);
            baseline cuMemAddressReserve c"cuMemAddressReserve" 10020 (ptr: *mut $crate::CUdeviceptr_v2, size: usize, alignment: usize, addr: $crate::CUdeviceptr_v2, flags: ::core::ffi::c_ulonglong);
            baseline cuMemAdvise c"cuMemAdvise" 12020 (dev_ptr: $crate::CUdeviceptr_v2, count: usize, advice: $crate::CUmem_advise, location: $crate::CUmemLocation_v1);
            baseline cuMemAlloc c"cuMemAlloc" 3020 (dptr: *mut $crate::CUdeviceptr_v2, bytesize: usize);
            baseline cuMemAllocAsync c"cuMemAllocAsync" 11020 (dptr: *mut $crate::CUdeviceptr_v2, bytesize: usize, h_stream: $crate::CUstream);
            baseline cuMemAllocFromPoolAsync c"cuMemAllocFromPoolAsync" 11020 (dptr: *mut $crate::CUdeviceptr_v2, bytesize: usize, pool: $crate::CUmemoryPool, h_stream: $crate::CUstream);
            baseline cuMemAllocHost c"cuMemAllocHost" 3020 (pp: *mut *mut ::core::ffi::c_void, bytesize: usize);
            baseline cuMemAllocManaged c"cuMemAllocManaged" 6000 (dptr: *mut $crate::CUdeviceptr_v2, bytesize: usize, flags: ::core::ffi::c_uint);
            baseline cuMemAllocPitch c"cuMemAllocPitch" 3020 (dptr: *mut $crate::CUdeviceptr_v2, p_pitch: *mut usize, width_in_bytes: usize, height: usize, element_size_bytes: ::core::ffi::c_uint);
            optional cuMemBatchDecompressAsync c"cuMemBatchDecompressAsync" 12060 (params_array: *mut $crate::CUmemDecompressParams, count: usize, flags: ::core::ffi::c_uint, error_index: *mut usize, stream: $crate::CUstream);
            baseline cuMemCreate c"cuMemCreate" 10020 (handle: *mut $crate::CUmemGenericAllocationHandle_v1, size: usize, prop: *const $crate::CUmemAllocationProp_v1, flags: ::core::ffi::c_ulonglong);
            optional cuMemDiscardAndPrefetchBatchAsync c"cuMemDiscardAndPrefetchBatchAsync" 13000 (dptrs: *mut $crate::CUdeviceptr_v2, sizes: *mut usize, count: usize, prefetch_locs: *mut $crate::CUmemLocation_v1, prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: ::core::ffi::c_ulonglong, h_stream: $crate::CUstream);
            optional cuMemDiscardBatchAsync c"cuMemDiscardBatchAsync" 13000 (dptrs: *mut $crate::CUdeviceptr_v2, sizes: *mut usize, count: usize, flags: ::core::ffi::c_ulonglong, h_stream: $crate::CUstream);
            baseline cuMemExportToShareableHandle c"cuMemExportToShareableHandle" 10020 (shareable_handle: *mut ::core::ffi::c_void, handle: $crate::CUmemGenericAllocationHandle_v1, handle_type: $crate::CUmemAllocationHandleType, flags: ::core::ffi::c_ulonglong);
            baseline cuMemFree c"cuMemFree" 3020 (dptr: $crate::CUdeviceptr_v2);
            baseline cuMemFreeAsync c"cuMemFreeAsync" 11020 (dptr: $crate::CUdeviceptr_v2, h_stream: $crate::CUstream);
            baseline cuMemFreeHost c"cuMemFreeHost" 2000 (p: *mut ::core::ffi::c_void);
            baseline cuMemGetAccess c"cuMemGetAccess" 10020 (flags: *mut ::core::ffi::c_ulonglong, location: *const $crate::CUmemLocation_v1, ptr: $crate::CUdeviceptr_v2);
            baseline cuMemGetAddressRange c"cuMemGetAddressRange" 3020 (pbase: *mut $crate::CUdeviceptr_v2, psize: *mut usize, dptr: $crate::CUdeviceptr_v2);
            baseline cuMemGetAllocationGranularity c"cuMemGetAllocationGranularity" 10020 (granularity: *mut usize, prop: *const $crate::CUmemAllocationProp_v1, option: $crate::CUmemAllocationGranularity_flags);
            baseline cuMemGetAllocationPropertiesFromHandle c"cuMemGetAllocationPropertiesFromHandle" 10020 (prop: *mut $crate::CUmemAllocationProp_v1, handle: $crate::CUmemGenericAllocationHandle_v1);
            optional cuMemGetDefaultMemPool c"cuMemGetDefaultMemPool" 13000 (pool_out: *mut $crate::CUmemoryPool, location: *mut $crate::CUmemLocation, type_: $crate::CUmemAllocationType);
            baseline cuMemGetHandleForAddressRange c"cuMemGetHandleForAddressRange" 11070 (handle: *mut ::core::ffi::c_void, dptr: $crate::CUdeviceptr, size: usize, handle_type: $crate::CUmemRangeHandleType, flags: ::core::ffi::c_ulonglong);
            baseline cuMemGetInfo c"cuMemGetInfo" 3020 (free: *mut usize, total: *mut usize);
            optional cuMemGetLocationInfo c"cuMemGetLocationInfo" 13040 (ptr: $crate::CUdeviceptr_v2, size: usize, summary_granularity: usize, sampling_granularity: usize, location_out: *mut $crate::CUmemLocation_v1);
            optional cuMemGetMemPool c"cuMemGetMemPool" 13000 (pool_out: *mut $crate::CUmemoryPool, location: *mut $crate::CUmemLocation, type_: $crate::CUmemAllocationType);
            baseline cuMemHostAlloc c"cuMemHostAlloc" 2020 (pp: *mut *mut ::core::ffi::c_void, bytesize: usize, flags: ::core::ffi::c_uint);
            baseline cuMemHostGetDevicePointer c"cuMemHostGetDevicePointer" 3020 (pdptr: *mut $crate::CUdeviceptr_v2, p: *mut ::core::ffi::c_void, flags: ::core::ffi::c_uint);
            baseline cuMemHostGetFlags c"cuMemHostGetFlags" 2030 (p_flags: *mut ::core::ffi::c_uint, p: *mut ::core::ffi::c_void);
            baseline cuMemHostRegister c"cuMemHostRegister" 6050 (p: *mut ::core::ffi::c_void, bytesize: usize, flags: ::core::ffi::c_uint);
            baseline cuMemHostUnregister c"cuMemHostUnregister" 4000 (p: *mut ::core::ffi::c_void);
            baseline cuMemImportFromShareableHandle c"cuMemImportFromShareableHandle" 10020 (handle: *mut $crate::CUmemGenericAllocationHandle_v1, os_handle: *mut ::core::ffi::c_void, sh_handle_type: $crate::CUmemAllocationHandleType);
            baseline cuMemMap c"cuMemMap" 10020 (ptr: $crate::CUdeviceptr_v2, size: usize, offset: usize, handle: $crate::CUmemGenericAllocationHandle_v1, flags: ::core::ffi::c_ulonglong);
            baseline cuMemMapArrayAsync c"cuMemMapArrayAsync" 11010 (map_info_list: *mut $crate::CUarrayMapInfo_v1, count: ::core::ffi::c_uint, h_stream: $crate::CUstream);
            baseline cuMemPoolCreate c"cuMemPoolCreate" 11020 (pool: *mut $crate::CUmemoryPool, pool_props: *const $crate::CUmemPoolProps_v1);
            baseline cuMemPoolDestroy c"cuMemPoolDestroy" 11020 (pool: $crate::CUmemoryPool);
            baseline cuMemPoolExportPointer c"cuMemPoolExportPointer" 11020 (share_data_out: *mut $crate::CUmemPoolPtrExportData_v1, ptr: $crate::CUdeviceptr_v2);
            baseline cuMemPoolExportToShareableHandle c"cuMemPoolExportToShareableHandle" 11020 (handle_out: *mut ::core::ffi::c_void, pool: $crate::CUmemoryPool, handle_type: $crate::CUmemAllocationHandleType, flags: ::core::ffi::c_ulonglong);
            baseline cuMemPoolGetAccess c"cuMemPoolGetAccess" 11020 (flags: *mut $crate::CUmemAccess_flags, mem_pool: $crate::CUmemoryPool, location: *mut $crate::CUmemLocation_v1);
            baseline cuMemPoolGetAttribute c"cuMemPoolGetAttribute" 11020 (pool: $crate::CUmemoryPool, attr: $crate::CUmemPool_attribute, value: *mut ::core::ffi::c_void);
            baseline cuMemPoolImportFromShareableHandle c"cuMemPoolImportFromShareableHandle" 11020 (pool_out: *mut $crate::CUmemoryPool, handle: *mut ::core::ffi::c_void, handle_type: $crate::CUmemAllocationHandleType, flags: ::core::ffi::c_ulonglong);
            baseline cuMemPoolImportPointer c"cuMemPoolImportPointer" 11020 (ptr_out: *mut $crate::CUdeviceptr_v2, pool: $crate::CUmemoryPool, share_data: *mut $crate::CUmemPoolPtrExportData_v1);
            baseline cuMemPoolSetAccess c"cuMemPoolSetAccess" 11020 (pool: $crate::CUmemoryPool, map: *const $crate::CUmemAccessDesc_v1, count: usize);
            baseline cuMemPoolSetAttribute c"cuMemPoolSetAttribute" 11020 (pool: $crate::CUmemoryPool, attr: $crate::CUmemPool_attribute, value: *mut ::core::ffi::c_void);
            baseline cuMemPoolTrimTo c"cuMemPoolTrimTo" 11020 (pool: $crate::CUmemoryPool, min_bytes_to_keep: usize);
            baseline cuMemPrefetchAsync c"cuMemPrefetchAsync" 12020 (dev_ptr: $crate::CUdeviceptr_v2, count: usize, location: $crate::CUmemLocation_v1, flags: ::core::ffi::c_uint, h_stream: $crate::CUstream);
            optional cuMemPrefetchBatchAsync c"cuMemPrefetchBatchAsync" 13000 (dptrs: *mut $crate::CUdeviceptr_v2, sizes: *mut usize, count: usize, prefetch_locs: *mut $crate::CUmemLocation_v1, prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: ::core::ffi::c_ulonglong, h_stream: $crate::CUstream);
            baseline cuMemRangeGetAttribute c"cuMemRangeGetAttribute" 8000 (data: *mut ::core::ffi::c_void, data_size: usize, attribute: $crate::CUmem_range_attribute, dev_ptr: $crate::CUdeviceptr_v2, count: usize);
            baseline cuMemRangeGetAttributes c"cuMemRangeGetAttributes" 8000 (data: *mut *mut ::core::ffi::c_void, data_sizes: *mut usize, attributes: *mut $crate::CUmem_range_attribute, num_attributes: usize, dev_ptr: $crate::CUdeviceptr_v2, count: usize);
            baseline cuMemRelease c"cuMemRelease" 10020 (handle: $crate::CUmemGenericAllocationHandle_v1);
            baseline cuMemRetainAllocationHandle c"cuMemRetainAllocationHandle" 11000 (handle: *mut $crate::CUmemGenericAllocationHandle_v1, addr: *mut ::core::ffi::c_void);
            baseline cuMemSetAccess c"cuMemSetAccess" 10020 (ptr: $crate::CUdeviceptr_v2, size: usize, desc: *const $crate::CUmemAccessDesc_v1, count: usize);
            optional cuMemSetMemPool c"cuMemSetMemPool" 13000 (location: *mut $crate::CUmemLocation, type_: $crate::CUmemAllocationType, pool: $crate::CUmemoryPool);
            baseline cuMemUnmap c"cuMemUnmap" 10020 (ptr: $crate::CUdeviceptr_v2, size: usize);
            baseline cuMemcpy c"cuMemcpy" 4000 (dst: $crate::CUdeviceptr_v2, src: $crate::CUdeviceptr_v2, byte_count: usize);
            baseline cuMemcpy2D c"cuMemcpy2D" 3020 (p_copy: *const $crate::CUDA_MEMCPY2D_v2);
            baseline cuMemcpy2DAsync c"cuMemcpy2DAsync" 3020 (p_copy: *const $crate::CUDA_MEMCPY2D_v2, h_stream: $crate::CUstream);
            baseline cuMemcpy2DUnaligned c"cuMemcpy2DUnaligned" 3020 (p_copy: *const $crate::CUDA_MEMCPY2D_v2);
            baseline cuMemcpy3D c"cuMemcpy3D" 3020 (p_copy: *const $crate::CUDA_MEMCPY3D_v2);
            baseline cuMemcpy3DAsync c"cuMemcpy3DAsync" 3020 (p_copy: *const $crate::CUDA_MEMCPY3D_v2, h_stream: $crate::CUstream);
            optional cuMemcpy3DBatchAsync c"cuMemcpy3DBatchAsync" 12080 (num_params: usize, op_list: *mut $crate::CUDA_MEMCPY3D_BATCH_OP_v1, fail_idx: *mut usize, flags: ::core::ffi::c_ulonglong, h_stream: $crate::CUstream);
            optional cuMemcpy3DBatchAsync_v13000 c"cuMemcpy3DBatchAsync" 13000 (num_params: usize, op_list: *mut $crate::CUDA_MEMCPY3D_BATCH_OP_v1, flags: ::core::ffi::c_ulonglong, h_stream: $crate::CUstream);
            baseline cuMemcpy3DPeer c"cuMemcpy3DPeer" 4000 (p_copy: *const $crate::CUDA_MEMCPY3D_PEER_v1);
            baseline cuMemcpy3DPeerAsync c"cuMemcpy3DPeerAsync" 4000 (p_copy: *const $crate::CUDA_MEMCPY3D_PEER_v1, h_stream: $crate::CUstream);
            optional cuMemcpy3DWithAttributesAsync c"cuMemcpy3DWithAttributesAsync" 13020 (op: *mut $crate::CUDA_MEMCPY3D_BATCH_OP_v1, flags: ::core::ffi::c_ulonglong, h_stream: $crate::CUstream);
            baseline cuMemcpyAsync c"cuMemcpyAsync" 4000 (dst: $crate::CUdeviceptr_v2, src: $crate::CUdeviceptr_v2, byte_count: usize, h_stream: $crate::CUstream);
            baseline cuMemcpyAtoA c"cuMemcpyAtoA" 3020 (dst_array: $crate::CUarray, dst_offset: usize, src_array: $crate::CUarray, src_offset: usize, byte_count: usize);
            baseline cuMemcpyAtoD c"cuMemcpyAtoD" 3020 (dst_device: $crate::CUdeviceptr_v2, src_array: $crate::CUarray, src_offset: usize, byte_count: usize);
            baseline cuMemcpyAtoH c"cuMemcpyAtoH" 3020 (dst_host: *mut ::core::ffi::c_void, src_array: $crate::CUarray, src_offset: usize, byte_count: usize);
            baseline cuMemcpyAtoHAsync c"cuMemcpyAtoHAsync" 3020 (dst_host: *mut ::core::ffi::c_void, src_array: $crate::CUarray, src_offset: usize, byte_count: usize, h_stream: $crate::CUstream);
            optional cuMemcpyBatchAsync c"cuMemcpyBatchAsync" 12080 (dsts: *mut $crate::CUdeviceptr_v2, srcs: *mut $crate::CUdeviceptr_v2, sizes: *mut usize, count: usize, attrs: *mut $crate::CUmemcpyAttributes_v1, attr_idxs: *mut usize, num_attrs: usize, fail_idx: *mut usize, h_stream: $crate::CUstream);
            optional cuMemcpyBatchAsync_v13000 c"cuMemcpyBatchAsync" 13000 (dsts: *mut $crate::CUdeviceptr_v2, srcs: *mut $crate::CUdeviceptr_v2, sizes: *mut usize, count: usize, attrs: *mut $crate::CUmemcpyAttributes_v1, attr_idxs: *mut usize, num_attrs: usize, h_stream: $crate::CUstream);
            baseline cuMemcpyDtoA c"cuMemcpyDtoA" 3020 (dst_array: $crate::CUarray, dst_offset: usize, src_device: $crate::CUdeviceptr_v2, byte_count: usize);
            baseline cuMemcpyDtoD c"cuMemcpyDtoD" 3020 (dst_device: $crate::CUdeviceptr_v2, src_device: $crate::CUdeviceptr_v2, byte_count: usize);
            baseline cuMemcpyDtoDAsync c"cuMemcpyDtoDAsync" 3020 (dst_device: $crate::CUdeviceptr_v2, src_device: $crate::CUdeviceptr_v2, byte_count: usize, h_stream: $crate::CUstream);
            baseline cuMemcpyDtoH c"cuMemcpyDtoH" 3020 (dst_host: *mut ::core::ffi::c_void, src_device: $crate::CUdeviceptr_v2, byte_count: usize);
            baseline cuMemcpyDtoHAsync c"cuMemcpyDtoHAsync" 3020 (dst_host: *mut ::core::ffi::c_void, src_device: $crate::CUdeviceptr_v2, byte_count: usize, h_stream: $crate::CUstream);
            baseline cuMemcpyHtoA c"cuMemcpyHtoA" 3020 (dst_array: $crate::CUarray, dst_offset: usize, src_host: *const ::core::ffi::c_void, byte_count: usize);
            baseline cuMemcpyHtoAAsync c"cuMemcpyHtoAAsync" 3020 (dst_array: $crate::CUarray, dst_offset: usize, src_host: *const ::core::ffi::c_void, byte_count: usize, h_stream: $crate::CUstream);
            baseline cuMemcpyHtoD c"cuMemcpyHtoD" 3020 (dst_device: $crate::CUdeviceptr_v2, src_host: *const ::core::ffi::c_void, byte_count: usize);
            baseline cuMemcpyHtoDAsync c"cuMemcpyHtoDAsync" 3020 (dst_device: $crate::CUdeviceptr_v2, src_host: *const ::core::ffi::c_void, byte_count: usize, h_stream: $crate::CUstream);
            baseline cuMemcpyPeer c"cuMemcpyPeer" 4000 (dst_device: $crate::CUdeviceptr_v2, dst_context: $crate::CUcontext, src_device: $crate::CUdeviceptr_v2, src_context: $crate::CUcontext, byte_count: usize);
            baseline cuMemcpyPeerAsync c"cuMemcpyPeerAsync" 4000 (dst_device: $crate::CUdeviceptr_v2, dst_context: $crate::CUcontext, src_device: $crate::CUdeviceptr_v2, src_context: $crate::CUcontext, byte_count: usize, h_stream: $crate::CUstream);
            optional cuMemcpyWithAttributesAsync c"cuMemcpyWithAttributesAsync" 13020 (dst: $crate::CUdeviceptr_v2, src: $crate::CUdeviceptr_v2, size: usize, attr: *mut $crate::CUmemcpyAttributes_v1, h_stream: $crate::CUstream);
            baseline cuMemsetD16 c"cuMemsetD16" 3020 (dst_device: $crate::CUdeviceptr_v2, us: ::core::ffi::c_ushort, n: usize);
            baseline cuMemsetD16Async c"cuMemsetD16Async" 3020 (dst_device: $crate::CUdeviceptr_v2, us: ::core::ffi::c_ushort, n: usize, h_stream: $crate::CUstream);
            baseline cuMemsetD2D16 c"cuMemsetD2D16" 3020 (dst_device: $crate::CUdeviceptr_v2, dst_pitch: usize, us: ::core::ffi::c_ushort, width: usize, height: usize);
            baseline cuMemsetD2D16Async c"cuMemsetD2D16Async" 3020 (dst_device: $crate::CUdeviceptr_v2, dst_pitch: usize, us: ::core::ffi::c_ushort, width: usize, height: usize, h_stream: $crate::CUstream);
            baseline cuMemsetD2D32 c"cuMemsetD2D32" 3020 (dst_device: $crate::CUdeviceptr_v2, dst_pitch: usize, ui: ::core::ffi::c_uint, width: usize, height: usize);
            baseline cuMemsetD2D32Async c"cuMemsetD2D32Async" 3020 (dst_device: $crate::CUdeviceptr_v2, dst_pitch: usize, ui: ::core::ffi::c_uint, width: usize, height: usize, h_stream: $crate::CUstream);
            baseline cuMemsetD2D8 c"cuMemsetD2D8" 3020 (dst_device: $crate::CUdeviceptr_v2, dst_pitch: usize, uc: ::core::ffi::c_uchar, width: usize, height: usize);
            baseline cuMemsetD2D8Async c"cuMemsetD2D8Async" 3020 (dst_device: $crate::CUdeviceptr_v2, dst_pitch: usize, uc: ::core::ffi::c_uchar, width: usize, height: usize, h_stream: $crate::CUstream);
            baseline cuMemsetD32 c"cuMemsetD32" 3020 (dst_device: $crate::CUdeviceptr_v2, ui: ::core::ffi::c_uint, n: usize);
            baseline cuMemsetD32Async c"cuMemsetD32Async" 3020 (dst_device: $crate::CUdeviceptr_v2, ui: ::core::ffi::c_uint, n: usize, h_stream: $crate::CUstream);
            baseline cuMemsetD8 c"cuMemsetD8" 3020 (dst_device: $crate::CUdeviceptr_v2, uc: ::core::ffi::c_uchar, n: usize);
            baseline cuMemsetD8Async c"cuMemsetD8Async" 3020 (dst_device: $crate::CUdeviceptr_v2, uc: ::core::ffi::c_uchar, n: usize, h_stream: $crate::CUstream);
            baseline cuMipmappedArrayCreate c"cuMipmappedArrayCreate" 5000 (p_handle: *mut $crate::CUmipmappedArray, p_mipmapped_array_desc: *const $crate::CUDA_ARRAY3D_DESCRIPTOR_v2, num_mipmap_levels: ::core::ffi::c_uint);
            baseline cuMipmappedArrayDestroy c"cuMipmappedArrayDestroy" 5000 (h_mipmapped_array: $crate::CUmipmappedArray);
            baseline cuMipmappedArrayGetLevel c"cuMipmappedArrayGetLevel" 5000 (p_level_array: *mut $crate::CUarray, h_mipmapped_array: $crate::CUmipmappedArray, level: ::core::ffi::c_uint);
            baseline cuMipmappedArrayGetMemoryRequirements c"cuMipmappedArrayGetMemoryRequirements" 11060 (memory_requirements: *mut $crate::CUDA_ARRAY_MEMORY_REQUIREMENTS_v1, mipmap: $crate::CUmipmappedArray, device: $crate::CUdevice);
            baseline cuMipmappedArrayGetSparseProperties c"cuMipmappedArrayGetSparseProperties" 11010 (sparse_properties: *mut $crate::CUDA_ARRAY_SPARSE_PROPERTIES_v1, mipmap: $crate::CUmipmappedArray);
            optional cuModuleEnumerateFunctions c"cuModuleEnumerateFunctions" 12040 (functions: *mut $crate::CUfunction, num_functions: ::core::ffi::c_uint, mod_: $crate::CUmodule);
            baseline cuModuleGetFunction c"cuModuleGetFunction" 2000 (hfunc: *mut $crate::CUfunction, hmod: $crate::CUmodule, name: *const ::core::ffi::c_char);
            optional cuModuleGetFunctionCount c"cuModuleGetFunctionCount" 12040 (count: *mut ::core::ffi::c_uint, hmod: $crate::CUmodule);
            baseline cuModuleGetGlobal c"cuModuleGetGlobal" 3020 (dptr: *mut $crate::CUdeviceptr_v2, bytes: *mut usize, hmod: $crate::CUmodule, name: *const ::core::ffi::c_char);
            baseline cuModuleGetLoadingMode c"cuModuleGetLoadingMode" 11070 (mode: *mut $crate::CUmoduleLoadingMode);
            baseline cuModuleGetSurfRef c"cuModuleGetSurfRef" 3000 (p_surf_ref: *mut $crate::CUsurfref, hmod: $crate::CUmodule, name: *const ::core::ffi::c_char);
            baseline cuModuleGetTexRef c"cuModuleGetTexRef" 2000 (p_tex_ref: *mut $crate::CUtexref, hmod: $crate::CUmodule, name: *const ::core::ffi::c_char);
            baseline cuModuleLoad c"cuModuleLoad" 2000 (module: *mut $crate::CUmodule, fname: *const ::core::ffi::c_char);
            baseline cuModuleLoadData c"cuModuleLoadData" 2000 (module: *mut $crate::CUmodule, image: *const ::core::ffi::c_void);
            baseline cuModuleLoadDataEx c"cuModuleLoadDataEx" 2010 (module: *mut $crate::CUmodule, image: *const ::core::ffi::c_void, num_options: ::core::ffi::c_uint, options: *mut $crate::CUjit_option, option_values: *mut *mut ::core::ffi::c_void);
            baseline cuModuleLoadFatBinary c"cuModuleLoadFatBinary" 2000 (module: *mut $crate::CUmodule, fat_cubin: *const ::core::ffi::c_void);
            baseline cuModuleUnload c"cuModuleUnload" 2000 (hmod: $crate::CUmodule);
            baseline cuMulticastAddDevice c"cuMulticastAddDevice" 12010 (mc_handle: $crate::CUmemGenericAllocationHandle, dev: $crate::CUdevice);
            baseline cuMulticastBindAddr c"cuMulticastBindAddr" 12010 (mc_handle: $crate::CUmemGenericAllocationHandle, mc_offset: usize, memptr: $crate::CUdeviceptr, size: usize, flags: ::core::ffi::c_ulonglong);
            optional cuMulticastBindAddr_v13010 c"cuMulticastBindAddr" 13010 (mc_handle: $crate::CUmemGenericAllocationHandle, dev: $crate::CUdevice, mc_offset: usize, memptr: $crate::CUdeviceptr, size: usize, flags: ::core::ffi::c_ulonglong);
            baseline cuMulticastBindMem c"cuMulticastBindMem" 12010 (mc_handle: $crate::CUmemGenericAllocationHandle, mc_offset: usize, mem_handle: $crate::CUmemGenericAllocationHandle, mem_offset: usize, size: usize, flags: ::core::ffi::c_ulonglong);
            optional cuMulticastBindMem_v13010 c"cuMulticastBindMem" 13010 (mc_handle: $crate::CUmemGenericAllocationHandle, dev: $crate::CUdevice, mc_offset: usize, mem_handle: $crate::CUmemGenericAllocationHandle, mem_offset: usize, size: usize, flags: ::core::ffi::c_ulonglong);
            baseline cuMulticastCreate c"cuMulticastCreate" 12010 (mc_handle: *mut $crate::CUmemGenericAllocationHandle, prop: *const $crate::CUmulticastObjectProp);
            baseline cuMulticastGetGranularity c"cuMulticastGetGranularity" 12010 (granularity: *mut usize, prop: *const $crate::CUmulticastObjectProp, option: $crate::CUmulticastGranularity_flags);
            baseline cuMulticastUnbind c"cuMulticastUnbind" 12010 (mc_handle: $crate::CUmemGenericAllocationHandle, dev: $crate::CUdevice, mc_offset: usize, size: usize);
            baseline cuOccupancyAvailableDynamicSMemPerBlock c"cuOccupancyAvailableDynamicSMemPerBlock" 10020 (dynamic_smem_size: *mut usize, func: $crate::CUfunction, num_blocks: ::core::ffi::c_int, block_size: ::core::ffi::c_int);
            baseline cuOccupancyMaxActiveBlocksPerMultiprocessor c"cuOccupancyMaxActiveBlocksPerMultiprocessor" 6050 (num_blocks: *mut ::core::ffi::c_int, func: $crate::CUfunction, block_size: ::core::ffi::c_int, dynamic_s_mem_size: usize);
            baseline cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags c"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 7000 (num_blocks: *mut ::core::ffi::c_int, func: $crate::CUfunction, block_size: ::core::ffi::c_int, dynamic_s_mem_size: usize, flags: ::core::ffi::c_uint);
            baseline cuOccupancyMaxActiveClusters c"cuOccupancyMaxActiveClusters" 11070 (num_clusters: *mut ::core::ffi::c_int, func: $crate::CUfunction, config: *const $crate::CUlaunchConfig);
            baseline cuOccupancyMaxPotentialBlockSize c"cuOccupancyMaxPotentialBlockSize" 6050 (min_grid_size: *mut ::core::ffi::c_int, block_size: *mut ::core::ffi::c_int, func: $crate::CUfunction, block_size_to_dynamic_s_mem_size: $crate::CUoccupancyB2DSize, dynamic_s_mem_size: usize, block_size_limit: ::core::ffi::c_int);
            baseline cuOccupancyMaxPotentialBlockSizeWithFlags c"cuOccupancyMaxPotentialBlockSizeWithFlags" 7000 (min_grid_size: *mut ::core::ffi::c_int, block_size: *mut ::core::ffi::c_int, func: $crate::CUfunction, block_size_to_dynamic_s_mem_size: $crate::CUoccupancyB2DSize, dynamic_s_mem_size: usize, block_size_limit: ::core::ffi::c_int, flags: ::core::ffi::c_uint);
            baseline cuOccupancyMaxPotentialClusterSize c"cuOccupancyMaxPotentialClusterSize" 11070 (cluster_size: *mut ::core::ffi::c_int, func: $crate::CUfunction, config: *const $crate::CUlaunchConfig);
            baseline cuParamSetSize c"cuParamSetSize" 2000 (hfunc: $crate::CUfunction, numbytes: ::core::ffi::c_uint);
            baseline cuParamSetTexRef c"cuParamSetTexRef" 2000 (hfunc: $crate::CUfunction, texunit: ::core::ffi::c_int, h_tex_ref: $crate::CUtexref);
            baseline cuParamSetf c"cuParamSetf" 2000 (hfunc: $crate::CUfunction, offset: ::core::ffi::c_int, value: f32);
            baseline cuParamSeti c"cuParamSeti" 2000 (hfunc: $crate::CUfunction, offset: ::core::ffi::c_int, value: ::core::ffi::c_uint);
            baseline cuParamSetv c"cuParamSetv" 2000 (hfunc: $crate::CUfunction, offset: ::core::ffi::c_int, ptr: *mut ::core::ffi::c_void, numbytes: ::core::ffi::c_uint);
            baseline cuPointerGetAttribute c"cuPointerGetAttribute" 4000 (data: *mut ::core::ffi::c_void, attribute: $crate::CUpointer_attribute, ptr: $crate::CUdeviceptr_v2);
            baseline cuPointerGetAttributes c"cuPointerGetAttributes" 7000 (num_attributes: ::core::ffi::c_uint, attributes: *mut $crate::CUpointer_attribute, data: *mut *mut ::core::ffi::c_void, ptr: $crate::CUdeviceptr_v2);
            baseline cuPointerSetAttribute c"cuPointerSetAttribute" 6000 (value: *const ::core::ffi::c_void, attribute: $crate::CUpointer_attribute, ptr: $crate::CUdeviceptr_v2);
            baseline cuProfilerStart c"cuProfilerStart" 4000 ();
            baseline cuProfilerStop c"cuProfilerStop" 4000 ();
            baseline cuSignalExternalSemaphoresAsync c"cuSignalExternalSemaphoresAsync" 10000 (ext_sem_array: *const $crate::CUexternalSemaphore, params_array: *const $crate::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1, num_ext_sems: ::core::ffi::c_uint, stream: $crate::CUstream);
            baseline cuStreamAddCallback c"cuStreamAddCallback" 5000 (h_stream: $crate::CUstream, callback: $crate::CUstreamCallback, user_data: *mut ::core::ffi::c_void, flags: ::core::ffi::c_uint);
            baseline cuStreamAttachMemAsync c"cuStreamAttachMemAsync" 6000 (h_stream: $crate::CUstream, dptr: $crate::CUdeviceptr_v2, length: usize, flags: ::core::ffi::c_uint);
            baseline cuStreamBatchMemOp c"cuStreamBatchMemOp" 11070 (stream: $crate::CUstream, count: ::core::ffi::c_uint, param_array: *mut $crate::CUstreamBatchMemOpParams, flags: ::core::ffi::c_uint);
            baseline cuStreamBeginCapture c"cuStreamBeginCapture" 10010 (h_stream: $crate::CUstream, mode: $crate::CUstreamCaptureMode);
            optional cuStreamBeginCaptureToCig c"cuStreamBeginCaptureToCig" 13010 (h_stream: $crate::CUstream, stream_cig_capture_params: *mut $crate::CUstreamCigCaptureParams);
            optional cuStreamBeginCaptureToGraph c"cuStreamBeginCaptureToGraph" 12030 (h_stream: $crate::CUstream, h_graph: $crate::CUgraph, dependencies: *const $crate::CUgraphNode, dependency_data: *const $crate::CUgraphEdgeData, num_dependencies: usize, mode: $crate::CUstreamCaptureMode);
            optional cuStreamBeginRecaptureToGraph c"cuStreamBeginRecaptureToGraph" 13030 (h_stream: $crate::CUstream, mode: $crate::CUstreamCaptureMode, h_graph: $crate::CUgraph, callback_func: $crate::CUgraphRecaptureCallback, user_data: *mut ::core::ffi::c_void);
            baseline cuStreamCopyAttributes c"cuStreamCopyAttributes" 11000 (dst_stream: $crate::CUstream, src_stream: $crate::CUstream);
            baseline cuStreamCreate c"cuStreamCreate" 2000 (ph_stream: *mut $crate::CUstream, flags: ::core::ffi::c_uint);
            baseline cuStreamCreateWithPriority c"cuStreamCreateWithPriority" 5050 (ph_stream: *mut $crate::CUstream, flags: ::core::ffi::c_uint, priority: ::core::ffi::c_int);
            baseline cuStreamDestroy c"cuStreamDestroy" 4000 (h_stream: $crate::CUstream);
            baseline cuStreamEndCapture c"cuStreamEndCapture" 10000 (h_stream: $crate::CUstream, ph_graph: *mut $crate::CUgraph);
            optional cuStreamEndCaptureToCig c"cuStreamEndCaptureToCig" 13010 (h_stream: $crate::CUstream);
            baseline cuStreamGetAttribute c"cuStreamGetAttribute" 11000 (h_stream: $crate::CUstream, attr: $crate::CUstreamAttrID, value: *mut $crate::CUstreamAttrValue_v1);
            baseline cuStreamGetCaptureInfo c"cuStreamGetCaptureInfo" 11030 (h_stream: $crate::CUstream, capture_status_out: *mut $crate::CUstreamCaptureStatus, id_out: *mut $crate::cuuint64_t, graph_out: *mut $crate::CUgraph, dependencies_out: *mut *const $crate::CUgraphNode, num_dependencies_out: *mut usize);
            optional cuStreamGetCaptureInfo_v12030 c"cuStreamGetCaptureInfo" 12030 (h_stream: $crate::CUstream, capture_status_out: *mut $crate::CUstreamCaptureStatus, id_out: *mut $crate::cuuint64_t, graph_out: *mut $crate::CUgraph, dependencies_out: *mut *const $crate::CUgraphNode, edge_data_out: *mut *const $crate::CUgraphEdgeData, num_dependencies_out: *mut usize);
            baseline cuStreamGetCtx c"cuStreamGetCtx" 9020 (h_stream: $crate::CUstream, pctx: *mut $crate::CUcontext);
            optional cuStreamGetCtx_v12050 c"cuStreamGetCtx" 12050 (h_stream: $crate::CUstream, pctx: *mut $crate::CUcontext, p_green_ctx: *mut $crate::CUgreenCtx);
            optional cuStreamGetDevResource c"cuStreamGetDevResource" 13010 (h_stream: $crate::CUstream, result: *mut $crate::CUdevResource, type_: $crate::CUdevResourceType);
            optional cuStreamGetDevice c"cuStreamGetDevice" 12080 (h_stream: $crate::CUstream, device: *mut $crate::CUdevice);
            baseline cuStreamGetFlags c"cuStreamGetFlags" 5050 (h_stream: $crate::CUstream, flags: *mut ::core::ffi::c_uint);
            optional cuStreamGetGreenCtx c"cuStreamGetGreenCtx" 12040 (h_stream: $crate::CUstream, ph_ctx: *mut $crate::CUgreenCtx);
            baseline cuStreamGetId c"cuStreamGetId" 12000 (h_stream: $crate::CUstream, stream_id: *mut ::core::ffi::c_ulonglong);
            baseline cuStreamGetPriority c"cuStreamGetPriority" 5050 (h_stream: $crate::CUstream, priority: *mut ::core::ffi::c_int);
            baseline cuStreamIsCapturing c"cuStreamIsCapturing" 10000 (h_stream: $crate::CUstream, capture_status: *mut $crate::CUstreamCaptureStatus);
            baseline cuStreamQuery c"cuStreamQuery" 2000 (h_stream: $crate::CUstream);
            baseline cuStreamSetAttribute c"cuStreamSetAttribute" 11000 (h_stream: $crate::CUstream, attr: $crate::CUstreamAttrID, param: *const $crate::CUstreamAttrValue_v1);
            baseline cuStreamSynchronize c"cuStreamSynchronize" 2000 (h_stream: $crate::CUstream);
            baseline cuStreamUpdateCaptureDependencies c"cuStreamUpdateCaptureDependencies" 11030 (h_stream: $crate::CUstream, dependencies: *mut $crate::CUgraphNode, num_dependencies: usize, flags: ::core::ffi::c_uint);
            optional cuStreamUpdateCaptureDependencies_v12030 c"cuStreamUpdateCaptureDependencies" 12030 (h_stream: $crate::CUstream, dependencies: *mut $crate::CUgraphNode, dependency_data: *const $crate::CUgraphEdgeData, num_dependencies: usize, flags: ::core::ffi::c_uint);
            baseline cuStreamWaitEvent c"cuStreamWaitEvent" 3020 (h_stream: $crate::CUstream, h_event: $crate::CUevent, flags: ::core::ffi::c_uint);
            baseline cuStreamWaitValue32 c"cuStreamWaitValue32" 11070 (stream: $crate::CUstream, addr: $crate::CUdeviceptr_v2, value: $crate::cuuint32_t, flags: ::core::ffi::c_uint);
            baseline cuStreamWaitValue64 c"cuStreamWaitValue64" 11070 (stream: $crate::CUstream, addr: $crate::CUdeviceptr_v2, value: $crate::cuuint64_t, flags: ::core::ffi::c_uint);
            baseline cuStreamWriteValue32 c"cuStreamWriteValue32" 11070 (stream: $crate::CUstream, addr: $crate::CUdeviceptr_v2, value: $crate::cuuint32_t, flags: ::core::ffi::c_uint);
            baseline cuStreamWriteValue64 c"cuStreamWriteValue64" 11070 (stream: $crate::CUstream, addr: $crate::CUdeviceptr_v2, value: $crate::cuuint64_t, flags: ::core::ffi::c_uint);
            baseline cuSurfObjectCreate c"cuSurfObjectCreate" 5000 (p_surf_object: *mut $crate::CUsurfObject_v1, p_res_desc: *const $crate::CUDA_RESOURCE_DESC_v1);
            baseline cuSurfObjectDestroy c"cuSurfObjectDestroy" 5000 (surf_object: $crate::CUsurfObject_v1);
            baseline cuSurfObjectGetResourceDesc c"cuSurfObjectGetResourceDesc" 5000 (p_res_desc: *mut $crate::CUDA_RESOURCE_DESC_v1, surf_object: $crate::CUsurfObject_v1);
            baseline cuSurfRefGetArray c"cuSurfRefGetArray" 3000 (ph_array: *mut $crate::CUarray, h_surf_ref: $crate::CUsurfref);
            baseline cuSurfRefSetArray c"cuSurfRefSetArray" 3000 (h_surf_ref: $crate::CUsurfref, h_array: $crate::CUarray, flags: ::core::ffi::c_uint);
            baseline cuTensorMapEncodeIm2col c"cuTensorMapEncodeIm2col" 12000 (tensor_map: *mut $crate::CUtensorMap, tensor_data_type: $crate::CUtensorMapDataType, tensor_rank: $crate::cuuint32_t, global_address: *mut ::core::ffi::c_void, global_dim: *const $crate::cuuint64_t, global_strides: *const $crate::cuuint64_t, pixel_box_lower_corner: *const ::core::ffi::c_int, pixel_box_upper_corner: *const ::core::ffi::c_int, channels_per_pixel: $crate::cuuint32_t, pixels_per_column: $crate::cuuint32_t, element_strides: *const $crate::cuuint32_t, interleave: $crate::CUtensorMapInterleave, swizzle: $crate::CUtensorMapSwizzle, l2_promotion: $crate::CUtensorMapL2promotion, oob_fill: $crate::CUtensorMapFloatOOBfill);
            optional cuTensorMapEncodeIm2colWide c"cuTensorMapEncodeIm2colWide" 12080 (tensor_map: *mut $crate::CUtensorMap, tensor_data_type: $crate::CUtensorMapDataType, tensor_rank: $crate::cuuint32_t, global_address: *mut ::core::ffi::c_void, global_dim: *const $crate::cuuint64_t, global_strides: *const $crate::cuuint64_t, pixel_box_lower_corner_width: ::core::ffi::c_int, pixel_box_upper_corner_width: ::core::ffi::c_int, channels_per_pixel: $crate::cuuint32_t, pixels_per_column: $crate::cuuint32_t, element_strides: *const $crate::cuuint32_t, interleave: $crate::CUtensorMapInterleave, mode: $crate::CUtensorMapIm2ColWideMode, swizzle: $crate::CUtensorMapSwizzle, l2_promotion: $crate::CUtensorMapL2promotion, oob_fill: $crate::CUtensorMapFloatOOBfill);
            baseline cuTensorMapEncodeTiled c"cuTensorMapEncodeTiled" 12000 (tensor_map: *mut $crate::CUtensorMap, tensor_data_type: $crate::CUtensorMapDataType, tensor_rank: $crate::cuuint32_t, global_address: *mut ::core::ffi::c_void, global_dim: *const $crate::cuuint64_t, global_strides: *const $crate::cuuint64_t, box_dim: *const $crate::cuuint32_t, element_strides: *const $crate::cuuint32_t, interleave: $crate::CUtensorMapInterleave, swizzle: $crate::CUtensorMapSwizzle, l2_promotion: $crate::CUtensorMapL2promotion, oob_fill: $crate::CUtensorMapFloatOOBfill);
            baseline cuTensorMapReplaceAddress c"cuTensorMapReplaceAddress" 12000 (tensor_map: *mut $crate::CUtensorMap, global_address: *mut ::core::ffi::c_void);
            optional cuTensorMapSetAllocationClass c"cuTensorMapSetAllocationClass" 13050 (tensor_map: *mut $crate::CUtensorMap, alloc_class: $crate::CUtensorMapAllocClass, out_alloc_class: *mut $crate::CUtensorMapAllocClass);
            baseline cuTexObjectCreate c"cuTexObjectCreate" 5000 (p_tex_object: *mut $crate::CUtexObject_v1, p_res_desc: *const $crate::CUDA_RESOURCE_DESC_v1, p_tex_desc: *const $crate::CUDA_TEXTURE_DESC_v1, p_res_view_desc: *const $crate::CUDA_RESOURCE_VIEW_DESC_v1);
            baseline cuTexObjectDestroy c"cuTexObjectDestroy" 5000 (tex_object: $crate::CUtexObject_v1);
            baseline cuTexObjectGetResourceDesc c"cuTexObjectGetResourceDesc" 5000 (p_res_desc: *mut $crate::CUDA_RESOURCE_DESC_v1, tex_object: $crate::CUtexObject_v1);
            baseline cuTexObjectGetResourceViewDesc c"cuTexObjectGetResourceViewDesc" 5000 (p_res_view_desc: *mut $crate::CUDA_RESOURCE_VIEW_DESC_v1, tex_object: $crate::CUtexObject_v1);
            baseline cuTexObjectGetTextureDesc c"cuTexObjectGetTextureDesc" 5000 (p_tex_desc: *mut $crate::CUDA_TEXTURE_DESC_v1, tex_object: $crate::CUtexObject_v1);
            baseline cuTexRefCreate c"cuTexRefCreate" 2000 (p_tex_ref: *mut $crate::CUtexref);
            baseline cuTexRefDestroy c"cuTexRefDestroy" 2000 (h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetAddress c"cuTexRefGetAddress" 3020 (pdptr: *mut $crate::CUdeviceptr_v2, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetAddressMode c"cuTexRefGetAddressMode" 2000 (pam: *mut $crate::CUaddress_mode, h_tex_ref: $crate::CUtexref, dim: ::core::ffi::c_int);
            baseline cuTexRefGetArray c"cuTexRefGetArray" 2000 (ph_array: *mut $crate::CUarray, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetBorderColor c"cuTexRefGetBorderColor" 8000 (p_border_color: *mut f32, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetFilterMode c"cuTexRefGetFilterMode" 2000 (pfm: *mut $crate::CUfilter_mode, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetFlags c"cuTexRefGetFlags" 2000 (p_flags: *mut ::core::ffi::c_uint, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetFormat c"cuTexRefGetFormat" 2000 (p_format: *mut $crate::CUarray_format, p_num_channels: *mut ::core::ffi::c_int, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetMaxAnisotropy c"cuTexRefGetMaxAnisotropy" 5000 (pmax_aniso: *mut ::core::ffi::c_int, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetMipmapFilterMode c"cuTexRefGetMipmapFilterMode" 5000 (pfm: *mut $crate::CUfilter_mode, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetMipmapLevelBias c"cuTexRefGetMipmapLevelBias" 5000 (pbias: *mut f32, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetMipmapLevelClamp c"cuTexRefGetMipmapLevelClamp" 5000 (pmin_mipmap_level_clamp: *mut f32, pmax_mipmap_level_clamp: *mut f32, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefGetMipmappedArray c"cuTexRefGetMipmappedArray" 5000 (ph_mipmapped_array: *mut $crate::CUmipmappedArray, h_tex_ref: $crate::CUtexref);
            baseline cuTexRefSetAddress c"cuTexRefSetAddress" 3020 (byte_offset: *mut usize, h_tex_ref: $crate::CUtexref, dptr: $crate::CUdeviceptr_v2, bytes: usize);
            baseline cuTexRefSetAddress2D c"cuTexRefSetAddress2D" 4010 (h_tex_ref: $crate::CUtexref, desc: *const $crate::CUDA_ARRAY_DESCRIPTOR_v2, dptr: $crate::CUdeviceptr_v2, pitch: usize);
            baseline cuTexRefSetAddressMode c"cuTexRefSetAddressMode" 2000 (h_tex_ref: $crate::CUtexref, dim: ::core::ffi::c_int, am: $crate::CUaddress_mode);
            baseline cuTexRefSetArray c"cuTexRefSetArray" 2000 (h_tex_ref: $crate::CUtexref, h_array: $crate::CUarray, flags: ::core::ffi::c_uint);
            baseline cuTexRefSetBorderColor c"cuTexRefSetBorderColor" 8000 (h_tex_ref: $crate::CUtexref, p_border_color: *mut f32);
            baseline cuTexRefSetFilterMode c"cuTexRefSetFilterMode" 2000 (h_tex_ref: $crate::CUtexref, fm: $crate::CUfilter_mode);
            baseline cuTexRefSetFlags c"cuTexRefSetFlags" 2000 (h_tex_ref: $crate::CUtexref, flags: ::core::ffi::c_uint);
            baseline cuTexRefSetFormat c"cuTexRefSetFormat" 2000 (h_tex_ref: $crate::CUtexref, fmt: $crate::CUarray_format, num_packed_components: ::core::ffi::c_int);
            baseline cuTexRefSetMaxAnisotropy c"cuTexRefSetMaxAnisotropy" 5000 (h_tex_ref: $crate::CUtexref, max_aniso: ::core::ffi::c_uint);
            baseline cuTexRefSetMipmapFilterMode c"cuTexRefSetMipmapFilterMode" 5000 (h_tex_ref: $crate::CUtexref, fm: $crate::CUfilter_mode);
            baseline cuTexRefSetMipmapLevelBias c"cuTexRefSetMipmapLevelBias" 5000 (h_tex_ref: $crate::CUtexref, bias: f32);
            baseline cuTexRefSetMipmapLevelClamp c"cuTexRefSetMipmapLevelClamp" 5000 (h_tex_ref: $crate::CUtexref, min_mipmap_level_clamp: f32, max_mipmap_level_clamp: f32);
            baseline cuTexRefSetMipmappedArray c"cuTexRefSetMipmappedArray" 5000 (h_tex_ref: $crate::CUtexref, h_mipmapped_array: $crate::CUmipmappedArray, flags: ::core::ffi::c_uint);
            baseline cuThreadExchangeStreamCaptureMode c"cuThreadExchangeStreamCaptureMode" 10010 (mode: *mut $crate::CUstreamCaptureMode);
            baseline cuUserObjectCreate c"cuUserObjectCreate" 11030 (object_out: *mut $crate::CUuserObject, ptr: *mut ::core::ffi::c_void, destroy: $crate::CUhostFn, initial_refcount: ::core::ffi::c_uint, flags: ::core::ffi::c_uint);
            baseline cuUserObjectRelease c"cuUserObjectRelease" 11030 (object: $crate::CUuserObject, count: ::core::ffi::c_uint);
            baseline cuUserObjectRetain c"cuUserObjectRetain" 11030 (object: $crate::CUuserObject, count: ::core::ffi::c_uint);
            baseline cuWaitExternalSemaphoresAsync c"cuWaitExternalSemaphoresAsync" 10000 (ext_sem_array: *const $crate::CUexternalSemaphore, params_array: *const $crate::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1, num_ext_sems: ::core::ffi::c_uint, stream: $crate::CUstream);
        }
    };
}

/// Every result code that the headers name.
pub(crate) const RESULT_NAMES: &[(crate::CUresult, &str)] = &[
    (crate::CUresult::CUDA_SUCCESS, "CUDA_SUCCESS"),
    (crate::CUresult::CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"),
    (crate::CUresult::CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"),
    (crate::CUresult::CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"),
    (crate::CUresult::CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"),
    (crate::CUresult::CUDA_ERROR_PROFILER_DISABLED, "CUDA_ERROR_PROFILER_DISABLED"),
    (crate::CUresult::CUDA_ERROR_PROFILER_NOT_INITIALIZED, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"),
    (crate::CUresult::CUDA_ERROR_PROFILER_ALREADY_STARTED, "CUDA_ERROR_PROFILER_ALREADY_STARTED"),
    (crate::CUresult::CUDA_ERROR_PROFILER_ALREADY_STOPPED, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"),
    (crate::CUresult::CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY"),
    (crate::CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"),
    (crate::CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (crate::CUresult::CUDA_ERROR_MULTICAST_RESOURCE_FULL, "CUDA_ERROR_MULTICAST_RESOURCE_FULL"),
    (crate::CUresult::CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"),
    (crate::CUresult::CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"),
    (crate::CUresult::CUDA_ERROR_DEVICE_NOT_LICENSED, "CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (crate::CUresult::CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"),
    (crate::CUresult::CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"),
    (crate::CUresult::CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
    (crate::CUresult::CUDA_ERROR_MAP_FAILED, "CUDA_ERROR_MAP_FAILED"),
    (crate::CUresult::CUDA_ERROR_UNMAP_FAILED, "CUDA_ERROR_UNMAP_FAILED"),
    (crate::CUresult::CUDA_ERROR_ARRAY_IS_MAPPED, "CUDA_ERROR_ARRAY_IS_MAPPED"),
    (crate::CUresult::CUDA_ERROR_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED"),
    (crate::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (crate::CUresult::CUDA_ERROR_ALREADY_ACQUIRED, "CUDA_ERROR_ALREADY_ACQUIRED"),
    (crate::CUresult::CUDA_ERROR_NOT_MAPPED, "CUDA_ERROR_NOT_MAPPED"),
    (crate::CUresult::CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"),
    (crate::CUresult::CUDA_ERROR_NOT_MAPPED_AS_POINTER, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"),
    (crate::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE"),
    (crate::CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT, "CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (crate::CUresult::CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
    (crate::CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"),
    (crate::CUresult::CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"),
    (crate::CUresult::CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
    (crate::CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (crate::CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (crate::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (crate::CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED, "CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (crate::CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
    (crate::CUresult::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
    (crate::CUresult::CUDA_ERROR_CONTAINED, "CUDA_ERROR_CONTAINED"),
    (crate::CUresult::CUDA_ERROR_INSUFFICIENT_LOADER_VERSION, "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION"),
    (crate::CUresult::CUDA_ERROR_INVALID_SOURCE, "CUDA_ERROR_INVALID_SOURCE"),
    (crate::CUresult::CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND"),
    (crate::CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
    (crate::CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
    (crate::CUresult::CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM"),
    (crate::CUresult::CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"),
    (crate::CUresult::CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"),
    (crate::CUresult::CUDA_ERROR_LOSSY_QUERY, "CUDA_ERROR_LOSSY_QUERY"),
    (crate::CUresult::CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"),
    (crate::CUresult::CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"),
    (crate::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (crate::CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    (crate::CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"),
    (crate::CUresult::CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
    (crate::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
    (crate::CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"),
    (crate::CUresult::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
    (crate::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (crate::CUresult::CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT"),
    (crate::CUresult::CUDA_ERROR_TOO_MANY_PEERS, "CUDA_ERROR_TOO_MANY_PEERS"),
    (crate::CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
    (crate::CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
    (crate::CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (crate::CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (crate::CUresult::CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    (crate::CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE, "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (crate::CUresult::CUDA_ERROR_INVALID_PC, "CUDA_ERROR_INVALID_PC"),
    (crate::CUresult::CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"),
    (crate::CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
    (crate::CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (crate::CUresult::CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"),
    (crate::CUresult::CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"),
    (crate::CUresult::CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"),
    (crate::CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (crate::CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (crate::CUresult::CUDA_ERROR_MPS_CONNECTION_FAILED, "CUDA_ERROR_MPS_CONNECTION_FAILED"),
    (crate::CUresult::CUDA_ERROR_MPS_RPC_FAILURE, "CUDA_ERROR_MPS_RPC_FAILURE"),
    (crate::CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY, "CUDA_ERROR_MPS_SERVER_NOT_READY"),
    (crate::CUresult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
    (crate::CUresult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
    (crate::CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
    (crate::CUresult::CUDA_ERROR_CDP_NOT_SUPPORTED, "CUDA_ERROR_CDP_NOT_SUPPORTED"),
    (crate::CUresult::CUDA_ERROR_CDP_VERSION_MISMATCH, "CUDA_ERROR_CDP_VERSION_MISMATCH"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    (crate::CUresult::CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"),
    (crate::CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"),
    (crate::CUresult::CUDA_ERROR_TIMEOUT, "CUDA_ERROR_TIMEOUT"),
    (crate::CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"),
    (crate::CUresult::CUDA_ERROR_EXTERNAL_DEVICE, "CUDA_ERROR_EXTERNAL_DEVICE"),
    (crate::CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE"),
    (crate::CUresult::CUDA_ERROR_FUNCTION_NOT_LOADED, "CUDA_ERROR_FUNCTION_NOT_LOADED"),
    (crate::CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE, "CUDA_ERROR_INVALID_RESOURCE_TYPE"),
    (crate::CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"),
    (crate::CUresult::CUDA_ERROR_KEY_ROTATION, "CUDA_ERROR_KEY_ROTATION"),
    (crate::CUresult::CUDA_ERROR_STREAM_DETACHED, "CUDA_ERROR_STREAM_DETACHED"),
    (crate::CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE"),
    (crate::CUresult::CUDA_ERROR_FABRIC_NOT_READY, "CUDA_ERROR_FABRIC_NOT_READY"),
    (crate::CUresult::CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"),
];
