//! The states of builders: whatever becomes of them, the streams work afterwards.

use core::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

use cuda_graph::capture::{Capturing, Fork, GraphBuilder};
use cuda_graph::{CaptureError, Error, StreamExt};
use cuda_handles::Error as HandleError;
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Stream};
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, needs, no_leaks, raw, settle, setup};

use super::{Bench, Capture, MODES, N, invalidate, is_free, status, works_again};

type ForkBuilder = GraphBuilder<Fork, Capturing>;

/// Work written against a stream.
fn work(bench: &Bench, stream: &Stream, scratch: &Buffer<u32>) -> cuda_handles::Result<()> {
    stream.fill(&bench.numbers, 5)?;
    bench.add.launch(stream, per(1, 1), (7, &bench.numbers)).unwrap();
    stream.copy(&bench.numbers, scratch)?;
    stream.fill(scratch.slice(4..8)?, 9)?;
    stream.copy(scratch.slice(..8)?, bench.others.slice(8..)?)?;
    bench.all.launch(stream, per(N, 32), (N as u32, &bench.others)).unwrap();
    stream.write(bench.others.slice(..2)?, &[40, 41])?;
    stream.copy(bench.others.slice(..1)?, bench.numbers.slice(3..4)?)?;
    Ok(())
}

#[test]
fn a_replay_gives_the_numbers_that_the_streams_calls_give() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let scratch = bench.stream.zeros::<u32>(N).unwrap();
        let look = || {
            let all = [&bench.numbers, &bench.others, &scratch];
            all.map(|buffer| buffer.read_blocking(&bench.stream).unwrap())
        };
        let clear = || {
            for buffer in [&bench.numbers, &bench.others, &scratch] {
                bench.stream.fill(buffer, 1).unwrap();
            }
        };
        clear();
        work(&bench, &bench.stream, &scratch).unwrap();
        let expected = look();
        for mode in MODES {
            clear();
            let before = look();
            let graph =
                bench.stream.capture(mode, |capture| Ok(work(&bench, capture.stream(), &scratch)?)).unwrap();
            assert_eq!(look(), before, "a capture runs nothing");
            let mut exec = graph.instantiate().unwrap();
            for _ in 0..3 {
                clear();
                exec.launch(&bench.stream).unwrap();
                assert_eq!(look(), expected, "{mode:?}");
            }
        }
        bench.works_again();
    });
}

#[test]
fn builders_take_modes_and_end_as_values() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for mode in MODES {
            let capture = bench.stream.graph_builder().mode(mode).begin().unwrap();
            assert!(!is_free(&bench.stream));
            bench.add(&capture, 3).unwrap();
            capture.stream().fill(&bench.others, 4).unwrap();
            bench.stream.clone().fill(bench.others.slice(..1).unwrap(), 5).unwrap();
            let ended = capture.end().unwrap();
            assert!(is_free(&bench.stream));
            assert_eq!((ended.graph().len().unwrap(), ended.unmatched().unwrap()), (3, 0));
            let mut exec = ended.instantiate().unwrap();
            drop(ended);
            exec.launch(&bench.stream).unwrap();
            assert_eq!(bench.others.read_blocking(&bench.stream).unwrap()[..2], [5, 4]);
        }
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], 9);
        bench.works_again();
    });
}

#[test]
fn an_empty_capture_is_an_empty_graph() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let ended = bench.begin().end().unwrap();
        assert!(ended.graph().is_empty().unwrap());
        ended.instantiate().unwrap().launch(&bench.stream).unwrap();
        bench.works_again();
    });
}

