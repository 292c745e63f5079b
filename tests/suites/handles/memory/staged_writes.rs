//! Writes that do not wait, since the elements are staged first.

use std::sync::mpsc::channel;

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Error, Slice, Stream, reaper};
use cuda_sys::{CUDA_GRAPH_INSTANTIATE_PARAMS, CUresult, Call};
use cuda_tests::{Gate, Kind, SOON, alone, count, fail, in_callback, live, no_leaks, raw, setup, until};

/// The largest write that goes through the blocks of a stream, and the size of a block.
const MOST: usize = 16 << 10;
const BLOCK: usize = 64 << 10;

fn pinned() -> i64 {
    live().of(Kind::Pinned)
}

#[test]
fn a_write_is_in_the_order_of_the_stream_and_waits_for_nothing() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for len in [1_usize, 5, MOST / 4, MOST / 4 + 1, 100_000] {
            let buffer = stream.zeros::<u32>(len).unwrap();
            let copies: Vec<Buffer<u32>> = (0..3).map(|_| stream.zeros(len).unwrap()).collect();
            let gate = Gate::close(&stream);
            for (number, copy) in (1..).zip(&copies) {
                let mut elements = vec![number; len];
                stream.write(&buffer, &elements).unwrap();
                stream.copy(&buffer, copy).unwrap();
                // They were copied.
                elements.fill(u32::MAX);
            }
            assert!(!stream.query().unwrap());
            gate.open();
            for (number, copy) in (1..).zip(&copies) {
                assert_eq!(copy.read_blocking(&stream).unwrap(), vec![number; len]);
            }
        }
    });
}

#[test]
fn an_upload_waits_for_nothing() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let gate = Gate::close(&stream);
        let small = stream.upload(&[1_u32, 2, 3]).unwrap();
        let large = stream.upload(&vec![7_u64; 10_000]).unwrap();
        let empty = stream.upload::<u32>(&[]).unwrap();
        assert!(!stream.query().unwrap() && empty.is_empty());
        // Another stream waits for it.
        let copy = other.zeros::<u32>(3).unwrap();
        other.copy(&small, &copy).unwrap();
        assert!(!other.query().unwrap());
        gate.open();
        assert_eq!(copy.read_blocking(&other).unwrap(), [1, 2, 3]);
        assert_eq!(large.read_blocking(&stream).unwrap(), [7; 10_000]);
    });
}

#[test]
fn parts_and_host_memory_are_written_too() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u16>(8).unwrap();
        stream.write(buffer.slice(2..5).unwrap(), &[1, 2, 3]).unwrap();
        stream.write::<u16>(buffer.slice(5..5).unwrap(), &[]).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [0, 0, 1, 2, 3, 0, 0, 0]);
        let host = context.pinned_zeros::<u16>(3).unwrap().share();
        stream.write(&host, &[4, 5, 6]).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(host.try_unique().unwrap()[..], [4, 5, 6]);
        let refused = stream.write(&buffer, &[1; 9]).unwrap_err();
        assert!(matches!(refused, Error::Length { expected: 8, found: 9, .. }), "{refused:?}");
    });
}

/// Writes a block full, whose parts are of this size.
fn fill_block(stream: &Stream, to: &Buffer<u8>) {
    (0..BLOCK / MOST).for_each(|_| stream.write(to, &[1; MOST]).unwrap());
}

#[test]
fn a_write_is_one_call_and_a_block_two_more_where_nobody_waits() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (small, large) = (stream.zeros::<u8>(4).unwrap(), stream.zeros::<u8>(MOST).unwrap());
        stream.synchronize_blocking().unwrap();
        stream.write(&small, &[0; 4]).unwrap();
        let ((), cost) = count(|| stream.write(&small, &[1; 4]).unwrap());
        cost.assert_calls(&[("cuMemcpyHtoDAsync", 1)]);
        assert_eq!(cost.heap_allocations(), 0);
        // If the host waits now and then, one block is filled again and again.
        let ((), cost) = count(|| {
            for _ in 0..10_000 {
                stream.write(&small, &[1; 4]).unwrap();
            }
        });
        assert!(cost.calls("cuEventRecord") <= 3 && cost.calls("cuEventQuery") <= 3, "{cost}");
        // Another one, so that writes end where blocks do.
        stream.synchronize_blocking().unwrap();
        let stream = context.stream().unwrap();
        fill_block(&stream, &large);
        for _ in 0..3 {
            stream.synchronize_blocking().unwrap();
            let ((), cost) = count(|| fill_block(&stream, &large));
            cost.assert_calls(&[("cuMemcpyHtoDAsync", 4)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
        // If it never waits, there is an event behind each block, queried once.
        for _ in 0..3 {
            fill_block(&stream, &large);
            assert!(until(SOON, || stream.query().unwrap()));
        }
        let ((), cost) = count(|| fill_block(&stream, &large));
        let relaxed = ("cuThreadExchangeStreamCaptureMode", 2);
        cost.assert_calls(&[("cuMemcpyHtoDAsync", 4), ("cuEventRecord", 1), ("cuEventQuery", 1), relaxed]);
        assert_eq!(cost.heap_allocations(), 0);
    });
}

