//! Waits for locks and guards of others: each ends with an error that names holder and object.
//! Forgotten guards count, and guards of threads that have ended.

use std::mem::forget;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use cuda_handles::capture::{ActiveCapture, CaptureMode, Recorder, Work};
use cuda_handles::{Context, Error, Event, Library, Owner, Stream, clones, reaper, set_patience};
use cuda_sys::{CUresult, Call};
use cuda_tests::states::Foreign;
use cuda_tests::{
    Gate, SOON, Setup, alone, ends_soon, fail, hold, in_callback, kernel, no_leaks, settle, setup, until,
};

const MODE: CaptureMode = CaptureMode::Relaxed;

fn impatient() -> Setup {
    let context = setup();
    set_patience(Duration::from_millis(100));
    assert_eq!(cuda_handles::patience(), Duration::from_millis(100));
    context
}

/// An error that names what is in use and by whom.
#[track_caller]
fn is_busy<T>(outcome: Result<T, Error>, names: &[&str]) {
    let error = outcome.err().expect("it is in use");
    let text = error.to_string();
    assert!(matches!(error, Error::Busy { .. }), "{text}");
    for name in names {
        assert!(text.contains(name), "`{name}` is not in: {text}");
    }
}

/// A thread that does something and then stays until the sender is dropped.
fn staying(name: &str, work: impl FnOnce(&Receiver<()>) + Send + 'static) -> std::sync::mpsc::Sender<()> {
    let (stay, stays) = channel();
    thread::Builder::new().name(name.to_owned()).spawn(move || work(&stays)).unwrap();
    stay
}

#[test]
fn who_has_a_turn_is_named() {
    alone!();
    let context = impatient();
    for who in ["this thread", "the thread `holder`", "a thread that has ended"] {
        let stream = context.stream().unwrap();
        let has = stream.clone();
        let (tell, told) = channel();
        let take = move || {
            forget(has.enqueue().unwrap());
            forget(has);
            tell.send(()).unwrap();
        };
        let _stay = match who {
            "this thread" => {
                let begins = stream.clone();
                is_busy(
                    ends_soon(move || (take(), begins.begin_capture(MODE).map(drop)).1),
                    &[who, "Enqueue"],
                );
                // The holder's thread has ended, too.
                is_busy(stream.begin_capture(MODE), &["a thread that has ended"]);
                continue;
            }
            "the thread `holder`" => Some(staying("holder", move |stays| {
                take();
                let _ = stays.recv();
            })),
            _ => {
                thread::spawn(take).join().unwrap();
                None
            }
        };
        told.recv().unwrap();
        let begins = stream.clone();
        is_busy(
            ends_soon(move || begins.begin_capture(MODE).map(drop)),
            &[who, "Enqueue", "the stream", "100ms"],
        );
        // It is as useful as before.
        let buffer = stream.upload(&[1_u32; 8]).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 8]);
    }
}

#[test]
fn a_stream_that_is_waited_for_is_not_captured_before_and_says_so() {
    let context = impatient();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let gate = Gate::close(&stream);
        let waits = stream.clone();
        let waiter = thread::Builder::new().name("waiter".into());
        // The captures below, until one is refused, may come first.
        let waits = move || loop {
            match waits.synchronize_blocking() {
                Err(Error::Capturing { .. }) => thread::yield_now(),
                waited => return waited,
            }
        };
        let waiter = waiter.spawn(waits).unwrap();
        let refused = |stream: &Stream| stream.begin_capture(MODE).err();
        assert!(until(SOON, || refused(&stream).is_some()));
        let begins = stream.clone();
        is_busy(ends_soon(move || begins.begin_capture(MODE).map(drop)), &["the thread `waiter`"]);
        gate.open();
        waiter.join().unwrap().unwrap();
        stream.begin_capture(MODE).unwrap().end().unwrap();
    });
}

#[test]
fn no_stream_with_a_forgotten_turn_is_drawn_into_a_capture() {
    alone!();
    let context = impatient();
    let (origin, other) = (context.stream().unwrap(), context.stream().unwrap());
    let event = context.event().unwrap();
    forget(other.enqueue().unwrap());
    let capture = origin.begin_capture(MODE).unwrap();
    origin.record(&event).unwrap();
    let (joins, from, at) = (other.clone(), origin.clone(), event.clone());
    let (waited, followed) = ends_soon(move || (joins.wait(&at), joins.wait_for(&from)));
    is_busy(waited, &["the thread `threads::", "Enqueue"]);
    is_busy(followed, &["the thread `threads::", "Enqueue"]);
    capture.end().expect("nothing has harmed it");
}

type End = fn(ActiveCapture) -> Option<Error>;