#[test]
fn a_relaxed_builder_ends_on_another_thread() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.stream.graph_builder().begin_on_any_thread().unwrap();
        bench.add(&capture, 1).unwrap();
        let ended = std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                bench.add(&capture, 2).unwrap();
                capture.end().unwrap()
            });
            there.join().unwrap()
        });
        assert_eq!(bench.run(ended.graph()), 3);
        // Dropped on another thread, and dropped there with an open body.
        for with_fork in [false, true] {
            let capture = bench.stream.graph_builder().begin_on_any_thread().unwrap();
            bench.add(&capture, 1).unwrap();
            let forks = if with_fork { capture.split_into(2).unwrap() } else { Vec::new() };
            forks.iter().for_each(|fork| bench.add(fork, 1).unwrap());
            std::thread::scope(|scope| {
                scope.spawn(move || drop((capture, forks))).join().unwrap();
            });
            bench.works_again();
        }
    });
}

#[test]
fn a_stream_that_captures_begins_no_second_capture() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        for mode in MODES {
            let again = bench.stream.graph_builder().mode(mode).begin().unwrap_err();
            assert!(matches!(again, Error::Handles(HandleError::Capturing { .. })), "{again}");
        }
        let scoped = bench.stream.capture(CaptureMode::Relaxed, |_| Ok(())).unwrap_err();
        assert!(matches!(scoped, Error::Handles(HandleError::Capturing { .. })), "{scoped}");
        bench.add(&capture, 2).unwrap();
        assert_eq!(bench.run(capture.end().unwrap().graph()), 2, "the first one goes on");
        bench.works_again();
    });
}

#[test]
fn a_failing_begin_leaves_the_stream_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        for attempt in 0..3 {
            let injection = fail(Call::cuStreamBeginCapture, 1, code);
            let refused = match attempt {
                0 => bench.stream.graph_builder().begin().map(drop),
                1 => bench.stream.graph_builder().begin_on_any_thread().map(drop),
                _ => bench
                    .stream
                    .capture(CaptureMode::Global, |_| -> cuda_graph::Result<()> {
                        panic!("the closure is not called")
                    })
                    .map(drop),
            };
            assert!(injection.hit());
            let expected = HandleError::Driver { call: Call::cuStreamBeginCapture, code };
            assert_eq!(refused, Err(Error::Handles(expected)));
            drop(injection);
            bench.works_again();
        }
    });
}

#[test]
fn a_failing_end_leaves_the_streams_usable() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        for forks in [0, 2] {
            let capture = bench.begin();
            let forks = capture.split_into(forks).unwrap();
            let streams: Vec<Stream> = forks.iter().map(|fork| fork.stream().clone()).collect();
            forks.iter().for_each(|fork| bench.add(fork, 1).unwrap());
            bench.add_to_others(&capture).unwrap();
            capture.join(forks).unwrap();
            let injection = fail(Call::cuStreamEndCapture, 1, code);
            let refused = capture.end().unwrap_err();
            assert!(injection.hit());
            let expected = HandleError::Driver { call: Call::cuStreamEndCapture, code };
            assert_eq!(refused, Error::Handles(expected));
            drop(injection);
            bench.works_again();
            streams.iter().for_each(works_again);
        }
    });
}

/// What a builder has when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum With {
    Nothing,
    Work,
    IdleForks,
    BusyForks,
    NestedForks,
    JoinedForks,
    Invalid,
}

const WITH: [With; 7] = [
    With::Nothing,
    With::Work,
    With::IdleForks,
    With::BusyForks,
    With::NestedForks,
    With::JoinedForks,
    With::Invalid,
];

/// Gives a capture what it is to have. Returns its forks.
fn prepare(bench: &Bench, capture: &Capture, with: With) -> Vec<ForkBuilder> {
    match with {
        With::Nothing => Vec::new(),
        With::Work => {
            bench.add(capture, 1).unwrap();
            Vec::new()
        }
        With::IdleForks => capture.split_into(3).unwrap(),
        With::BusyForks => {
            let forks = capture.split_into(3).unwrap();
            forks.iter().for_each(|fork| bench.add(fork, 1).unwrap());
            forks
        }
        With::NestedForks => {
            let [outer] = capture.split().unwrap();
            bench.add(&outer, 1).unwrap();
            let mut forks = outer.split_into(2).unwrap();
            forks.iter().for_each(|fork| bench.add(fork, 1).unwrap());
            forks.push(outer);
            forks
        }
        With::JoinedForks => {
            let forks = capture.split_into(2).unwrap();
            forks.iter().for_each(|fork| bench.add(fork, 1).unwrap());
            capture.join(forks).unwrap();
            Vec::new()
        }
        With::Invalid => {
            let forks = capture.split_into(1).unwrap();
            bench.add(&forks[0], 1).unwrap();
            invalidate(&bench.stream);
            forks
        }
    }
}