#[test]
fn there_are_as_many_blocks_as_are_on_their_way() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let large = stream.zeros::<u8>(MOST).unwrap();
        reaper::drain();
        let before = pinned();
        let gate = Gate::close(&stream);
        (0..5).for_each(|_| fill_block(&stream, &large));
        assert_eq!(pinned(), before + 5);
        gate.open();
        stream.synchronize_blocking().unwrap();
        (0..20).for_each(|_| fill_block(&stream, &large));
        assert!(pinned() <= before + 25);
        // Idle streams keep none when somebody drains.
        stream.synchronize_blocking().unwrap();
        assert!(until(SOON, || {
            reaper::drain();
            pinned() == before
        }));
        fill_block(&stream, &large);
        drop(stream);
        assert_eq!(pinned(), before + 1, "kept for the next");
    });
}

#[test]
fn streams_that_go_leave_their_blocks_behind_their_work() {
    let context = setup();
    no_leaks(|| {
        let (home, stream) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.zeros::<u32>(4).unwrap();
        home.synchronize_blocking().unwrap();
        let gate = Gate::close(&stream);
        stream.write(&buffer, &[1, 2, 3, 4]).unwrap();
        drop(stream);
        // The block is not reused before it was read.
        let mut other = context.pinned_zeros::<u8>(BLOCK).unwrap();
        other.fill(u8::MAX);
        reaper::drain();
        gate.open();
        assert!(until(SOON, || buffer.read_blocking(&home).unwrap() == [1, 2, 3, 4]));
    });
}

#[test]
fn a_captured_write_keeps_elements_of_its_own() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(4).unwrap();
        stream.write(&buffer, &[9; 4]).unwrap();
        stream.synchronize_blocking().unwrap();
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        stream.write(&buffer, &[1, 2, 3, 4]).unwrap();
        let captured = capture.end().unwrap();
        assert_eq!(
            captured.records.iter().next().map(|record| record.owners().count()),
            Some(2),
            "the elements and the buffer"
        );
        let mut exec = core::ptr::null_mut();
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
        let graph = captured.graph.as_raw();
        // SAFETY: the graph lives, and what its nodes use is kept below until the end.
        let made =
            || unsafe { raw::driver().cuGraphInstantiateWithParams(&raw mut exec, graph, &raw mut params) };
        raw::ok(context.with_current(made).unwrap());
        for _ in 0..3 {
            // Writes through the blocks meanwhile change nothing.
            (0..3).for_each(|_| stream.write(&buffer, &[8; 4]).unwrap());
            // SAFETY: executable and stream live, and so does what the nodes use.
            raw::ok(unsafe { raw::driver().cuGraphLaunch(exec, stream.as_raw()) });
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [1, 2, 3, 4]);
        }
        // SAFETY: the last use of it.
        raw::ok(unsafe { raw::driver().cuGraphExecDestroy(exec) });
        drop(captured.records);
    });
}

#[test]
fn a_write_that_fails_changes_nothing() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(4).unwrap();
        for call in [Call::cuMemHostAlloc, Call::cuMemcpyHtoDAsync] {
            let failing = fail(call, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let error = stream.write(&buffer, &[1; 4]).unwrap_err();
            assert!(failing.hit());
            let is_memory = matches!(error, Error::OutOfHostMemory { .. } | Error::Driver { .. });
            assert!(is_memory, "{error:?}");
        }
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [0; 4]);
        stream.write(&buffer, &[2; 4]).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [2; 4]);
    });
}

