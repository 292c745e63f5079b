//! Stream attributes, tensor maps, managed memory hints, and occupancy.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;

#[test]
fn streams_keep_their_attributes() {
    let driver = &session();
    let (one, two) = (stream(driver), stream(driver));
    let domain = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    let mut value = CUstreamAttrValue { pad: [0; 64] };
    unsafe {
        assert_eq!(driver.cuStreamGetAttribute(one, domain, &mut value), OK);
        assert_eq!(value.memSyncDomain.0, 0);
        value.memSyncDomain.0 = 1;
        assert_eq!(driver.cuStreamSetAttribute(one, domain, &value), OK);
        assert_eq!(driver.cuStreamCopyAttributes(two, one), OK);
        value = CUstreamAttrValue { pad: [0; 64] };
        assert_eq!(driver.cuStreamGetAttribute(two, domain, &mut value), OK);
        assert_eq!(value.memSyncDomain.0, 1);
        value.memSyncDomain.0 = 2;
        assert_eq!(driver.cuStreamSetAttribute(one, domain, &value), IV);
        let cluster = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        assert_eq!(driver.cuStreamGetAttribute(one, cluster, &mut value), IV);
        assert_eq!(driver.cuStreamSetAttribute(one, cluster, &value), IV);
        assert_eq!(driver.cuStreamDestroy(one), OK);
        assert_eq!(driver.cuStreamDestroy(two), OK);
    }
}

#[test]
fn attributes_are_written_all_or_none() {
    let driver = &session();
    let mut address = 0;
    assert_eq!(unsafe { driver.cuMemAllocManaged(&mut address, 64, 1) }, OK);
    let (mut one, mut two) = (7, 7);
    let mut places: [*mut c_void; 2] = [(&raw mut one).cast(), (&raw mut two).cast()];
    type A = CUmem_range_attribute;
    let mut known = [A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY; 2];
    let mut unknown = [A::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CUmem_range_attribute(99)];
    let mut nowhere = [places[0], null_mut()];
    let ask = |places: &mut [*mut c_void; 2], sizes: [usize; 2], attributes: &mut [A; 2]| unsafe {
        let (places, attributes) = (places.as_mut_ptr(), attributes.as_mut_ptr());
        driver.cuMemRangeGetAttributes(places, { sizes }.as_mut_ptr(), attributes, 2, address, 64)
    };
    assert_eq!(ask(&mut places, [4, 8], &mut known), IV);
    assert_eq!(ask(&mut places, [4, 4], &mut unknown), IV);
    assert_eq!(ask(&mut nowhere, [4, 4], &mut known), IV);
    let mut kinds = [CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED; 2];
    let mut ask_pointer = |places: &mut [*mut c_void; 2]| unsafe {
        driver.cuPointerGetAttributes(2, kinds.as_mut_ptr(), places.as_mut_ptr(), address)
    };
    assert_eq!(ask_pointer(&mut nowhere), IV);
    assert_eq!(unsafe { (places[0].cast::<i32>().read(), places[1].cast::<i32>().read()) }, (7, 7));
    assert_eq!(ask_pointer(&mut places), OK);
    assert_eq!(ask(&mut places, [4, 4], &mut known), OK);
    assert_eq!(unsafe { (places[0].cast::<i32>().read(), places[1].cast::<i32>().read()) }, (0, 0));
    assert_eq!(unsafe { driver.cuMemFree(address) }, OK);
}

/// A call, and arguments that break its rules.
#[derive(Clone, Copy)]
struct Wanted {
    ty: CUtensorMapDataType,
    rank: u32,
    address: u64,
    dims: [u64; 5],
    strides: [u64; 4],
    boxes: [u32; 5],
    steps: [u32; 5],
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    fill: CUtensorMapFloatOOBfill,
}

#[repr(C, align(64))]
struct Map(CUtensorMap, u64);

