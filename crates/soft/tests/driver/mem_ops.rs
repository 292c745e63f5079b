//! Memory operations on streams and in graphs.

use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::{Config, control};
use cuda_sys::CUstreamBatchMemOpType as Op;
use cuda_sys::*;

fn op(operation: Op, address: CUdeviceptr, value: u64, flags: u32) -> CUstreamBatchMemOpParams {
    let mut params = CUstreamBatchMemOpParams::default();
    params.writeValue.operation = operation;
    params.writeValue.address = address;
    params.writeValue.__bindgen_anon_1.value64 = value;
    params.writeValue.flags = flags;
    params
}

const WRITE: Op = Op::CU_STREAM_MEM_OP_WRITE_VALUE_32;
const WRITE_WIDE: Op = Op::CU_STREAM_MEM_OP_WRITE_VALUE_64;
const WAIT: Op = Op::CU_STREAM_MEM_OP_WAIT_VALUE_32;
const WAIT_WIDE: Op = Op::CU_STREAM_MEM_OP_WAIT_VALUE_64;

fn barrier() -> CUstreamBatchMemOpParams {
    let mut params = CUstreamBatchMemOpParams::default();
    params.memoryBarrier.operation = Op::CU_STREAM_MEM_OP_BARRIER;
    params
}

fn batch(driver: &Driver, ops: &mut [CUstreamBatchMemOpParams]) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: context(driver),
        count: ops.len() as u32,
        paramArray: ops.as_mut_ptr(),
        flags: 0,
    }
}

fn batch_node(
    driver: &Driver,
    graph: CUgraph,
    after: &[CUgraphNode],
    ops: &mut [CUstreamBatchMemOpParams],
) -> CUgraphNode {
    let mut node = null_mut();
    let params = batch(driver, ops);
    let answer =
        unsafe { driver.cuGraphAddBatchMemOpNode(&mut node, graph, after.as_ptr(), after.len(), &params) };
    assert_eq!(answer, OK);
    node
}

#[test]
fn what_a_node_takes() {
    leaves_nothing("mem_ops::what_a_node_takes", || {
        let driver = &session();
        let (address, own) = (words(driver, 4), graph(driver));
        let nowhere = 1 << 48 | 0xffff_0000_0000;
        let null_context = |params: CUDA_BATCH_MEM_OP_NODE_PARAMS| CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: null_mut(),
            ..params
        };
        let same = |params| params;
        type Change<'a> = &'a dyn Fn(CUDA_BATCH_MEM_OP_NODE_PARAMS) -> CUDA_BATCH_MEM_OP_NODE_PARAMS;
        let rows: Vec<(&str, Vec<CUstreamBatchMemOpParams>, Change<'_>, CUresult)> = vec![
            ("a write", vec![op(WRITE, address, 1, 0)], &same, OK),
            ("a write without a barrier", vec![op(WRITE, address, 1, 1)], &same, IV),
            (
                "all kinds",
                vec![
                    op(WRITE_WIDE, address, 1, 0),
                    op(WAIT, address, 1, 0),
                    op(WAIT_WIDE, address, 1, 3),
                    barrier(),
                ],
                &same,
                OK,
            ),
            ("no operations", vec![], &same, OK),
            ("an address never allocated", vec![op(WRITE, nowhere, 1, 0)], &same, OK),
            ("255 operations", vec![barrier(); 255], &same, OK),
            ("256 operations", vec![barrier(); 256], &same, IV),
            ("an unknown operation", vec![op(Op(77), address, 1, 0)], &same, IV),
            (
                "an operation newer than the driver",
                vec![op(Op::CU_STREAM_MEM_OP_ATOMIC_REDUCTION, address, 1, 0)],
                &same,
                IV,
            ),
            ("unaligned", vec![op(WRITE, address + 2, 1, 0)], &same, IV),
            ("unaligned for 64 bits", vec![op(WAIT_WIDE, address + 4, 1, 0)], &same, IV),
            ("a bad one behind a good one", vec![barrier(), op(WRITE, address + 1, 1, 0)], &same, IV),
            ("no context", vec![barrier()], &null_context, IV),
            ("flags", vec![barrier()], &|params| CUDA_BATCH_MEM_OP_NODE_PARAMS { flags: 1, ..params }, IV),
            (
                "a null array",
                vec![barrier()],
                &|params| CUDA_BATCH_MEM_OP_NODE_PARAMS { paramArray: null_mut(), ..params },
                IV,
            ),
        ];
        let mut expected = Vec::new();
        for (what, mut ops, change, answer) in rows {
            let params = change(batch(driver, &mut ops));
            let mut node = null_mut();
            unsafe {
                assert_eq!(
                    driver.cuGraphAddBatchMemOpNode(&mut node, own, null(), 0, &params),
                    answer,
                    "{what}"
                );
                if answer == OK {
                    expected.push(node);
                }
                let mut any = generic(CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
                any.__bindgen_anon_1.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                    ctx: params.ctx,
                    count: params.count,
                    paramArray: params.paramArray,
                    flags: params.flags,
                };
                let (found, node) = add(driver, own, &[], &mut any);
                assert_eq!(found, answer, "{what}, by the generic call");
                if answer == OK {
                    expected.push(node);
                }
                assert_eq!(
                    driver.cuGraphBatchMemOpNodeSetParams(expected[0], &params),
                    answer,
                    "{what}, set"
                );
                assert_eq!(driver.cuGraphNodeSetParams(expected[0], &mut any), answer, "{what}, set any");
            }
            assert_eq!(nodes(driver, own), expected, "{what}");
        }
        unsafe {
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
        }
    });
}

