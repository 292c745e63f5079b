//! Pools dropped while their memory is being freed, when destroying them would crash a driver.

use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_handles::capture::CaptureMode;
use cuda_handles::{Context, MemPool, PoolOptions, Stream, reaper};
use cuda_sys::{CUresult, CUstreamCaptureMode, CUstreamCaptureStatus, Call};
use cuda_tests::{
    Gate, Kind, SOON, alone, count, fail, in_callback, live, no_leaks, raw, settle, setup, states, until,
};

/// Long enough for the reaper to do the wrong thing.
const A_WHILE: Duration = Duration::from_millis(50);

fn pool(context: &Context) -> MemPool {
    context.pool(PoolOptions::default()).unwrap()
}

/// Memory of the pool comes and goes on a stream.
fn use_on(stream: &Stream, pool: &MemPool) {
    let buffer = stream.zeros_from::<u32>(pool, 1000).unwrap();
    stream.fill(&buffer, 1).unwrap();
}

fn pools() -> i64 {
    live().of(Kind::Pool)
}

/// The pools stay although the reaper and a drain look at them, and the drain returns.
#[track_caller]
fn assert_kept(expected: i64) {
    assert!(!until(A_WHILE, || {
        reaper::drain();
        pools() != expected
    }));
    assert!(reaper::pending() >= 1);
}

#[test]
fn a_quiet_pool_is_destroyed_where_it_is_dropped() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let (unused, used) = (pool(&context), pool(&context));
        let buffers = (home.zeros_from::<u32>(&used, 8).unwrap(), other.zeros_from::<u32>(&used, 8).unwrap());
        let ((), cost) = count(|| drop(buffers));
        cost.assert_calls(&[("cuThreadExchangeStreamCaptureMode", 4), ("cuMemFreeAsync", 2)]);
        assert_eq!(cost.heap_allocations(), 0, "a drop takes notes without an allocation");
        home.synchronize_blocking().unwrap();
        other.synchronize_blocking().unwrap();
        for pool in [unused, used] {
            let ((), cost) = count(|| drop(pool));
            cost.assert_calls(&[("cuThreadExchangeStreamCaptureMode", 2), ("cuMemPoolDestroy", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
        assert_eq!(reaper::pending(), 0);
    });
}

#[test]
fn a_pool_that_was_quiet_and_is_no_more_is_not() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let (before, pool) = (pools(), pool(&context));
        use_on(&home, &pool);
        home.synchronize_blocking().unwrap();
        use_on(&home, &pool);
        let gate = Gate::close(&home);
        use_on(&home, &pool);
        drop(pool);
        assert_kept(before + 1);
        gate.open();
        assert!(until(SOON, || pools() == before), "the reaper destroys it by itself");
    });
}

#[test]
fn a_pool_with_frees_pending_on_its_home_is_destroyed_after_them() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let (before, pool) = (pools(), pool(&context));
        let gate = Gate::close(&home);
        use_on(&home, &pool);
        let ((), cost) = count(|| drop(pool));
        cost.assert_calls(&[]);
        assert_kept(before + 1);
        gate.open();
        assert!(until(SOON, || pools() == before), "the reaper destroys it by itself");
        assert!(until(SOON, || reaper::pending() == 0));
    });
}

#[test]
fn work_that_goes_on_behind_the_frees_does_not_matter() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let (before, pool) = (pools(), pool(&context));
        let frees = Gate::close(&home);
        use_on(&home, &pool);
        drop(pool);
        assert_kept(before + 1);
        let later = Gate::close(&home);
        frees.open();
        assert!(until(SOON, || pools() == before), "only its frees are waited for");
        later.open();
    });
}

#[test]
fn a_pool_of_several_streams_waits_for_each() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<_> = (0..6).map(|_| context.stream().unwrap()).collect();
        let (before, pool) = (pools(), pool(&context));
        let gates: Vec<_> = streams.iter().map(Gate::close).collect();
        streams.iter().for_each(|stream| use_on(stream, &pool));
        drop(pool);
        for gate in gates {
            assert_eq!(pools(), before + 1);
            assert!(reaper::pending() >= 1);
            gate.open();
        }
        assert!(until(SOON, || pools() == before));
    });
}

