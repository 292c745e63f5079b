//! What updates bring is kept as long as launches may use it, and goes then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_graph::{ContextExt, Error, Graph, GraphExec, HostCallbackNode, KernelNode};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, SharedHostBuffer, Stream, reaper};
use cuda_launch::{Launch, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{
    Gate, Kind, SOON, alone, fail, in_callback, is_soft, kernel, live, no_leaks, settle, setup, until,
    used_stream,
};

use crate::capture::{N, add_to};
use crate::common::gone::{allocations, flag};

/// A graph that adds to a number, with an executable of it.
struct Bench {
    stream: Stream,
    add: add_to,
    graph: Graph,
    node: KernelNode,
    exec: GraphExec,
}

impl Bench {
    fn new(context: &Context) -> Self {
        let stream = used_stream(context);
        let add = add_to::load(context).unwrap();
        let graph = context.graph().unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &x)).unwrap();
        stream.synchronize_blocking().unwrap();
        let exec = graph.instantiate().unwrap();
        Self { stream, add, graph, node, exec }
    }

    /// Lets later launches add to this number.
    fn set(&mut self, amount: u32, x: &Buffer<u32>) {
        self.exec.node(&self.node).set(&self.add, per(1, 1), (amount, x)).unwrap();
    }

    fn launch(&mut self) {
        self.exec.launch(&self.stream).unwrap();
    }

    /// Lets this and later launches add to a new number.
    fn launch_with_new(&mut self, amount: u32) -> Buffer<u32> {
        let x = self.zeros();
        self.set(amount, &x);
        self.launch();
        x
    }

    fn zeros(&self) -> Buffer<u32> {
        self.stream.zeros::<u32>(N).unwrap()
    }
}

/// Whether there are as many allocations soon.
fn soon(count: i64) -> bool {
    until(SOON, || {
        settle();
        allocations() == count
    })
}

/// Whether there are more allocations for a while, whatever asks for memory meanwhile.
fn stays_above(count: i64) -> bool {
    !until(Duration::from_millis(100), || {
        reaper::drain();
        allocations() <= count
    })
}

#[test]
fn it_outlives_every_handle_of_it() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let result = bench.stream.zeros::<u32>(N).unwrap();
        let before = allocations();
        let offset_copy = kernel(&context, "offset_copy");
        let input = bench.stream.upload(&[30_u32; N]).unwrap();
        let arguments = params![&input, &result, 4_u32, N as u32];
        // SAFETY: the arguments are the kernel's, and both buffers have N elements.
        unsafe { bench.exec.node(&bench.node).set_untyped(&offset_copy, per(N, 8), arguments) }.unwrap();
        drop((input, offset_copy));
        for _ in 0..3 {
            settle();
            assert_eq!(allocations(), before + 1);
            // Memory that was freed would be given out here.
            let others: Vec<_> = (0..8).map(|_| bench.stream.upload(&[u32::MAX; N]).unwrap()).collect();
            bench.stream.fill(&result, 0).unwrap();
            bench.launch();
            assert_eq!(result.read_blocking(&bench.stream).unwrap(), [34; N]);
            drop(others);
        }
        // It goes with the executable, and not with the graph.
        bench.node.clone().remove().unwrap();
        let Bench { stream, graph, node, mut exec, add } = bench;
        drop((graph, node, add));
        exec.launch(&stream).unwrap();
        assert_eq!(result.read_blocking(&stream).unwrap(), [34; N]);
        drop(exec);
        assert!(soon(before - 1), "{}", allocations() - before);
    });
}

#[test]
fn a_buffer_dropped_after_its_launch_is_freed_when_that_has_ended_and_not_before() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let last = bench.launch_with_new(1);
        bench.stream.synchronize_blocking().unwrap();
        let before = allocations();
        let flight = Flight::of(&mut bench, &context);
        bench.set(2, &last);
        bench.exec.release();
        assert!(stays_above(before), "a launch that uses it is in flight");
        // The next launch does not use it, and does not hold it up either.
        bench.launch();
        bench.exec.release();
        assert!(stays_above(before), "as before");
        flight.end();
        assert!(soon(before), "{}", allocations() - before);
        assert_eq!(last.read_blocking(&bench.stream).unwrap()[0], 3);
    });
}

