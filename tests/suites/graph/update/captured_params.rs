//! Graph parameters in captured calls.

use cuda_graph::capture::Kind;
use cuda_graph::{
    CaptureError, ContextExt, Error, GraphParam, KernelNode, NodeError, ParamError, Result, Test,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Stream};
use cuda_launch::{LaunchConfig, per};
use cuda_sys::{CUDA_KERNEL_NODE_PARAMS_v2, CUgraph, CUgraphNode, CUresult};
use cuda_tests::{count, needs, no_leaks, raw, setup};

use crate::capture::{Bench, add_to};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

/// The first elements of memory.
fn first<const N: usize>(stream: &Stream, memory: &Buffer<u32>) -> [u32; N] {
    memory.slice(..N).unwrap().read_blocking(stream).unwrap().try_into().unwrap()
}

#[test]
fn launches_fills_and_copies_follow_the_parameters() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, y) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let capture = bench.begin();
        let (memory, value) = (capture.param(&x).unwrap(), capture.param(5_u32).unwrap());
        let (result, amount) = (capture.param(&y).unwrap(), capture.param(100_u32).unwrap());
        let one = capture.param(LaunchConfig::new(1, 1)).unwrap();
        capture.clear(&memory).unwrap();
        capture.fill(&memory, &value).unwrap();
        capture.launch(&bench.all, per(memory.len(), 32), (memory.len(), &memory)).unwrap();
        capture.launch(&bench.add, &one, (&amount, &memory)).unwrap();
        capture.copy(&memory, &result).unwrap();
        let ended = capture.end().unwrap();
        assert_eq!((ended.unmatched().unwrap(), ended.graph().len().unwrap()), (0, 5));
        let mut exec = ended.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!(first(stream, &y), [106, 6, 6, 6, 6, 6, 6, 6]);
        let (long, target) = (stream.zeros::<u32>(12).unwrap(), stream.zeros::<u32>(12).unwrap());
        let values = ((&memory, &long), (&result, &target), (&value, 1), (&amount, 7));
        exec.launch_with(stream, values).unwrap();
        assert_eq!(first(stream, &target), [9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        // Three blocks add three times.
        exec.launch_with(stream, ((&one, LaunchConfig::new(3, 1)),)).unwrap();
        assert_eq!(first(stream, &target), [23, 2, 2, 2]);
        assert_eq!(first(stream, &y), [106, 6, 6, 6]);
        let ((), calls) = count(|| exec.launch_with(stream, ((&amount, 8),)).unwrap());
        calls.assert_calls(&[("cuGraphExecNodeSetParams", 1), ("cuGraphLaunch", 1)]);
        let all = exec.launch_bound(stream, ((&amount, 8),)).unwrap_err();
        let first = "the memory of node `memset#0`".to_owned();
        assert_eq!(all, Error::Param(ParamError::NotAllNamed { first, missing: 4, all: 5 }));
        bench.stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn equal_calls_on_forks_each_follow_their_own_parameter() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, y, z) = (
            stream.zeros::<u32>(4).unwrap(),
            stream.zeros::<u32>(4).unwrap(),
            stream.zeros::<u32>(4).unwrap(),
        );
        let capture = bench.begin();
        let params = [(); 3].map(|()| capture.param(&x).unwrap());
        let filled = [(); 2].map(|()| capture.param(&y).unwrap());
        let forks = capture.split::<3>().unwrap();
        // In another order than that of the forks, with an equal call without a parameter between.
        for (fork, param) in [(&forks[1], &params[1]), (&forks[2], &params[2]), (&forks[0], &params[0])] {
            fork.launch(&bench.add, per(1, 1), (1, param)).unwrap();
            fork.launch(&bench.add, per(1, 1), (1, &x)).unwrap();
        }
        forks[1].fill(&filled[1], 4).unwrap();
        forks[0].fill(&filled[0], 4).unwrap();
        capture.join(forks).unwrap();
        let ended = capture.end().unwrap();
        assert_eq!(ended.unmatched().unwrap(), 0);
        let mut exec = ended.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!((first(stream, &x), first(stream, &y)), ([6], [4]));
        let more = [(); 3].map(|()| stream.zeros::<u32>(4).unwrap());
        for (at, param) in params.iter().enumerate() {
            exec.launch_with(stream, ((param, &more[at]),)).unwrap();
            exec.launch(stream).unwrap();
        }
        // The n-th one counts from its own change on.
        assert_eq!(more.each_ref().map(|memory| first(stream, memory)), [[6], [4], [2]]);
        assert_eq!(first(stream, &x), [6 + 2 * (5 + 4 + 3)]);
        exec.launch_with(stream, ((&filled[0], &z),)).unwrap();
        stream.clear(&y).unwrap();
        exec.launch_with(stream, ((&filled[0], &z), (&filled[1], &more[0]))).unwrap();
        assert_eq!((first(stream, &y), first(stream, &z), first(stream, &more[0])), ([0], [4], [4]));
    });
}