#[test]
fn a_pool_whose_memory_the_reaper_frees_is_destroyed_after_that() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let (before, pool) = (pools(), pool(&context));
        let buffer = home.zeros_from::<u32>(&pool, 1000).unwrap();
        home.synchronize_blocking().unwrap();
        let gate = Gate::close(&other);
        other.fill(&buffer, 1).unwrap();
        let ((), cost) = count(|| drop((buffer, pool)));
        cost.assert_calls(&[]);
        assert_kept(before + 1);
        gate.open();
        assert!(until(SOON, || pools() == before));
    });
}

#[test]
fn a_pool_whose_memory_the_reaper_has_freed_long_ago_is_destroyed_soon() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let (before, pool) = (pools(), pool(&context));
        let buffer = home.zeros_from::<u32>(&pool, 1000).unwrap();
        other.fill(&buffer, 1).unwrap();
        drop(buffer);
        settle();
        assert_eq!(pools(), before + 1);
        drop(pool);
        assert!(until(SOON, || pools() == before));
    });
}

#[test]
fn a_pool_that_waits_holds_up_no_other_memory() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<_> = (0..3).map(|_| context.stream().unwrap()).collect();
        let (before, held) = (pools(), pool(&context));
        let gate = Gate::close(&streams[0]);
        use_on(&streams[0], &held);
        drop(held);
        assert_kept(before + 1);
        let allocations = live().of(Kind::Allocation);
        for _ in 0..20 {
            let shared = streams[1].zeros::<u32>(100).unwrap();
            streams[2].fill(&shared, 1).unwrap();
        }
        let quick = pool(&context);
        use_on(&streams[1], &quick);
        drop(quick);
        assert!(until(SOON, || live().of(Kind::Allocation) == allocations && pools() == before + 1));
        streams[2].synchronize_blocking().unwrap();
        // In the order of the reaper's own stream, which does not wait for the pool's either.
        let shared = streams[1].zeros::<u32>(100).unwrap();
        streams[2].fill(&shared, 1).unwrap();
        drop(shared);
        assert!(until(SOON, || reaper::pending() == 1), "waiting: {}", reaper::pending());
        assert_eq!(pools(), before + 1);
        gate.open();
    });
}

#[test]
fn a_pool_is_dropped_on_another_thread() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let (before, pool) = (pools(), pool(&context));
        let gate = Gate::close(&home);
        let buffers: Vec<_> = (0..8).map(|_| home.zeros_from::<u32>(&pool, 100).unwrap()).collect();
        drop(pool);
        std::thread::scope(|scope| {
            for buffer in buffers {
                scope.spawn(move || drop(buffer));
            }
        });
        assert_kept(before + 1);
        gate.open();
        assert!(until(SOON, || pools() == before));
    });
}

#[test]
fn a_pool_is_dropped_in_a_host_function() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let (pending, quiet) = (pool(&context), pool(&context));
        use_on(&other, &quiet);
        other.synchronize_blocking().unwrap();
        let buffer = other.zeros_from::<u32>(&pending, 8).unwrap();
        use_on(&home, &pending);
        let (sender, receiver) = channel();
        in_callback(&home, move || {
            drop((buffer, pending, quiet));
            reaper::drain();
            sender.send(()).unwrap();
        });
        receiver.recv_timeout(SOON).unwrap();
    });
}

#[test]
fn a_pool_whose_home_is_capturing_is_destroyed_when_it_is_not() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let (before, pool) = (pools(), pool(&context));
        let late = home.zeros_from::<u32>(&pool, 8).unwrap();
        let gate = Gate::close(&home);
        use_on(&home, &pool);
        let capture = home.begin_capture(CaptureMode::Global).unwrap();
        // The one is freed already, the other cannot be before the end.
        drop((late, pool));
        assert_kept(before + 1);
        gate.open();
        assert_kept(before + 1);
        drop(capture.end().unwrap());
        assert!(until(SOON, || pools() == before));
    });
}

#[test]
fn a_capture_of_somebody_else_is_left_alone() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let lent = home.lend();
        let (before, pool) = (pools(), pool(&context));
        use_on(&home, &pool);
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let mut graph = core::ptr::null_mut();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        // SAFETY: the stream lives.
        raw::ok(unsafe { raw::driver().cuStreamBeginCapture(lent, mode) });
        drop(pool);
        assert_kept(before + 1);
        // SAFETY: the stream lives and the out pointers are valid.
        unsafe {
            raw::ok(raw::driver().cuStreamIsCapturing(lent, &raw mut status));
            raw::ok(raw::driver().cuStreamEndCapture(lent, &raw mut graph));
        }
        assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
        assert_eq!(raw::nodes(graph).len(), 0);
        // SAFETY: the graph is ours.
        raw::ok(unsafe { raw::driver().cuGraphDestroy(graph) });
        assert!(until(SOON, || pools() == before));
    });
}