#[test]
fn a_capture_ends_although_a_turn_was_forgotten() {
    alone!();
    let context = impatient();
    let ends: [End; 2] = [
        |capture| capture.end().err(),
        |capture| {
            drop(capture);
            None
        },
    ];
    for end in ends {
        let (over, ended) = channel();
        let own: Context = context.clone();
        thread::spawn(move || {
            let stream = own.stream().unwrap();
            let capture = stream.begin_capture(MODE).unwrap();
            forget(stream.enqueue().unwrap());
            over.send(end(capture)).unwrap();
            // Nobody waits for an object that is held for good.
            drop(stream.begin_capture(MODE).unwrap_err());
            drop(stream.synchronize_blocking().unwrap_err());
            reaper::drain();
            over.send(None).unwrap();
        });
        if let Some(error) = ended.recv_timeout(SOON).expect("it ends") {
            is_busy(Err::<(), _>(error), &["this thread", "Enqueue"]);
        }
        ended.recv_timeout(SOON).expect("it goes on");
    }
}

#[test]
fn a_forgotten_capture_holds_nobody_up() {
    alone!();
    let context = impatient();
    for ended in [false, true] {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        stream.synchronize_blocking().unwrap();
        let captured = stream.clone();
        let forgotten = move || forget(captured.begin_capture(MODE).unwrap());
        if ended {
            thread::spawn(forgotten).join().unwrap();
        } else {
            forgotten();
        }
        let other = context.stream().unwrap();
        ends_soon(move || {
            assert!(matches!(stream.begin_capture(MODE), Err(Error::Capturing { .. })));
            assert!(matches!(stream.synchronize_blocking(), Err(Error::Capturing { .. })));
            stream.fill(&buffer, 1).unwrap();
            assert!(other.wait_for_uncaptured(&stream).is_err());
            drop((stream, buffer));
            reaper::drain();
            let more = other.upload(&[1_u32]).unwrap();
            assert_eq!(more.read_blocking(&other).unwrap(), [1]);
        });
    }
}

#[test]
fn an_event_that_somebody_records_is_named() {
    alone!();
    let context = impatient();
    let (stream, event) = (context.stream().unwrap(), context.event().unwrap());
    forget(Event::recording([&event]).unwrap());
    let (records, at) = (stream.clone(), event.clone());
    let (recorded, asked, waited) = ends_soon(move || (records.record(&at), at.query(), records.wait(&at)));
    is_busy(recorded, &["the event"]);
    is_busy(asked, &["the event"]);
    is_busy(waited, &["the event"]);
    ends_soon(move || drop((stream, event)));
}

/// While `call` of `first` does not return, `second` says so.
#[track_caller]
fn beside<R: Send + 'static>(
    call: Call,
    first: impl FnOnce() -> R + Send + 'static,
    second: impl FnOnce() + Send + 'static,
) -> R {
    let held = hold(call);
    let first = thread::spawn(first);
    assert!(until(SOON, || held.has_arrived()));
    ends_soon(second);
    drop(held);
    first.join().unwrap()
}

#[test]
fn a_stream_whose_point_another_call_records_is_named() {
    let context = impatient();
    no_leaks(|| {
        let [from, one, two] = [(); 3].map(|()| context.stream().unwrap());
        one.wait_for(&from).unwrap();
        let (behind, other) = (from.clone(), from.clone());
        let first = move || one.wait_for(&behind);
        beside(Call::cuEventRecord, first, move || is_busy(two.wait_for(&other), &["the stream"])).unwrap();
    });
}

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn the_last_handle_of_an_adopted_stream_is_dropped_although_another_call_has_it() {
    alone!();
    let context = impatient();
    reaper::set_hook(|failure| TOLD.lock().unwrap().push(failure.to_string()));
    let foreign = Foreign::new(&context);
    let follows = context.stream().unwrap();
    // SAFETY: the stream lives longer than its handles, and nobody captures it.
    let adopted = unsafe { Stream::from_raw(&context, foreign.as_raw()) }.unwrap();
    let buffer = follows.zeros::<u32>(8).unwrap();
    adopted.fill(&buffer, 1).unwrap();
    // SAFETY: as above.
    let another = unsafe { Stream::from_raw(&context, foreign.as_raw()) }.unwrap();
    drop(another);
    let behind = adopted.clone();
    let last = adopted;
    let first = move || {
        let outcome = follows.wait_for(&behind);
        drop(behind);
        outcome
    };
    beside(Call::cuEventRecord, first, move || drop(last)).unwrap();
    // Memory stays if the end of a stream's use is unknown.
    drop(buffer);
    reaper::drain();
}

