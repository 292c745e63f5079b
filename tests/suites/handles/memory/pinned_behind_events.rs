//! Pinned memory that is free again behind an event, while its stream goes on.

use cuda_handles::{Buffer, Context, Copy2d, Copy3d, Event, EventOptions, SharedHostBuffer, Stream};
use cuda_tests::{Gate, SOON, count, no_leaks, setup, until};

/// A stream that has read pinned memory, an event behind that, and work that goes on.
fn read(context: &Context) -> (Stream, SharedHostBuffer<u64>, Event, Gate) {
    let stream = context.stream().unwrap();
    let data = stream.zeros::<u64>(4).unwrap();
    let event = context.event().unwrap();
    let host = context.pinned_zeros::<u64>(4).unwrap().share();
    stream.copy(&host, &data).unwrap();
    stream.record(&event).unwrap();
    let gate = Gate::close(&stream);
    (stream, host, event, gate)
}

#[test]
fn it_is_the_hosts_once_the_event_was_seen_to_be_reached() {
    let context = setup();
    no_leaks(|| {
        for seen in [(|event| event.synchronize_blocking().unwrap()) as fn(&Event), |event| {
            assert!(until(SOON, || event.query().unwrap()))
        }] {
            let (stream, host, event, gate) = read(&context);
            seen(&event);
            assert!(!stream.query().unwrap());
            let (host, cost) = count(|| host.try_unique().unwrap());
            cost.assert_calls(&[]);
            assert_eq!(host[..], [0; 4]);
            gate.open();
        }
    });
}

#[test]
fn a_result_is_looked_at_without_another_copy() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let data = stream.zeros::<u32>(8).unwrap();
        let copied = context.event().unwrap();
        let mut result = context.pinned_zeros::<u32>(8).unwrap();
        for number in 1..20 {
            let shared = result.share();
            stream.fill(&data, number).unwrap();
            stream.copy(&data, &shared).unwrap();
            stream.record(&copied).unwrap();
            let gate = Gate::close(&stream);
            copied.synchronize_blocking().unwrap();
            result = shared.try_unique().unwrap();
            assert_eq!(result[..], [number; 8]);
            gate.open();
        }
    });
}

/// Each is a use of one call, after which the stream has nothing more to do with the memory.
#[test]
fn copies_and_fills_of_all_kinds_are_over_behind_the_event() {
    type Use = fn(&Stream, &SharedHostBuffer<u32>, &Buffer<u32>) -> cuda_handles::Result<()>;
    let uses: [(&str, Use); 8] = [
        ("copy from the host", |stream, host, data| stream.copy(host, data)),
        ("copy to the host", |stream, host, data| stream.copy(data, host)),
        ("fill", |stream, host, _| stream.fill(host, 1)),
        ("clear", |stream, host, _| stream.clear(host)),
        ("write", |stream, host, _| stream.write(host, &[1; 4])),
        ("fill_2d", |stream, host, _| stream.fill_2d(host, 2, [1, 2], 1)),
        ("copy_2d", |stream, host, data| {
            stream.copy_2d(Copy2d {
                source: data.into(),
                source_pitch: 2,
                destination: host.into(),
                destination_pitch: 2,
                width: 1,
                height: 2,
            })
        }),
        ("copy_3d", |stream, host, data| {
            stream.copy_3d(Copy3d {
                source: host.into(),
                source_pitch: 1,
                source_rows: 2,
                destination: data.into(),
                destination_pitch: 1,
                destination_rows: 2,
                width: 1,
                height: 1,
                depth: 2,
            })
        }),
    ];
    let context = setup();
    for (what, used) in uses {
        no_leaks(|| {
            let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
            let data = stream.zeros::<u32>(4).unwrap();
            let host = context.pinned_zeros::<u32>(4).unwrap().share();
            used(&stream, &host, &data).unwrap();
            stream.record(&event).unwrap();
            let gate = Gate::close(&stream);
            event.synchronize_blocking().unwrap();
            assert!(host.try_unique().is_ok(), "{what}");
            gate.open();
        });
    }
}

#[test]
fn uses_behind_the_event_count() {
    let context = setup();
    no_leaks(|| {
        let (stream, host, event, gate) = read(&context);
        let data = stream.zeros::<u64>(4).unwrap();
        stream.copy(&data, &host).unwrap();
        event.synchronize_blocking().unwrap();
        let host = host.try_unique().unwrap_err();
        gate.open();
        assert!(host.unique_blocking().is_ok());
    });
}

#[test]
fn uses_on_other_streams_count() {
    let context = setup();
    no_leaks(|| {
        let (_stream, host, event, gate) = read(&context);
        let other = context.stream().unwrap();
        let data = other.zeros::<u64>(4).unwrap();
        let held = Gate::close(&other);
        other.copy(&data, &host).unwrap();
        event.synchronize_blocking().unwrap();
        let host = host.try_unique().unwrap_err();
        // Host functions of a context run one after the other: behind this gate waits the other.
        gate.open();
        held.open();
        assert!(host.unique_blocking().is_ok());
    });
}

