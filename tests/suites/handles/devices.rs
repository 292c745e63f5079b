//! Several devices at once: contexts entered on several threads, copies between devices, and the
//! order of their work.

use core::ptr;
use std::sync::Barrier;

use cuda_handles::{Context, Kernel};
use cuda_sys::CUcontext;
use cuda_tests::{Gate, all_contexts, alone, kernel, needs, no_leaks, other_context, raw, settle, setup};

const N: usize = 1 << 10;
const ROUNDS: u32 = 20;

fn current() -> CUcontext {
    let mut current = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuCtxGetCurrent(&raw mut current) });
    current
}

/// Enters one context within the other, again and again.
fn enter_in_turn(outer: &Context, inner: &Context) {
    for _ in 0..ROUNDS {
        let within = || {
            assert_eq!(current(), outer.as_raw());
            inner.with_current(|| assert_eq!(current(), inner.as_raw())).unwrap();
            assert_eq!(current(), outer.as_raw(), "the inner one is left");
        };
        outer.with_current(within).unwrap();
        assert!(current().is_null(), "the thread has no context of its own");
    }
}

#[test]
fn contexts_are_entered_on_several_threads() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let here = setup();
    needs!(TwoDevices);
    let there = other_context();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (here, there, start) = (&*here, &there, &start);
            scope.spawn(move || {
                start.wait();
                if number % 2 == 0 { enter_in_turn(here, there) } else { enter_in_turn(there, here) }
            });
        }
    });
}

/// Adds one to each number, on memory that comes and goes.
fn increment(context: &Context, increment: &Kernel, rounds: u32) -> Vec<u32> {
    let stream = context.stream().unwrap();
    let numbers = stream.zeros::<u32>(N).unwrap();
    for _ in 0..rounds {
        raw::launch(&stream, increment, 1024, &[numbers.address(), N as u64]);
    }
    numbers.read_blocking(&stream).unwrap()
}

#[test]
fn all_devices_work_at_the_same_time() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let _context = setup();
    needs!(TwoDevices);
    let contexts = all_contexts();
    no_leaks(|| {
        let start = Barrier::new(contexts.len());
        std::thread::scope(|scope| {
            for (rounds, context) in (1..).zip(&contexts) {
                let start = &start;
                scope.spawn(move || {
                    let kernel = kernel(context, "increment");
                    start.wait();
                    assert_eq!(increment(context, &kernel, rounds), vec![rounds; N]);
                });
            }
        });
    });
}

#[test]
fn copies_between_devices_go_both_ways_at_once() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let here = setup();
    needs!(TwoDevices);
    let there = other_context();
    no_leaks(|| {
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for (own, other, salt) in [(&*here, &there, 0), (&there, &*here, 1000)] {
                let start = &start;
                scope.spawn(move || {
                    let (near, far) = (own.stream().unwrap(), other.stream().unwrap());
                    let (from, to) = (near.zeros::<u32>(N).unwrap(), far.zeros::<u32>(N).unwrap());
                    start.wait();
                    for round in 0..ROUNDS {
                        near.fill(&from, salt + round).unwrap();
                        near.copy_peer(&from, &to).unwrap();
                        assert_eq!(to.read_blocking(&far).unwrap(), vec![salt + round; N]);
                        near.wait_for(&far).unwrap();
                    }
                });
            }
        });
        settle();
    });
}

/// Each device adds one and hands the numbers to the next, in the order of events alone.
#[test]
fn numbers_travel_around_all_devices() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let _context = setup();
    needs!(TwoDevices);
    let contexts = all_contexts();
    no_leaks(|| {
        let places: Vec<_> = contexts
            .iter()
            .map(|context| {
                let stream = context.stream().unwrap();
                let numbers = stream.zeros::<u32>(N).unwrap();
                (stream, numbers, kernel(context, "increment"))
            })
            .collect();
        let rounds = 3;
        for step in 0..rounds * places.len() {
            let (stream, numbers, increment) = &places[step % places.len()];
            let (next, target, _) = &places[(step + 1) % places.len()];
            raw::launch(stream, increment, 1024, &[numbers.address(), N as u64]);
            stream.copy_peer(numbers, target).unwrap();
            next.wait_for(stream).unwrap();
        }
        let (stream, numbers, _) = &places[0];
        let sum = (rounds * places.len()) as u32;
        assert_eq!(numbers.read_blocking(stream).unwrap(), vec![sum; N]);
    });
}

#[test]
fn a_stream_waits_for_an_event_of_another_device() {
    alone!("CUDA_SOFT_DEVICES" = "3");
    let here = setup();
    needs!(TwoDevices);
    let there = other_context();
    no_leaks(|| {
        let (near, far) = (here.stream().unwrap(), there.stream().unwrap());
        let event = there.event().unwrap();
        let gate = Gate::close(&far);
        far.record(&event).unwrap();
        near.wait(&event).unwrap();
        let after = here.event().unwrap();
        near.record(&after).unwrap();
        assert!(!event.query().unwrap() && !after.query().unwrap() && !near.query().unwrap());
        gate.open();
        near.synchronize_blocking().unwrap();
        assert!(event.query().unwrap() && after.query().unwrap());
    });
}