#[test]
fn a_library_that_compiles_is_named() {
    let context = impatient();
    no_leaks(|| {
        let library: Library = kernel(&context, "empty").library().clone();
        let (one, two) = (library.clone(), library);
        let first = move || one.kernel("increment").map(drop);
        beside(Call::cuLibraryGetKernel, first, move || is_busy(two.kernel("saxpy"), &["the library"]))
            .unwrap();
    });
}

/// Freeing pinned memory waits for all work, and so does whoever drains; an allocation that is
/// short of memory does without.
#[test]
fn an_allocation_does_not_wait_for_a_drain_for_ever() {
    let context = impatient();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        drop(context.pinned_zeros::<u8>(1 << 16).unwrap());
        let allocates = stream.clone();
        beside(Call::cuMemFreeHost, reaper::drain, move || {
            let short = fail(Call::cuMemAllocAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let outcome = allocates.zeros::<u8>(1 << 20);
            assert!(short.hit());
            drop(outcome.expect("a second attempt has it"));
        });
    });
}

#[test]
fn a_forgotten_lock_of_clones_is_named_and_drops_do_without_it() {
    alone!();
    let context = impatient();
    let graph = cuda_handles::GraphHandle::create(&context).unwrap();
    forget(clones::alone(&context).unwrap());
    let own: Context = context.clone();
    is_busy(ends_soon(move || clones::alone(&own).map(drop)), &["clones::alone"]);
    ends_soon(move || drop(graph));
    assert!(reaper::pending() >= 1, "the reaper tries again");
}

#[test]
fn a_captured_call_waits_for_another_one_of_the_capture_and_names_it() {
    let context = impatient();
    no_leaks(|| {
        let (one, two) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = one.zeros::<u32>(8).unwrap();
        one.synchronize_blocking().unwrap();
        let capture = one.begin_capture(MODE).unwrap();
        two.wait_for(&one).unwrap();
        let (fills, clears, keeps) = (one.clone(), two.clone(), two.clone());
        let (first, second) = (buffer.clone(), buffer.clone());
        let filled = beside(
            Call::cuMemsetD32Async,
            move || fills.fill(&first, 1),
            move || {
                is_busy(clears.clear(&second), &["a capture", "another call"]);
                is_busy(keeps.enqueue().unwrap().keep(&second), &["a capture"]);
            },
        );
        filled.unwrap();
        two.clear(&buffer).unwrap();
        one.wait_for(&two).unwrap();
        let records = capture.end().unwrap().records;
        assert_eq!((records.len(), records.kept().len()), (2, 0), "{records:?}");
    });
}

#[test]
fn a_panic_while_a_call_is_recorded_leaves_neither_a_record_nor_a_lock() {
    let context = impatient();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (buffer, other) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        stream.synchronize_blocking().unwrap();
        let capture = stream.begin_capture(MODE).unwrap();
        let (keeps, inner) = (stream.clone(), other.clone());
        ends_soon(move || {
            let turn = keeps.enqueue().unwrap();
            let work = Work::Fill { destination: inner.address(), bytes: 32 };
            let give = |record: &mut Recorder<'_>| {
                record.allocation(inner.allocation());
                record.argument(Some(&[1; 8]));
                panic!("in between")
            };
            let call = || unreachable!("it was not recorded");
            let panics = std::panic::AssertUnwindSafe(|| turn.captured_call(work, give, call));
            std::panic::catch_unwind(panics).unwrap_err();
            turn.keep(Owner::from(&inner)).unwrap();
        });
        stream.fill(&buffer, 1).unwrap();
        let records = capture.end().unwrap().records;
        let fills: Vec<_> =
            records.iter().map(|record| (record.arguments().count(), record.owners().count())).collect();
        assert_eq!(fills, [(0, 1)], "{records:?}");
        assert_eq!(records.into_owners().len(), 2);
        settle();
    });
}

/// The driver's thread for host functions ends with the process.
#[test]
fn a_turn_that_a_host_function_forgot_holds_nobody_up_for_ever() {
    alone!();
    let context = impatient();
    let (runs, stream) = (context.stream().unwrap(), context.stream().unwrap());
    let has = stream.clone();
    in_callback(&runs, move || {
        forget(has.enqueue().unwrap());
        // Nor anybody in there, where the driver's own answer is given.
        let refused = has.begin_capture(MODE).err();
        let code = CUresult::CUDA_ERROR_NOT_PERMITTED;
        assert!(matches!(refused, Some(Error::Driver { code: found, .. }) if found == code), "{refused:?}");
        forget(has);
    });
    runs.synchronize_blocking().unwrap();
    let begins = stream.clone();
    is_busy(ends_soon(move || begins.begin_capture(MODE).map(drop)), &["thread", "Enqueue"]);
}
