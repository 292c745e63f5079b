//! The default streams, and the options of streams.

use cuda_handles::capture::CaptureMode;
use cuda_handles::{DefaultStream, Error, StreamOptions};
use cuda_tests::{Gate, Kind, SOON, count, live, no_leaks, setup, until};

#[test]
fn work_is_put_in_order_with_the_default_streams() {
    let context = setup();
    no_leaks(|| {
        for default in [context.legacy_stream(), context.per_thread_stream()] {
            let (before, after) = (context.stream().unwrap(), context.stream().unwrap());
            let gate = Gate::close(&before);
            default.wait_for(&before).unwrap();
            after.wait_for_default(&default).unwrap();
            let event = context.event().unwrap();
            default.record(&event).unwrap();
            assert!(!default.query().unwrap());
            assert!(!after.query().unwrap());
            assert!(!event.query().unwrap());
            gate.open();
            after.synchronize_blocking().unwrap();
            default.synchronize_blocking().unwrap();
            assert!(default.query().unwrap() && event.query().unwrap());
        }
    });
}

#[test]
fn each_thread_has_a_default_stream_of_its_own() {
    let context = setup();
    no_leaks(|| {
        let held = context.stream().unwrap();
        let gate = Gate::close(&held);
        context.per_thread_stream().wait_for(&held).unwrap();
        assert!(!context.per_thread_stream().query().unwrap());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| context.per_thread_stream().query().unwrap());
            assert!(other.join().unwrap());
        });
        gate.open();
        context.per_thread_stream().synchronize_blocking().unwrap();
    });
}

#[test]
fn the_legacy_stream_leaves_the_capture_of_a_blocking_stream_alone() {
    let context = setup();
    no_leaks(|| {
        let legacy = context.legacy_stream();
        let options = StreamOptions { blocking_with_legacy: true, ..StreamOptions::default() };
        let (capturing, other) = (context.stream_with(options).unwrap(), context.stream().unwrap());
        let event = context.event().unwrap();
        let capture = capturing.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let refused = |outcome: Result<(), Error>| {
            assert!(matches!(outcome, Err(Error::Capturing { .. })), "{outcome:?}");
        };
        refused(legacy.query().map(drop));
        refused(legacy.synchronize_blocking());
        refused(legacy.record(&event));
        refused(legacy.wait(&event));
        refused(legacy.wait_for(&other));
        refused(legacy.wait_for(&capturing));
        refused(other.wait_for_default(&legacy));
        capture.end().expect("nothing has harmed it");
        legacy.record(&event).unwrap();
        let capture = other.begin_capture(CaptureMode::ThreadLocal).unwrap();
        other.record(&event).unwrap();
        assert_eq!(legacy.wait(&event), Err(Error::CapturedEvent));
        legacy.synchronize_blocking().expect("the capturing stream does not wait for it");
        capture.end().unwrap();
    });
}

#[test]
fn a_default_stream_is_no_object() {
    let context = setup();
    let before = live().of(Kind::Stream);
    let (stream, cost): (DefaultStream, _) = count(|| context.legacy_stream());
    cost.assert_calls(&[]);
    assert_eq!(stream.context(), &*context);
    assert_eq!((stream.as_raw().addr(), context.per_thread_stream().as_raw().addr()), (1, 2));
    drop(stream);
    assert!(until(SOON, || live().of(Kind::Stream) == before));
}

#[test]
fn a_stream_remembers_what_it_was_created_with() {
    let context = setup();
    no_leaks(|| {
        let priorities = context.stream_priorities().unwrap();
        assert!(priorities.start() <= priorities.end());
        let options = StreamOptions { priority: *priorities.start(), blocking_with_legacy: true };
        let stream = context.stream_with(options).unwrap();
        let (found, cost) = count(|| stream.options());
        assert_eq!(found, Some(options));
        cost.assert_calls(&[]);
    });
}
