//! Closures called in stream order.

use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cuda_handles::capture::CaptureMode;
use cuda_handles::{CallbackPanic, Error, Kernel, Stream, reaper, set_panic_hook};
use cuda_sys::{CUgraphExec, CUresult, Call};
use cuda_tests::closure::{Count, counter, seen};
use cuda_tests::{Gate, SOON, alone, count, fail, kernel, no_leaks, raw, settle, setup, until};

fn has_gone<T>(value: &Weak<T>) -> bool {
    value.strong_count() == 0
}

static TOLD: Mutex<Vec<CallbackPanic>> = Mutex::new(Vec::new());

fn note(trouble: &CallbackPanic) {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).push(trouble.clone());
    panic!("a panic in the hook is lost");
}

fn told() -> Vec<CallbackPanic> {
    core::mem::take(&mut *TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Panics when it is dropped, and counts that.
struct Bomb(Count);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("dropped");
    }
}

#[test]
fn closures_are_called_once_in_the_order_of_their_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let gate = Gate::close(&stream);
        for number in 0..20 {
            let order = Arc::clone(&order);
            match number % 2 {
                0 => stream.host(move || order.lock().unwrap().push(number)).unwrap(),
                _ => stream.host_once(move || drop(order.lock().map(|mut it| it.push(number)))).unwrap(),
            }
        }
        assert_eq!(*order.lock().unwrap(), [0; 0], "they wait for the stream");
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
        assert_eq!(Arc::strong_count(&order), 1, "they are dropped after their calls");
    });
}

#[test]
fn a_closure_that_is_called_once_gives_away_what_it_has() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (sender, receiver) = channel();
        let text = String::from("given away");
        stream.host_once(move || drop(sender.send(text))).unwrap();
        assert_eq!(receiver.recv_timeout(SOON).unwrap(), "given away");
        stream.synchronize_blocking().unwrap();
    });
}

/// On a stream a closure costs a driver call and its box; one without anything in it not even that.
#[test]
fn a_call_costs_one_driver_call_and_one_allocation() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let gate = Gate::close(&stream);
        let value = Arc::new(());
        // Afterwards the table has room for them all.
        (0..120).for_each(|_| stream.host(|| ()).unwrap());
        let costs: Vec<_> = (0..16)
            .map(|_| {
                let inside = Arc::clone(&value);
                let once = Arc::clone(&value);
                let ((), cost) = count(|| {
                    stream.host(move || drop(Arc::clone(&inside))).unwrap();
                    stream.host_once(move || drop(once)).unwrap();
                });
                cost.assert_calls(&[("cuLaunchHostFunc", 2)]);
                cost.heap_allocations()
            })
            .collect();
        assert_eq!(costs, [2; 16]);
        let ((), cost) = count(|| stream.host(|| ()).unwrap());
        assert_eq!((cost.total(), cost.heap_allocations()), (1, 0), "{cost}");
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn a_panic_is_told_and_the_stream_goes_on() {
    alone!();
    let context = setup();
    set_panic_hook(note);
    let stream = context.stream().unwrap();
    let value = Arc::new(());
    let weak = Arc::downgrade(&value);
    let (calls, call) = counter();
    stream.host(|| panic!("plain")).unwrap();
    stream
        .host_once(move || {
            let _value = value;
            panic!("formatted {}", 1);
        })
        .unwrap();
    stream.host(|| std::panic::panic_any(5)).unwrap();
    stream.host(call).unwrap();
    stream.synchronize_blocking().unwrap();
    assert_eq!((seen(&calls), has_gone(&weak)), (1, true));
    let told = told();
    let messages: Vec<_> = told.iter().map(|panic| (&*panic.message, panic.was_called)).collect();
    assert_eq!(messages, [("plain", true), ("formatted 1", true), ("with a value that is not text", true)]);
    let text = told[0].to_string();
    assert!(text.contains("a_panic_is_told") && text.ends_with("panicked: plain"), "{text}");
}

/// Places where closures are dropped: after the call, after a refusal, at the end of a capture.
#[test]
fn panics_of_destructors_stay_inside() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let drops = Count::default();
        let bomb = || {
            let bomb = Bomb(Arc::clone(&drops));
            move || {
                let _ = &bomb;
            }
        };
        stream.host(bomb()).unwrap();
        stream.host_once(bomb()).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(seen(&drops), 2);
        let refusal = fail(Call::cuLaunchHostFunc, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        assert!(matches!(stream.host(bomb()), Err(Error::Driver { call: Call::cuLaunchHostFunc, .. })));
        drop(refusal);
        assert_eq!(seen(&drops), 3);
        let (calls, call) = counter();
        stream.host(call).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(seen(&calls), 1, "the stream goes on");
    });
}

