//! Threads held up by a wait: no host function that the wait itself waits for, no query, and no
//! capture for long.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cuda_handles::capture::{CaptureMode, Captured};
use cuda_handles::{Context, DefaultStream, Error, Event, EventOptions, Stream, StreamOptions, reaper};
use cuda_sys::{CUresult, CUstream};
use cuda_tests::{Gate, SOON, asked_by_copies, count, in_callback, no_leaks, raw, setup, until};

const RELAXED: CaptureMode = CaptureMode::Relaxed;

/// How long something that waits is looked at.
const HELD: Duration = Duration::from_millis(50);

/// What `work` gives, on a thread of its own: one that never ends fails the test.
fn elsewhere<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Receiver<R> {
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(work()));
    receiver
}

#[track_caller]
fn soon<R>(receiver: &Receiver<R>) -> R {
    receiver.recv_timeout(SOON).expect("it ends")
}

/// `work` on a thread of its own, where it waits.
#[track_caller]
fn waiting<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    let thread = thread::spawn(work);
    assert!(!until(HELD, || thread.is_finished()), "it does not wait");
    thread
}

/// What `inside` gives in a host function of `stream`, once `wait` is waiting for that function on
/// another thread.
#[track_caller]
fn while_waited_for<R: Send + 'static, W: Send + 'static>(
    stream: &Stream,
    wait: impl FnOnce() -> W + Send + 'static,
    inside: impl FnOnce() -> R + Send + 'static,
) -> (R, W) {
    let ((begin, begun), (sender, receiver)) = (channel::<()>(), channel());
    in_callback(stream, move || {
        let _ = begun.recv_timeout(SOON);
        let _ = sender.send(inside());
    });
    let wait = waiting(wait);
    drop(begin);
    let found = receiver.recv_timeout(SOON).expect("the host function waits for who is waiting for it");
    (found, wait.join().unwrap())
}

#[track_caller]
fn is_refused<T>(result: Result<T, Error>) {
    let found = result.map(drop);
    let expected = matches!(found, Err(Error::Driver { code: CUresult::CUDA_ERROR_NOT_PERMITTED, .. }));
    assert!(expected, "{found:?}");
}

#[test]
fn no_capture_begins_in_a_host_function_on_the_stream_that_runs_it() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = stream.upload(&[1_u32; 8]).unwrap();
        for copies in [false, true] {
            let (waits, begins, idle) = (stream.clone(), stream.clone(), other.clone());
            let buffer = buffer.clone();
            let wait = move || match copies {
                true => buffer.read_blocking(&waits).map(drop),
                false => waits.synchronize_blocking(),
            };
            let begin =
                |stream: &Stream| stream.begin_capture(RELAXED).and_then(|capture| capture.end()).map(drop);
            let inside = move || (begin(&begins), begin(&idle));
            let ((refused, works), waited) = while_waited_for(&stream, wait, inside);
            is_refused(refused);
            assert_eq!((works, waited), (Ok(()), Ok(())));
        }
        stream.begin_capture(RELAXED).unwrap().end().expect("the stream is as good as before");
    });
}

#[test]
fn an_event_is_dropped_in_a_host_function_that_a_read_waits_for() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[1_u32; 8]).unwrap();
        let mut room = vec![0_u32; 8];
        let (event, waits) = (context.event().unwrap(), stream.clone());
        let read = move || buffer.as_slice().read_into_blocking(&waits, &mut room).map(|()| room);
        let ((), values) = while_waited_for(&stream, read, move || drop(event));
        assert_eq!(values, Ok(vec![1; 8]));
    });
}

