//! Parameters and attributes of nodes: read back, set and copied.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::Config;
use cuda_sys::CUgraphNodeType as T;
use cuda_sys::CUlaunchAttributeID as A;
use cuda_sys::*;

#[test]
fn a_newer_driver_reads_any_node_back() {
    leaves_nothing("node_params::a_newer_driver_reads_any_node_back", || {
        let driver = &session_with(Config::new().version(Version::new(13, 2)));
        let library = library(driver);
        let (own, inner, address) = (graph(driver), graph(driver), words(driver, 4));
        let mut event = null_mut();
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        unsafe { assert_eq!(driver.cuEventCreate(&mut event, 0), OK) };
        let (mut target, mut value) = (address, 5u32);
        let mut arguments: [*mut c_void; 2] = [(&raw mut target).cast(), (&raw mut value).cast()];
        let mut op = CUstreamBatchMemOpParams::default();
        op.memoryBarrier.operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER;
        let mut given: Vec<CUgraphNodeParams> = Vec::new();
        let mut give = |kind, fill: &mut dyn FnMut(&mut CUgraphNodeParams_st__bindgen_ty_1)| {
            let mut params = generic(kind);
            fill(&mut params.__bindgen_anon_1);
            given.push(params);
        };
        give(T::CU_GRAPH_NODE_TYPE_EMPTY, &mut |_| {});
        give(T::CU_GRAPH_NODE_TYPE_KERNEL, &mut |fields| {
            fields.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
                func: function(driver, library, "add"),
                gridDimX: 2,
                gridDimY: 1,
                gridDimZ: 1,
                blockDimX: 3,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: 16,
                kernelParams: arguments.as_mut_ptr(),
                ..Default::default()
            };
        });
        give(T::CU_GRAPH_NODE_TYPE_MEMSET, &mut |fields| {
            fields.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
                dst: address,
                elementSize: 2,
                width: 3,
                height: 1,
                value: 9,
                ..Default::default()
            };
        });
        give(T::CU_GRAPH_NODE_TYPE_MEMCPY, &mut |fields| {
            let copy = CUDA_MEMCPY3D_v2 {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: address,
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstDevice: address + 8,
                WidthInBytes: 8,
                Height: 1,
                Depth: 1,
                ..Default::default()
            };
            fields.memcpy =
                CUDA_MEMCPY_NODE_PARAMS { copyCtx: context(driver), copyParams: copy, ..Default::default() };
        });
        give(T::CU_GRAPH_NODE_TYPE_HOST, &mut |fields| fields.host.fn_ = Some(nothing));
        give(T::CU_GRAPH_NODE_TYPE_GRAPH, &mut |fields| fields.graph.graph = inner);
        give(T::CU_GRAPH_NODE_TYPE_WAIT_EVENT, &mut |fields| fields.eventWait.event = event);
        give(T::CU_GRAPH_NODE_TYPE_EVENT_RECORD, &mut |fields| fields.eventRecord.event = event);
        give(T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &mut |fields| {
            fields.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                ctx: context(driver),
                count: 1,
                paramArray: &mut op,
                flags: 0,
            };
        });
        for mut params in given {
            let kind = params.type_;
            let (answer, node) = add(driver, own, &[], &mut params);
            assert_eq!(answer, OK, "{kind:?}");
            let mut back = generic(T::CU_GRAPH_NODE_TYPE_EMPTY);
            unsafe {
                assert_eq!(driver.cuGraphNodeGetParams(node, &mut back), Ok(OK));
                assert_eq!(back.type_, kind);
                let (given, found) = (&params.__bindgen_anon_1, &back.__bindgen_anon_1);
                match kind {
                    T::CU_GRAPH_NODE_TYPE_KERNEL => {
                        let (given, found) = (given.kernel, found.kernel);
                        assert_eq!(
                            (given.func, given.gridDimX, given.sharedMemBytes),
                            (found.func, found.gridDimX, found.sharedMemBytes)
                        );
                        assert_eq!(found.ctx, context(driver));
                        assert_eq!(*(*found.kernelParams.add(1)).cast::<u32>(), 5);
                    }
                    T::CU_GRAPH_NODE_TYPE_MEMSET => assert_eq!(given.memset, found.memset),
                    T::CU_GRAPH_NODE_TYPE_MEMCPY => {
                        assert_eq!(given.memcpy.copyParams, found.memcpy.copyParams)
                    }
                    T::CU_GRAPH_NODE_TYPE_HOST => assert_eq!(given.host.userData, found.host.userData),
                    T::CU_GRAPH_NODE_TYPE_GRAPH => {
                        assert_ne!(found.graph.graph, inner);
                        // Not to be passed back by mistake.
                        assert_eq!(found.graph.ownership.0, -1);
                        assert_eq!(driver.cuGraphNodeSetParams(node, &mut back), IV);
                        continue;
                    }
                    T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                        assert_eq!(given.eventWait.event, found.eventWait.event)
                    }
                    T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                        assert_eq!(given.eventRecord.event, found.eventRecord.event)
                    }
                    T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                        assert_eq!((found.memOp.count, found.memOp.ctx), (1, context(driver)))
                    }
                    _ => {}
                }
                // What was read may be set.
                assert_eq!(driver.cuGraphNodeSetParams(node, &mut back), OK, "{kind:?}");
            }
        }
        unsafe {
            assert_eq!(driver.cuGraphNodeGetParams(null_mut(), &mut generic(T(0))), Ok(IV));
            assert_eq!(driver.cuGraphNodeGetParams(nodes(driver, own)[0], null_mut()), Ok(IV));
            for graph in [own, inner] {
                assert_eq!(driver.cuGraphDestroy(graph), OK);
            }
            assert_eq!(driver.cuEventDestroy(event), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn definitions_may_change_more_than_executables() {
    leaves_nothing("node_params::definitions_may_change_more_than_executables", || {
        let driver = &session();
        let library = library(driver);
        let (own, address, stream) = (graph(driver), words(driver, 16), stream(driver));
        let (add_word, layout) = (function(driver, library, "add"), function(driver, library, "nothing"));
        let kernel = word_node(driver, own, &[], add_word, address, 1);
        let mut pinned = null_mut();
        unsafe { assert_eq!(driver.cuMemHostAlloc(&mut pinned, 64, 0), OK) };
        let device = CUmemorytype::CU_MEMORYTYPE_DEVICE;
        let copy = CUDA_MEMCPY3D_v2 {
            srcMemoryType: device,
            srcDevice: address,
            dstMemoryType: device,
            dstDevice: address + 32,
            WidthInBytes: 8,
            Height: 1,
            Depth: 1,
            ..Default::default()
        };
        let fill = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst: address + 16,
            elementSize: 4,
            width: 2,
            height: 1,
            value: 3,
            pitch: 0,
        };
        let (mut copies, mut fills) = (null_mut(), null_mut());
        unsafe {
            assert_eq!(driver.cuGraphAddMemcpyNode(&mut copies, own, &kernel, 1, &copy, context(driver)), OK);
            assert_eq!(driver.cuGraphAddMemsetNode(&mut fills, own, &copies, 1, &fill, context(driver)), OK);
            let exec = instantiate(driver, own);
            let to_host =
                CUDA_MEMCPY3D_v2 { dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST, dstHost: pinned, ..copy };
            let shaped = CUDA_MEMCPY3D_v2 { Height: 2, srcPitch: 16, dstPitch: 8, ..copy };
            for (what, new, in_exec) in [
                ("size", CUDA_MEMCPY3D_v2 { WidthInBytes: 4, ..copy }, OK),
                ("direction", to_host, IV),
                ("2-D", shaped, IV),
                ("width 0", CUDA_MEMCPY3D_v2 { WidthInBytes: 0, ..copy }, IV),
                ("never allocated", CUDA_MEMCPY3D_v2 { srcDevice: 1 << 48 | 0xffff_0000_0000, ..copy }, IV),
            ] {
                assert_eq!(
                    driver.cuGraphExecMemcpyNodeSetParams(exec, copies, &new, context(driver)),
                    in_exec,
                    "{what}"
                );
                let definition = if ["direction", "2-D", "size"].contains(&what) { OK } else { IV };
                assert_eq!(driver.cuGraphMemcpyNodeSetParams(copies, &new), definition, "{what}");
            }
            for (what, new, in_exec) in [
                ("value", CUDA_MEMSET_NODE_PARAMS_v1 { value: 8, ..fill }, OK),
                ("element", CUDA_MEMSET_NODE_PARAMS_v1 { elementSize: 1, ..fill }, OK),
                ("2-D", CUDA_MEMSET_NODE_PARAMS_v1 { height: 2, pitch: 8, ..fill }, IV),
            ] {
                assert_eq!(
                    driver.cuGraphExecMemsetNodeSetParams(exec, fills, &new, context(driver)),
                    in_exec,
                    "{what}"
                );
                assert_eq!(driver.cuGraphMemsetNodeSetParams(fills, &new), OK, "{what}");
            }
            // Another function with other parameters, in both.
            let other = params(layout, &mut []);
            assert_eq!(driver.cuGraphExecKernelNodeSetParams(exec, kernel, &other), OK);
            assert_eq!(driver.cuGraphKernelNodeSetParams(kernel, &other), OK);
            let nobody = params(null_mut(), &mut []);
            let bad = CUresult::CUDA_ERROR_INVALID_HANDLE;
            assert_eq!(driver.cuGraphExecKernelNodeSetParams(exec, kernel, &nobody), bad);
            assert_eq!(driver.cuGraphKernelNodeSetParams(kernel, &nobody), bad);
            // Another type is none.
            let mut empty = generic(T::CU_GRAPH_NODE_TYPE_EMPTY);
            assert_eq!(driver.cuGraphNodeSetParams(kernel, &mut empty), IV);
            assert_eq!(driver.cuGraphExecNodeSetParams(exec, kernel, &mut empty), IV);
            assert_eq!(driver.cuGraphExecNodeSetParams(exec, null_mut(), &mut empty), IV);
            assert_eq!(driver.cuGraphExecNodeSetParams(null_mut(), kernel, &mut empty), IV);
            run(driver, exec, stream);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFreeHost(pinned), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

fn value(fill: impl FnOnce(&mut CUlaunchAttributeValue)) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    fill(&mut value);
    value
}

fn bytes(value: &CUlaunchAttributeValue) -> Vec<u8> {
    unsafe { value.pad }.iter().map(|byte| *byte as u8).collect()
}

#[test]
fn attributes_are_set_read_and_copied() {
    leaves_nothing("node_params::attributes_are_set_read_and_copied", || {
        let driver = &session();
        let library = library(driver);
        let (own, kernel, address) = (graph(driver), function(driver, library, "add"), words(driver, 1));
        let node = || word_node(driver, own, &[], kernel, address, 1);
        let cluster = |x| {
            value(|value| value.clusterDim = CUlaunchAttributeValue_union__bindgen_ty_1 { x, y: 1, z: 1 })
        };
        let bad_cluster = CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE;
        let rows = [
            (
                A::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                value(|value| value.accessPolicyWindow.hitRatio = 0.5),
                OK,
            ),
            (A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value(|value| value.cooperative = 1), OK),
            (A::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value(|value| value.syncPolicy.0 = 1), IV),
            (A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster(1), OK),
            (A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster(2), bad_cluster),
            (
                A::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                value(|value| value.clusterSchedulingPolicyPreference.0 = 1),
                OK,
            ),
            (
                A::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                value(|value| value.programmaticStreamSerializationAllowed = 1),
                IV,
            ),
            (A::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, value(|_| {}), IV),
            (A::CU_LAUNCH_ATTRIBUTE_PRIORITY, value(|value| value.priority = -3), OK),
            (
                A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                value(|value| value.memSyncDomainMap.remote = 2),
                OK,
            ),
            (A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, value(|value| value.memSyncDomain.0 = 1), OK),
            (A::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, cluster(1), IV),
            (A::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, value(|_| {}), IV),
            (
                A::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                value(|value| value.sharedMemCarveout = 50),
                OK,
            ),
            (A::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, value(|_| {}), OK),
            (A(77), value(|_| {}), IV),
        ];
        const UNREADABLE: A = A::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
        let (first, second) = (node(), node());
        unsafe {
            for (id, given, answer) in &rows {
                assert_eq!(driver.cuGraphKernelNodeSetAttribute(first, *id, given), *answer, "{id:?}");
                let mut back = value(|_| {});
                let readable = (*answer == OK && *id != UNREADABLE) || *answer == bad_cluster;
                let found = driver.cuGraphKernelNodeGetAttribute(first, *id, &mut back);
                assert_eq!(found, if readable { OK } else { IV }, "{id:?}");
                if *answer == OK && readable {
                    assert_eq!(bytes(&back), bytes(given), "{id:?}");
                }
            }
            // New parameters leave them, and a clone has them.
            let mut back = CUDA_KERNEL_NODE_PARAMS_v2::default();
            assert_eq!(driver.cuGraphKernelNodeGetParams(first, &mut back), OK);
            assert_eq!(driver.cuGraphKernelNodeSetParams(first, &back), OK);
            let (mut clone, mut twin) = (null_mut(), null_mut());
            assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
            assert_eq!(driver.cuGraphNodeFindInClone(&mut twin, first, clone), OK);
            assert_eq!(driver.cuGraphKernelNodeCopyAttributes(second, first), OK);
            for node in [first, second, twin] {
                for (id, given, _) in rows.iter().filter(|row| row.2 == OK && row.0 != UNREADABLE) {
                    let mut back = value(|_| {});
                    assert_eq!(driver.cuGraphKernelNodeGetAttribute(node, *id, &mut back), OK);
                    assert_eq!(bytes(&back), bytes(given), "{id:?}");
                }
            }
            // Out of its range a priority is brought into it.
            for (given, kept) in [(-99, -5), (7, 0)] {
                let given = value(|value| value.priority = given);
                let mut back = value(|_| {});
                assert_eq!(
                    driver.cuGraphKernelNodeSetAttribute(first, A::CU_LAUNCH_ATTRIBUTE_PRIORITY, &given),
                    OK
                );
                assert_eq!(
                    driver.cuGraphKernelNodeGetAttribute(first, A::CU_LAUNCH_ATTRIBUTE_PRIORITY, &mut back),
                    OK
                );
                assert_eq!(back.priority, kept);
            }
            let (other, mut back) = (empty(driver, own, &[]), value(|_| {}));
            let priority = A::CU_LAUNCH_ATTRIBUTE_PRIORITY;
            assert_eq!(driver.cuGraphKernelNodeSetAttribute(other, priority, &back), IV);
            assert_eq!(driver.cuGraphKernelNodeGetAttribute(other, priority, &mut back), IV);
            assert_eq!(driver.cuGraphKernelNodeCopyAttributes(other, first), IV);
            assert_eq!(driver.cuGraphKernelNodeCopyAttributes(first, other), IV);
            assert_eq!(driver.cuGraphKernelNodeSetAttribute(first, priority, null()), IV);
            assert_eq!(driver.cuGraphKernelNodeGetAttribute(first, priority, null_mut()), IV);
            for graph in [own, clone] {
                assert_eq!(driver.cuGraphDestroy(graph), OK);
            }
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn what_an_attribute_forbids_is_forbidden_everywhere() {
    leaves_nothing("node_params::what_an_attribute_forbids_is_forbidden_everywhere", || {
        let driver = &session();
        let library = library(driver);
        let (own, kernel, address) = (graph(driver), function(driver, library, "add"), words(driver, 1));
        let node = word_node(driver, own, &[], kernel, address, 1);
        let (mut target, mut one) = (address, 1u32);
        let mut arguments: [*mut c_void; 2] = [(&raw mut target).cast(), (&raw mut one).cast()];
        let sized = |grid| CUDA_KERNEL_NODE_PARAMS_v2 { gridDimX: grid, ..params(kernel, &mut []) };
        let pair =
            value(|value| value.clusterDim = CUlaunchAttributeValue_union__bindgen_ty_1 { x: 2, y: 1, z: 1 });
        let bad_cluster = CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE;
        unsafe {
            let mut even = CUDA_KERNEL_NODE_PARAMS_v2 { kernelParams: arguments.as_mut_ptr(), ..sized(4) };
            assert_eq!(driver.cuGraphKernelNodeSetParams(node, &even), OK);
            assert_eq!(
                driver.cuGraphKernelNodeSetAttribute(node, A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &pair),
                OK
            );
            let exec = instantiate(driver, own);
            even.gridDimX = 3;
            assert_eq!(driver.cuGraphKernelNodeSetParams(node, &even), bad_cluster);
            assert_eq!(driver.cuGraphExecKernelNodeSetParams(exec, node, &even), bad_cluster);
            even.gridDimX = 6;
            assert_eq!(driver.cuGraphKernelNodeSetParams(node, &even), OK);
            assert_eq!(driver.cuGraphExecKernelNodeSetParams(exec, node, &even), OK);
            // A grid that does not fit at once cannot be cooperative.
            let other = word_node(driver, own, &[], kernel, address, 1);
            let mut large = CUDA_KERNEL_NODE_PARAMS_v2 { blockDimX: 1024, ..even };
            large.gridDimX = 132 * 2 + 1;
            let cooperative = value(|value| value.cooperative = 1);
            let too_large = CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
            assert_eq!(driver.cuGraphKernelNodeSetParams(other, &large), OK);
            assert_eq!(
                driver.cuGraphKernelNodeSetAttribute(other, A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative),
                too_large
            );
            large.gridDimX = 132 * 2;
            assert_eq!(driver.cuGraphKernelNodeSetParams(other, &large), OK);
            assert_eq!(
                driver.cuGraphKernelNodeSetAttribute(other, A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative),
                OK
            );
            large.gridDimX += 1;
            assert_eq!(driver.cuGraphKernelNodeSetParams(other, &large), too_large);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}

#[test]
fn a_kernel_that_the_device_may_update_is_one_of_its_kind() {
    leaves_nothing("node_params::a_kernel_that_the_device_may_update_is_one_of_its_kind", || {
        let driver = &session();
        let library = library(driver);
        let (own, kernel, address) = (graph(driver), function(driver, library, "add"), words(driver, 1));
        let (node, other) = (
            word_node(driver, own, &[], kernel, address, 1),
            word_node(driver, own, &[], kernel, address, 1),
        );
        let plain = instantiate(driver, own);
        let id = A::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
        let set = |on| {
            let given = value(|value| value.deviceUpdatableKernelNode.deviceUpdatable = on);
            unsafe { driver.cuGraphKernelNodeSetAttribute(node, id, &given) }
        };
        unsafe {
            assert_eq!(driver.cuGraphExecDestroy(plain), OK);
            assert_eq!(set(0), OK);
            assert_eq!(set(1), OK);
            let mut back = value(|_| {});
            assert_eq!(driver.cuGraphKernelNodeGetAttribute(node, id, &mut back), OK);
            assert!(!back.deviceUpdatableKernelNode.devNode.is_null());
            // For good, and for this node alone.
            assert_eq!(set(0), IV);
            assert_eq!(driver.cuGraphKernelNodeCopyAttributes(other, node), IV);
            assert_eq!(driver.cuGraphKernelNodeCopyAttributes(node, other), IV);
            assert_eq!(driver.cuGraphDestroyNode(node), NS);
            assert_eq!(driver.cuGraphClone(&mut null_mut(), own), NS);
            let exec = instantiate(driver, own);
            assert_eq!(refusal(driver, own, 0).0, NS);
            let mut info = CUgraphExecUpdateResultInfo::default();
            assert_eq!((driver.cuGraphExecUpdate(exec, own, &mut info), info.result.0), (NS, 0));
            assert_eq!(driver.cuGraphDestroyNode(other), OK);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuLibraryUnload(library), OK);
        }
    });
}