#[test]
fn a_closure_that_the_driver_refuses_is_dropped_once_and_not_called() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for once in [false, true] {
            let (calls, call) = counter();
            let refusal = fail(Call::cuLaunchHostFunc, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let refused = if once { stream.host_once(call) } else { stream.host(call) };
            assert!(refused.is_err() && refusal.hit());
            drop(refusal);
            assert_eq!((Arc::strong_count(&calls), seen(&calls)), (1, 0));
        }
        stream.synchronize_blocking().unwrap();
    });
}

fn executable(captured: &cuda_handles::GraphHandle) -> CUgraphExec {
    let mut exec = core::ptr::null_mut();
    // SAFETY: the graph lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuGraphInstantiateWithFlags(&raw mut exec, captured.as_raw(), 0) });
    exec
}

#[test]
fn a_captured_closure_is_kept_by_the_capture_and_called_at_each_launch() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (calls, call) = counter();
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let ((), cost) = count(|| stream.host(call).unwrap());
        cost.assert_calls(&[("cuLaunchHostFunc", 1)]);
        let captured = capture.end().unwrap();
        assert_eq!((Arc::strong_count(&calls), seen(&calls)), (2, 0));
        let exec = context.with_current(|| executable(&captured.graph)).unwrap();
        for _ in 0..3 {
            // SAFETY: the executable lives, and so do its owners.
            raw::ok(unsafe { raw::driver().cuGraphLaunch(exec, stream.as_raw()) });
        }
        stream.synchronize_blocking().unwrap();
        assert_eq!((Arc::strong_count(&calls), seen(&calls)), (2, 3));
        // SAFETY: it runs no more.
        raw::ok(unsafe { raw::driver().cuGraphExecDestroy(exec) });
        drop(captured);
        assert_eq!(Arc::strong_count(&calls), 1);
    });
}

#[test]
fn a_closure_that_is_called_once_is_refused_on_a_capturing_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let (calls, call) = counter();
        let (refused, cost) = count(|| stream.host_once(call).unwrap_err());
        cost.assert_calls(&[]);
        assert!(matches!(refused, Error::Capturing { .. }), "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains("host_once"), "{text}");
        assert_eq!((Arc::strong_count(&calls), seen(&calls)), (1, 0));
        let captured = capture.end().expect("the capture goes on");
        assert!(captured.records.into_owners().is_empty());
    });
}

/// Its capture is one of other code: then the graph gets a user object.
#[test]
fn a_closure_captured_by_other_code_is_kept_by_the_graph() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let raw_stream = stream.lend();
        let mode = cuda_sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives.
        raw::ok(unsafe { raw::driver().cuStreamBeginCapture(raw_stream, mode) });
        let (calls, call) = counter();
        stream.host(call).unwrap();
        let refused = stream.host_once(|| ());
        assert!(matches!(refused, Err(Error::Capturing { .. })), "{refused:?}");
        let mut graph = core::ptr::null_mut();
        // SAFETY: the stream lives and the out pointer is valid.
        raw::ok(unsafe { raw::driver().cuStreamEndCapture(raw_stream, &raw mut graph) });
        assert_eq!(Arc::strong_count(&calls), 2);
        // SAFETY: the graph is ours.
        raw::ok(unsafe { raw::driver().cuGraphDestroy(graph) });
        assert!(until(SOON, || Arc::strong_count(&calls) == 1));
    });
}

/// Lets the kernel `poke` write where nothing is.
fn lose(stream: &Stream, poke: &Kernel) -> Error {
    raw::launch(stream, poke, 1, &[0x40, 7]);
    stream.synchronize_blocking().unwrap_err()
}

#[test]
fn a_panic_and_that_of_the_closures_drop_are_two() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let host = context.pinned_zeros::<u32>(4).unwrap().share();
        let bombs = Count::default();
        let bomb = Bomb(Arc::clone(&bombs));
        stream.host(move || panic!("with {}", Arc::strong_count(&bomb.0))).unwrap();
        let bomb = Bomb(Arc::clone(&bombs));
        stream.host_with(&host, move |_| panic!("with {}", Arc::strong_count(&bomb.0))).unwrap();
        let (count, call) = counter();
        stream.host(call).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!((seen(&bombs), seen(&count)), (2, 1));
        assert!(host.try_view().is_some(), "the function has let go of it");
    });
}

