//! The records of a capture: one for each captured call, in the order of the nodes, with owners.

use std::sync::Arc;

use cuda_handles::capture::{ActiveCapture, CaptureMode, Records, Work};
use cuda_handles::{Allocation, Batch, Buffer, Copy2d, Error, Owner, Stream};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, no_leaks, raw, setup};

fn begin(stream: &Stream) -> ActiveCapture {
    stream.begin_capture(CaptureMode::Relaxed).unwrap()
}

fn memory(buffer: &Buffer<u32>) -> Owner {
    Owner::from(buffer)
}

fn fill(buffer: &Buffer<u32>) -> Work {
    Work::Fill { destination: buffer.address(), bytes: buffer.size_bytes() as u64 }
}

/// All records: the work, and the owners.
fn listed(records: &Records) -> Vec<(Work, Vec<Owner>)> {
    records.iter().map(|record| (record.work(), record.owners().cloned().collect())).collect()
}

fn uses(allocation: &Arc<Allocation>) -> usize {
    Arc::strong_count(allocation)
}

#[test]
fn records_are_in_the_order_of_the_nodes_whichever_thread_and_stream_is_first() {
    const CALLS: usize = 200;
    let context = setup();
    no_leaks(|| {
        let (one, two) = (context.stream().unwrap(), context.stream().unwrap());
        let buffers: Vec<Buffer<u32>> = (0..16).map(|_| one.zeros(CALLS).unwrap()).collect();
        one.synchronize_blocking().unwrap();
        let capture = begin(&one);
        two.wait_for(&one).unwrap();
        std::thread::scope(|scope| {
            for (thread, mine) in buffers.chunks(8).enumerate() {
                let streams = [&one, &two];
                scope.spawn(move || {
                    for call in 0..CALLS {
                        // Each address once.
                        let part = mine[call % 8].slice(call..=call).unwrap();
                        streams[(call / 3 + thread) % 2].fill(part, 7).unwrap();
                    }
                });
            }
        });
        one.wait_for(&two).unwrap();
        let captured = capture.end().unwrap();
        let nodes = raw::nodes(captured.graph.as_raw());
        assert_eq!((nodes.len(), captured.records.len()), (2 * CALLS, 2 * CALLS));
        for (node, record) in nodes.into_iter().zip(captured.records.iter()) {
            let destination = raw::memset(node).dst;
            assert_eq!(record.work(), Work::Fill { destination, bytes: 4 });
            let holds = |buffer: &&Buffer<u32>| {
                (buffer.address()..buffer.address() + buffer.size_bytes() as u64).contains(&destination)
            };
            let owner = buffers.iter().find(holds).map(memory);
            assert_eq!(record.owners().collect::<Vec<_>>(), owner.iter().collect::<Vec<_>>());
        }
        assert_eq!(captured.records.into_owners().len(), buffers.len(), "each once");
    });
}

#[test]
fn each_kind_of_call_is_recorded_with_what_its_node_says() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (source, target) = (stream.zeros::<u32>(64).unwrap(), stream.zeros::<u32>(64).unwrap());
        let flags = context.alloc_blocking::<u32>(2).unwrap();
        stream.synchronize_blocking().unwrap();
        let capture = begin(&stream);
        stream.fill(&source, 7).unwrap();
        stream.clear(target.slice(8..).unwrap()).unwrap();
        stream.fill_2d(&target, 8, [4, 3], 9).unwrap();
        stream.copy(source.slice(..4).unwrap(), target.slice(4..8).unwrap()).unwrap();
        let rectangle = Copy2d {
            source: source.as_slice(),
            source_pitch: 8,
            destination: target.as_slice(),
            destination_pitch: 16,
            width: 2,
            height: 3,
        };
        stream.copy_2d(rectangle).unwrap();
        stream.host(|| {}).unwrap();
        let mut batch = Batch::new();
        batch.write(&flags, 1, 5).unwrap().write(&flags, 0, 6).unwrap();
        stream.batch(&batch).unwrap();
        let captured = capture.end().unwrap();
        let (from, to) = (source.address(), target.address());
        let (source, target) = (memory(&source), memory(&target));
        let both = vec![source.clone(), target.clone()];
        let mut listed = listed(&captured.records);
        let (host, owners) = listed.remove(5);
        assert!(matches!(host, Work::Host { function, data } if function != 0 && data != 0), "{host:?}");
        assert!(matches!(owners[..], [Owner::Other(_)]), "{owners:?}");
        let expected = [
            (Work::Fill { destination: from, bytes: 256 }, vec![source]),
            (Work::Fill { destination: to + 32, bytes: 224 }, vec![target.clone()]),
            (Work::Fill { destination: to, bytes: 48 }, vec![target]),
            (Work::Copy { source: from, destination: to + 16, bytes: 16 }, both.clone()),
            (Work::Copy { source: from, destination: to, bytes: 24 }, both),
            (Work::Batch { first: flags.address() + 4, count: 2 }, vec![memory(&flags)]),
        ];
        assert_eq!(listed, expected);
        let records: Vec<_> = captured.records.iter().collect();
        let arguments: Vec<_> = records.iter().flat_map(|record| record.arguments()).collect();
        let addresses = [flags.address() + 4, flags.address()].map(u64::to_ne_bytes);
        assert_eq!(arguments, addresses.each_ref().map(|address| Some(&address[..])), "of the batch alone");
        assert!(captured.records.iter().all(|record| record.handles().is_empty()));
        assert!(captured.records.kept().is_empty());
    });
}

#[test]
fn a_refused_call_leaves_no_record_and_no_owner() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (kept, refused) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        stream.synchronize_blocking().unwrap();
        let before = uses(refused.allocation());
        let capture = begin(&stream);
        stream.fill(&kept, 1).unwrap();
        let code = CUresult::CUDA_ERROR_INVALID_VALUE;
        let injection = fail(Call::cuMemsetD32Async, 1, code);
        assert_eq!(stream.fill(&refused, 2), Err(Error::Driver { call: Call::cuMemsetD32Async, code }));
        assert!(injection.hit());
        drop(injection);
        assert_eq!(uses(refused.allocation()), before);
        stream.fill(&kept, 3).unwrap();
        let captured = capture.end().unwrap();
        assert_eq!(raw::nodes(captured.graph.as_raw()).len(), 2);
        let record = (fill(&kept), vec![memory(&kept)]);
        assert_eq!(listed(&captured.records), [record.clone(), record]);
    });
}

#[test]
fn an_owner_that_many_calls_use_is_kept_once_and_goes_with_the_records() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffers: Vec<Buffer<u32>> = (0..4).map(|_| stream.zeros(8).unwrap()).collect();
        stream.synchronize_blocking().unwrap();
        let before: Vec<usize> = buffers.iter().map(|buffer| uses(buffer.allocation())).collect();
        let capture = begin(&stream);
        capture.keep(&buffers[0]);
        stream.enqueue().unwrap().keep(&buffers[1]).unwrap();
        for round in 0..50 {
            stream.fill(&buffers[round % 4], 1).unwrap();
        }
        let (filled, cost) = count(|| stream.fill(&buffers[0], 1));
        filled.unwrap();
        cost.assert_calls(&[("cuMemsetD32Async", 1)]);
        let captured = capture.end().unwrap();
        assert_eq!((captured.records.len(), captured.records.kept().len()), (51, 2));
        drop(captured.graph);
        let owners = captured.records.into_owners();
        assert_eq!(owners.len(), 4, "{owners:?}");
        drop(owners);
        let after: Vec<usize> = buffers.iter().map(|buffer| uses(buffer.allocation())).collect();
        assert_eq!(after, before);
    });
}
