//! Host functions wait for no lock that another thread may hold over a driver call, which the
//! driver may hold up until the function ends.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cuda_handles::capture::{ActiveCapture, CaptureMode};
use cuda_handles::{Context, Error, Event, Image, Library, Owner, SharedHostBuffer, Stream, reaper};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Hold, SMALL, SOON, alone, hold, in_callback, needs, no_leaks, other_device, setup, until};

const RELAXED: CaptureMode = CaptureMode::Relaxed;

/// Much longer than anything is tried for where nobody may wait.
const A_MOMENT: Duration = Duration::from_secs(5);

/// What `inside` gives in a host function, while `outside` is in a call of that name on another
/// thread, held up until the function is over; then what `outside` gives.
#[track_caller]
fn while_held_up<R: Send + 'static, W: Send + 'static>(
    context: &Context,
    call: Call,
    outside: impl FnOnce() -> W + Send + 'static,
    inside: impl FnOnce() -> R + Send + 'static,
) -> (R, W) {
    try_while_held_up(context, call, outside, inside).expect("no such call")
}

/// The same; `None` if `outside` ended without such a call.
#[track_caller]
fn try_while_held_up<R: Send + 'static, W: Send + 'static>(
    context: &Context,
    call: Call,
    outside: impl FnOnce() -> W + Send + 'static,
    inside: impl FnOnce() -> R + Send + 'static,
) -> Option<(R, W)> {
    let stream = context.stream().unwrap();
    let held = hold(call);
    let thread = thread::spawn(outside);
    assert!(until(SOON, || held.has_arrived() || thread.is_finished()), "neither a call nor an end");
    if !held.has_arrived() {
        return None;
    }
    let (sender, receiver) = channel();
    in_callback(&stream, move || drop(sender.send(inside())));
    let found = receiver.recv_timeout(A_MOMENT).expect("the host function waits");
    drop(held);
    let outside = thread.join().unwrap();
    stream.synchronize_blocking().unwrap();
    Some((found, outside))
}

#[track_caller]
fn arrive(held: &Hold) {
    assert!(until(SOON, || held.has_arrived()), "no such call");
}

#[track_caller]
fn is_refused<T>(result: Result<T, Error>) {
    let found = result.map(drop);
    let expected = matches!(found, Err(Error::Driver { code: CUresult::CUDA_ERROR_NOT_PERMITTED, .. }));
    assert!(expected, "{found:?}");
}

/// A stream that another thread has alone, with what uses it, made where the driver permits it; and
/// one that nobody uses.
struct Things {
    stream: Stream,
    other: Stream,
    idle: Stream,
    event: Event,
    memory: SharedHostBuffer<u32>,
}

impl Things {
    fn of(stream: &Stream) -> Self {
        let context = stream.context();
        let [other, idle] = [(); 2].map(|()| context.stream().unwrap());
        // The event for this is made by the first wait.
        other.wait_for(stream).unwrap();
        let (event, memory) = (context.event().unwrap(), context.pinned_zeros(8).unwrap().share());
        Self { stream: stream.clone(), other, idle, event, memory }
    }

    /// What all that takes a turn on the stream gives, and a capture of the idle one.
    fn look(&self) -> (Vec<Result<(), Error>>, Result<usize, Error>) {
        let Self { stream, other, idle, event, memory } = self;
        let uses = vec![
            stream.query().map(drop),
            stream.enqueue().map(drop),
            other.wait_for(stream),
            stream.wait_for(other),
            stream.synchronize_blocking(),
            stream.begin_capture(RELAXED).map(drop),
            stream.record(event),
            stream.wait(event),
            stream.fill(memory, 1),
        ];
        let begin = |capture: ActiveCapture| {
            let streams = capture.streams();
            capture.end().map(|_| streams)
        };
        (uses, idle.begin_capture(RELAXED).and_then(begin))
    }
}

#[track_caller]
fn all_refused((uses, captured): (Vec<Result<(), Error>>, Result<usize, Error>)) {
    assert_eq!(captured, Ok(1), "other streams are not concerned");
    for (index, result) in uses.into_iter().enumerate() {
        assert!(result.is_err(), "use {index} is permitted");
        is_refused(result);
    }
}

#[test]
fn a_stream_that_begins_a_capture_is_not_waited_for() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let things = Things::of(&stream);
        let begins = stream.clone();
        let begin = move || begins.begin_capture(RELAXED)?.end().map(drop);
        let inside = move || things.look();
        let (found, begun) = while_held_up(&context, Call::cuStreamBeginCapture, begin, inside);
        assert_eq!(begun, Ok(()));
        all_refused(found);
    });
}

#[test]
fn a_stream_that_joins_a_capture_is_not_waited_for() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let (origin, stream) = (context.stream().unwrap(), context.stream().unwrap());
        let things = Things::of(&stream);
        let event = context.event().unwrap();
        let capture = origin.begin_capture(RELAXED).unwrap();
        origin.record(&event).unwrap();
        let joins = stream.clone();
        let join = move || joins.wait(&event);
        let inside = move || things.look();
        let (found, joined) = while_held_up(&context, Call::cuStreamWaitEvent, join, inside);
        assert_eq!((joined, capture.streams()), (Ok(()), 2));
        all_refused(found);
        capture.end().unwrap();
    });
}