#[test]
fn tensor_maps_follow_the_rules() {
    let driver = &session();
    let good = Wanted {
        ty: CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        rank: 2,
        address: 0x1000,
        dims: [64, 32, 0, 0, 0],
        strides: [256, 0, 0, 0],
        boxes: [8, 8, 0, 0, 0],
        steps: [1, 1, 0, 0, 0],
        interleave: CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle: CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        fill: CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    };
    let encode = |wanted: Wanted, map: *mut CUtensorMap| unsafe {
        driver.cuTensorMapEncodeTiled(
            map,
            wanted.ty,
            wanted.rank,
            std::ptr::without_provenance_mut(wanted.address as usize),
            wanted.dims.as_ptr(),
            wanted.strides.as_ptr(),
            wanted.boxes.as_ptr(),
            wanted.steps.as_ptr(),
            wanted.interleave,
            wanted.swizzle,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            wanted.fill,
        )
    };
    let mut map = Map(CUtensorMap::default(), 0);
    assert_eq!(encode(good, &mut map.0), OK);
    assert_ne!(map.0.opaque, [0; 16]);
    let before = map.0.opaque;
    let inside: *mut CUtensorMap = (&raw mut map).cast::<u32>().wrapping_add(1).cast();
    assert_eq!(encode(good, inside), OK);
    assert_eq!(encode(good, &mut map.0), OK);
    assert_eq!(encode(good, null_mut()), IV);
    let bad = [
        Wanted { rank: 0, ..good },
        Wanted { rank: 6, ..good },
        Wanted { ty: CUtensorMapDataType(99), ..good },
        Wanted { address: 0, ..good },
        Wanted { address: 0x1008, ..good },
        Wanted { dims: [0, 32, 0, 0, 0], ..good },
        Wanted { dims: [1 << 33, 32, 0, 0, 0], ..good },
        Wanted { strides: [248, 0, 0, 0], ..good },
        Wanted { strides: [1 << 40, 0, 0, 0], ..good },
        Wanted { boxes: [8, 0, 0, 0, 0], ..good },
        Wanted { boxes: [8, 257, 0, 0, 0], ..good },
        Wanted { boxes: [3, 8, 0, 0, 0], ..good },
        Wanted { boxes: [16, 8, 0, 0, 0], ..good },
        Wanted { steps: [1, 9, 0, 0, 0], ..good },
        Wanted { steps: [0, 1, 0, 0, 0], ..good },
        Wanted { interleave: CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_16B, ..good },
        Wanted { swizzle: CUtensorMapSwizzle(9), ..good },
        Wanted { ty: CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT32, ..good },
    ];
    for (index, wanted) in bad.into_iter().enumerate() {
        assert_eq!(encode(wanted, &mut map.0), IV, "number {index}");
        assert_eq!(map.0.opaque, before);
    }
    unsafe {
        let other = std::ptr::without_provenance_mut(0x2000);
        assert_eq!(driver.cuTensorMapReplaceAddress(&mut map.0, other), OK);
    }
    let replaced = map.0.opaque;
    assert_eq!(encode(Wanted { address: 0x2000, ..good }, &mut map.0), OK);
    assert_eq!(map.0.opaque, replaced);
}

#[test]
fn hints_are_for_managed_memory() {
    let driver = &session();
    let (stream, plain) = (stream(driver), words(driver, 4));
    let mut managed = 0;
    let mut here =
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ..Default::default() };
    here.__bindgen_anon_1.id = 0;
    let nearby = CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
    unsafe {
        assert_eq!(driver.cuMemAllocManaged(&mut managed, 64, 1), OK);
        // Both sides see it: the host directly, the device by calls.
        let host: *mut u32 = std::ptr::with_exposed_provenance_mut(managed as usize);
        assert_eq!(driver.cuMemPrefetchAsync(managed, 64, here, 0, stream), OK);
        assert_eq!(driver.cuMemsetD32Async(managed, 9, 16, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(host.read(), 9);
        assert_eq!(driver.cuMemAdvise(managed, 64, nearby, here), OK);
        assert_eq!(driver.cuStreamAttachMemAsync(stream, managed, 0, 1), OK);
        assert_eq!(driver.cuMemPrefetchAsync(managed, 65, here, 0, stream), IV);
        assert_eq!(driver.cuMemPrefetchAsync(plain, 16, here, 0, stream), IV);
        assert_eq!(driver.cuMemAdvise(plain, 16, nearby, here), IV);
        assert_eq!(driver.cuStreamAttachMemAsync(stream, plain, 0, 1), IV);
        here.__bindgen_anon_1.id = 7;
        assert_eq!(
            driver.cuMemPrefetchAsync(managed, 64, here, 0, stream),
            CUresult::CUDA_ERROR_INVALID_DEVICE
        );
        let (value, attribute) = (1u32, CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
        assert_eq!(driver.cuPointerSetAttribute((&raw const value).cast(), attribute, plain), OK);
        assert_eq!(driver.cuPointerSetAttribute((&raw const value).cast(), attribute, 64), IV);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
        assert_eq!(driver.cuMemFree(managed), OK);
        assert_eq!(driver.cuMemFree(plain), OK);
    }
}

#[test]
fn occupancy_counts_clusters() {
    let driver = &session();
    let library = library(driver);
    let function = function(driver, library, "add");
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { pad: [0; 64] },
    };
    attribute.value.clusterDim = CUlaunchAttributeValue_union__bindgen_ty_1 { x: 4, y: 1, z: 1 };
    let mut config = CUlaunchConfig {
        gridDimX: 8,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1024,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: null_mut(),
        attrs: &raw mut attribute,
        numAttrs: 1,
    };
    let (mut clusters, mut blocks, mut most) = (0, 0, 0);
    unsafe {
        assert_eq!(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, function, 1024, 0), OK);
        assert_eq!(driver.cuOccupancyMaxActiveClusters(&mut clusters, function, &config), OK);
        assert_eq!(clusters, blocks * 132 / 4);
        assert_eq!(driver.cuOccupancyMaxPotentialClusterSize(&mut most, function, &config), OK);
        assert_eq!(most, 8);
        config.gridDimX = 9;
        let answer = driver.cuOccupancyMaxActiveClusters(&mut clusters, function, &config);
        assert_eq!(answer, CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE);
        let allowed = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        assert_eq!(driver.cuFuncSetAttribute(function, allowed, 1), OK);
        assert_eq!(driver.cuOccupancyMaxPotentialClusterSize(&mut most, function, &config), OK);
        assert_eq!(most, 16);
        assert_eq!(driver.cuLibraryUnload(library), OK);
    }
}