/// A launch in flight that uses a buffer of which no handle is left: behind a gate in software, in
/// a kernel that spins on a GPU.
struct Flight {
    gate: Gate,
    flag: SharedHostBuffer<u32>,
    other: Stream,
}

impl Flight {
    fn of(bench: &mut Bench, context: &Context) -> Self {
        let (flag, other) = (context.pinned_zeros::<u32>(1).unwrap().share(), context.stream().unwrap());
        let buffer = bench.zeros();
        bench.stream.synchronize_blocking().unwrap();
        let gate = Gate::close(&bench.stream);
        if is_soft() {
            bench.set(5, &buffer);
        } else {
            let spin = kernel(context, "spin");
            let arguments = params![&flag, &buffer, u64::MAX];
            // SAFETY: the arguments are the kernel's, and the flag is raised in the end.
            unsafe { bench.exec.node(&bench.node).set_untyped(&spin, per(1, 1), arguments) }.unwrap();
            gate.open();
        }
        bench.launch();
        Self { gate, flag, other }
    }

    fn end(self) {
        self.gate.open();
        self.other.fill(&self.flag, 1).unwrap();
    }
}

#[test]
fn before_the_first_launch_what_is_replaced_goes_at_once() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let before = allocations();
        for amount in 0..5 {
            let buffer = bench.zeros();
            bench.set(amount, &buffer);
            drop(buffer);
            bench.stream.synchronize_blocking().unwrap();
            assert_eq!(allocations(), before + 1, "of update {amount}");
        }
        let last = bench.zeros();
        bench.set(9, &last);
        assert_eq!(allocations(), before + 1);
        bench.launch();
        assert_eq!(last.read_blocking(&bench.stream).unwrap()[0], 9);
        // Uploading counts as a launch: it may still run.
        let mut other = Bench::new(&context);
        other.exec.upload(&other.stream).unwrap();
        let buffer = other.zeros();
        other.set(1, &buffer);
        other.set(1, &last);
        other.launch();
        assert_eq!(buffer.read_blocking(&other.stream).unwrap()[0], 0);
    });
}

#[test]
fn pinned_memory_is_unique_again_once_its_runs_are_over() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let (x, pinned) = (bench.zeros(), context.pinned_zeros::<u32>(N).unwrap().share());
        let other = context.pinned_zeros::<u32>(N).unwrap().share();
        let copy = bench.node.then().copy(&other, &x).unwrap();
        bench.exec = bench.graph.instantiate().unwrap();
        bench.launch();
        bench.exec.node(&copy).set(&pinned, &x).unwrap();
        let gate = Gate::close(&bench.stream);
        bench.launch();
        let pinned = pinned.try_unique().expect_err("the executable has it");
        bench.exec.node(&copy).set(&other, &x).unwrap();
        let pinned = pinned.try_unique().expect_err("a launch in flight has it");
        gate.open();
        bench.stream.synchronize_blocking().unwrap();
        // Who asks need not launch, release or drain before.
        let pinned = pinned.try_unique().expect("its runs are over");
        assert_eq!(pinned.len(), N);
        // The base stays with the executable.
        other.try_unique().expect_err("the executable was made with it");
    });
}

