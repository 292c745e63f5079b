//! Batches of memory operations, in nodes and on streams: writing values and waiting for values.

use cuda_graph::{BatchNode, ContextExt, Error, NodeError, NodeKind};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{
    BarrierScope, Batch, BatchOperation, Buffer, Compare, Context, Element, Error as HandleError, MemoryKind,
    Stream,
};
use cuda_sys::{CUDA_BATCH_MEM_OP_NODE_PARAMS, CUdevice_attribute as Attribute, CUresult, Call};
use cuda_tests::{Gate, Kind, SOON, count, fail, is_soft, live, no_leaks, raw, settle, setup, until};

use crate::common::driver_view::Drawn;

/// Zeros in memory that batches take.
fn plain<T: Element + Default>(stream: &Stream, len: usize) -> Buffer<T> {
    let buffer = stream.context().alloc_blocking::<T>(len).unwrap();
    buffer.write_blocking(stream, &vec![T::default(); len]).unwrap();
    buffer
}

/// Whether the device has what a batch may ask for.
fn has(context: &Context, attribute: Attribute) -> bool {
    context.device().attribute(attribute).unwrap() != 0
}

fn can_wide(context: &Context) -> bool {
    has(context, Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
}

/// The driver's parameters of the node are those of the handle: the words of each operation.
#[track_caller]
fn agree(node: &BatchNode, batch: &Batch, graph: &Drawn) {
    assert_eq!(node.operations().unwrap()[..], *batch.operations());
    let mut seen = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
    let raw_node = raw::nodes(graph.raw)[0];
    // SAFETY: a live node of that type.
    raw::ok(unsafe { raw::driver().cuGraphBatchMemOpNodeGetParams(raw_node, &raw mut seen) });
    assert_eq!((seen.count as usize, seen.flags), (batch.len(), 0));
    assert_eq!(seen.ctx, graph.context().as_raw());
    // SAFETY: the node's own array of that length; which fields of an operation count, its first
    // word says.
    let seen = unsafe { core::slice::from_raw_parts(seen.paramArray, seen.count as usize) };
    for (operation, seen) in batch.operations().iter().zip(seen) {
        // SAFETY: each form begins with the operation, and those with an address have it at one
        // place.
        let (kind, address) = unsafe { (seen.operation.0, seen.writeValue.address) };
        match *operation {
            BatchOperation::Write { address: given, wide, .. } => {
                assert_eq!((kind, address), (if wide { 5 } else { 2 }, given));
            }
            BatchOperation::Wait { address: given, wide, .. } => {
                assert_eq!((kind, address), (if wide { 4 } else { 1 }, given));
            }
            BatchOperation::Barrier { .. } => assert_eq!(kind, 6),
            _ => assert_eq!(kind, 3),
        }
    }
}

#[test]
fn numbers_are_written_in_order() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (narrow, wide) = (plain::<u32>(&stream, 4), plain::<u64>(&stream, 4));
        let mut batch = Batch::new();
        batch.write(&narrow, 1, 7).unwrap().write(&narrow, 2, u32::MAX).unwrap();
        batch.barrier(BarrierScope::System).barrier(BarrierScope::Device).write(&narrow, 1, 8).unwrap();
        if can_wide(&context) {
            batch.write(&wide, 3, u64::MAX - 1).unwrap();
        }
        let graph = Drawn::new(&context);
        let (node, cost) = count(|| graph.root().batch(&batch).unwrap());
        let queries = cost.calls("cuDeviceGetAttribute");
        assert!(queries <= 1 && cost.total() == 1 + queries, "{cost}");
        agree(&node, &batch, &graph);
        assert_eq!(node.kind(), NodeKind::Batch);
        assert_eq!(BatchNode::try_from(graph.nodes().unwrap().remove(0)).unwrap(), node);
        assert!(node.describe().unwrap().starts_with("write 7, write 4294967295, barrier, "), "{node:?}");
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(narrow.read_blocking(&stream).unwrap(), [0, 8, u32::MAX, 0]);
        if can_wide(&context) {
            assert_eq!(wide.read_blocking(&stream).unwrap(), [0, 0, 0, u64::MAX - 1]);
        }
        // The same by a stream.
        stream.fill(&narrow, 0).unwrap();
        stream.batch(&batch).unwrap();
        assert_eq!(narrow.read_blocking(&stream).unwrap(), [0, 8, u32::MAX, 0]);
        let ((), cost) = count(|| stream.batch(&Batch::new()).unwrap());
        cost.assert_calls(&[]);
    });
}