#[test]
fn threads_that_capture_on_forks_keep_each_call_with_its_parameter() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let x = stream.zeros::<u32>(4).unwrap();
        let capture = bench.begin();
        let forks = capture.split_into(4).unwrap();
        let (forks, params): (Vec<_>, Vec<GraphParam<[u32]>>) = std::thread::scope(|scope| {
            let work = forks.into_iter().map(|fork| {
                let (add, x) = (&bench.add, &x);
                scope.spawn(move || {
                    let param = fork.param(x).unwrap();
                    for _ in 0..8 {
                        fork.launch(add, per(1, 1), (1, &param)).unwrap();
                    }
                    (fork, param)
                })
            });
            let threads: Vec<_> = work.collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).unzip()
        });
        capture.join(forks).unwrap();
        let mut exec = capture.end().unwrap().instantiate().unwrap();
        for param in &params {
            let own = stream.zeros::<u32>(4).unwrap();
            exec.launch_with(stream, ((param, &own),)).unwrap();
            assert_eq!(first(stream, &own), [8]);
        }
        assert_eq!(first(stream, &x), [8 * (3 + 2 + 1)]);
    });
}

#[test]
fn captures_into_a_graph_take_its_parameters_and_make_some() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, y) = (stream.zeros::<u32>(4).unwrap(), stream.zeros::<u32>(4).unwrap());
        let graph = context.graph().unwrap();
        let memory = graph.param(&x).unwrap();
        let fill = graph.root().fill(&memory, 3).unwrap();
        let amount = fill
            .then()
            .capture(stream, LOCAL, |capture| {
                let amount = capture.param(10_u32)?;
                capture.launch(&bench.add, per(1, 1), (&amount, &memory))?;
                let [fork] = capture.split()?;
                fork.launch(&bench.all, per(memory.len(), 32), (memory.len(), &memory))?;
                capture.join([fork])?;
                Ok::<_, Error>(amount)
            })
            .unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!(first(stream, &x), [14, 4, 4, 4]);
        exec.launch_with(stream, ((&memory, &y), (&amount, 20))).unwrap();
        assert_eq!((first(stream, &x), first(stream, &y)), ([14, 4], [24, 4]));
        let bound = graph.nodes().unwrap().into_iter().filter_map(|node| KernelNode::try_from(node).ok());
        for node in bound {
            let refused = node.set(&bench.add, per(1, 1), (1, &x)).unwrap_err();
            assert!(matches!(refused, Error::Param(ParamError::Bound { .. })), "{refused}");
        }
    });
}

/// A loop with a body of captured calls: parameters from before, inside and behind.
fn captured_loop<K: Kind>(
    bench: &Bench,
    capture: &cuda_graph::GraphBuilder<K, cuda_graph::capture::Capturing>,
    counter: &Buffer<u32>,
    result: &GraphParam<[u32]>,
) -> Result<GraphParam<u32>> {
    let left = capture.while_loop(Test::nonzero(counter), |body| {
        let amount = body.param(1_u32)?;
        body.launch(&bench.add, per(1, 1), (&amount, result))?;
        body.launch(&bench.add, per(1, 1), (u32::MAX, counter))?;
        Ok::<_, Error>(amount)
    })?;
    capture.launch(&bench.all, per(1, 32), (1, result))?;
    Ok(left.into_inside())
}

#[test]
fn bodies_and_what_is_behind_them_take_parameters_made_before_the_target() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, y) = (stream.zeros::<u32>(4).unwrap(), stream.zeros::<u32>(4).unwrap());
        let counter = stream.zeros::<u32>(1).unwrap();
        let capture = bench.begin();
        let result = capture.param(&x).unwrap();
        capture.fill(&result, 0).unwrap();
        capture.fill(&counter, 3).unwrap();
        let amount = captured_loop(&bench, &capture, &counter, &result).unwrap();
        capture.add(|at| at.fill(&result, 9)).unwrap();
        let mut exec = capture.end().unwrap().instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!(first(stream, &x), [9]);
        exec.launch_with(stream, ((&result, &y), (&amount, 5))).unwrap();
        assert_eq!((first(stream, &x), first(stream, &y)), ([9], [9]));
        drop(exec);
        let graph = context.graph().unwrap();
        let result = graph.param(&x).unwrap();
        graph
            .root()
            .capture(stream, LOCAL, |capture| {
                capture.fill(&result, 0)?;
                capture.fill(&counter, 3)?;
                captured_loop(&bench, capture, &counter, &result)
            })
            .map(|amount| {
                let mut exec = graph.instantiate().unwrap();
                exec.launch(stream).unwrap();
                assert_eq!(first(stream, &x), [4, 0]);
                exec.launch_with(stream, ((&result, &y), (&amount, 5))).unwrap();
                assert_eq!((first(stream, &x), first(stream, &y)), ([4, 0], [16, 0]));
            })
            .unwrap();
    });
}