#[test]
fn an_event_recorded_elsewhere_says_nothing() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let event = context.event().unwrap();
        let data = stream.zeros::<u64>(4).unwrap();
        let host = context.pinned_zeros::<u64>(4).unwrap().share();
        let gate = Gate::close(&stream);
        stream.copy(&host, &data).unwrap();
        stream.record(&event).unwrap();
        // Anew: what it said of the first stream it says no more.
        other.record(&event).unwrap();
        event.synchronize_blocking().unwrap();
        let host = host.try_unique().unwrap_err();
        gate.open();
        assert!(host.unique_blocking().is_ok());
    });
}

#[test]
fn events_that_others_may_record_say_nothing() {
    let context = setup();
    no_leaks(|| {
        let (stream, host, event, gate) = read(&context);
        assert!(!event.lend().is_null());
        event.synchronize_blocking().unwrap();
        let host = host.try_unique().unwrap_err();
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert!(host.try_unique().is_ok());
        let options = EventOptions { timing: false, ipc: true, ..EventOptions::default() };
        let Ok(exported) = context.event_with(options) else { return };
        let host = context.pinned_zeros::<u64>(4).unwrap().share();
        let data = stream.zeros::<u64>(4).unwrap();
        stream.copy(&host, &data).unwrap();
        stream.record(&exported).unwrap();
        let gate = Gate::close(&stream);
        exported.synchronize_blocking().unwrap();
        let host = host.try_unique().unwrap_err();
        gate.open();
        assert!(host.unique_blocking().is_ok());
    });
}

#[test]
fn a_wait_for_it_ends_with_the_work_of_now() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let data = stream.zeros::<u32>(1 << 10).unwrap();
        for _ in 0..50 {
            let host = context.pinned_zeros::<u32>(1 << 10).unwrap().share();
            stream.fill(&data, 7).unwrap();
            stream.copy(&data, &host).unwrap();
            let host = host.unique_blocking().unwrap();
            assert_eq!(host[1023], 7);
            let shared = host.share();
            let clone = shared.clone();
            assert!(shared.unique_blocking().is_err(), "somebody else has it");
            drop(clone);
        }
        // A stream that is gone.
        let (gone, data) = (context.stream().unwrap(), data);
        let host = context.pinned_zeros::<u32>(1 << 10).unwrap().share();
        gone.copy(&data, &host).unwrap();
        drop(gone);
        assert_eq!(host.unique_blocking().unwrap()[0], 7);
    });
}

/// A ring of staging buffers on a stream that is never idle.
#[test]
fn a_ring_of_buffers_goes_round_on_a_busy_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let sum = stream.zeros::<u32>(64).unwrap();
        let mut ring: Vec<_> = (0..3)
            .map(|_| (context.pinned_zeros::<u32>(64).unwrap().share(), context.event().unwrap()))
            .collect();
        let mut gates = Vec::new();
        for round in 0..60 {
            let (shared, event) = ring.remove(0);
            event.synchronize_blocking().unwrap();
            let mut host = shared.try_unique().unwrap();
            host.fill(round);
            let shared = host.share();
            stream.copy(&shared, &sum).unwrap();
            stream.record(&event).unwrap();
            ring.push((shared, event));
            gates.push(Gate::close(&stream));
            assert!(!stream.query().unwrap());
            if gates.len() > 1 {
                drop(gates.remove(0));
            }
        }
        drop(gates);
        assert_eq!(sum.read_blocking(&stream).unwrap(), [59; 64]);
    });
}

/// Uses by kernels are not counted one by one: their stream has to be idle.
#[test]
fn memory_that_was_made_ready_for_good_waits_for_the_stream() {
    let context = setup();
    no_leaks(|| {
        let (stream, host, event, gate) = read(&context);
        host.as_buffer().allocation().ready_on(&stream).unwrap();
        event.synchronize_blocking().unwrap();
        let host = host.try_unique().unwrap_err();
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert!(host.try_unique().is_ok());
    });
}

#[test]
fn a_cleared_buffer_is_the_hosts_behind_the_event() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let host = context.pinned_zeros::<u32>(4).unwrap().share();
        let cleared = context.event().unwrap();
        stream.clear(&host).unwrap();
        stream.record(&cleared).unwrap();
        cleared.synchronize_blocking().unwrap();
        let gate = Gate::close(&stream);
        let host = host.try_unique().expect("the clear is over");
        gate.open();
        assert_eq!(host[..], [0; 4]);
        stream.synchronize_blocking().unwrap();
    });
}