/// A graph that waits and then writes to `out`, launched on one stream and released from another by
/// writing `value`.
fn releases(context: &Context, compare: Compare, given: u32, held: u32, released: u32) {
    let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
    let (flags, out) = (plain::<u32>(&stream, 2), stream.zeros::<u32>(1).unwrap());
    stream.fill(&flags, held).unwrap();
    stream.synchronize_blocking().unwrap();
    let mut batch = Batch::new();
    batch.wait(&flags, 1, compare, given).unwrap();
    let graph = context.graph().unwrap();
    graph.root().batch(&batch).unwrap().then().fill(&out, 5).unwrap();
    let mut exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    let done = context.event().unwrap();
    stream.record(&done).unwrap();
    for _ in 0..20 {
        assert!(!done.query().unwrap(), "{compare:?} {given} let {held} pass");
        std::thread::yield_now();
    }
    let mut release = Batch::new();
    release.write(&flags, 1, released).unwrap();
    other.batch(&release).unwrap();
    assert!(until(SOON, || done.query().unwrap()), "{compare:?} {given} did not let {released} pass");
    assert_eq!(out.read_blocking(&stream).unwrap(), [5]);
}

#[test]
fn a_wait_holds_the_graph_until_the_number_compares() {
    let context = setup();
    no_leaks(|| {
        releases(&context, Compare::AtLeast, 3, 2, 4);
        // They wrap around.
        releases(&context, Compare::AtLeast, 1, u32::MAX, 2);
        releases(&context, Compare::Equal, 3, 4, 3);
        releases(&context, Compare::And, 6, 9, 2);
        if has(&context, Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR) {
            releases(&context, Compare::Nor, 0xFF, !0xFF, !0x1FF);
        }
    });
}

#[test]
fn a_stream_waits_for_a_number_that_a_graph_writes() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let flags = context.pinned_zeros::<u32>(2).unwrap().share();
        let out = other.zeros::<u32>(1).unwrap();
        let mut wait = Batch::new();
        wait.wait(&flags, 0, Compare::Equal, 9).unwrap();
        other.batch(&wait).unwrap();
        other.fill(&out, 6).unwrap();
        let mut write = Batch::new();
        write.write(&flags, 0, 9).unwrap();
        let graph = context.graph().unwrap();
        graph.root().batch(&write).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(out.read_blocking(&other).unwrap(), [6]);
    });
}

#[test]
fn what_the_driver_or_the_device_would_refuse_is_refused_before_in_words() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (narrow, wide) = (plain::<u32>(&stream, 4), plain::<u64>(&stream, 4));
        let graph = Drawn::new(&context);
        let (empty, cost) = count(|| graph.root().batch(&Batch::new()).unwrap_err());
        cost.assert_calls(&[]);
        assert!(matches!(empty, Error::Node(NodeError::NoElements { what: "batch" })), "{empty:?}");
        let mut batch = Batch::new();
        let error = batch.write(&narrow, 4, 1).unwrap_err();
        assert!(matches!(error, HandleError::Bounds { .. }), "{error:?}");
        let error = batch.wait(&narrow, usize::MAX, Compare::Equal, 1).unwrap_err();
        assert!(matches!(error, HandleError::Bounds { .. }), "{error:?}");
        assert!(batch.is_empty() && batch.memory().is_empty());
        for _ in 0..Batch::LIMIT {
            batch.write(&narrow, 0, 1).unwrap();
        }
        assert_eq!((batch.len(), batch.memory().len()), (255, 1));
        graph.root().batch(&batch).unwrap().remove().unwrap();
        batch.barrier(BarrierScope::System);
        let (refused, cost) = count(|| graph.root().batch(&batch).unwrap_err());
        cost.assert_calls(&[]);
        assert!(refused.to_string().contains("256") && refused.to_string().contains("255"), "{refused}");
        // What a device lacks is named.
        let lacking: [(Attribute, Batch); 3] = [
            (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, {
                let mut batch = Batch::new();
                batch.write(&wide, 0, 1).unwrap();
                batch
            }),
            (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, {
                let mut batch = Batch::new();
                batch.write(&narrow, 0, 0).unwrap().wait(&narrow, 0, Compare::Nor, 0).unwrap();
                batch
            }),
            (Attribute::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, {
                let mut batch = Batch::new();
                batch
                    .write(&narrow, 0, 1)
                    .unwrap()
                    .wait_and_flush(&narrow, 0, Compare::Equal, 1)
                    .unwrap()
                    .flush();
                batch
            }),
        ];
        let names = ["64_BIT_STREAM_MEM_OPS", "WAIT_VALUE_NOR", "CAN_FLUSH_REMOTE_WRITES"];
        for ((attribute, batch), name) in lacking.iter().zip(names) {
            let before = graph.view();
            match (has(&context, *attribute), graph.root().batch(batch)) {
                (true, added) => added.unwrap().remove().unwrap(),
                (false, added) => {
                    let error = added.unwrap_err();
                    assert!(matches!(error, Error::Handles(HandleError::Unsupported { .. })), "{error:?}");
                    assert!(error.to_string().contains(name), "{error}");
                    let error = stream.batch(batch).unwrap_err();
                    assert!(error.to_string().contains(name), "{error}");
                    assert_eq!(graph.view(), before);
                }
            }
        }
    });
}

