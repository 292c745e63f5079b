//! A dropped buffer is freed after the last work that uses it.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_handles::{Buffer, Context, GraphHandle, Linker, Stream, UserObject, reaper};
use cuda_sys::{CUresult, Call};
use cuda_tests::{
    Counts, Gate, Kind, SOON, alone, count, fail, fail_any, in_callback, is_soft, kernel, live, no_leaks,
    raw, settle, setup, until,
};

/// Looks at the flag at most so often: some seconds.
const LIMIT: u64 = 20_000_000;

#[test]
fn a_buffer_used_at_home_alone_is_freed_by_one_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(100).unwrap();
        let clone = buffer.clone();
        let ((), cost) = count(|| drop(clone));
        cost.assert_calls(&[]);
        let ((), cost) = count(|| drop(buffer));
        cost.assert_calls(&[("cuThreadExchangeStreamCaptureMode", 2), ("cuMemFreeAsync", 1)]);
        assert_eq!(cost.live(Kind::Allocation), -1);
        assert_eq!(cost.heap_allocations(), 0);
    });
}

#[test]
fn a_buffer_used_elsewhere_costs_the_dropping_thread_no_call() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.zeros::<u32>(100).unwrap();
        other.fill(&buffer, 1).unwrap();
        let ((), cost) = count(|| drop(buffer));
        cost.assert_calls(&[]);
        assert_eq!(cost.heap_allocations(), 0);
    });
}

#[test]
fn the_reaper_frees_by_itself() {
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let before = live().of(Kind::Allocation);
    for _ in 0..20 {
        let buffer = home.zeros::<u32>(100).unwrap();
        other.fill(&buffer, 1).unwrap();
    }
    assert!(until(SOON, || live().of(Kind::Allocation) == before), "nobody called drain");
    assert_eq!(reaper::pending(), 0);
}

#[test]
fn a_buffer_keeps_its_home_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[1_u32, 2, 3]).unwrap();
        drop(stream);
        assert_eq!(buffer.read_blocking(buffer.home().unwrap()).unwrap(), [1, 2, 3]);
    });
}

/// Allocates on `home` what a freed block of this length would be given out for again, and writes
/// over it.
fn overwrite(home: &Stream, len: usize) -> Vec<Buffer<u32>> {
    let buffers: Vec<_> = (0..32).map(|_| home.zeros::<u32>(len).unwrap()).collect();
    for buffer in &buffers {
        home.fill(buffer, u32::MAX).unwrap();
    }
    home.synchronize_blocking().unwrap();
    buffers
}

/// Drops a buffer while a kernel on another stream still runs and will write to it at its end.
fn drop_under_a_running_kernel(context: &Context, settled: bool) {
    let spin = kernel(context, "spin");
    let (home, other, signal) =
        (context.stream().unwrap(), context.stream().unwrap(), context.stream().unwrap());
    let flag = signal.zeros::<u32>(1).unwrap();
    signal.synchronize_blocking().unwrap();
    let victim = home.zeros::<u32>(1000).unwrap();
    if settled {
        home.synchronize_blocking().unwrap();
    }
    flag.allocation().ready_on(&other).unwrap();
    victim.allocation().ready_on(&other).unwrap();
    raw::launch(&other, &spin, 1, &[flag.address(), victim.address(), LIMIT]);
    drop(victim);
    // The reaper has its chance to do the wrong thing.
    let _ = until(Duration::from_millis(100), || reaper::pending() == 0);
    let others = overwrite(&home, 1000);
    assert!(!other.query().unwrap(), "the kernel still runs");
    signal.fill(&flag, 1).unwrap();
    other.synchronize_blocking().unwrap();
    for buffer in &others {
        assert!(buffer.read_blocking(&home).unwrap().iter().all(|value| *value == u32::MAX));
    }
    context.synchronize_blocking().unwrap();
}

#[test]
fn a_buffer_dropped_under_a_kernel_of_another_stream_is_freed_after_it() {
    let context = setup();
    no_leaks(|| drop_under_a_running_kernel(&context, false));
}

#[test]
fn a_settled_buffer_dropped_under_a_kernel_of_another_stream_is_freed_after_it() {
    let context = setup();
    no_leaks(|| drop_under_a_running_kernel(&context, true));
}

#[test]
fn a_buffer_dropped_behind_other_work_of_two_streams_is_freed_after_both() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<_> = (0..3).map(|_| context.stream().unwrap()).collect();
        let home = context.stream().unwrap();
        let targets: Vec<_> = streams.iter().map(|stream| stream.zeros::<u32>(1000).unwrap()).collect();
        let source = home.upload(&[7_u32; 1000]).unwrap();
        let gate = Gate::close(&streams[1]);
        for (stream, target) in streams.iter().zip(&targets) {
            stream.copy(&source, target).unwrap();
        }
        drop(source);
        let _ = until(Duration::from_millis(100), || reaper::pending() == 0);
        let others = overwrite(&home, 1000);
        gate.open();
        for (stream, target) in streams.iter().zip(&targets) {
            assert_eq!(target.read_blocking(stream).unwrap(), [7; 1000]);
        }
        drop(others);
    });
}

