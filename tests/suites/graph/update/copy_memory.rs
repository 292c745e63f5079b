//! Copies of executables: memory of pools and other memory, managed memory, and captured copies.

use cuda_graph::{ContextExt, Error, Graph, MemcpyNode, ParamError, Result, StreamExt, UpdateError};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Owner, Slice, Stream};
use cuda_tests::{count, no_leaks, raw, setup};

use super::whole::update;

const N: usize = 8;

fn first(memory: &Buffer<u32>, stream: &Stream) -> u32 {
    memory.read_blocking(stream).unwrap()[0]
}

/// The only copy of a graph.
fn copy_of(graph: &Graph) -> MemcpyNode {
    graph.nodes().unwrap().into_iter().find_map(|node| MemcpyNode::try_from(node).ok()).unwrap()
}

/// Refuses an update in words, before the driver is asked.
#[track_caller]
fn assert_refused(set: impl FnOnce() -> Result<()>, words: &str) {
    let (refused, cost) = count(set);
    let refused = refused.unwrap_err();
    assert!(matches!(refused, Error::Update(UpdateError::NotPossible { .. })), "{refused}");
    assert!(refused.to_string().contains(words), "{refused}");
    assert_eq!(cost.calls("cuGraphExecNodeSetParams"), 0, "{cost}");
}

#[test]
fn a_copy_is_set_to_memory_that_is_allocated_alike() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pooled = [1, 2].map(|value| stream.upload(&[value; N]).unwrap());
        let plain = [3_u32, 4].map(|value| {
            let buffer = context.alloc_blocking::<u32>(N).unwrap();
            stream.fill(&buffer, value).unwrap();
            buffer
        });
        let managed = context.managed_zeros::<u32>(N).unwrap().share();
        stream.fill(&managed, 5).unwrap();
        let (target, plain_target) =
            (stream.zeros::<u32>(N).unwrap(), context.alloc_blocking::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let of_pool = graph.root().copy(&pooled[0], &target).unwrap().named("of the pool");
        let of_none = graph.root().copy(&plain[0], &plain_target).unwrap().named("of none");
        let mut exec = graph.instantiate().unwrap();
        exec.node(&of_pool).set(&pooled[1], &target).unwrap();
        exec.node(&of_none).set(&plain[1], &plain_target).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!((first(&target, &stream), first(&plain_target, &stream)), (2, 4));
        // Managed memory is no memory of a pool, either.
        exec.node(&of_none).set(&managed, &plain_target).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(first(&plain_target, &stream), 5);
        exec.node(&of_none).set(&plain[0], &plain_target).unwrap();
        let source = "its source is memory of a pool";
        assert_refused(|| exec.node(&of_pool).set(&plain[0], &target), source);
        assert_refused(|| exec.node(&of_pool).set(&managed, &target), source);
        let destination = "its destination is memory of no pool";
        assert_refused(|| exec.node(&of_none).set(&plain[1], &target), destination);
        // Also if the graph's node has become another copy meanwhile: then the driver refuses it.
        of_pool.set(&plain[0], &target).unwrap();
        let refused = exec.node(&of_pool).set(&plain[0], &target).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotPossible { .. })), "{refused}");
        exec.launch(&stream).unwrap();
        assert_eq!((first(&target, &stream), first(&plain_target, &stream)), (2, 3));
    });
}

#[test]
fn a_copy_of_managed_memory_is_set_to_managed_and_to_plain_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let managed = [1_u32, 2].map(|value| {
            let memory = context.managed_zeros::<u32>(N).unwrap().share();
            stream.fill(&memory, value).unwrap();
            memory
        });
        let (plain, target) =
            (context.alloc_blocking::<u32>(N).unwrap(), context.alloc_blocking::<u32>(N).unwrap());
        stream.fill(&plain, 3).unwrap();
        let graph = context.graph().unwrap();
        let copy = graph.root().copy(&managed[0], &target).unwrap();
        let source = graph.param(managed[0].as_slice()).unwrap();
        let followed = context.alloc_blocking::<u32>(N).unwrap();
        graph.root().copy(&source, &followed).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let mut run = |memory: Slice<'_, u32>| {
            exec.node(&copy).set(memory, &target).unwrap();
            exec.launch_with(&stream, ((&source, memory),)).unwrap();
            [&target, &followed].map(|memory| first(memory, &stream))
        };
        assert_eq!(run(managed[1].as_slice()), [2, 2]);
        assert_eq!(run(plain.as_slice()), [3, 3]);
        assert_eq!(run(managed[0].as_slice()), [1, 1]);
    });
}