#[test]
fn memory_that_the_driver_does_not_take_is_refused_before_the_launch() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let (pooled, managed) =
            (stream.zeros::<u32>(1).unwrap(), context.managed_zeros::<u32>(1).unwrap().share());
        let (mut of_pool, mut of_both) = (Batch::new(), Batch::new());
        of_pool.write(&pooled, 0, 1).unwrap();
        of_both.wait(&managed, 0, Compare::Equal, 0).unwrap();
        for (batch, kind) in [(&of_pool, MemoryKind::Pooled), (&of_both, MemoryKind::Managed)] {
            let error = graph.root().batch(batch).unwrap_err();
            assert_eq!(error, Error::Handles(HandleError::BatchMemory { kind }));
            assert!(error.to_string().contains(&format!("this is {kind} memory")), "{error}");
            assert_eq!(stream.batch(batch).unwrap_err(), HandleError::BatchMemory { kind });
        }
        assert!(graph.is_empty().unwrap());
    });
}

#[test]
fn a_node_can_be_set_to_another_batch_and_lets_go_of_what_it_used() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (first, second): (Buffer<u32>, Buffer<u32>) = (plain(&stream, 4), plain(&stream, 4));
        let (mut one, mut two) = (Batch::new(), Batch::new());
        one.write(&first, 0, 1).unwrap();
        two.write(&second, 2, 3).unwrap().barrier(BarrierScope::System);
        let graph = Drawn::new(&context);
        let node = graph.root().batch(&one).unwrap();
        let before = live().of(Kind::Allocation);
        drop(first);
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        node.set(&two).unwrap_err();
        drop(injected);
        agree(&node, &one, &graph);
        drop(one);
        settle();
        assert_eq!(live().of(Kind::Allocation), before);
        let (set, cost) = count(|| node.set(&two));
        set.unwrap();
        assert_eq!(cost.calls("cuGraphNodeSetParams"), 1, "{cost}");
        assert!(until(SOON, || live().of(Kind::Allocation) == before - 1));
        agree(&node, &two, &graph);
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(second.read_blocking(&stream).unwrap(), [0, 0, 3, 0]);
        node.remove().unwrap();
        assert!(matches!(node.set(&two), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(node.operations(), Err(Error::Node(NodeError::Removed { .. }))));
    });
}

#[test]
fn a_batch_keeps_its_memory_on_streams_and_in_captures() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let flags = plain::<u32>(&stream, 1);
        let mut batch = Batch::new();
        batch.write(&flags, 0, 4).unwrap();
        drop(flags);
        let gate = Gate::close(&other);
        other.batch(&batch).unwrap();
        // Freed behind the write: one into freed memory would be a fault.
        drop(batch);
        gate.open();
        other.synchronize_blocking().unwrap();
        // In a capture. The memory is of no stream's, which a capture would have to wait for.
        let mut batch = Batch::new();
        batch.write(&context.alloc_blocking::<u32>(1).unwrap(), 0, 4).unwrap();
        let capture = other.begin_capture(CaptureMode::ThreadLocal).unwrap();
        other.batch(&batch).unwrap();
        drop(batch);
        let captured = capture.end().unwrap();
        assert_eq!(captured.records.into_owners().len(), 1);
        let nodes = raw::nodes(captured.graph.as_raw());
        assert_eq!(raw::kind(nodes[0]), cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    });
}

#[test]
fn operations_that_the_device_has_cost_one_question_each() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (narrow, wide) = (plain::<u32>(&stream, 1), plain::<u64>(&stream, 1));
        let mut batch = Batch::new();
        batch.write(&narrow, 0, 1).unwrap();
        let (sent, cost) = count(|| stream.batch(&batch));
        sent.unwrap();
        cost.assert_calls(&[("cuStreamBatchMemOp", 1)]);
        assert_eq!(cost.heap_allocations(), 1, "{cost}");
        let graph = context.graph().unwrap();
        let first = graph.root().empty().unwrap();
        let least = (0..8).map(|_| count(|| first.then().batch(&batch).unwrap()).1.heap_allocations()).min();
        assert_eq!(least, Some(2), "the driver's form, and the node's copy");
        if is_soft() {
            batch.write(&wide, 0, 1).unwrap().wait(&wide, 0, Compare::Nor, 7).unwrap();
            let (sent, cost) = count(|| stream.batch(&batch));
            sent.unwrap();
            cost.assert_calls(&[("cuDeviceGetAttribute", 2), ("cuStreamBatchMemOp", 1)]);
        }
    });
}