#[test]
fn no_stream_joins_a_capture_in_a_host_function_that_it_runs() {
    let context = setup();
    no_leaks(|| {
        let [stream, origin, idle, another] = [(); 4].map(|()| context.stream().unwrap());
        let event = context.event().unwrap();
        // The event that it keeps for others to wait for cannot be made in a host function.
        another.wait_for(&origin).unwrap();
        let capture = origin.begin_capture(RELAXED).unwrap();
        origin.record(&event).unwrap();
        let (waits, joins, from) = (stream.clone(), stream.clone(), origin.clone());
        let (idle_one, another_one) = (idle.clone(), another.clone());
        let joined = move || {
            let refused = (joins.wait(&event), joins.wait_for(&from));
            (refused, (idle_one.wait(&event), another_one.wait_for(&from)))
        };
        let (((first, second), works), waited) =
            while_waited_for(&stream, move || waits.synchronize_blocking(), joined);
        is_refused(first);
        is_refused(second);
        assert_eq!((works, waited), ((Ok(()), Ok(())), Ok(())));
        assert_eq!((capture.streams(), stream.capture_id()), (3, None));
        assert_eq!([&idle, &another].map(Stream::capture_id), [Some(capture.id()); 2]);
        capture.end().expect("nothing has harmed it");
    });
}

/// Freeing pinned memory makes the driver wait for everything, the host function included.
#[test]
fn host_memory_is_refused_in_a_host_function_that_a_drain_waits_for() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        drop(context.pinned_zeros::<u8>(100).unwrap());
        let inside = Context::clone(&context);
        let ask = move || {
            let big = 1 << 22;
            (inside.pinned_zeros::<u8>(big).map(drop), inside.managed_zeros::<u8>(big).map(drop))
        };
        let ((pinned, managed), drained) = while_waited_for(&stream, reaper::drain, ask);
        is_refused(pinned);
        is_refused(managed);
        assert_eq!(drained, 1);
    });
}

#[test]
fn host_memory_that_lies_ready_is_given_in_a_host_function_too() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        drop(context.pinned_zeros::<u8>(100).unwrap());
        let inside = Context::clone(&context);
        let ask = move || inside.pinned_zeros::<u8>(100).map(|memory| memory.len());
        let waits = stream.clone();
        let (found, waited) = while_waited_for(&stream, move || waits.synchronize_blocking(), ask);
        assert_eq!((found, waited), (Ok(100), Ok(())));
    });
}

/// While a drain makes the driver wait for everything, nobody can enqueue; whoever tries has locks.
#[test]
fn questions_in_a_host_function_do_not_wait_for_who_enqueues() {
    let context = setup();
    no_leaks(|| {
        let (stream, busy, other) =
            (context.stream().unwrap(), context.stream().unwrap(), context.stream().unwrap());
        let event = context.event().unwrap();
        let shared = context.pinned_zeros::<u32>(8).unwrap().share();
        busy.fill(&shared, 1).unwrap();
        busy.synchronize_blocking().unwrap();
        let unseen = context.pinned_zeros::<u32>(8).unwrap().share();
        busy.fill(&unseen, 1).unwrap();
        other.wait_for(&busy).unwrap();
        drop(context.pinned_zeros::<u8>(1 << 20).unwrap());
        let (records, recorded) = (busy.clone(), event.clone());
        let (orders, ordered) = (busy.clone(), other.clone());
        let wait = move || {
            let draining = waiting(reaper::drain);
            let recording = waiting(move || records.record(&recorded));
            let ordering = waiting(move || ordered.wait_for(&orders));
            (draining.join().unwrap(), recording.join().unwrap(), ordering.join().unwrap())
        };
        let (begin, begun) = channel::<()>();
        let (sender, receiver) = channel();
        in_callback(&stream, move || {
            let _ = begun.recv_timeout(SOON);
            let unique = [unseen, shared].map(|shared| shared.try_unique().is_ok());
            let _ = sender.send((event.query(), event.synchronize_blocking(), unique));
        });
        let waited = thread::spawn(wait);
        assert!(!until(4 * HELD, || waited.is_finished()));
        drop(begin);
        let (query, wait, unique) = receiver.recv_timeout(SOON).expect("the host function waits");
        is_refused(query);
        is_refused(wait);
        // Work that was seen to have ended needs no query.
        assert_eq!(unique, [false, true]);
        let (drained, recorded, ordered) = waited.join().unwrap();
        assert_eq!((drained > 0, recorded, ordered), (true, Ok(()), Ok(())));
    });
}

