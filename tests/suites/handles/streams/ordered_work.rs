//! Streams: creation, identity, and the order of their work.

use std::collections::HashSet;

use cuda_handles::{AsStream, Stream, StreamOptions};
use cuda_tests::{Gate, Kind, SOON, count, live, no_leaks, raw, setup, until};

#[test]
fn a_stream_is_created_by_one_call_and_destroyed_with_its_last_handle() {
    let context = setup();
    no_leaks(|| {
        let before = live().of(Kind::Stream);
        let (stream, cost) = count(|| context.stream().unwrap());
        assert_eq!(cost.live(Kind::Stream), 1);
        assert_eq!(cost.calls("cuStreamCreateWithPriority") + cost.calls("cuStreamCreate"), 1, "{cost}");
        let (clone, cost) = count(|| stream.clone());
        cost.assert_calls(&[]);
        assert_eq!(cost.heap_allocations(), 0);
        assert_eq!((clone.id(), clone.as_raw()), (stream.id(), stream.as_raw()));
        assert_eq!(clone, stream);
        drop(stream);
        assert!(clone.query().unwrap(), "a handle is left");
        drop(clone);
        assert!(until(SOON, || live().of(Kind::Stream) == before));
    });
}

#[test]
fn streams_have_ids_that_are_never_used_again() {
    let context = setup();
    no_leaks(|| {
        let ids: Vec<u64> = (0..100).map(|_| context.stream().unwrap().id()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 100);
    });
}

#[test]
fn a_stream_says_whether_its_work_has_ended() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        assert!(stream.query().unwrap());
        let gate = Gate::close(&stream);
        assert!(!stream.query().unwrap());
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert!(stream.query().unwrap());
    });
}

#[test]
fn synchronizing_waits_for_the_work() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let gate = Gate::close(&stream);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| stream.synchronize_blocking().unwrap());
            assert!(!until(std::time::Duration::from_millis(50), || waiting.is_finished()));
            gate.open();
            waiting.join().unwrap();
        });
        assert!(stream.query().unwrap());
    });
}

#[test]
fn streams_do_not_wait_for_each_other_unless_told() {
    let context = setup();
    no_leaks(|| {
        let (held, free) = (context.stream().unwrap(), context.stream().unwrap());
        let gate = Gate::close(&held);
        let buffer = free.upload(&[1_u32, 2, 3]).unwrap();
        assert_eq!(buffer.read_blocking(&free).unwrap(), [1, 2, 3]);
        free.wait_for(&held).unwrap();
        assert!(!free.query().unwrap(), "now it waits");
        gate.open();
        free.synchronize_blocking().unwrap();
        assert!(until(SOON, || held.query().unwrap()));
    });
}

#[test]
fn waiting_for_an_event_orders_two_streams() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let event = context.event().unwrap();
        let gate = Gate::close(&first);
        first.record(&event).unwrap();
        second.wait(&event).unwrap();
        assert!(!second.query().unwrap());
        assert!(!event.query().unwrap());
        gate.open();
        second.synchronize_blocking().unwrap();
        assert!(event.query().unwrap());
    });
}

#[test]
fn a_stream_has_the_options_it_was_created_with() {
    let context = setup();
    no_leaks(|| {
        let (mut least, mut greatest) = (0, 0);
        let range = || {
            // SAFETY: the out pointers are valid.
            unsafe { raw::driver().cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) }
        };
        raw::ok(context.with_current(range).unwrap());
        let options = StreamOptions { priority: greatest, ..StreamOptions::default() };
        let stream = context.stream_with(options).unwrap();
        let (mut priority, mut flags) = (7, 7);
        // SAFETY: the stream lives and the out pointers are valid.
        raw::ok(unsafe { raw::driver().cuStreamGetPriority(stream.as_raw(), &raw mut priority) });
        // SAFETY: as above.
        raw::ok(unsafe { raw::driver().cuStreamGetFlags(stream.as_raw(), &raw mut flags) });
        assert_eq!((priority, flags), (greatest, 1), "non-blocking by default");
        let legacy = StreamOptions { blocking_with_legacy: true, ..StreamOptions::default() };
        let stream = context.stream_with(legacy).unwrap();
        // SAFETY: as above.
        raw::ok(unsafe { raw::driver().cuStreamGetFlags(stream.as_raw(), &raw mut flags) });
        assert_eq!(flags, 0);
    });
}

#[test]
fn a_stream_and_a_reference_to_it_are_something_to_enqueue_on() {
    fn id(stream: &impl AsStream) -> u64 {
        stream.as_stream().id()
    }
    let context = setup();
    let stream: Stream = context.stream().unwrap();
    assert_eq!(id(&stream), stream.id());
    assert_eq!(id(&&stream), stream.id());
}

#[test]
fn a_stream_dropped_with_work_in_flight_lets_the_work_finish() {
    let context = setup();
    no_leaks(|| {
        let (home, doomed) = (context.stream().unwrap(), context.stream().unwrap());
        let source = home.upload(&[5_u32; 64]).unwrap();
        let target = home.zeros::<u32>(64).unwrap();
        home.synchronize_blocking().unwrap();
        let gate = Gate::close(&doomed);
        doomed.copy(&source, &target).unwrap();
        let done = context.event().unwrap();
        doomed.record(&done).unwrap();
        drop(doomed);
        gate.open();
        done.synchronize_blocking().unwrap();
        assert_eq!(target.read_blocking(&home).unwrap(), [5; 64]);
    });
}