#[test]
fn a_pool_does_not_keep_its_streams() {
    let context = setup();
    no_leaks(|| {
        let pool = pool(&context);
        let streams = live().of(Kind::Stream);
        for _ in 0..20 {
            use_on(&context.stream().unwrap(), &pool);
        }
        assert!(until(SOON, || live().of(Kind::Stream) == streams), "the reaper lets go of them by itself");
        let ((), cost) = count(|| drop(pool));
        cost.assert_calls(&[("cuThreadExchangeStreamCaptureMode", 2), ("cuMemPoolDestroy", 1)]);
    });
}

#[test]
fn a_stream_that_is_gone_before_its_frees_are_done_still_counts() {
    let context = setup();
    no_leaks(|| {
        for shared in [false, true] {
            let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
            let (before, pool) = (pools(), pool(&context));
            if shared {
                // Then it is part of the fence as well, which it leaves before its work is done.
                home.fill(&other.zeros::<u32>(8).unwrap(), 1).unwrap();
            }
            let gate = Gate::close(&home);
            use_on(&home, &pool);
            drop(home);
            let _ = until(A_WHILE, || reaper::pending() == 0);
            drop(pool);
            assert_kept(before + 1);
            gate.open();
            assert!(until(SOON, || pools() == before));
        }
    });
}

#[test]
fn an_adopted_stream_is_gone_before_the_pool() {
    let context = setup();
    no_leaks(|| {
        let mut theirs = core::ptr::null_mut();
        let create = || {
            // SAFETY: the out pointer is valid and a context current.
            raw::ok(unsafe { raw::driver().cuStreamCreate(&raw mut theirs, 1) });
        };
        context.with_current(create).unwrap();
        // SAFETY: a stream of this context that lives longer than its handles.
        let adopted = unsafe { Stream::from_raw(&context, theirs) }.unwrap();
        let (before, pool) = (pools(), pool(&context));
        let gate = Gate::close(&adopted);
        use_on(&adopted, &pool);
        drop(adopted);
        // SAFETY: the stream is ours, and the last handle is gone.
        raw::ok(unsafe { raw::driver().cuStreamDestroy(theirs) });
        drop(pool);
        assert_kept(before + 1);
        gate.open();
        assert!(until(SOON, || pools() == before));
    });
}

#[test]
fn a_pool_is_dropped_after_the_loss_of_its_context() {
    alone!();
    let context = setup();
    let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
    let (first, second) = (pool(&context), pool(&context));
    let shared = home.zeros_from::<u32>(&first, 8).unwrap();
    other.fill(&shared, 1).unwrap();
    use_on(&home, &first);
    // This one waits already when the context is lost.
    let gate = Gate::close(&home);
    use_on(&home, &second);
    drop(second);
    assert_kept(pools());
    gate.open();
    states::lose(&context);
    settle();
    let ((), cost) = count(|| {
        drop((shared, first, home, other));
        settle();
    });
    // A drain asks where it is.
    assert_eq!(cost.total_anywhere(), cost.calls("cuCtxGetCurrent"), "{cost}");
}

