//! Memory of a device's pool is copied and filled on streams of that device, whatever context is
//! current on the thread.

use core::ptr;

use cuda_handles::{Buffer, Context, Copy2d, Copy3d, Device, Stream};
use cuda_sys::CUcontext;
use cuda_tests::{count, no_leaks, on_two_devices, other_context, raw, settle, setup};

const LEN: usize = 64;
/// More elements than a stream's blocks of pinned memory take.
const LARGE: usize = 8 << 10;

fn current() -> CUcontext {
    let mut current = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuCtxGetCurrent(&raw mut current) });
    current
}

/// Runs `test` with a stream of device 1 while no context is current, and each device's. It leaves
/// the current context as it is.
fn whatever_is_current(test: impl Fn(&Context, &Stream)) {
    let here = setup();
    let there = other_context();
    let run = || {
        let before = current();
        test(&here, &there.stream().unwrap());
        assert_eq!(current(), before);
        settle();
    };
    // Once before, so that the reaper has the streams of its own that it keeps.
    run();
    no_leaks(run);
    for context in [&*here, &there] {
        no_leaks(|| context.with_current(run).unwrap());
    }
}

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).collect()
}

#[track_caller]
fn holds(memory: &Buffer<u32>, stream: &Stream, expected: &[u32]) {
    assert_eq!(memory.read_blocking(stream).unwrap(), expected);
}

#[test]
fn the_host_writes_and_reads_it() {
    on_two_devices!();
    whatever_is_current(|_, stream| {
        for len in [LEN, LARGE] {
            let numbers = numbers(len);
            let memory = stream.zeros::<u32>(len).unwrap();
            stream.write(&memory, &numbers).unwrap();
            holds(&memory, stream, &numbers);
            holds(&stream.upload(&numbers).unwrap(), stream, &numbers);
            holds(&stream.upload_blocking(&numbers).unwrap(), stream, &numbers);
            let other = stream.alloc::<u32>(len).unwrap();
            other.write_blocking(stream, &numbers).unwrap();
            let mut read = vec![0; len];
            other.read_into_blocking(stream, &mut read).unwrap();
            assert_eq!(read, numbers);
        }
    });
}

#[test]
fn it_is_copied_from_and_to_memory_of_every_kind() {
    on_two_devices!();
    whatever_is_current(|_, stream| {
        let context = stream.context();
        let pooled = stream.upload_blocking(&numbers(LEN)).unwrap();
        let plain = context.alloc_blocking::<u32>(LEN).unwrap();
        let pinned = context.pinned_zeros::<u32>(LEN).unwrap().share();
        let managed = context.managed_zeros::<u32>(LEN).unwrap().share();
        let another = stream.zeros::<u32>(LEN).unwrap();
        for memory in [&another, &plain, pinned.as_buffer(), managed.as_buffer()] {
            let back = stream.zeros::<u32>(LEN).unwrap();
            stream.copy(&pooled, memory).unwrap();
            stream.copy(memory, &back).unwrap();
            holds(&back, stream, &numbers(LEN));
        }
        // Host memory is given back when its last user is known to be done.
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn rows_and_boxes_of_it_are_copied() {
    on_two_devices!();
    whatever_is_current(|_, stream| {
        let source = stream.upload_blocking(&numbers(LEN)).unwrap();
        let target = stream.zeros::<u32>(LEN).unwrap();
        let rows = Copy2d {
            source: source.as_slice(),
            source_pitch: 8,
            destination: target.as_slice(),
            destination_pitch: 8,
            width: 8,
            height: 4,
        };
        stream.copy_2d(rows).unwrap();
        let boxes = Copy3d {
            source: source.slice(32..).unwrap(),
            source_pitch: 4,
            source_rows: 4,
            destination: target.slice(32..).unwrap(),
            destination_pitch: 4,
            destination_rows: 4,
            width: 4,
            height: 4,
            depth: 2,
        };
        stream.copy_3d(boxes).unwrap();
        holds(&target, stream, &numbers(LEN));
    });
}

#[test]
fn it_is_filled_and_cleared() {
    on_two_devices!();
    whatever_is_current(|_, stream| {
        let memory = stream.upload_blocking(&[1_u32; LEN]).unwrap();
        stream.fill(memory.slice(..16).unwrap(), 2_u32).unwrap();
        stream.fill(memory.slice(16..32).unwrap().cast::<u16>().unwrap(), 3).unwrap();
        stream.fill(memory.slice(32..36).unwrap().cast::<u8>().unwrap(), 4).unwrap();
        stream.fill_2d(memory.slice(36..).unwrap(), 8, [2, 2], 5_u32).unwrap();
        stream.clear(memory.slice(62..).unwrap()).unwrap();
        let mut expected = [[2; 16], [0x0003_0003; 16], [1; 16], [1; 16]].concat();
        expected[32..36].fill(0x0404_0404);
        for filled in [36, 37, 44, 45] {
            expected[filled] = 5;
        }
        expected[62..].fill(0);
        holds(&memory, stream, &expected);
    });
}

#[test]
fn it_is_copied_between_devices_on_streams_of_both() {
    on_two_devices!();
    whatever_is_current(|here, there| {
        let near = here.stream().unwrap();
        let memory = [near.zeros::<u32>(LEN).unwrap(), there.upload_blocking(&numbers(LEN)).unwrap()];
        let [here, far] = &memory;
        there.copy_peer(far, here).unwrap();
        holds(here, &near, &numbers(LEN));
        near.fill(here, 7).unwrap();
        near.copy_peer(here, far).unwrap();
        holds(far, there, &[7; LEN]);
    });
}

/// A copy of plain memory costs one call everywhere, one of pooled memory only where there is one
/// device.
#[test]
fn a_copy_of_it_asks_for_the_current_context_and_enters_its_own_in_place_of_another() {
    on_two_devices!();
    let here = setup();
    let there = other_context();
    let stream = there.stream().unwrap();
    let (pooled, plain) = (stream.zeros::<u32>(LEN).unwrap(), there.alloc_blocking::<u32>(LEN).unwrap());
    stream.fill(&plain, 1).unwrap();
    let other = there.alloc_blocking::<u32>(LEN).unwrap();
    stream.copy(&plain, &other).unwrap();
    let copies = |context: &Context, from: &Buffer<u32>, calls: &[(&str, u64)]| {
        let (copied, cost) = context.with_current(|| count(|| stream.copy(from, &other))).unwrap();
        copied.unwrap();
        cost.assert_calls(calls);
        assert_eq!(cost.heap_allocations(), 0, "{cost}");
    };
    let (copy, ask) = (("cuMemcpyDtoDAsync", 1), ("cuCtxGetCurrent", 1));
    assert!(Device::count().unwrap() > 1);
    copies(&there, &pooled, &[ask, copy]);
    copies(&here, &pooled, &[ask, ("cuCtxPushCurrent", 1), copy, ("cuCtxPopCurrent", 1)]);
    copies(&there, &plain, &[copy]);
    copies(&here, &plain, &[copy]);
}