/// Other code frees pinned memory, which waits for the host function and holds up the reaper, which
/// has the stream's gate.
#[test]
fn a_stream_can_be_dropped_in_a_host_function_that_the_reaper_waits_for() {
    let context = setup();
    no_leaks(|| {
        let [stream, used, home] = [(); 3].map(|()| context.stream().unwrap());
        let shared = home.zeros::<u32>(1024).unwrap();
        used.fill(&shared, 1).unwrap();
        used.synchronize_blocking().unwrap();
        home.synchronize_blocking().unwrap();
        let mut pinned = core::ptr::null_mut();
        let allocated = context.with_current(|| {
            // SAFETY: the out pointer is valid.
            unsafe { raw::driver().cuMemHostAlloc(&raw mut pinned, 1 << 20, 0) }
        });
        raw::ok(allocated.unwrap());
        let pinned = pinned.expose_provenance();
        let free = move || {
            // SAFETY: nobody uses the block.
            raw::ok(unsafe { raw::driver().cuMemFreeHost(core::ptr::with_exposed_provenance_mut(pinned)) });
        };
        let wait = move || {
            let freeing = waiting(free);
            drop(shared);
            freeing.join().unwrap();
        };
        let (begin, begun) = channel::<()>();
        let (sender, receiver) = channel();
        in_callback(&stream, move || {
            let _ = begun.recv_timeout(SOON);
            drop(used);
            let _ = sender.send(());
        });
        let waited = thread::spawn(wait);
        assert!(!until(4 * HELD, || waited.is_finished()));
        drop(begin);
        receiver.recv_timeout(Duration::from_secs(5)).expect("the drop in the host function waits");
        waited.join().unwrap();
    });
}

/// A stream for which somebody waits, and others who want it to join a capture.
struct Joining {
    gate: Gate,
    wait: JoinHandle<Result<(), Error>>,
    by_event: JoinHandle<Result<(), Error>>,
    by_stream: JoinHandle<Result<(), Error>>,
}

fn joining(stream: &Stream, event: &Event, origin: &Stream) -> Joining {
    let gate = Gate::close(stream);
    let [waits, first, second] = [(); 3].map(|()| stream.clone());
    let (event, origin) = (event.clone(), origin.clone());
    Joining {
        gate,
        wait: waiting(move || waits.synchronize_blocking()),
        by_event: waiting(move || first.wait(&event)),
        by_stream: waiting(move || second.wait_for(&origin)),
    }
}

#[test]
fn who_waits_to_join_a_capture_holds_up_nobody_else() {
    let context = setup();
    no_leaks(|| {
        let [stream, origin, third] = [(); 3].map(|()| context.stream().unwrap());
        let (event, another) = (context.event().unwrap(), context.event().unwrap());
        let capture = origin.begin_capture(RELAXED).unwrap();
        origin.record(&event).unwrap();
        let Joining { gate, wait, by_event, by_stream } = joining(&stream, &event, &origin);
        let (asks, joins, from) = (event.clone(), third.clone(), origin.clone());
        let found = elsewhere(move || {
            let asked = (asks.query(), asks.synchronize_blocking());
            (asked, joins.wait(&asks), joins.wait_for(&from), from.record(&another))
        });
        let found = found.recv_timeout(SOON).expect("who only asks waits as well");
        let asked = (Err(Error::CapturedEvent), Err(Error::CapturedEvent));
        assert_eq!(found, (asked, Ok(()), Ok(()), Ok(())));
        assert_eq!((third.capture_id(), stream.capture_id()), (Some(capture.id()), None));
        gate.open();
        assert_eq!([wait, by_event, by_stream].map(|thread| thread.join().unwrap()), [(); 3].map(Ok));
        assert_eq!((capture.streams(), stream.capture_id()), (3, Some(capture.id())));
        capture.end().unwrap();
    });
}

#[test]
fn who_waits_to_join_a_capture_is_told_when_it_ends() {
    let context = setup();
    no_leaks(|| {
        let (stream, origin) = (context.stream().unwrap(), context.stream().unwrap());
        let event = context.event().unwrap();
        let capture = origin.begin_capture(RELAXED).unwrap();
        origin.record(&event).unwrap();
        let Joining { gate, wait, by_event, by_stream } = joining(&stream, &event, &origin);
        capture.end().unwrap();
        assert!(until(SOON, || by_event.is_finished() && by_stream.is_finished()), "it waits on");
        assert!(!wait.is_finished());
        assert_eq!(by_event.join().unwrap(), Err(Error::CapturedEvent));
        assert_eq!(by_stream.join().unwrap(), Ok(()), "an ordinary wait by now");
        gate.open();
        assert_eq!(wait.join().unwrap(), Ok(()));
    });
}