#[test]
fn pools_that_wait_are_given_up_when_the_context_is_lost() {
    alone!();
    let context = setup();
    let home = context.stream().unwrap();
    let pool = pool(&context);
    let gate = Gate::close(&home);
    use_on(&home, &pool);
    drop(pool);
    assert_kept(pools());
    let injection = fail(Call::cuEventCreate, 1, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(context.event().is_err() && injection.hit() && context.lost().is_some());
    drop(injection);
    let before = pools();
    settle();
    assert_eq!(pools(), before, "no call");
    gate.open();
}

#[cfg(unix)]
#[test]
fn a_forked_child_leaves_pools_alone() {
    alone!();
    let context = setup();
    let home = context.stream().unwrap();
    let (kept, pool) = (pool(&context), pool(&context));
    let buffer = home.zeros_from::<u32>(&kept, 8).unwrap();
    use_on(&home, &pool);
    let things = (pool.clone(), buffer.clone(), kept.clone());
    drop((pool, buffer, kept));
    let in_child = || {
        let ((), cost) = count(|| drop(things));
        u8::from(cost.total_anywhere() != 0)
    };
    // SAFETY: what other threads may have locked is not used there.
    assert_eq!(unsafe { cuda_tests::in_forked_child(in_child) }, 0, "drops called the driver");
    home.synchronize_blocking().unwrap();
}

#[test]
fn memory_whose_free_failed_is_no_reason_to_keep_its_pool() {
    let context = setup();
    let home = context.stream().unwrap();
    let (before, pool) = (pools(), pool(&context));
    let buffer = home.zeros_from::<u32>(&pool, 8).unwrap();
    let injection = fail(Call::cuMemFreeAsync, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
    drop(buffer);
    assert!(injection.hit());
    drop(injection);
    drop(pool);
    assert!(until(SOON, || pools() == before), "never freed, so nothing is pending");
    settle();
}

#[test]
fn a_refusal_on_the_way_is_tried_again() {
    let context = setup();
    let refusals = [Call::cuEventCreate, Call::cuEventRecord, Call::cuEventQuery];
    no_leaks(|| {
        for call in refusals {
            let home = context.stream().unwrap();
            let (before, pool) = (pools(), pool(&context));
            let gate = Gate::close(&home);
            use_on(&home, &pool);
            let injection = fail(call, 1, CUresult::CUDA_ERROR_NOT_PERMITTED);
            drop(pool);
            assert!(until(SOON, || injection.hit()), "{}", call.name());
            drop(injection);
            assert_kept(before + 1);
            gate.open();
            assert!(until(SOON, || pools() == before), "{}", call.name());
        }
    });
}

#[test]
fn a_thousand_pools_are_dropped_right_behind_their_buffers() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        for round in 0..1000 {
            let pool = pool(&context);
            let buffer = home.zeros_from::<u32>(&pool, 1 << 18).unwrap();
            home.fill(&buffer, 1).unwrap();
            if round % 4 == 3 {
                other.fill(&buffer, 2).unwrap();
            }
            use_on(&other, &pool);
            match round % 3 {
                0 => drop((buffer, pool)),
                1 => drop((pool, buffer)),
                _ => std::thread::scope(|scope| drop(scope.spawn(move || drop((pool, buffer))))),
            }
            if round % 16 == 0 {
                reaper::drain();
            }
        }
    });
}

#[test]
fn threads_share_pools_and_drop_them() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<_> = (0..3).map(|_| context.stream().unwrap()).collect();
        for _ in 0..20 {
            let pool = pool(&context);
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (pool, streams, context) = (pool.clone(), &streams, &*context);
                    scope.spawn(move || {
                        for round in 0..10 {
                            let own = context.stream().unwrap();
                            let home = if round % 3 == 0 { &own } else { &streams[(thread + round) % 3] };
                            let buffer = home.zeros_from::<u32>(&pool, 64).unwrap();
                            let user = &streams[(thread * round) % 3];
                            assert_eq!(buffer.read_blocking(user).unwrap(), [0; 64]);
                            use_on(home, &pool);
                        }
                    });
                }
                drop(pool);
            });
        }
    });
}

/// A query of a stream or an event says nothing about pools: the driver crashes without a wait for
/// what was reached.
#[test]
fn a_pool_of_a_closed_stream_is_destroyed_after_a_wait_for_what_was_reached() {
    let context = setup();
    no_leaks(|| {
        for adopts in [false, true] {
            let theirs = states::Foreign::new(&context);
            let home = match adopts {
                // SAFETY: the stream lives longer than the handle.
                true => unsafe { Stream::from_raw(&context, theirs.as_raw()) }.unwrap(),
                false => context.stream().unwrap(),
            };
            let (before, pool) = (pools(), pool(&context));
            let gate = Gate::close(&home);
            use_on(&home, &pool);
            let ((), steps) = cuda_tests::trace(|| {
                // The stream first: else the reaper may have put an event of its own behind the
                // frees already, and waits for that.
                drop(home);
                drop(pool);
                assert_kept(before + 1);
                gate.open();
                assert!(until(SOON, || pools() == before));
                settle();
            });
            let at = |call| steps.iter().rposition(|step| step.call == call && step.result.is_success());
            let wait = if adopts { Call::cuEventSynchronize } else { Call::cuStreamSynchronize };
            let waited = at(wait).expect("there is a wait");
            assert!(Some(waited) < at(Call::cuMemPoolDestroy), "{steps:?}");
        }
    });
}
