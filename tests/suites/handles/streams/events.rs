//! Events: recording, waiting, the time between two.

use std::time::{Duration, Instant};

use cuda_handles::{Error, EventOptions, NoTime, Which};
use cuda_tests::{Gate, Kind, SOON, count, live, no_leaks, setup, until};

#[test]
fn an_event_is_created_by_one_call_and_destroyed_with_its_last_handle() {
    let context = setup();
    no_leaks(|| {
        let before = live().of(Kind::Event);
        let (event, cost) = count(|| context.event().unwrap());
        assert_eq!(cost.calls("cuEventCreate"), 1, "{cost}");
        let (clone, cost) = count(|| event.clone());
        cost.assert_calls(&[]);
        assert_eq!(clone, event);
        drop(event);
        assert_eq!(live().of(Kind::Event), before + 1);
        drop(clone);
        assert!(until(SOON, || live().of(Kind::Event) == before));
    });
}

#[test]
fn recording_is_one_call() {
    let context = setup();
    let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
    let (recorded, cost) = count(|| stream.record(&event));
    recorded.unwrap();
    assert_eq!((cost.total(), cost.calls("cuEventRecord")), (1, 1), "{cost}");
    let (waited, cost) = count(|| stream.wait(&event));
    waited.unwrap();
    cost.assert_calls(&[("cuStreamWaitEvent", 1)]);
}

#[test]
fn an_event_says_whether_what_was_before_it_has_ended() {
    let context = setup();
    no_leaks(|| {
        let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
        assert!(event.query().unwrap(), "an event never recorded has nothing to wait for");
        let gate = Gate::close(&stream);
        stream.record(&event).unwrap();
        assert!(!event.query().unwrap());
        gate.open();
        event.synchronize_blocking().unwrap();
        assert!(event.query().unwrap());
    });
}

#[test]
fn two_events_tell_the_time_between_them() {
    const HELD: Duration = Duration::from_millis(60);
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let timing = EventOptions { timing: true, ..EventOptions::default() };
        let (start, end) = (context.event_with(timing).unwrap(), context.event_with(timing).unwrap());
        assert!(start.options().is_some_and(|options| options.timing));
        stream.record(&start).unwrap();
        start.synchronize_blocking().unwrap();
        let began = Instant::now();
        let gate = Gate::close(&stream);
        stream.record(&end).unwrap();
        assert_eq!(
            end.elapsed_since(&start),
            Err(Error::NoTime(NoTime::NotReached)),
            "the end has not come yet"
        );
        assert_eq!(start.elapsed_since(&end), Err(Error::NoTime(NoTime::NotReached)));
        assert!(!until(HELD, || end.query().unwrap()));
        gate.open();
        end.synchronize_blocking().unwrap();
        let bound = began.elapsed();
        let elapsed = end.elapsed_since(&start).unwrap();
        assert!(elapsed >= HELD - Duration::from_millis(2), "{elapsed:?}");
        assert!(elapsed <= bound + Duration::from_millis(50), "{elapsed:?} of {bound:?}");
    });
}

#[test]
fn an_event_without_timing_tells_no_time_and_says_so() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let plain = EventOptions { timing: false, ..EventOptions::default() };
        let (start, end) = (context.event_with(plain).unwrap(), context.event_with(plain).unwrap());
        stream.record(&start).unwrap();
        stream.record(&end).unwrap();
        stream.synchronize_blocking().unwrap();
        let error = end.elapsed_since(&start).unwrap_err();
        assert_eq!(error, Error::NoTime(NoTime::WithoutTiming(Which::Start)));
        assert!(error.to_string().contains("the starting event was created without timing"), "{error}");
        let timed = context.event().unwrap();
        stream.record(&timed).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(end.elapsed_since(&timed), Err(Error::NoTime(NoTime::WithoutTiming(Which::End))));
    });
}

#[test]
fn the_wrong_way_round_is_an_error_that_says_by_how_much() {
    const APART: Duration = Duration::from_millis(20);
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (first, second) = (context.event().unwrap(), context.event().unwrap());
        stream.record(&first).unwrap();
        first.synchronize_blocking().unwrap();
        std::thread::sleep(APART);
        stream.record(&second).unwrap();
        second.synchronize_blocking().unwrap();
        let forward = second.elapsed_since(&first).unwrap();
        let error = first.elapsed_since(&second).unwrap_err();
        let Error::NoTime(NoTime::Backwards(by)) = error else { panic!("{error:?}") };
        assert!(by.abs_diff(forward) < Duration::from_micros(1), "{by:?} {forward:?}");
        assert!(forward >= APART / 2, "{forward:?}");
        let expected = format!(
            "no time from one event to the other: the ending event was reached {by:?} before the starting event; ask the other way \
             round"
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(first.elapsed_since(&first), Ok(Duration::ZERO));
    });
}

#[test]
fn an_event_that_was_never_recorded_is_named() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (never, done) = (context.event().unwrap(), context.event().unwrap());
        stream.record(&done).unwrap();
        stream.synchronize_blocking().unwrap();
        let missing = |which| Err(Error::NoTime(NoTime::NeverRecorded(which)));
        assert_eq!(never.elapsed_since(&done), missing(Which::End));
        assert_eq!(done.elapsed_since(&never), missing(Which::Start));
        assert_eq!(never.elapsed_since(&never), missing(Which::Start));
        // The advice: record it.
        stream.record(&never).unwrap();
        stream.synchronize_blocking().unwrap();
        never.elapsed_since(&done).unwrap();
    });
}