#[test]
fn threads_write_on_one_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffers: Vec<Buffer<u32>> = (0..4).map(|_| stream.zeros(64).unwrap()).collect();
        std::thread::scope(|scope| {
            for (buffer, number) in buffers.iter().zip(1..) {
                let stream = &stream;
                scope.spawn(move || {
                    for round in 0..500 {
                        stream.write(buffer, &[number * 1000 + round; 64]).unwrap();
                    }
                });
            }
        });
        for (buffer, number) in buffers.iter().zip(1..) {
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [number * 1000 + 499; 64]);
        }
    });
}

#[test]
fn in_a_host_function_it_is_refused() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let (stream, runs) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = stream.zeros::<u32>(4).unwrap();
        let (sender, receiver) = channel();
        in_callback(&runs, move || {
            let _ = sender.send(stream.write(Slice::from(&buffer), &[1; 4]).is_err());
        });
        assert!(receiver.recv_timeout(SOON).unwrap());
        runs.synchronize_blocking().unwrap();
    });
}

#[test]
fn blocks_of_streams_that_went_are_never_filled_too_early() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let buffers: Vec<Buffer<u32>> = (0..40).map(|_| home.zeros(4001).unwrap()).collect();
        home.synchronize_blocking().unwrap();
        let mut gates = Vec::new();
        for (buffer, number) in buffers.iter().zip(0_u32..) {
            let stream = context.stream().unwrap();
            if number.is_multiple_of(3) {
                gates.push(Gate::close(&stream));
            }
            (0..=number % 7).for_each(|round| stream.write(buffer, &[number * 100 + round; 4001]).unwrap());
            drop(stream);
            if number % 10 == 9 {
                gates.drain(..).for_each(|gate| gate.open());
                reaper::drain();
            }
        }
        for (buffer, number) in buffers.iter().zip(0_u32..) {
            let last = [number * 100 + number % 7; 4001];
            assert!(until(SOON, || buffer.read_blocking(&home).unwrap() == last), "{number}");
        }
    });
}

#[test]
fn elements_of_all_sizes_and_blocks_filled_to_the_last_byte() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for size in [1, 15, 16, 17, MOST - 1, MOST, MOST + 1, BLOCK - 1, BLOCK, BLOCK + 1] {
            let buffer = stream.zeros::<u8>(size + 3).unwrap();
            let gate = Gate::close(&stream);
            let mut copies = Vec::new();
            for number in 1..10_u8 {
                stream.write(buffer.slice(3..).unwrap(), &vec![number; size]).unwrap();
                let copy = stream.alloc::<u8>(size + 3).unwrap();
                stream.copy(&buffer, &copy).unwrap();
                copies.push((copy, number));
            }
            gate.open();
            for (copy, number) in copies {
                let (start, rest) = (&[0; 3], vec![number; size]);
                assert_eq!(copy.read_blocking(&stream).unwrap(), [&start[..], &rest].concat());
            }
        }
        let odd = stream.upload(&[[1_u8, 2, 3]; 7]).unwrap();
        assert_eq!(odd.read_blocking(&stream).unwrap(), [[1, 2, 3]; 7]);
        let wide = stream.upload(&[u128::MAX - 5; 7]).unwrap();
        assert_eq!(wide.read_blocking(&stream).unwrap(), [u128::MAX - 5; 7]);
        let nothing = stream.upload(&[[0_u32; 0]; 5]).unwrap();
        stream.write(&nothing, &[[]; 5]).unwrap();
        assert_eq!(nothing.read_blocking(&stream).unwrap().len(), 5);
    });
}

#[test]
fn writes_captures_and_drains_at_once_disturb_nobody() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffers: Vec<Buffer<u32>> = (0..3).map(|_| stream.zeros(1000).unwrap()).collect();
        stream.synchronize_blocking().unwrap();
        std::thread::scope(|scope| {
            for buffer in &buffers {
                let (stream, event) = (stream.clone(), context.event().unwrap());
                scope.spawn(move || {
                    for round in 0..400_u32 {
                        stream.write(buffer, &[round; 1000]).unwrap();
                        // Refused where the stream captures.
                        if round % 50 == 7 && stream.record(&event).is_ok() {
                            let _ = event.query();
                        }
                    }
                });
            }
            scope.spawn(|| (0..60).map(|_| reaper::drain()).sum::<usize>());
            scope.spawn(|| {
                for _ in 0..60 {
                    let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
                    capture.end().unwrap();
                }
            });
        });
        for buffer in &buffers {
            stream.write(buffer, &[7; 1000]).unwrap();
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [7; 1000]);
        }
    });
}