#[test]
fn parameters_of_others_and_calls_for_nothing_are_refused() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let x = stream.zeros::<u32>(4).unwrap();
        let other = context.graph().unwrap();
        let foreign = other.param(&x).unwrap();
        let capture = bench.begin();
        let refused = capture.fill(&foreign, 1).unwrap_err();
        assert_eq!(refused, Error::Param(ParamError::Foreign));
        let empty = capture.param(x.slice(..0).unwrap()).unwrap();
        let own = capture.param(&x).unwrap();
        let nothing = |error| matches!(error, Error::Node(NodeError::NoElements { .. }));
        assert!(nothing(capture.fill(&empty, 1).unwrap_err()));
        assert!(nothing(capture.clear(&empty).unwrap_err()));
        assert!(nothing(capture.copy(&empty, &empty).unwrap_err()));
        assert_eq!(capture.copy(&own, &foreign).unwrap_err(), Error::Handles(overlap(16)));
        let two = capture.launch(&bench.add, per(1, 1), (1, &foreign)).unwrap_err();
        assert_eq!(two, Error::Param(ParamError::Foreign));
        capture.fill(&own, 1).unwrap();
        let ended = capture.end().unwrap();
        assert_eq!(ended.graph().len().unwrap(), 1);
        let mut exec = ended.instantiate().unwrap();
        assert_eq!(exec.set(&foreign, &x), Err(Error::Param(ParamError::Foreign)));
        // A parameter of a capture that has ended is none of the next one.
        let capture = bench.begin();
        assert_eq!(capture.fill(&own, 1), Err(Error::Param(ParamError::Foreign)));
        let late = capture.split::<1>().unwrap();
        drop(capture);
        let over = late[0].param(1_u32).unwrap_err();
        assert!(matches!(over, Error::Capture(CaptureError::Over { .. })), "{over}");
        bench.works_again();
    });
}

fn overlap(bytes: usize) -> cuda_handles::Error {
    cuda_handles::Error::Overlap { bytes }
}

/// Gives a captured kernel node another grid, as other code may.
fn change(node: CUgraphNode) {
    let func = core::ptr::null_mut();
    let params = CUDA_KERNEL_NODE_PARAMS_v2 { func, gridDimX: 2, ..raw::kernel(node) };
    // SAFETY: a live kernel node; kernel and arguments are its own.
    let code = unsafe { raw::driver().cuGraphKernelNodeSetParams(node, &raw const params) };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
}

fn raw_graph(capture: &crate::capture::Capture) -> CUgraph {
    capture.info().unwrap().graph
}

#[test]
fn a_bound_call_whose_node_is_not_known_makes_the_end_fail() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let x = stream.zeros::<u32>(4).unwrap();
        stream.synchronize_blocking().unwrap();
        let capture = bench.begin();
        let (memory, amount) = (capture.param(&x).unwrap(), capture.param(1_u32).unwrap());
        capture.launch(&bench.add, per(1, 1), (&amount, &memory)).unwrap();
        change(raw::nodes(raw_graph(&capture))[0]);
        let error = capture.end().unwrap_err();
        let expected = CaptureError::ParamCallChanged {
            call: "launch of `add_to`".into(),
            place: "argument `amount`".into(),
        };
        assert_eq!(error, Error::Capture(expected));
        bench.works_again();
        // Other code fills the same memory with another value, and with the same one.
        for (foreign, is_known) in [(7, true), (1, false)] {
            let capture = bench.begin();
            let memory = capture.param(&x).unwrap();
            let fill = |value| {
                // SAFETY: the memory has as many elements, and lives longer than the graph.
                let work = |stream| unsafe { raw::driver().cuMemsetD32Async(x.address(), value, 4, stream) };
                // SAFETY: as above.
                let code = unsafe { capture.foreign(work, []) }.unwrap();
                assert_eq!(code, CUresult::CUDA_SUCCESS);
            };
            fill(foreign);
            capture.fill(&memory, 1).unwrap();
            match capture.end() {
                Ok(ended) => {
                    assert!(is_known);
                    let (mut exec, y) = (ended.instantiate().unwrap(), stream.zeros::<u32>(4).unwrap());
                    exec.launch_with(stream, ((&memory, &y),)).unwrap();
                    assert_eq!((first(stream, &x), first(stream, &y)), ([7], [1]));
                }
                Err(error) => {
                    assert!(!is_known);
                    let (call, place) = ("fill".into(), "its memory".into());
                    assert_eq!(error, Error::Capture(CaptureError::ParamCallTwice { call, place }));
                }
            }
        }
        bench.works_again();
    });
}

#[test]
fn a_thousand_unsynchronised_replays_of_a_capture_are_right() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let results: Vec<Buffer<u32>> = (0..100).map(|_| stream.zeros::<u32>(2).unwrap()).collect();
        let add: &add_to = &bench.add;
        let capture = bench.begin();
        let (result, amount) = (capture.param(&results[0]).unwrap(), capture.param(0_u32).unwrap());
        capture.fill(&result, 0).unwrap();
        capture.launch(add, per(1, 1), (&amount, &result)).unwrap();
        let mut exec = capture.end().unwrap().instantiate().unwrap();
        for round in 0..1_000_u32 {
            let result_of = &results[round as usize % 100];
            exec.launch_with(stream, ((&result, result_of), (&amount, round))).unwrap();
        }
        for (at, result) in results.iter().enumerate() {
            assert_eq!(first(stream, result), [900 + at as u32, 0]);
        }
    });
}