#[test]
fn builders_dropped_in_every_state_leave_their_streams_usable() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        drop(bench.stream.graph_builder());
        drop(bench.stream.graph_builder().mode(CaptureMode::Global));
        bench.works_again();
        for with in WITH {
            for forks_first in [true, false] {
                let capture = bench.begin();
                let forks = prepare(&bench, &capture, with);
                let streams: Vec<Stream> = forks.iter().map(|fork| fork.stream().clone()).collect();
                if forks_first {
                    drop(forks);
                    drop(capture);
                } else {
                    drop(capture);
                    assert!(streams.iter().all(is_free), "{with:?}");
                    drop(forks);
                }
                bench.works_again();
                streams.iter().for_each(works_again);
            }
        }
        drop(bench.begin().end().unwrap());
        bench.works_again();
    });
}

#[test]
fn builders_kept_from_dropping_hold_nothing_up() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for with in WITH {
            // The primary is forgotten: the stream itself ends its capture, whichever it is.
            for by_fork in [false, true] {
                let capture = bench.begin();
                let forks = prepare(&bench, &capture, with);
                let streams: Vec<Stream> = forks.iter().map(|fork| fork.stream().clone()).collect();
                let by = if by_fork { streams.first().unwrap_or(&bench.stream) } else { &bench.stream };
                assert!(by.discard_capture().unwrap());
                assert!(!bench.stream.discard_capture().unwrap());
                bench.works_again();
                streams.iter().for_each(works_again);
                // What is left of it is of no use, and its drop does no harm.
                let open = bench.begin();
                let over = bench.add(&capture, 1).unwrap_err();
                assert_eq!(over, Error::Capture(CaptureError::Over { kind: "primary" }));
                let late = capture.end().unwrap_err();
                assert_eq!(late, Error::Handles(HandleError::Discarded), "{with:?}");
                drop(forks);
                bench.add(&open, 1).unwrap();
                assert_eq!(open.end().unwrap().graph().len().unwrap(), 1);
            }
            // Its forks are forgotten.
            let capture = bench.begin();
            let forks = prepare(&bench, &capture, with);
            let streams: Vec<Stream> = forks.iter().map(|fork| fork.stream().clone()).collect();
            let ended = capture.end().map(drop);
            let needs_join =
                !matches!(with, With::Nothing | With::Work | With::IdleForks | With::JoinedForks);
            assert_eq!(ended.is_err(), needs_join, "{with:?}: {ended:?}");
            bench.works_again();
            streams.iter().for_each(works_again);
            drop(forks);
        }
    });
}

#[test]
fn a_builder_forgotten_for_good_is_ended_by_its_stream() {
    let context = setup();
    let bench = Bench::new(&context);
    let capture = bench.begin();
    let [fork] = capture.split().unwrap();
    bench.add(&fork, 1).unwrap();
    let other = fork.stream().clone();
    // As forgotten, but no leak: a static leads to them.
    static FORGOTTEN: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
    FORGOTTEN.store(Box::into_raw(Box::new((capture, fork))).cast(), Ordering::Relaxed);
    assert!(other.discard_capture().unwrap());
    bench.works_again();
    works_again(&other);
}

