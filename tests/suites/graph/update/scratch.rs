//! Memory that captures allocate beside graph parameters.

use std::cell::RefCell;

use cuda_graph::capture::{Capturing, GraphBuilder, Primary};
use cuda_graph::{CacheOptions, CachePath, ContextExt, Graph, GraphCache, GraphExec, GraphParam, StreamExt};
use cuda_handles::capture::Scratch;
use cuda_handles::{Buffer, Stream};
use cuda_launch::per;
use cuda_tests::{no_leaks, setup};

use crate::capture::{Bench, N};
use crate::common::gone::allocations;

type Params = (GraphParam<[u32]>, GraphParam<u32>);

/// What is captured: `to` gets the value and the amount, by way of memory of the capture, which is
/// the fixed side of a launch, a fill and two copies with parameters. Returns its addresses.
fn work(bench: &Bench, capture: &GraphBuilder<Primary, Capturing>, to: &Buffer<u32>) -> (Params, [u64; 2]) {
    let (target, amount) = (capture.param(to).unwrap(), capture.param(1_u32).unwrap());
    let value = capture.param(10_u32).unwrap();
    let first = {
        let own = capture.stream().alloc::<u32>(N).unwrap();
        capture.fill(&own, &value).unwrap();
        capture.launch(&bench.add, per(1, 1), (&amount, &own)).unwrap();
        capture.copy(&own, &target).unwrap();
        own.address()
    };
    // The next one gets the same memory.
    let own = capture.stream().alloc::<u32>(N).unwrap();
    capture.copy(&target, &own).unwrap();
    capture.launch(&bench.add, per(1, 1), (&amount, &own)).unwrap();
    capture.copy(&own, &target).unwrap();
    ((target, amount), [first, own.address()])
}

fn captured(bench: &Bench, scratch: Option<&Scratch>, to: &Buffer<u32>) -> (Graph, Params, [u64; 2]) {
    let builder = bench.stream.graph_builder();
    let capture = scratch.into_iter().fold(builder, |builder, scratch| builder.scratch(scratch)).begin();
    let capture = capture.unwrap();
    let (params, own) = work(bench, &capture, to);
    (capture.end().unwrap().into_graph(), params, own)
}

fn run(exec: &mut GraphExec, params: &Params, stream: &Stream, to: &Buffer<u32>, amount: u32) -> u32 {
    exec.launch_with(stream, ((&params.0, to), (&params.1, amount))).unwrap();
    to.read_blocking(stream).unwrap()[0]
}

#[test]
fn one_capture_uses_its_memory_again() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (_graph, _, [first, second]) = captured(&bench, None, &bench.numbers);
        assert_eq!(first, second);
    });
}

#[test]
fn a_family_needs_the_memory_of_one() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let scratch = Scratch::new(&context);
        let (first, other) = (captured(&bench, Some(&scratch), &bench.numbers), &bench.others);
        let mut execs = vec![first.0.instantiate().unwrap()];
        let mut family = vec![first];
        // An executable that runs and is updated takes no memory for itself, either.
        assert_eq!(run(&mut execs[0], &family[0].1, &bench.stream, other, 2), 14);
        let (before, size) = (allocations(), scratch.size_bytes());
        for _ in 0..5 {
            let next = captured(&bench, Some(&scratch), &bench.numbers);
            assert_eq!(next.2, family[0].2);
            execs.push(next.0.instantiate().unwrap());
            family.push(next);
        }
        assert_eq!((allocations(), scratch.size_bytes()), (before, size));
        for (amount, (exec, graph)) in (3..).zip(execs.iter_mut().zip(&family)) {
            assert_eq!(run(exec, &graph.1, &bench.stream, other, amount), 10 + 2 * amount);
        }
        // The memory lives as long as one of them.
        let last = (execs.pop().unwrap(), family.pop().unwrap().1);
        drop((execs, family, scratch));
        let (mut exec, params) = last;
        assert_eq!(run(&mut exec, &params, &bench.stream, &bench.numbers, 7), 24);
    });
}

#[test]
fn memory_that_is_a_value_stays_with_its_parameter() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let scratch = Scratch::new(&context);
        let begin = || bench.stream.graph_builder().scratch(&scratch).begin().unwrap();
        let capture = begin();
        let own = capture.stream().alloc::<u32>(N).unwrap();
        let (address, param) = (own.address(), capture.param(&own).unwrap());
        drop(own);
        capture.fill(&param, 1).unwrap();
        // It is held, as by a buffer.
        assert_ne!(capture.stream().alloc::<u32>(N).unwrap().address(), address);
        let graph = capture.end().unwrap();
        let capture = begin();
        assert_ne!(capture.stream().alloc::<u32>(N).unwrap().address(), address);
        drop((capture, graph, param));
    });
}

#[test]
fn memory_of_another_capture_stays_held() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let scratch = Scratch::new(&context);
        let begin = || bench.stream.graph_builder().scratch(&scratch).begin().unwrap();
        let capture = begin();
        let own = capture.stream().alloc::<u32>(N).unwrap();
        let address = own.address();
        // A graph that is not of the family, and knows nothing of its order.
        let graph = context.graph().unwrap();
        let value = graph.param(1_u32).unwrap();
        graph.root().fill(&own, &value).unwrap();
        drop(own);
        assert_ne!(capture.stream().alloc::<u32>(N).unwrap().address(), address);
        drop(capture.end().unwrap());
        let next = begin();
        assert_ne!(next.stream().alloc::<u32>(N).unwrap().address(), address);
        drop((next, graph, value));
    });
}

#[test]
fn the_entries_of_a_cache_share_their_memory() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (stream, scratch) = (&bench.stream, Scratch::new(&context));
        let cache: GraphCache<u32, Params> = GraphCache::new(CacheOptions::new());
        let addresses = RefCell::new(Vec::new());
        let launch = |key: u32, to: &Buffer<u32>| {
            let build = || {
                let (graph, params, own) = captured(&bench, Some(&scratch), &bench.numbers);
                addresses.borrow_mut().extend(own);
                Ok((graph, params))
            };
            let mut cached = cache.get(stream, key, 0, build).unwrap();
            let path = cached.path();
            let (exec, params) = cached.parts();
            assert_eq!(run(exec, params, stream, to, key), 10 + 2 * key);
            path
        };
        assert_eq!(launch(1, &bench.others), CachePath::Built);
        let before = allocations();
        for key in 2..8 {
            assert_eq!(launch(key, &bench.others), CachePath::Built);
        }
        assert_eq!(allocations(), before);
        addresses.borrow_mut().dedup();
        assert_eq!(addresses.borrow().len(), 1);
        for key in (1..8).rev() {
            assert_eq!(launch(key, &bench.others), CachePath::Hit);
        }
    });
}