#[test]
fn a_parameter_takes_memory_that_is_allocated_alike() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.upload(&[1_u32; N]).unwrap(), stream.upload(&[2_u32; N]).unwrap());
        let (plain, target) = (context.alloc_blocking::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let (from, to) = (graph.param(&x).unwrap(), graph.param(&target).unwrap());
        let flag = graph.param(true).unwrap();
        let fill = graph.root().fill(&from, 7).unwrap();
        let copy = fill.then().copy(&from, &to).unwrap().named("copies");
        copy.enabled_by(&flag).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let mut refused = |values: (&Buffer<u32>, &Buffer<u32>), side: &str, is_pooled: bool| {
            let launch = || exec.launch_with(&stream, ((&from, values.0), (&to, values.1)));
            let (answer, cost) = count(launch);
            let error = answer.unwrap_err();
            let Error::Param(ParamError::Exchanged { node, side: found, is_pooled: was }) = &error else {
                panic!("{error}");
            };
            assert_eq!((&**node, *found, *was), ("copies", side, is_pooled), "{error}");
            assert_eq!((cost.calls("cuGraphExecNodeSetParams"), cost.calls("cuGraphLaunch")), (0, 0));
            error.to_string()
        };
        let words = refused((&plain, &target), "source", false);
        assert!(words.contains("copies with memory of a pool as its source"), "{words}");
        refused((&y, &plain), "destination", false);
        assert_eq!((first(&y, &stream), first(&target, &stream)), (2, 0), "nothing was launched");
        // A copy that is off copies nothing.
        exec.launch_with(&stream, ((&from, &plain), (&to, &target), (&flag, false))).unwrap();
        assert_eq!((first(&plain, &stream), first(&target, &stream)), (7, 0));
        exec.launch_with(&stream, ((&from, &y), (&flag, true))).unwrap();
        assert_eq!((first(&y, &stream), first(&target, &stream)), (7, 7));
    });
}

#[test]
fn captured_copies_are_set_and_updated_from_others() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pooled = [1, 2].map(|value| stream.upload(&[value; N]).unwrap());
        let managed = [3_u32, 4].map(|value| {
            let memory = context.managed_zeros::<u32>(N).unwrap().share();
            stream.fill(&memory, value).unwrap();
            memory
        });
        let (target, plain) = (stream.zeros::<u32>(N).unwrap(), context.alloc_blocking::<u32>(N).unwrap());
        stream.synchronize_blocking().unwrap();
        let captured = |from: Slice<'_, u32>, to: &Buffer<u32>| {
            stream.capture(CaptureMode::ThreadLocal, |capture| capture.copy(from, to)).unwrap()
        };
        let sources = [
            ([pooled[0].as_slice(), pooled[1].as_slice()], &target, [1, 2]),
            ([managed[0].as_slice(), managed[1].as_slice()], &plain, [3, 4]),
        ];
        for ([one, other], to, [value, other_value]) in sources {
            let graph = captured(one, to);
            let mut exec = graph.instantiate().unwrap();
            exec.node(&copy_of(&graph)).set(other, to).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(first(to, &stream), other_value);
            update(&mut exec, &graph);
            exec.launch(&stream).unwrap();
            assert_eq!(first(to, &stream), value);
            update(&mut exec, &captured(other, to));
            exec.launch(&stream).unwrap();
            assert_eq!(first(to, &stream), other_value);
        }
        // What the capture has kept tells which memory it is.
        let graph = captured(pooled[0].as_slice(), &target);
        let mut exec = graph.instantiate().unwrap();
        assert_refused(|| exec.node(&copy_of(&graph)).set(&pooled[0], &plain), "its destination is");
    });
}

#[test]
fn foreign_work_captures_copies_that_an_executable_exchanges() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffers = [1, 2].map(|value| stream.upload(&[value; N]).unwrap());
        let target = stream.zeros::<u32>(N).unwrap();
        stream.synchronize_blocking().unwrap();
        let to = target.clone();
        let work = move |stream, from: &Buffer<u32>| {
            let bytes = N * size_of::<u32>();
            // SAFETY: the memory is that of the buffers, which are returned.
            raw::ok(unsafe { raw::driver().cuMemcpyDtoDAsync(to.address(), from.address(), bytes, stream) });
            Ok(vec![Owner::from(from), Owner::from(&to)])
        };
        let capture = stream.graph_builder().begin().unwrap();
        // SAFETY: the work copies from one buffer to the other, on the stream that it gets.
        let node = unsafe { capture.embed_foreign(buffers[0].clone(), work) }.unwrap();
        let graph = capture.end().unwrap().into_graph();
        let mut exec = graph.instantiate().unwrap();
        node.set_in(&mut exec, buffers[1].clone()).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(first(&target, &stream), 2);
    });
}