#[test]
fn an_end_names_the_forks_that_were_not_joined() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let [first, second] = capture.split().unwrap();
        let [inner] = second.split().unwrap();
        bench.add(&first, 1).unwrap();
        bench.add(&inner, 1).unwrap();
        let streams = [first.stream().clone(), second.stream().clone(), inner.stream().clone()];
        capture.join([first]).unwrap();
        drop(second);
        let unjoined = capture.end().unwrap_err();
        assert_eq!(unjoined, Error::Capture(CaptureError::Unjoined { kind: "primary", forks: 2 }));
        let over = bench.add(&inner, 1).unwrap_err();
        assert_eq!(over, Error::Capture(CaptureError::Over { kind: "fork" }));
        bench.works_again();
        streams.iter().for_each(works_again);
    });
}

#[test]
fn a_stream_that_an_event_drew_in_has_to_be_joined_too() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let other = context.stream().unwrap();
        for joins in [false, true] {
            let capture = bench.begin();
            other.wait_for(&bench.stream).unwrap();
            other.fill(&bench.others, 2).unwrap();
            if joins {
                capture.stream().wait_for(&other).unwrap();
            }
            let ended = capture.end();
            match ended {
                Ok(ended) => assert_eq!((joins, ended.graph().len().unwrap()), (true, 1)),
                Err(Error::Handles(HandleError::CaptureUnjoined { origin, others })) => {
                    assert!(!joins);
                    assert_eq!((origin, &*others), (bench.stream.id(), &[other.id()][..]));
                }
                Err(error) => panic!("{error}"),
            }
            bench.works_again();
            works_again(&other);
        }
    });
}

#[test]
fn forks_run_beside_each_other_and_after_what_came_before() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        capture.fill(&bench.numbers, 10).unwrap();
        let [left, right] = capture.split().unwrap();
        left.fill(bench.others.slice(..4).unwrap(), 1).unwrap();
        right.fill(bench.others.slice(4..8).unwrap(), 2).unwrap();
        let [deep] = right.split().unwrap();
        deep.fill(bench.others.slice(8..).unwrap(), 3).unwrap();
        right.join([deep]).unwrap();
        capture.join([left, right]).unwrap();
        capture.copy(&bench.others, &bench.numbers).unwrap();
        let graph = capture.end().unwrap().into_graph();
        let nodes = graph.nodes().unwrap();
        assert_eq!(nodes.len(), 5);
        let [first, last] = [&nodes[0], &nodes[4]];
        for fork in [&nodes[1], &nodes[2]] {
            assert_eq!(fork.predecessors().unwrap(), slice::from_ref(first));
        }
        assert_eq!(nodes[3].predecessors().unwrap(), slice::from_ref(&nodes[2]));
        let before = last.predecessors().unwrap();
        assert!(before.contains(&nodes[1]) && before.contains(&nodes[3]), "the left one, and the deep one");
        graph.instantiate().unwrap().launch(&bench.stream).unwrap();
        let expected: Vec<u32> = (0..N).map(|at| [1, 2, 3, 3][at / 4]).collect();
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap(), expected);
        bench.works_again();
    });
}

#[test]
fn a_fork_of_another_capture_is_not_joined_and_both_captures_end() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let other = context.stream().unwrap();
        for has_work in [false, true] {
            let (one, two) = (bench.begin(), other.graph_builder().begin().unwrap());
            let ([mine], [theirs]) = (one.split().unwrap(), two.split().unwrap());
            if has_work {
                bench.add(&mine, 1).unwrap();
                bench.add(&theirs, 1).unwrap();
            }
            let streams = [mine.stream().clone(), theirs.stream().clone()];
            let refused = one.join([mine, theirs]).unwrap_err();
            assert_eq!(refused, Error::Capture(CaptureError::OtherCapture { kind: "primary" }));
            bench.add_to_others(&one).unwrap();
            // All forks are given up. Those with work are missed at the end.
            for (capture, forks) in [(one, 1), (two, 1)] {
                let ended = capture.end().map(drop);
                let expected = Error::Capture(CaptureError::Unjoined { kind: "primary", forks });
                assert_eq!(ended, if has_work { Err(expected) } else { Ok(()) });
            }
            bench.works_again();
            works_again(&other);
            streams.iter().for_each(works_again);
        }
    });
}