#[test]
fn a_stream_whose_capture_ends_is_not_waited_for() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let things = Things::of(&stream);
        let ends = stream.clone();
        let end = move || ends.begin_capture(RELAXED)?.end().map(drop);
        let inside = move || things.look();
        let (found, ended) = while_held_up(&context, Call::cuStreamEndCapture, end, inside);
        assert_eq!(ended, Ok(()));
        all_refused(found);
    });
}

/// The first user of pinned memory is a stream without handles, of which the driver is asked
/// whether it is over; unless the reaper was faster.
#[test]
fn who_else_uses_pinned_memory_is_not_waited_for() {
    const TRIES: usize = 50;
    alone!();
    let context = setup();
    no_leaks(|| {
        let a_try = || {
            let [first, second, third] = [(); 3].map(|()| context.stream().unwrap());
            let memory = context.pinned_zeros::<u32>(8).unwrap().share();
            first.fill(&memory, 1).unwrap();
            let turn = third.clone();
            drop(first);
            let shared = memory.clone();
            let fill = move || second.fill(&shared, 2);
            let inside = move || turn.fill(&memory, 3);
            let found = try_while_held_up(&context, Call::cuStreamQuery, fill, inside)?;
            assert_eq!(found, (Ok(()), Ok(())));
            third.synchronize_blocking().unwrap();
            Some(())
        };
        assert!((0..TRIES).any(|_| a_try().is_some()), "no such call");
    });
}

/// What `end` does in a host function with a capture that it began there, while another thread is
/// enqueuing on its stream.
#[track_caller]
fn in_the_way_of_the_end(mode: CaptureMode, end: fn(ActiveCapture) -> Option<Result<(), Error>>) {
    let context = setup();
    no_leaks(|| {
        let (runs, stream) = (context.stream().unwrap(), context.stream().unwrap());
        let memory = stream.upload(&[0_u32; 8]).unwrap();
        stream.synchronize_blocking().unwrap();
        let kept = Arc::new(());
        let weak = Arc::downgrade(&kept);
        let (sender, receiver) = channel();
        let ((begun, begins), (over, ended)) = (channel(), channel::<()>());
        let captures = stream.clone();
        in_callback(&runs, move || {
            let capture = captures.begin_capture(mode).unwrap();
            capture.keep(Owner::shared(kept));
            let _ = begun.send(());
            let _ = ended.recv_timeout(SOON);
            let _ = sender.send(end(capture));
        });
        begins.recv_timeout(SOON).unwrap();
        let held = hold(Call::cuMemsetD32Async);
        let fills = stream.clone();
        let fill = thread::spawn(move || fills.fill(&memory, 1));
        arrive(&held);
        drop(over);
        let found = receiver.recv_timeout(A_MOMENT).expect("the host function waits for who is enqueuing");
        if let Some(found) = found {
            is_refused(found);
        }
        assert!(stream.capture_id().is_some() && reaper::pending() > 0);
        drop(held);
        fill.join().unwrap().unwrap();
        let is_over = || stream.capture_id().is_none() && weak.strong_count() == 0 && reaper::pending() == 0;
        assert!(until(SOON, is_over), "the reaper ends it");
        assert_eq!(stream.begin_capture(RELAXED).unwrap().end().map(drop), Ok(()));
        runs.synchronize_blocking().unwrap();
    });
}

#[test]
fn a_capture_whose_stream_somebody_uses_is_ended_by_the_reaper() {
    alone!();
    for mode in [RELAXED, CaptureMode::ThreadLocal, CaptureMode::Global] {
        in_the_way_of_the_end(mode, |capture| Some(capture.end().map(drop)));
        in_the_way_of_the_end(mode, |capture| {
            drop(capture);
            None
        });
    }
}

#[test]
fn a_captured_call_in_there_waits_for_none_of_its_capture() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let (one, two) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = one.zeros::<u32>(8).unwrap();
        one.synchronize_blocking().unwrap();
        let capture = one.begin_capture(RELAXED).unwrap();
        two.wait_for(&one).unwrap();
        let (fills, clears, memory, same) = (one.clone(), two.clone(), buffer.clone(), buffer.clone());
        let inside = move || (clears.clear(&same), clears.enqueue().unwrap().keep(&same));
        let outside = move || fills.fill(&memory, 1);
        let ((cleared, kept), filled) = while_held_up(&context, Call::cuMemsetD32Async, outside, inside);
        is_refused(cleared);
        is_refused(kept);
        assert_eq!(filled, Ok(()));
        one.wait_for(&two).unwrap();
        assert_eq!(capture.end().unwrap().records.len(), 1);
    });
}

#[test]
fn a_context_that_is_known_is_given_while_another_one_is_retained() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let (first, second) = (context.device(), other_device());
    let inside = move || (first.context().map(drop), second.context().map(drop));
    let outside = move || second.context().map(drop);
    let ((known, unknown), retained) =
        while_held_up(&context, Call::cuDevicePrimaryCtxRetain, outside, inside);
    assert_eq!((known, retained), (Ok(()), Ok(())));
    is_refused(unknown);
}

#[test]
fn kernels_that_are_looked_up_are_not_waited_for() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let library = Library::load(&context, Image::Ptx(SMALL)).unwrap();
        let inner = library.clone();
        let inside = move || inner.kernel("increment").map(drop);
        let outside = move || library.kernel("increment").map(drop);
        let (found, outside) = while_held_up(&context, Call::cuLibraryGetKernel, outside, inside);
        assert_eq!(outside, Ok(()));
        is_refused(found);
    });
}
