//! Contexts: retained once, current on demand, adopted from other code.

use core::ptr;
use std::collections::HashSet;

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Context, Device, Scheduling, reaper};
use cuda_sys::{CUcontext, CUctx_flags};
use cuda_tests::{Kind, alone, chosen, count, device, install, live, no_leaks, raw, settle, setup};

fn current() -> CUcontext {
    let mut current = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuCtxGetCurrent(&raw mut current) });
    current
}

#[test]
fn a_device_gives_the_same_context_every_time() {
    let context = setup();
    let (again, cost) = count(|| device().context().unwrap());
    assert_eq!(cost.calls("cuDevicePrimaryCtxRetain"), 0, "{cost}");
    assert_eq!(again, *context);
    assert_eq!(again.as_raw(), context.as_raw());
    assert_eq!(HashSet::<Context>::from_iter([again, context.clone()]).len(), 1);
    assert_eq!(context.device(), device());
}

#[test]
fn a_primary_context_is_retained_once_and_stays_after_its_last_handle() {
    alone!();
    install(chosen());
    let raw_values: HashSet<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| device().context().unwrap().as_raw() as usize)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(raw_values.len(), 1);
    assert_eq!(live().of(Kind::Context), 1);
}

#[test]
fn a_context_leaves_the_threads_current_context_alone() {
    let context = setup();
    let before = current();
    let stream = context.stream().unwrap();
    let event = context.event().unwrap();
    let buffer = stream.upload(&[1_u32, 2]).unwrap();
    stream.record(&event).unwrap();
    assert_eq!(buffer.read_blocking(&stream).unwrap(), [1, 2]);
    context.synchronize_blocking().unwrap();
    context.memory_info().unwrap();
    assert_eq!(current(), before);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(current().is_null());
            drop(context.event().unwrap());
            drop(context.stream().unwrap());
            assert!(current().is_null());
        });
    });
}

#[test]
fn a_section_can_have_the_context_current() {
    let context = setup();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let inside = context.with_current(current);
            let inside = inside.unwrap();
            assert_eq!(inside, context.as_raw());
            assert!(current().is_null());
        });
    });
}

#[test]
fn a_healthy_context_is_not_lost() {
    let context = setup();
    assert_eq!(context.lost(), None);
}

#[test]
fn memory_info_knows_free_and_total() {
    let context = setup();
    let (free, total) = context.memory_info().unwrap();
    assert!(free <= total && total > 1 << 20, "{free} of {total}");
    assert!(total <= context.device().total_memory().unwrap());
}

#[test]
fn handles_go_between_threads() {
    fn may_travel<T: Send + Sync + Clone + core::fmt::Debug + Eq + core::hash::Hash>() {}
    may_travel::<Context>();
    may_travel::<Device>();
    may_travel::<cuda_handles::Stream>();
    may_travel::<cuda_handles::Event>();
    may_travel::<cuda_handles::Library>();
    may_travel::<cuda_handles::Kernel>();
    may_travel::<cuda_handles::Buffer<f32>>();
}

/// A context of other code, current nowhere.
fn others_context() -> CUcontext {
    let (mut context, mut popped) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the out pointers are valid; what creating made current is popped.
    unsafe {
        raw::ok(raw::driver().cuCtxCreate(&raw mut context, ptr::null_mut(), 0, 0, device().as_raw()));
        raw::ok(raw::driver().cuCtxPopCurrent(&raw mut popped));
    }
    context
}

/// The driver gives addresses again: the successor of an adopted context has nothing of it.
#[test]
fn nothing_is_left_of_an_adopted_context_that_was_let_go_of() {
    let _setup = setup();
    for _ in 0..3 {
        no_leaks(|| {
            let theirs = others_context();
            {
                // SAFETY: the context lives until all is dropped and drained.
                let adopted = unsafe { Context::from_raw(theirs) }.unwrap();
                let (home, other) = (adopted.stream().unwrap(), adopted.stream().unwrap());
                let buffer = home.zeros::<u32>(8).unwrap();
                other.fill(&buffer, 1).unwrap();
                other.synchronize_blocking().unwrap();
            }
            settle();
            reaper::drain();
            // SAFETY: the context is alive, and current nowhere.
            raw::ok(unsafe { raw::driver().cuCtxDestroy(theirs) });
        });
    }
}

#[test]
fn scheduling_is_read_as_it_was_set_and_other_flags_stay() {
    alone!();
    let context = setup();
    let raw_flags = || {
        let mut flags = 0;
        // SAFETY: the out pointer is valid.
        raw::ok(context.with_current(|| unsafe { raw::driver().cuCtxGetFlags(&raw mut flags) }).unwrap());
        flags
    };
    let resize = CUctx_flags::CU_CTX_LMEM_RESIZE_TO_MAX.0;
    // SAFETY: a context is current.
    raw::ok(context.with_current(|| unsafe { raw::driver().cuCtxSetFlags(resize) }).unwrap());
    assert_eq!(context.scheduling().unwrap(), Scheduling::Auto);
    for scheduling in [Scheduling::Spin, Scheduling::Yield, Scheduling::BlockingSync, Scheduling::Auto] {
        let ((), cost) = count(|| context.set_scheduling(scheduling).unwrap());
        assert_eq!((cost.calls("cuCtxGetFlags"), cost.calls("cuCtxSetFlags")), (1, 1), "{cost}");
        assert_eq!(context.scheduling().unwrap(), scheduling);
        assert_eq!(raw_flags() & resize, resize, "{scheduling:?}");
        // Waits work in each.
        let stream = context.stream().unwrap();
        assert_eq!(stream.upload(&[7_u32]).unwrap().read_blocking(&stream).unwrap(), [7]);
    }
    assert_eq!(current(), ptr::null_mut());
}

#[test]
fn a_profiler_is_started_and_stopped_beside_open_captures() {
    let context = setup();
    let stream = context.stream().unwrap();
    let capture = stream.begin_capture(CaptureMode::Global).unwrap();
    let ((), cost) = count(|| context.start_profiler().unwrap());
    assert_eq!(cost.calls("cuProfilerStart"), 1, "{cost}");
    context.stop_profiler().unwrap();
    drop(capture.end().unwrap());
}