#[test]
fn a_join_that_fails_half_way_leaves_no_stream_capturing() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        for (call, nth) in [(Call::cuEventRecord, 1), (Call::cuEventRecord, 2), (Call::cuStreamWaitEvent, 2)]
        {
            // The reaper's calls are counted, too.
            settle();
            let capture = bench.begin();
            let forks = capture.split_into(3).unwrap();
            forks.iter().for_each(|fork| bench.add(fork, 1).unwrap());
            let streams: Vec<Stream> = forks.iter().map(|fork| fork.stream().clone()).collect();
            let injection = fail(call, nth, code);
            let refused = capture.join(forks).unwrap_err();
            assert!(injection.hit());
            drop(injection);
            assert_eq!(refused, Error::Handles(HandleError::Driver { call, code }));
            assert!(matches!(capture.end(), Err(Error::Capture(CaptureError::Unjoined { .. }))));
            bench.works_again();
            streams.iter().for_each(works_again);
        }
    });
}

#[test]
fn a_split_that_fails_makes_no_fork_and_the_capture_goes_on() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        for (call, nth) in [
            (Call::cuStreamWaitEvent, 1),
            (Call::cuStreamWaitEvent, 3),
            (Call::cuEventRecord, 1),
            (Call::cuStreamCreateWithPriority, 2),
        ] {
            let capture = bench.begin();
            bench.add(&capture, 1).unwrap();
            let injection = fail(call, nth, code);
            let refused = capture.split::<3>().map(drop);
            let hit = injection.hit();
            drop(injection);
            assert_eq!(refused.is_err(), hit, "{call:?}: {refused:?}");
            bench.add(&capture, 1).unwrap();
            assert_eq!(bench.run(capture.end().unwrap().graph()), 2);
            bench.works_again();
        }
    });
}

#[test]
fn nothing_is_captured_after_the_end() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let [fork] = capture.split().unwrap();
        let ended = capture.end().unwrap();
        bench.stream.synchronize_blocking().unwrap();
        let (numbers, others) = (&bench.numbers, &bench.others);
        let over = |error: Error| assert_eq!(error, Error::Capture(CaptureError::Over { kind: "fork" }));
        let (_, cost) = count(|| {
            over(bench.add(&fork, 1).unwrap_err());
            over(fork.fill(numbers, 1).unwrap_err());
            over(fork.copy(numbers, others).unwrap_err());
            over(fork.write(numbers, &[1; N]).unwrap_err());
            over(fork.copy_of(&[1_u32]).unwrap_err());
            over(fork.zeros::<u32>(4).unwrap_err());
            over(fork.callback(|| ()).unwrap_err());
            over(fork.keep(numbers).unwrap_err());
            over(fork.info().unwrap_err());
            over(fork.split::<2>().unwrap_err());
            over(fork.join([]).unwrap_err());
            over(fork.condition().unwrap_err());
            over(fork.embed(ended.graph()).unwrap_err());
            over(fork.capture_body(ended.graph()).unwrap_err());
            // SAFETY: nothing is done.
            over(unsafe { fork.foreign(|_| panic!("not called"), []) }.unwrap_err());
        });
        assert_eq!(cost.total_anywhere(), 0, "{cost}");
        bench.works_again();
        works_again(fork.stream());
        // Nor into the next capture of its stream.
        let next = fork.stream().graph_builder().begin().unwrap();
        over(bench.add(&fork, 1).unwrap_err());
        assert!(next.end().unwrap().graph().is_empty().unwrap());
    });
}