#[test]
fn a_drain_a_release_and_64_launches_let_it_go() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let last = bench.launch_with_new(1);
        let before = allocations();
        let replaced = |bench: &mut Bench| {
            drop(bench.launch_with_new(1));
            bench.set(1, &last);
            bench.stream.synchronize_blocking().unwrap();
            assert_eq!(allocations(), before + 1);
        };
        replaced(&mut bench);
        let drained = until(SOON, || {
            reaper::drain();
            allocations() == before
        });
        assert!(drained);
        replaced(&mut bench);
        bench.exec.release();
        assert!(until(SOON, || allocations() == before));
        replaced(&mut bench);
        for launch in 1..=64 {
            // The launches of before count, so it may go a little earlier than after 64.
            assert!(launch > 32 || allocations() == before + 1, "before launch {launch}");
            bench.launch();
        }
        assert!(until(SOON, || allocations() == before));
        // What nothing else holds and is large does not wait for 64 launches.
        let large = bench.stream.zeros::<u32>(1 << 18).unwrap();
        bench.set(1, &large);
        bench.launch();
        drop(large);
        bench.set(1, &last);
        bench.launch();
        assert!(until(SOON, || allocations() == before));
    });
}

#[test]
fn alternating_streams_have_one_end() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let streams: Vec<Stream> = (0..6).map(|_| context.stream().unwrap()).collect();
        let last = bench.launch_with_new(1);
        bench.stream.synchronize_blocking().unwrap();
        let before = allocations();
        let gate = Gate::close(&streams[0]);
        let buffer = bench.zeros();
        bench.set(1, &buffer);
        bench.exec.launch(&streams[0]).unwrap();
        drop(buffer);
        bench.set(1, &last);
        for stream in streams.iter().cycle().skip(1).take(20) {
            bench.exec.launch(stream).unwrap();
            bench.exec.release();
        }
        assert!(stays_above(before), "the first launch is in flight");
        gate.open();
        assert!(soon(before), "{}", allocations() - before);
        assert_eq!(last.read_blocking(&streams[2]).unwrap()[0], 21);
    });
}

#[test]
fn the_stream_of_the_last_launch_may_be_gone() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let last = bench.launch_with_new(1);
        bench.stream.synchronize_blocking().unwrap();
        let before = allocations();
        let passing = context.stream().unwrap();
        let gate = Gate::close(&passing);
        let buffer = bench.zeros();
        bench.set(1, &buffer);
        bench.exec.launch(&passing).unwrap();
        drop((buffer, passing));
        bench.set(1, &last);
        bench.exec.release();
        assert!(stays_above(before), "the launch is in flight");
        gate.open();
        assert!(soon(before), "{}", allocations() - before);
        // The stream goes once the executable ran on another one, and what was retired waits for
        // that.
        bench.launch();
        let streams = live().of(Kind::Stream);
        let passing = context.stream().unwrap();
        bench.exec.launch(&passing).unwrap();
        bench.set(2, &last);
        drop(passing);
        bench.launch();
        bench.set(3, &last);
        bench.launch();
        assert!(until(SOON, || live().of(Kind::Stream) == streams));
    });
}

#[test]
fn a_capture_on_the_stream_of_the_last_launch_goes_on_and_holds_it_back() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let last = bench.launch_with_new(1);
        let before = allocations();
        drop(bench.launch_with_new(1));
        bench.set(1, &last);
        bench.stream.synchronize_blocking().unwrap();
        let capture = bench.stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        bench.exec.release();
        assert!(stays_above(before), "the end of the launch cannot be recorded now");
        bench.stream.fill(&last, 1).unwrap();
        drop(capture.end().unwrap());
        assert!(soon(before), "{}", allocations() - before);
    });
}