/// Uses a legacy stream in every way, again and again; says how often that worked.
fn use_legacy(legacy: &DefaultStream, event: &Event, stop: &AtomicBool) -> u64 {
    let uses: [&dyn Fn() -> Result<(), Error>; 4] =
        [&|| legacy.query().map(drop), &|| legacy.record(event), &|| legacy.wait(event), &|| {
            legacy.synchronize_blocking()
        }];
    let mut worked = 0;
    while !stop.load(Ordering::Relaxed) {
        for one in uses {
            match one() {
                Ok(()) => worked += 1,
                Err(Error::Capturing { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    worked
}

/// Makes captures while other threads use the legacy stream; all of them come to a good end.
#[track_caller]
fn beside_the_legacy_stream(context: &Context, mut capture: impl FnMut() -> Result<Captured, Error>) {
    const TIMES: usize = 4000;
    let stop = AtomicBool::new(false);
    let (broken, worked) = thread::scope(|scope| {
        let users = [(); 2].map(|()| {
            scope.spawn(|| {
                let event =
                    context.event_with(EventOptions { timing: false, ..EventOptions::default() }).unwrap();
                use_legacy(&context.legacy_stream(), &event, &stop)
            })
        });
        let broken = (0..TIMES).find_map(|_| capture().err());
        stop.store(true, Ordering::Relaxed);
        (broken, users.map(|user| user.join().unwrap()))
    });
    assert_eq!(broken, None);
    assert!(worked.iter().all(|&worked| worked > 0), "{worked:?}");
}

const BLOCKING: StreamOptions = StreamOptions { priority: 0, blocking_with_legacy: true };

#[test]
fn captures_of_blocking_streams_begin_beside_uses_of_the_legacy_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream_with(BLOCKING).unwrap();
        beside_the_legacy_stream(&context, || stream.begin_capture(RELAXED)?.end());
    });
}

#[test]
fn blocking_streams_join_captures_beside_uses_of_the_legacy_stream() {
    let context = setup();
    no_leaks(|| {
        let (origin, blocking) = (context.stream().unwrap(), context.stream_with(BLOCKING).unwrap());
        let event = context.event().unwrap();
        beside_the_legacy_stream(&context, || {
            let capture = origin.begin_capture(RELAXED)?;
            origin.record(&event)?;
            blocking.wait(&event)?;
            capture.end()
        });
    });
}

#[test]
fn captures_of_adopted_streams_begin_beside_uses_of_the_legacy_stream() {
    let context = setup();
    no_leaks(|| {
        let mut raw: CUstream = core::ptr::null_mut();
        // SAFETY: the out pointer is valid and a context current.
        let create = || unsafe { raw::driver().cuStreamCreate(&raw mut raw, 0) };
        raw::ok(context.with_current(create).unwrap());
        // SAFETY: the stream lives until its handle is gone, and nobody else uses it.
        let stream = unsafe { Stream::from_raw(&context, raw) }.unwrap();
        beside_the_legacy_stream(&context, || stream.begin_capture(RELAXED)?.end());
        drop(stream);
        // SAFETY: the stream is ours and unused.
        raw::ok(unsafe { raw::driver().cuStreamDestroy(raw) });
    });
}

#[test]
fn a_wait_for_the_legacy_stream_keeps_no_capture_from_beginning() {
    let context = setup();
    no_leaks(|| {
        let (held, free) = (context.stream_with(BLOCKING).unwrap(), context.stream_with(BLOCKING).unwrap());
        let gate = Gate::close(&held);
        let of = Context::clone(&context);
        let wait = waiting(move || of.legacy_stream().synchronize_blocking());
        let ended = elsewhere(move || free.begin_capture(RELAXED)?.end().map(drop));
        assert_eq!(soon(&ended), Ok(()));
        assert!(!wait.is_finished());
        gate.open();
        assert_eq!(wait.join().unwrap(), Ok(()));
    });
}

/// Enqueues work that takes a while and waits for it, again and again.
fn wait_again_and_again(stream: &Stream, stop: &AtomicBool, wait: impl Fn() -> Result<(), Error>) {
    while !stop.load(Ordering::Relaxed) {
        let turn = stream.enqueue().unwrap();
        if !turn.is_captured().unwrap() {
            in_callback(stream, || thread::sleep(Duration::from_millis(15)));
        }
        drop(turn);
        match wait() {
            Ok(()) | Err(Error::Capturing { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Three threads wait for a stream without a pause: somebody is always waiting for it.
#[track_caller]
fn among_waits(
    context: &Context,
    wait: impl Fn(&Stream) -> Result<(), Error> + Sync,
    enter: impl Fn(&Stream) + Sync,
) {
    // Longer than all the work that can be in front of it, and shorter than it takes where the
    // waits do not step aside.
    const BOUND: Duration = Duration::from_secs(3);
    let stream = context.stream().unwrap();
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let entered = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                wait_again_and_again(&stream, &stop, || {
                    rounds.fetch_add(1, Ordering::Relaxed);
                    wait(&stream)
                });
            });
        }
        let busy = until(SOON, || rounds.load(Ordering::Relaxed) > 9);
        let entering = scope.spawn(|| (0..3).for_each(|_| enter(&stream)));
        let entered = until(BOUND, || entering.is_finished());
        stop.store(true, Ordering::Relaxed);
        busy && entered
    });
    assert!(entered, "it begins only when the waits end");
    stream.synchronize_blocking().unwrap();
}

#[test]
fn a_capture_begins_among_waits_that_overlap() {
    let context = setup();
    no_leaks(|| {
        among_waits(&context, Stream::synchronize_blocking, |stream| {
            drop(stream.begin_capture(RELAXED).unwrap());
        });
    });
}

#[test]
fn a_capture_begins_among_copies_that_overlap() {
    let context = setup();
    no_leaks(|| {
        let buffer = context.alloc_blocking::<u32>(8).unwrap();
        among_waits(
            &context,
            |stream| buffer.write_blocking(stream, &[1; 8]),
            |stream| {
                drop(stream.begin_capture(RELAXED).unwrap());
            },
        );
    });
}

#[test]
fn a_stream_joins_a_capture_among_waits_that_overlap() {
    let context = setup();
    no_leaks(|| {
        let origin = context.stream().unwrap();
        among_waits(&context, Stream::synchronize_blocking, |stream| {
            let capture = origin.begin_capture(RELAXED).unwrap();
            stream.wait_for(&origin).unwrap();
            drop(capture);
        });
    });
}

#[test]
fn a_wait_steps_aside_for_a_bounded_time() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let begins = stream.clone();
        let turn = stream.enqueue().unwrap();
        let begin = waiting(move || begins.begin_capture(RELAXED).map(drop));
        let (waits, start) = (stream.clone(), Instant::now());
        assert_eq!(soon(&elsewhere(move || waits.synchronize_blocking())), Ok(()));
        assert!(start.elapsed() < SOON / 2 && !begin.is_finished());
        drop(turn);
        assert_eq!(begin.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_blocking_copy_makes_no_more_calls_than_it_needs() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[1_u32; 8]).unwrap();
        stream.synchronize_blocking().unwrap();
        let waits = |copy, waits| {
            [
                (copy, 1),
                ("cuCtxGetCurrent", 1 + asked_by_copies(1)),
                ("cuStreamSynchronize", waits),
                ("cuThreadExchangeStreamCaptureMode", 2 * waits),
            ]
        };
        let ((), cost) = count(|| buffer.write_blocking(&stream, &[2; 8]).unwrap());
        cost.assert_calls(&waits("cuMemcpyHtoDAsync", 1));
        assert_eq!(cost.heap_allocations(), 0);
        // Before the copy, too: in one that waits by itself, host functions that it waits for may
        // hang.
        let (values, cost) = count(|| buffer.read_blocking(&stream).unwrap());
        cost.assert_calls(&waits("cuMemcpyDtoHAsync", 2));
        assert_eq!(values, [2; 8]);
    });
}