#[test]
fn a_capture_that_other_code_invalidated_ends_once_and_in_words() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for with in WITH {
            // Other threads destroy graphs of the round before.
            settle();
            let capture = bench.begin();
            let forks = prepare(&bench, &capture, with);
            let streams: Vec<Stream> = forks.iter().map(|fork| fork.stream().clone()).collect();
            if with != With::Invalid {
                invalidate(&bench.stream);
            }
            let (ended, cost) = count(|| capture.end());
            let Err(Error::Handles(HandleError::CaptureInvalidated { by: None })) = ended else {
                panic!("{with:?}: {ended:?}")
            };
            assert_eq!(cost.calls_anywhere("cuStreamEndCapture"), 1, "{with:?}: {cost}");
            assert_eq!(cost.calls_anywhere("cuGraphDestroy"), 0, "{with:?}: {cost}");
            bench.works_again();
            streams.iter().for_each(works_again);
            drop(forks);
        }
    });
}

#[test]
fn the_first_refused_call_of_the_library_is_named_unless_the_capture_was_invalid_before() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let code = CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        for library_first in [true, false] {
            let capture = bench.begin();
            let injection = library_first.then(|| fail(Call::cuLaunchKernel, 1, code));
            if !library_first {
                invalidate(&bench.stream);
            }
            let refused = bench.add(&capture, 1).unwrap_err();
            assert!(refused.to_string().contains("cuLaunchKernel"), "{refused}");
            drop(injection);
            if library_first {
                invalidate(&bench.stream);
            }
            capture.fill(&bench.numbers, 1).unwrap_err();
            let Err(Error::Handles(HandleError::CaptureInvalidated { by })) = capture.end() else {
                panic!("the capture was invalidated")
            };
            let expected = library_first.then_some((Call::cuLaunchKernel, code));
            assert_eq!(by.map(|cause| (cause.call, cause.code)), expected);
            bench.works_again();
        }
    });
}

#[test]
fn a_refused_launch_leaves_the_capture_and_takes_its_record_back() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        bench.add(&capture, 1).unwrap();
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let injection = fail(Call::cuLaunchKernel, 1, code);
        bench.add(&capture, 2).unwrap_err();
        assert!(injection.hit());
        drop(injection);
        // Arguments that do not fit do not reach the driver.
        let short = bench.numbers.slice(..4).unwrap();
        capture.launch(&bench.all, per(N, 32), (N as u32, short)).unwrap_err();
        bench.add(&capture, 3).unwrap();
        let ended = capture.end().unwrap();
        assert_eq!((ended.graph().len().unwrap(), ended.unmatched().unwrap()), (2, 0));
        assert_eq!(bench.run(ended.graph()), 4);
        bench.works_again();
    });
}

#[test]
fn memory_of_its_own_serves_before_during_and_after_a_capture() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let staged = capture.copy_of(&[1_u32, 2, 3, 4]).unwrap();
        capture.copy(&staged, bench.numbers.slice(..4).unwrap()).unwrap();
        drop(staged);
        capture.write(bench.numbers.slice(4..6).unwrap(), &[5_u32, 6]).unwrap();
        let mut exec = capture.end().unwrap().instantiate().unwrap();
        for _ in 0..2 {
            bench.stream.fill(&bench.numbers, 0).unwrap();
            exec.launch(&bench.stream).unwrap();
            assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[..7], [1, 2, 3, 4, 5, 6, 0]);
        }
    });
}

#[test]
fn foreign_calls_are_captured_and_their_owners_kept() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (owner, is_gone) = crate::common::gone::flag();
        let capture = bench.begin();
        let address = bench.others.address();
        // SAFETY: the memory lives as long as the bench.
        let code = unsafe {
            capture.foreign(|stream| raw::driver().cuMemsetD32Async(address, 6, N, stream), [owner])
        };
        raw::ok(code.unwrap());
        let info = capture.info().unwrap();
        assert!(info.is_active && info.dependencies.len() == 1);
        let graph = capture.end().unwrap().into_graph();
        let mut exec = graph.instantiate().unwrap();
        drop(graph);
        assert!(!is_gone());
        exec.launch(&bench.stream).unwrap();
        assert_eq!(bench.others.read_blocking(&bench.stream).unwrap(), [6; N]);
        drop(exec);
        assert!(crate::common::gone::soon(&is_gone));
        let none = status(&bench.stream);
        assert_eq!(none, cuda_sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
    });
}