#[test]
fn a_shared_buffer_whose_other_stream_is_gone_already_is_freed_after_its_work() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let target = home.zeros::<u32>(1000).unwrap();
        let source = home.upload(&[7_u32; 1000]).unwrap();
        let done = context.event().unwrap();
        home.synchronize_blocking().unwrap();
        let gate = Gate::close(&other);
        other.copy(&source, &target).unwrap();
        other.record(&done).unwrap();
        drop(other);
        drop(source);
        let _ = until(Duration::from_millis(100), || reaper::pending() == 0);
        let others = overwrite(&home, 1000);
        gate.open();
        done.synchronize_blocking().unwrap();
        assert_eq!(target.read_blocking(&home).unwrap(), [7; 1000]);
        drop(others);
    });
}

#[test]
fn drops_in_a_host_callback_break_nothing() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let shared = home.upload(&[1_u32; 10]).unwrap();
        other.fill(&shared, 2).unwrap();
        let plain = other.upload(&[1_u32; 10]).unwrap();
        let (event, stream) = (context.event().unwrap(), context.stream().unwrap());
        let alone_with_its_stream = context.stream().unwrap().zeros::<u8>(10).unwrap();
        let library = kernel(&context, "empty");
        let (sender, receiver) = channel();
        in_callback(&home, move || {
            drop((shared, plain, event, stream, alone_with_its_stream, library));
            sender.send(()).unwrap();
        });
        receiver.recv_timeout(SOON).unwrap();
        let buffer = other.upload(&[9_u32; 4]).unwrap();
        assert_eq!(buffer.read_blocking(&home).unwrap(), [9; 4]);
        context.synchronize_blocking().unwrap();
    });
}

#[test]
fn an_operation_in_a_host_callback_is_an_error_and_nothing_else() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (sender, receiver) = channel();
        let inside = context.clone();
        in_callback(&stream, move || {
            let texts = [
                inside.stream().map(drop).map_err(|error| error.to_string()),
                inside.event().map(drop).map_err(|error| error.to_string()),
                inside.synchronize_blocking().map_err(|error| error.to_string()),
            ];
            sender.send(texts).unwrap();
        });
        for text in receiver.recv_timeout(SOON).unwrap() {
            let text = text.unwrap_err();
            assert!(text.contains("CUDA_ERROR_NOT_PERMITTED"), "{text}");
        }
        assert_eq!(context.lost(), None);
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn many_threads_make_share_and_drop() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<_> = (0..4).map(|_| context.stream().unwrap()).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (streams, context) = (&streams, &*context);
                scope.spawn(move || {
                    for round in 0..50 {
                        let home = &streams[(thread + round) % 4];
                        let buffer = home.upload(&[round as u32; 64]).unwrap();
                        let own = context.stream().unwrap();
                        let user = if round % 3 == 0 { &own } else { &streams[(thread + 2 * round) % 4] };
                        assert_eq!(buffer.read_blocking(user).unwrap(), [round as u32; 64]);
                        let event = context.event().unwrap();
                        user.record(&event).unwrap();
                        home.wait(&event).unwrap();
                    }
                });
            }
        });
    });
}

static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn a_failure_in_a_drop_goes_to_the_hook() {
    alone!();
    let context = setup();
    reaper::set_hook(|failure| FAILURES.lock().unwrap().push(failure.to_string()));
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u8>(1).unwrap();
    let injection = fail(Call::cuMemFreeAsync, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
    drop(buffer);
    settle();
    assert!(injection.hit());
    let failures = FAILURES.lock().unwrap().clone();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("cuMemFreeAsync"), "{failures:?}");
    assert!(failures[0].contains("CUDA_ERROR_OPERATING_SYSTEM"), "{failures:?}");
}

#[test]
fn libraries_are_unloaded_by_drain_alone() {
    let context = setup();
    no_leaks(|| {
        let empty = kernel(&context, "empty");
        let before = live().of(Kind::Library);
        let ((), cost) = count(|| drop(empty));
        assert_eq!(cost.calls_anywhere("cuLibraryUnload"), 0, "{cost}");
        assert!(!until(Duration::from_millis(50), || live().of(Kind::Library) < before));
        assert!(reaper::pending() >= 1);
        let (done, cost) = count(reaper::drain);
        assert!(done >= 1);
        assert_eq!(cost.calls_anywhere("cuLibraryUnload"), 1, "{cost}");
        assert_eq!(live().of(Kind::Library), before - 1);
    });
}

