//! Several devices at once, each with graphs of its own.

use std::sync::Barrier;

use cuda_graph::StreamExt;
use cuda_handles::capture::CaptureMode;
use cuda_tests::{all_contexts, alone, needs, no_leaks, other_context, setup};

use crate::common::chains::{Bench, N};

const ROUNDS: usize = 10;

#[test]
fn graphs_of_all_devices_are_built_and_launched_at_the_same_time() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let _context = setup();
    needs!(TwoDevices);
    let contexts = all_contexts();
    no_leaks(|| {
        let start = Barrier::new(contexts.len());
        std::thread::scope(|scope| {
            for (steps, context) in (2..).zip(&contexts) {
                let start = &start;
                scope.spawn(move || {
                    let bench = Bench::new(context);
                    start.wait();
                    for _ in 0..ROUNDS {
                        let mut exec = bench.chain(context, steps).instantiate().unwrap();
                        exec.launch(&bench.stream).unwrap();
                    }
                    let sum = (ROUNDS * steps) as u32;
                    assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap(), vec![sum; N]);
                });
            }
        });
    });
}

/// One graph for each device; a copy on a stream hands the numbers from one to the next.
#[test]
fn the_result_of_a_graph_is_the_input_of_a_graph_of_another_device() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let context = setup();
    needs!(TwoDevices);
    let other = other_context();
    no_leaks(|| {
        let (near, far) = (Bench::new(&context), Bench::new(&other));
        let mut here = near.chain(&context, 2).instantiate().unwrap();
        let mut there = far.chain(&other, 3).instantiate().unwrap();
        for _ in 0..ROUNDS {
            here.launch(&near.stream).unwrap();
            near.stream.copy_peer(&near.numbers, &far.numbers).unwrap();
            far.stream.wait_for(&near.stream).unwrap();
            there.launch(&far.stream).unwrap();
            far.stream.copy_peer(&far.numbers, &near.numbers).unwrap();
            near.stream.wait_for(&far.stream).unwrap();
        }
        let sum = (5 * ROUNDS) as u32;
        assert_eq!(near.numbers.read_blocking(&near.stream).unwrap(), vec![sum; N]);
    });
}

#[test]
fn one_thread_captures_streams_of_two_devices_at_once() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let context = setup();
    needs!(TwoDevices);
    let other = other_context();
    no_leaks(|| {
        let (near, far) = (context.stream().unwrap(), other.stream().unwrap());
        let (here, there) = (near.zeros::<u32>(N).unwrap(), far.zeros::<u32>(N).unwrap());
        // Neither capture is to wait for the memory.
        near.synchronize_blocking().unwrap();
        far.synchronize_blocking().unwrap();
        let mut inner = None;
        let outer = near.capture(CaptureMode::ThreadLocal, |capture| {
            capture.fill(&here, 1)?;
            inner = Some(far.capture(CaptureMode::ThreadLocal, |capture| capture.fill(&there, 2))?);
            capture.fill(here.slice(..1)?, 3)
        });
        let (outer, inner) = (outer.unwrap(), inner.unwrap());
        assert_eq!((outer.len().unwrap(), inner.len().unwrap()), (2, 1));
        assert_eq!((outer.context(), inner.context()), (&*context, &other));
        inner.instantiate().unwrap().launch(&far).unwrap();
        outer.instantiate().unwrap().launch(&near).unwrap();
        assert_eq!(here.read_blocking(&near).unwrap()[..2], [3, 1]);
        assert_eq!(there.read_blocking(&far).unwrap(), [2; N]);
    });
}