#[test]
fn dropped_executables_take_what_waits_with_them_at_the_end_of_their_runs() {
    let context = setup();
    no_leaks(|| {
        let before = allocations();
        for is_released in [false, true] {
            let mut bench = Bench::new(&context);
            let last = bench.launch_with_new(1);
            let gate = Gate::close(&bench.stream);
            drop(bench.launch_with_new(1));
            bench.set(2, &last);
            if is_released {
                bench.exec.release();
            }
            let Bench { stream, graph, node, exec, add } = bench;
            drop((exec, graph, node, add));
            assert!(stays_above(before + 2), "its launch is in flight");
            gate.open();
            assert!(soon(before + 1), "{}", allocations() - before);
            stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn it_goes_when_an_executable_is_dropped_in_a_host_function() {
    let context = setup();
    no_leaks(|| {
        let before = allocations();
        let mut bench = Bench::new(&context);
        let stream = bench.stream.clone();
        for amount in 0..3 {
            drop(bench.launch_with_new(amount));
        }
        in_callback(&stream, move || drop(bench));
        stream.synchronize_blocking().unwrap();
        assert!(soon(before), "{}", allocations() - before);
    });
}

#[test]
fn threads_may_share_updates_and_launches() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let total = bench.zeros();
        bench.stream.synchronize_blocking().unwrap();
        let bench = std::sync::Mutex::new(bench);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let own = context.stream().unwrap();
                    for _ in 0..50 {
                        let passing = own.zeros::<u32>(N).unwrap();
                        let mut bench = bench.lock().unwrap();
                        bench.set(7, &passing);
                        bench.exec.launch(&own).unwrap();
                        bench.set(1, &total);
                        bench.launch();
                        drop(bench);
                        assert_eq!(passing.read_blocking(&own).unwrap()[0], 7);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..50 {
                    reaper::drain();
                    std::thread::yield_now();
                }
            });
        });
        let bench = bench.into_inner().unwrap();
        assert_eq!(total.read_blocking(&bench.stream).unwrap()[0], 100);
    });
}

/// Uses its graph when it is dropped, as a destructor of other code may.
struct Using(Graph, Arc<AtomicBool>);

impl Drop for Using {
    fn drop(&mut self) {
        self.1.store(self.0.nodes().is_ok(), Ordering::SeqCst);
    }
}

#[test]
fn nothing_is_dropped_under_the_graphs_lock() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let node: HostCallbackNode = graph.root().host(|| ()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let using = || {
            let dropped = Arc::new(AtomicBool::new(false));
            let value = Using(graph.clone(), Arc::clone(&dropped));
            (move || assert!(value.0.nodes().is_ok()), move || dropped.load(Ordering::SeqCst))
        };
        let late = graph.root().host(|| ()).unwrap();
        // Refused by us, by the driver, and replaced before any launch.
        ends_soon_here(|| {
            let (call, is_dropped) = using();
            exec.node(&late).set(call).unwrap_err();
            assert!(is_dropped());
            let (call, is_dropped) = using();
            let injected = fail(Call::cuGraphExecNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
            exec.node(&node).set(call).unwrap_err();
            drop(injected);
            assert!(is_dropped());
            let (call, is_dropped) = using();
            exec.node(&node).set(call).unwrap();
            exec.node(&node).set(|| ()).unwrap();
            assert!(is_dropped());
        });
    });
}

/// Runs work that deadlocks where it is wrong.
#[track_caller]
fn ends_soon_here(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let (done, end) = channel();
        scope.spawn(move || {
            work();
            done.send(()).unwrap();
        });
        if end.recv_timeout(SOON).is_err() {
            eprintln!("it does not end");
            std::process::abort();
        }
    });
}

#[test]
fn a_failed_update_leaves_counts_and_owners_as_before() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let (x, y) = (bench.zeros(), bench.zeros());
        bench.set(3, &x);
        bench.launch();
        let before = allocations();
        for code in [CUresult::CUDA_ERROR_INVALID_VALUE, CUresult::CUDA_ERROR_OUT_OF_MEMORY] {
            let passing = bench.zeros();
            let injected = fail(Call::cuGraphExecNodeSetParams, 1, code);
            let Bench { exec, node, add, .. } = &mut bench;
            exec.node(node).set(add, per(1, 1), (100, &passing)).unwrap_err();
            drop(injected);
            drop(passing);
            assert_eq!(allocations(), before, "{code}");
            bench.launch();
        }
        bench.set(10, &y);
        drop(x.read_blocking(&bench.stream).unwrap());
        assert_eq!(x.read_blocking(&bench.stream).unwrap()[0], 9);
        drop(x);
        bench.launch();
        bench.exec.release();
        assert!(soon(before - 1));
        assert_eq!(y.read_blocking(&bench.stream).unwrap()[0], 10);
    });
}