unsafe extern "C" fn nothing(_: *mut core::ffi::c_void) {}

/// What a small call that host functions may not make answers in one.
fn inside(stream: &Stream, work: impl FnOnce() + Send + 'static) -> [CUresult; 2] {
    let ask = || {
        let mut current = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        unsafe { raw::driver().cuCtxGetCurrent(&raw mut current) }
    };
    let (answer, answered) = channel();
    in_callback(stream, move || {
        let before = ask();
        work();
        let _ = answer.send([before, ask()]);
    });
    answered.recv_timeout(SOON).unwrap()
}

#[test]
fn a_destructor_that_runs_in_a_host_function_lifts_what_is_not_permitted() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let mut object = core::ptr::null_mut();
    // SAFETY: the out pointer is valid and the destructor touches nothing.
    raw::ok(unsafe {
        raw::driver().cuUserObjectCreate(&raw mut object, core::ptr::null_mut(), Some(nothing), 1, 1)
    });
    let object = object.expose_provenance();
    let answers = inside(&stream, move || {
        // SAFETY: the one reference there is.
        raw::ok(unsafe {
            raw::driver().cuUserObjectRelease(core::ptr::with_exposed_provenance_mut(object), 1)
        });
    });
    assert_eq!(answers, [CUresult::CUDA_ERROR_NOT_PERMITTED, CUresult::CUDA_SUCCESS]);
    assert_eq!(inside(&stream, || ()), [CUresult::CUDA_SUCCESS; 2], "for good");
}

#[test]
fn what_may_run_destructors_is_not_ended_in_a_host_function() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let object = UserObject::new(&context, Box::new(())).unwrap();
        let (lone, graph) =
            (UserObject::new(&context, Box::new(())).unwrap(), GraphHandle::create(&context).unwrap());
        object.retain_on(&graph).unwrap();
        drop(object);
        let answers = inside(&stream, move || drop((lone, graph)));
        assert_eq!(answers, [CUresult::CUDA_ERROR_NOT_PERMITTED; 2]);
        assert!(until(SOON, || reaper::pending() == 0), "the reaper ends them");
    });
}

#[test]
fn a_free_that_a_capture_over_by_now_refused_is_made_later() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        for code in [
            CUresult::CUDA_ERROR_INVALID_VALUE,
            CUresult::CUDA_ERROR_ILLEGAL_STATE,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
        ] {
            let buffer = home.zeros::<u32>(100).unwrap();
            // Asking for the mode of captures comes first.
            let refusal = fail_any(2, code);
            drop(buffer);
            assert_eq!(refusal.hit_call(), Some(Call::cuMemFreeAsync), "{code:?}");
        }
    });
}

/// What it costs to drop a linker in a host function, where the driver may refuse its end once.
fn a_linker_dropped_in_a_host_function(refuses: bool) -> Counts {
    let context = setup();
    let linker = Linker::new(&context).unwrap();
    let stream = context.stream().unwrap();
    let ((), cost) = count(|| {
        let refused = refuses.then(|| fail(Call::cuLinkDestroy, 1, CUresult::CUDA_ERROR_NOT_PERMITTED));
        in_callback(&stream, move || drop(linker));
        stream.synchronize_blocking().unwrap();
        if let Some(refused) = refused {
            assert!(refused.hit());
        }
        settle();
    });
    cost
}

#[test]
fn a_linker_dropped_in_a_host_function_is_destroyed_there() {
    alone!();
    let cost = a_linker_dropped_in_a_host_function(false);
    assert_eq!(cost.calls_anywhere("cuLinkDestroy"), 1, "it is destroyed at once: {cost}");
}

#[test]
fn a_linker_whose_destruction_is_refused_is_destroyed_later() {
    alone!();
    let cost = a_linker_dropped_in_a_host_function(true);
    assert_eq!(cost.calls_anywhere("cuLinkDestroy"), 2, "one is refused, one is made: {cost}");
}

/// Plain memory goes by way of the reaper.
#[test]
fn memory_that_was_dropped_and_is_idle_is_free_for_who_asks() {
    const BYTES: usize = 64 << 20;
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for _ in 0..20 {
            let buffer = context.alloc_blocking::<u8>(BYTES).unwrap();
            stream.fill(&buffer, 1).unwrap();
            stream.synchronize_blocking().unwrap();
            let (before, _) = context.memory_info().unwrap();
            drop(buffer);
            // Mostly the first question hears of it; where threads wait for processors, a later
            // one.
            let is_free = || context.memory_info().unwrap().0 >= before + BYTES / 2 || !is_soft();
            assert!(until(SOON, is_free), "{before} bytes were free, and are");
        }
    });
}