#[test]
fn operations_read_back_and_change() {
    leaves_nothing("mem_ops::operations_read_back_and_change", || {
        let driver = &session();
        let (address, own, stream) = (words(driver, 4), graph(driver), stream(driver));
        let node =
            batch_node(driver, own, &[], &mut [op(WRITE, address, 7, 0), op(WRITE_WIDE, address + 8, 9, 0)]);
        let exec = instantiate(driver, own);
        unsafe {
            let mut back = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
            assert_eq!(driver.cuGraphBatchMemOpNodeGetParams(node, &mut back), OK);
            assert_eq!((back.ctx, back.count, back.flags), (context(driver), 2, 0));
            let second = (*back.paramArray.add(1)).writeValue;
            assert_eq!(
                (second.operation, second.address, second.__bindgen_anon_1.value64),
                (WRITE_WIDE, address + 8, 9)
            );
            // What was read back may be passed back.
            assert_eq!(driver.cuGraphBatchMemOpNodeSetParams(node, &back), OK);
            run(driver, exec, stream);
            assert_eq!(read(driver, address, 4), [7, 0, 9, 0]);
            // Values and addresses may change in an executable, kinds and count may not.
            let mut other = [op(WRITE, address + 4, 3, 0), op(WRITE_WIDE, address + 8, u64::MAX, 0)];
            let set = |exec, ops: &mut [CUstreamBatchMemOpParams]| {
                driver.cuGraphExecBatchMemOpNodeSetParams(exec, node, &batch(driver, ops))
            };
            assert_eq!(set(exec, &mut other), OK);
            assert_eq!(set(exec, &mut other[..1]), IV);
            assert_eq!(set(exec, &mut [op(WRITE, address, 3, 0), op(WAIT_WIDE, address + 8, 0, 0)]), IV);
            assert_eq!(driver.cuGraphNodeSetEnabled(exec, node, 0), IV);
            run(driver, exec, stream);
            assert_eq!(read(driver, address, 4), [7, 3, u32::MAX, u32::MAX]);
            for (ops, answer, reason) in [
                (vec![op(WRITE, address, 20, 0), op(WRITE_WIDE, address + 8, 30, 0)], OK, 0),
                (
                    vec![op(WRITE, address, 1, 0), op(WRITE, address + 8, 1, 0)],
                    CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                    5,
                ),
                (vec![op(WRITE, address, 1, 0)], CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 5),
            ] {
                let (new, mut ops, mut info) = (graph(driver), ops, CUgraphExecUpdateResultInfo::default());
                let node = batch_node(driver, new, &[], &mut ops);
                assert_eq!(driver.cuGraphExecUpdate(exec, new, &mut info), answer);
                assert_eq!(
                    (info.result.0, info.errorNode),
                    (reason, if reason == 0 { null_mut() } else { node })
                );
                assert_eq!(driver.cuGraphDestroy(new), OK);
            }
            run(driver, exec, stream);
            assert_eq!(read(driver, address, 4), [20, 3, 30, 0]);
            // The definition may take anything.
            assert_eq!(driver.cuGraphBatchMemOpNodeSetParams(node, &batch(driver, &mut other[..1])), OK);
            assert_eq!(driver.cuGraphBatchMemOpNodeGetParams(node, &mut back), OK);
            assert_eq!(back.count, 1);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn waits_compare_and_hold_their_stream_up() {
    leaves_nothing("mem_ops::waits_compare_and_hold_their_stream_up", || {
        let driver = &session();
        let (address, waiting, writing) = (words(driver, 4), stream(driver), stream(driver));
        // The comparison, its operand, a value that does not satisfy it, one that does.
        for (flags, value, short, enough) in
            [(0, 5u32, 4u32, 6u32), (0, 1, u32::MAX, 2), (1, 5, 6, 5), (2, 6, 1, 2), (3, 0xf, 0xffff_fff0, 0)]
        {
            for in_graph in [false, true] {
                unsafe {
                    assert_eq!(driver.cuStreamWriteValue32(writing, address, short, 0), OK);
                    assert_eq!(driver.cuStreamWriteValue32(writing, address + 4, 0, 0), OK);
                    assert_eq!(driver.cuStreamSynchronize(writing), OK);
                    let mut ops = [op(WAIT, address, value.into(), flags), op(WRITE, address + 4, 1, 0)];
                    let (own, mut exec) = (graph(driver), null_mut());
                    if in_graph {
                        batch_node(driver, own, &[], &mut ops);
                        exec = instantiate(driver, own);
                        assert_eq!(driver.cuGraphLaunch(exec, waiting), OK);
                    } else {
                        assert_eq!(driver.cuStreamWaitValue32(waiting, address, value, flags), OK);
                        assert_eq!(driver.cuStreamWriteValue32(waiting, address + 4, 1, 0), OK);
                    }
                    // Another stream goes on with its work, which does not end the wait.
                    assert_eq!(driver.cuStreamWriteValue32(writing, address + 8, 1, 0), OK);
                    assert_eq!(driver.cuStreamSynchronize(writing), OK);
                    assert_eq!(driver.cuStreamQuery(waiting), CUresult::CUDA_ERROR_NOT_READY);
                    let mut word = [9u32; 2];
                    assert_eq!(driver.cuMemcpyDtoHAsync(word.as_mut_ptr().cast(), address, 8, writing), OK);
                    assert_eq!(word, [short, 0], "{flags} {value} {in_graph}");
                    assert_eq!(driver.cuStreamWriteValue32(writing, address, enough, 0), OK);
                    assert_eq!(driver.cuStreamSynchronize(waiting), OK);
                    assert_eq!(read(driver, address, 2), [enough, 1], "{flags} {value} {in_graph}");
                    if in_graph {
                        assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                    }
                    assert_eq!(driver.cuGraphDestroy(own), OK);
                }
            }
        }
        unsafe {
            // 64 bits count as 64 bits.
            assert_eq!(driver.cuStreamWriteValue64(writing, address, 1 << 40, 0), OK);
            assert_eq!(driver.cuStreamWaitValue64(waiting, address, (1 << 40) + 1, 0), OK);
            assert_eq!(driver.cuStreamSynchronize(writing), OK);
            assert_eq!(driver.cuStreamQuery(waiting), CUresult::CUDA_ERROR_NOT_READY);
            // The host can end the wait, too, by memory that both see.
            assert_eq!(driver.cuStreamWriteValue64(writing, address, (1 << 40) + 1, 0), OK);
            assert_eq!(driver.cuStreamSynchronize(waiting), OK);
            let mut pinned = null_mut();
            assert_eq!(driver.cuMemHostAlloc(&mut pinned, 64, 0), OK);
            let word = std::sync::atomic::AtomicU32::from_ptr(pinned.cast());
            word.store(0, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(driver.cuStreamWaitValue32(waiting, pinned.expose_provenance() as u64, 1, 1), OK);
            assert_eq!(driver.cuStreamQuery(waiting), CUresult::CUDA_ERROR_NOT_READY);
            word.store(1, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(driver.cuStreamSynchronize(waiting), OK);
            assert_eq!(driver.cuMemFreeHost(pinned), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuStreamDestroy(waiting), OK);
            assert_eq!(driver.cuStreamDestroy(writing), OK);
        }
    });
}

#[test]
fn stream_calls_check_and_are_captured() {
    leaves_nothing("mem_ops::stream_calls_check_and_are_captured", || {
        let driver = &session();
        let (address, stream) = (words(driver, 4), stream(driver));
        let mut ops = [op(WRITE, address, 5, 0), barrier(), op(WRITE, address + 4, 6, 0)];
        unsafe {
            assert_eq!(driver.cuStreamBatchMemOp(stream, 3, ops.as_mut_ptr(), 0), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(read(driver, address, 2), [5, 6]);
            for (what, answer) in [
                ("unaligned", driver.cuStreamWriteValue32(stream, address + 1, 1, 0)),
                ("unaligned, wide", driver.cuStreamWriteValue64(stream, address + 4, 1, 0)),
                ("unaligned wait", driver.cuStreamWaitValue64(stream, address + 4, 1, 0)),
                ("unknown comparison", driver.cuStreamWaitValue32(stream, address, 1, 4)),
                ("a write without a barrier", driver.cuStreamWriteValue32(stream, address, 1, 1)),
                ("unknown flag", driver.cuStreamWriteValue32(stream, address, 1, 2)),
                ("flags of the batch", driver.cuStreamBatchMemOp(stream, 3, ops.as_mut_ptr(), 1)),
                ("a null array", driver.cuStreamBatchMemOp(stream, 3, null_mut(), 0)),
            ] {
                assert_eq!(answer, IV, "{what}");
            }
            let flush = driver.cuStreamWaitValue32(stream, address, 1, 1 << 30);
            assert_eq!(flush, NS);
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            assert_eq!(driver.cuStreamBeginCapture(stream, mode), OK);
            assert_eq!(driver.cuStreamWriteValue32(stream, address, 50, 0), OK);
            // An error here is harmless.
            assert_eq!(driver.cuStreamWriteValue32(stream, address + 1, 50, 0), IV);
            assert_eq!(driver.cuStreamWaitValue32(stream, address, 50, 1), OK);
            assert_eq!(driver.cuStreamBatchMemOp(stream, 2, ops.as_mut_ptr().add(1), 0), OK);
            let mut own = null_mut();
            assert_eq!(driver.cuStreamEndCapture(stream, &mut own), OK);
            let found = nodes(driver, own);
            assert_eq!(found.len(), 3);
            for (node, count) in found.iter().zip([1, 1, 2]) {
                let mut back = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
                assert_eq!(driver.cuGraphBatchMemOpNodeGetParams(*node, &mut back), OK);
                assert_eq!((back.count, back.ctx), (count, context(driver)));
            }
            assert_eq!(edges(driver, own).len(), 2);
            let exec = instantiate(driver, own);
            run(driver, exec, stream);
            assert_eq!(read(driver, address, 2), [50, 6]);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn a_newer_driver_reduces() {
    leaves_nothing("mem_ops::a_newer_driver_reduces", || {
        let driver = &session_with(Config::new().version(Version::new(13, 2)));
        let (address, stream) = (words(driver, 4), stream(driver));
        type How = CUstreamAtomicReductionOpType;
        let reduce = |address, value, how, wide: bool| {
            let mut params = CUstreamBatchMemOpParams::default();
            params.atomicReduction.operation = Op::CU_STREAM_MEM_OP_ATOMIC_REDUCTION;
            params.atomicReduction.reductionOp = how;
            params.atomicReduction.dataType = match wide {
                true => CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64,
                false => CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32,
            };
            params.atomicReduction.address = address;
            params.atomicReduction.value = value;
            params
        };
        let mut ops = [
            reduce(address, 6, How::CU_STREAM_ATOMIC_REDUCTION_OP_ADD, false),
            reduce(address, 3, How::CU_STREAM_ATOMIC_REDUCTION_OP_AND, false),
            reduce(address, 8, How::CU_STREAM_ATOMIC_REDUCTION_OP_OR, false),
            reduce(address + 8, u64::MAX, How::CU_STREAM_ATOMIC_REDUCTION_OP_ADD, true),
        ];
        unsafe {
            assert_eq!(driver.cuStreamBatchMemOp(stream, 4, ops.as_mut_ptr(), 0), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(read(driver, address, 4), [10, 0, u32::MAX, u32::MAX]);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn a_stray_operation_loses_the_device() {
    alone("mem_ops::a_stray_operation_loses_the_device", || {
        let driver = &session();
        let stream = stream(driver);
        let nowhere = 1 << 48 | 0xffff_0000_0000;
        unsafe {
            assert_eq!(driver.cuStreamWriteValue32(stream, nowhere, 1, 0), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        }
        let sentence = control::last_fault().unwrap();
        assert!(sentence.contains("a memory operation writes"), "{sentence}");
    });
}

#[test]
fn a_wait_ends_with_its_device() {
    alone("mem_ops::a_wait_ends_with_its_device", || {
        let driver = &session();
        let (address, stream) = (words(driver, 1), stream(driver));
        unsafe {
            assert_eq!(driver.cuStreamWaitValue32(stream, address, 1, 1), OK);
            assert_eq!(driver.cuStreamQuery(stream), CUresult::CUDA_ERROR_NOT_READY);
            control::lose_context(CUresult::CUDA_ERROR_LAUNCH_FAILED);
            assert_eq!(driver.cuStreamSynchronize(stream), CUresult::CUDA_ERROR_LAUNCH_FAILED);
        }
    });
}

#[test]
fn pool_and_managed_memory_is_refused_when_it_is_to_run() {
    leaves_nothing("mem_ops::pool_and_managed_memory_is_refused_when_it_is_to_run", || {
        let driver = &session();
        let (stream, mut pooled, mut managed) = (stream(driver), 0, 0);
        unsafe {
            assert_eq!(driver.cuMemAllocAsync(&mut pooled, 16, stream), OK);
            assert_eq!(driver.cuMemAllocManaged(&mut managed, 16, 1), OK);
            for address in [pooled, managed] {
                let own = graph(driver);
                batch_node(driver, own, &[], &mut [barrier(), op(WRITE, address, 1, 0)]);
                let exec = instantiate(driver, own);
                assert_eq!(driver.cuGraphLaunch(exec, stream), IV);
                assert_eq!(driver.cuStreamWriteValue32(stream, address, 1, 0), IV);
                assert_eq!(driver.cuStreamWaitValue32(stream, address, 1, 0), IV);
                assert_eq!(driver.cuStreamSynchronize(stream), OK);
                assert_eq!(driver.cuGraphExecDestroy(exec), OK);
                assert_eq!(driver.cuGraphDestroy(own), OK);
            }
            assert_eq!(driver.cuMemFreeAsync(pooled, stream), OK);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(driver.cuMemFree(managed), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn a_branch_ends_the_wait_of_another() {
    leaves_nothing("mem_ops::a_branch_ends_the_wait_of_another", || {
        let driver = &session();
        let (own, inner, address, stream) = (graph(driver), graph(driver), words(driver, 4), stream(driver));
        // Two branches, the waiting nodes created first: each goes on by what the other has done.
        let first =
            batch_node(driver, own, &[], &mut [op(WAIT, address, 1, 1), op(WRITE, address + 4, 1, 0)]);
        let second = batch_node(driver, own, &[], &mut [op(WRITE, address, 1, 0)]);
        let third = batch_node(driver, own, &[second], &mut [op(WAIT, address + 4, 1, 1)]);
        // A child with a node that waits for a node outside.
        batch_node(driver, inner, &[], &mut [op(WAIT, address + 8, 1, 1), op(WRITE, address + 12, 7, 0)]);
        let mut child = null_mut();
        unsafe {
            assert_eq!(driver.cuGraphAddChildGraphNode(&mut child, own, null(), 0, inner), OK);
            let last = batch_node(driver, own, &[first, third], &mut [op(WRITE, address + 8, 1, 0)]);
            batch_node(
                driver,
                own,
                &[last, child],
                &mut [op(WRITE, address, 0, 0), op(WRITE, address + 4, 0, 0)],
            );
            let exec = instantiate(driver, own);
            for _ in 0..3 {
                run(driver, exec, stream);
                assert_eq!(read(driver, address, 4), [0, 0, 1, 7]);
            }
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuGraphDestroy(inner), OK);
            assert_eq!(driver.cuMemFree(address), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}