#[test]
fn addresses_that_recur_with_another_owner_are_kept_for_that() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let last = bench.launch_with_new(1);
        bench.stream.synchronize_blocking().unwrap();
        let memory = bench.zeros();
        let address = memory.address();
        bench.stream.synchronize_blocking().unwrap();
        let gate = Gate::close(&bench.stream);
        let mut gone = Vec::new();
        for _ in 0..5 {
            let (owner, is_gone) = flag();
            // SAFETY: `memory` outlives the executable, which alone uses it.
            let buffer = unsafe { Buffer::<u32>::from_foreign(&context, address, N, owner) }.unwrap();
            bench.set(10, &buffer);
            bench.launch();
            gone.push(is_gone);
        }
        bench.exec.release();
        assert!(!until(Duration::from_millis(50), || gone.iter().any(|is_gone| is_gone())));
        gate.open();
        let current = gone.pop().unwrap();
        assert!(gone.iter().all(crate::common::gone::soon), "one after the other has had the address");
        assert!(!current(), "the executable has it");
        bench.set(1, &last);
        bench.launch();
        bench.exec.release();
        assert!(crate::common::gone::soon(&current));
        assert_eq!(memory.read_blocking(&bench.stream).unwrap()[0], 50);
    });
}

#[test]
fn an_update_with_the_same_owner_keeps_it() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let before = allocations();
        let buffer = bench.zeros();
        for _ in 0..200 {
            bench.set(1, &buffer);
            bench.launch();
        }
        drop(buffer);
        bench.exec.release();
        settle();
        assert_eq!(allocations(), before + 1);
        bench.launch();
        bench.stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn each_executable_of_a_graph_keeps_its_own() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let mut other = bench.graph.instantiate().unwrap();
        let before = allocations();
        let (x, y) = (bench.zeros(), bench.zeros());
        bench.set(1, &x);
        other.node(&bench.node).set(&bench.add, per(1, 1), (2, &y)).unwrap();
        drop(y);
        bench.launch();
        other.launch(&bench.stream).unwrap();
        assert_eq!(x.read_blocking(&bench.stream).unwrap()[0], 1);
        drop(x);
        assert_eq!(allocations(), before + 2);
        drop(other);
        assert!(soon(before + 1));
        bench.launch();
        bench.stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn kernels_and_events_that_updates_brought_are_kept() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let record = bench.graph.root().record(&context.event().unwrap()).unwrap();
        bench.exec = bench.graph.instantiate().unwrap();
        let events = live().of(Kind::Event);
        let libraries = live().of(Kind::Library);
        let x = bench.zeros();
        let increment = kernel(&context, "increment");
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe {
            bench.exec.node(&bench.node).set_untyped(&increment, per(N, 8), params![&x, N as u32]).unwrap();
        }
        bench.exec.node(&record).set_event(&context.event().unwrap()).unwrap();
        drop(increment);
        settle();
        assert_eq!((live().of(Kind::Event), live().of(Kind::Library)), (events + 1, libraries + 1));
        for _ in 0..3 {
            bench.launch();
        }
        assert_eq!(x.read_blocking(&bench.stream).unwrap(), [3; N]);
        let last = context.event().unwrap();
        bench.set(1, &x);
        bench.exec.node(&record).set_event(&last).unwrap();
        bench.launch();
        bench.exec.release();
        let found = || (live().of(Kind::Event) - events, live().of(Kind::Library) - libraries);
        let is_gone = until(SOON, || {
            settle();
            found() == (1, 0)
        });
        assert!(is_gone, "{:?}", found());
    });
}