#[test]
fn closures_of_a_lost_context_are_dropped_once_by_the_reaper() {
    // A search for leaks would find the gate's own closure, which a lost driver never calls.
    alone!("ASAN_OPTIONS" = "detect_leaks=0");
    static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let context = setup();
    reaper::set_hook(|failure| FAILURES.lock().unwrap().push(failure.to_string()));
    let (stream, waiting) = (context.stream().unwrap(), context.stream().unwrap());
    // The first use of a library would wait for the gate.
    let poke = kernel(&context, "poke");
    let gate = Gate::close(&waiting);
    let (behind, call) = counter();
    waiting.host(call).unwrap();
    let (once, call) = counter();
    waiting.host_once(call).unwrap();
    let bombs = Count::default();
    for _ in 0..2 {
        let bomb = Bomb(Arc::clone(&bombs));
        waiting.host(move || drop(Arc::clone(&bomb.0))).unwrap();
    }
    let lost = lose(&stream, &poke);
    assert!(matches!(lost, Error::ContextLost(_)), "{lost:?}");
    let gone = || [&behind, &once, &bombs].iter().all(|it| Arc::strong_count(it) == 1);
    assert!(until(SOON, || {
        reaper::drain();
        gone()
    }));
    assert_eq!((seen(&behind), seen(&once), seen(&bombs)), (0, 0, 2));
    // The hook is told behind the drop.
    let expected = "dropping a host function that is not called panicked: dropped";
    assert!(until(SOON, || FAILURES.lock().unwrap().len() == 2));
    assert_eq!(*FAILURES.lock().unwrap(), [expected; 2]);
    gate.open();
    // Nothing later is called, either.
    let (late, call) = counter();
    assert_eq!(waiting.host(call).unwrap_err(), lost);
    assert_eq!((Arc::strong_count(&late), seen(&late)), (1, 0));
    settle();
}

#[cfg(unix)]
#[test]
fn in_a_forked_child_nothing_is_called_and_no_lock_waited_for() {
    const FORKS: usize = 40;
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let over = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Holds the table's lock most of the time.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                stream.host(|| ()).unwrap();
            }
        });
        let in_child = || {
            let value = Arc::new(());
            let (once, again) = (Arc::clone(&value), Arc::clone(&value));
            let refused = matches!(stream.host_once(move || drop(once)), Err(Error::Forked))
                && matches!(stream.host(move || drop(Arc::clone(&again))), Err(Error::Forked));
            set_panic_hook(|_| ());
            u8::from(!refused) + 2 * u8::from(Arc::strong_count(&value) != 1)
        };
        // SAFETY: what other threads may have locked is not waited for: that is what is tried.
        let codes = [(); FORKS].map(|()| unsafe { cuda_tests::in_forked_child(in_child) });
        over.store(true, Ordering::Relaxed);
        assert_eq!(codes, [0; FORKS], "1: it was not refused, 2: the closures were not dropped");
    });
    stream.synchronize_blocking().unwrap();
}

#[test]
fn threads_enqueue_on_one_stream_at_once() {
    const EACH: u32 = 200;
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let count = Count::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let inside = Arc::clone(&count);
                        stream
                            .host_once(move || {
                                inside.fetch_add(1, Ordering::Relaxed);
                            })
                            .unwrap();
                    }
                });
            }
        });
        stream.synchronize_blocking().unwrap();
        assert_eq!((seen(&count), Arc::strong_count(&count)), (4 * EACH, 1));
    });
}

/// Streams, buffers and kernels may go with the closure, on the driver's thread.
#[test]
fn a_closure_may_have_the_last_handle_of_anything() {
    let context = setup();
    no_leaks(|| {
        let (stream, home) = (context.stream().unwrap(), context.stream().unwrap());
        let shared = home.zeros::<u32>(8).unwrap();
        stream.fill(&shared, 1).unwrap();
        let things = (home.zeros::<u32>(8).unwrap(), shared, kernel(&context, "empty"), home);
        let own = context.stream().unwrap();
        let itself = own.clone();
        stream.host_once(move || drop(things)).unwrap();
        own.host_once(move || drop(itself)).unwrap();
        drop(own);
        stream.synchronize_blocking().unwrap();
    });
}