#[test]
fn a_captured_launch_has_the_priority_of_its_stream() {
    let driver = &session();
    let library = library(driver);
    let (function, mut address, mut one) = (function(driver, library, "add"), words(driver, 1), 1u32);
    let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut one).cast()];
    let (mut stream, mut graph, mut node, mut count) = (null_mut(), null_mut(), null_mut(), 1);
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    unsafe {
        assert_eq!(driver.cuStreamCreateWithPriority(&mut stream, 1, -3), OK);
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_eq!(driver.cuStreamBeginCapture(stream, mode), OK);
        let launched =
            driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments.as_mut_ptr(), null_mut());
        assert_eq!(launched, OK);
        assert_eq!(driver.cuStreamEndCapture(stream, &mut graph), OK);
        assert_eq!(driver.cuGraphGetNodes(graph, &mut node, &mut count), OK);
        let priority = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
        assert_eq!(driver.cuGraphKernelNodeGetAttribute(node, priority, &mut value), OK);
        assert_eq!(value.priority, -3);
        assert_eq!(driver.cuGraphDestroy(graph), OK);
        assert_eq!(driver.cuStreamDestroy(stream), OK);
        assert_eq!(driver.cuMemFree(address), OK);
        assert_eq!(driver.cuLibraryUnload(library), OK);
    }
}

/// Launches with an event: work that waits for it runs before or after the end of the kernel.
#[test]
fn launches_record_the_events_of_their_attributes() {
    let driver = &session();
    let library = library(driver);
    let (function, mut address, mut one) = (function(driver, library, "add"), words(driver, 1), 1u32);
    let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut one).cast()];
    let (mut event, mut timed, stream, other) = (null_mut(), null_mut(), stream(driver), stream(driver));
    let completion = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    let programmatic = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    let mut attribute =
        CUlaunchAttribute { id: completion, pad: [0; 4], value: CUlaunchAttributeValue { pad: [0; 64] } };
    let mut launch = |id: CUlaunchAttributeID, event: CUevent, early: i32| {
        attribute.id = id;
        attribute.value.programmaticEvent =
            CUlaunchAttributeValue_union__bindgen_ty_2 { event, flags: 0, triggerAtBlockStart: early };
        let config = CUlaunchConfig {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        unsafe { driver.cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), null_mut()) }
    };
    unsafe {
        assert_eq!(driver.cuEventCreate(&mut event, 2), OK);
        assert_eq!(driver.cuEventCreate(&mut timed, 0), OK);
        assert_eq!(launch(completion, timed, 0), IV);
        let gate = Gate::close(driver, stream);
        assert_eq!(launch(programmatic, event, 0), OK);
        assert_eq!(driver.cuEventQuery(event), CUresult::CUDA_ERROR_NOT_READY);
        gate.open();
        assert_eq!(driver.cuEventSynchronize(event), OK);
        assert_eq!(read(driver, address, 1), [1]);

        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        for (id, early, expected) in
            [(programmatic, 0, (1, 1)), (programmatic, 1, (2, 1)), (completion, 0, (2, 0))]
        {
            assert_eq!(driver.cuStreamBeginCapture(stream, mode), OK);
            assert_eq!(launch(id, event, early), OK);
            assert_eq!(driver.cuStreamWaitEvent(other, event, 0), OK);
            let (mut status, mut nodes, mut edges, mut count) =
                (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, std::ptr::null(), std::ptr::null(), 0);
            let answer = driver.cuStreamGetCaptureInfo_v12030(
                other,
                &mut status,
                null_mut(),
                null_mut(),
                &mut nodes,
                &mut edges,
                &mut count,
            );
            assert_eq!((answer, count), (Ok(OK), 1));
            let edge: CUgraphEdgeData = *edges;
            assert_eq!((edge.from_port, edge.type_), expected);
            let mut graph = null_mut();
            assert_eq!(driver.cuStreamEndCapture(stream, &mut graph), OK);
            assert_eq!(driver.cuGraphDestroy(graph), OK);
        }
        assert_eq!(driver.cuEventDestroy(event), OK);
        assert_eq!(driver.cuEventDestroy(timed), OK);
        assert_eq!(driver.cuMemFree(address), OK);
        assert_eq!(driver.cuLibraryUnload(library), OK);
    }
}