#[test]
fn an_allocation_that_fails_gets_what_waits() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let last = bench.launch_with_new(1);
        let before = allocations();
        drop(bench.launch_with_new(1));
        bench.set(1, &last);
        bench.stream.synchronize_blocking().unwrap();
        assert_eq!(allocations(), before + 1);
        let injected = fail(Call::cuMemAllocAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let more = bench.stream.alloc::<u32>(N).unwrap();
        assert!(injected.hit());
        drop(injected);
        assert_eq!(allocations(), before + 1, "it was freed before the second attempt");
        drop(more);
    });
}

#[test]
fn a_panic_in_a_destructor_of_what_was_replaced_does_no_harm() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().host(|| ()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let (owner, is_gone) = flag();
        for _ in 0..3 {
            let panics = Panics;
            exec.node(&node)
                .set(move || {
                    let _ = &panics;
                })
                .unwrap();
            exec.launch(&stream).unwrap();
        }
        exec.node(&node)
            .set(move || {
                let _ = &owner;
            })
            .unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&node).set(|| ()).unwrap();
        exec.launch(&stream).unwrap();
        exec.release();
        assert!(crate::common::gone::soon(&is_gone));
    });
}

#[cfg(unix)]
#[test]
fn a_forked_child_is_refused_and_leaves_everything_alone() {
    alone!();
    let context = setup();
    let mut bench = Bench::new(&context);
    let x = bench.zeros();
    for amount in 0..3 {
        drop(bench.launch_with_new(amount));
    }
    let Bench { stream, add, graph, node, mut exec } = bench;
    let in_child = || {
        let set = exec.node(&node).set(&add, per(1, 1), (1, &x)).is_err();
        let enabled = exec.node(&node).set_enabled(false).is_err();
        exec.release();
        let launched = exec.launch(&stream).is_err();
        reaper::drain();
        drop(exec);
        u8::from(!set) + 2 * u8::from(!enabled) + 4 * u8::from(!launched)
    };
    // SAFETY: another thread may have held a lock: that nobody waits for it is what is tried.
    let code = unsafe { cuda_tests::in_forked_child(in_child) };
    assert_eq!(code, 0, "not refused: 1: an update, 2: disabling, 4: a launch");
    drop(graph);
}

#[test]
fn a_lost_context_refuses_updates_and_lets_go_without_a_call() {
    alone!();
    let context = setup();
    let mut bench = Bench::new(&context);
    let host = bench.graph.root().host(|| ()).unwrap();
    bench.exec = bench.graph.instantiate().unwrap();
    let (replaced, is_replaced_gone) = flag();
    let (kept, is_kept_gone) = flag();
    for owner in [replaced, kept] {
        let call = move || {
            let _ = &owner;
        };
        bench.exec.node(&host).set(call).unwrap();
        bench.launch();
    }
    bench.stream.synchronize_blocking().unwrap();
    settle();
    bench.exec.node(&bench.node).set_enabled(false).unwrap();
    // SAFETY: not at all: the kernel writes where nothing is, which ends the context and this
    // process's use of it.
    unsafe {
        let arguments = params![0x40_u64, 7_u32];
        kernel(&context, "poke").launch(&bench.stream, per(1, 1), arguments).unwrap();
    }
    bench.stream.synchronize_blocking().unwrap_err();
    for refused in [
        bench.exec.node(&host).set(|| ()).unwrap_err(),
        bench.exec.node(&bench.node).set_enabled(true).unwrap_err(),
    ] {
        let is_lost = matches!(refused, Error::Handles(cuda_handles::Error::ContextLost(_)));
        assert!(is_lost, "{refused:?}");
    }
    bench.exec.release();
    drop((bench, host));
    let is_gone = until(SOON, || {
        reaper::drain();
        is_replaced_gone() && is_kept_gone()
    });
    assert!(is_gone);
}
