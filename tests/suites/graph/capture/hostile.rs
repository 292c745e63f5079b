//! Programs that misuse captures by safe calls: nothing is mixed up, left capturing, or waited for
//! without an end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cuda_graph::capture::ForeignNode;
use cuda_graph::{CaptureError, ConditionError, ContextExt, Error, NodeError, NodeKind, Result, StreamExt};
use cuda_handles::capture::{CaptureMode, CaptureOptions, Scratch};
use cuda_handles::{Batch, Owner, Stream};
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{SOON, alone, fail, needs, no_leaks, other_device, raw, settle, setup, until};
#[cfg(unix)]
use {cuda_tests::in_forked_child, std::sync::atomic::AtomicBool};

use super::{Bench, N, is_free, works_again};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

#[test]
fn a_condition_that_a_captured_kernel_sets_is_not_given_again() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let first = capture.condition().unwrap();
        bench.set(&capture, &first, 1).unwrap();
        let raw = first.handle().as_raw();
        drop(first);
        let second = capture.condition().unwrap();
        assert_ne!(second.handle().as_raw(), raw, "the kernel would set another condition");
        drop(capture);
        bench.works_again();
    });
}

#[test]
fn a_handle_of_a_condition_that_is_gone_is_refused() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let handle = capture.condition().unwrap().handle();
        let second = capture.condition().unwrap();
        assert_eq!(second.handle().as_raw(), handle.as_raw());
        let refused = capture.launch(&bench.set_to, per(1, 1), (1, handle)).unwrap_err();
        assert!(matches!(refused, Error::Condition(ConditionError::ForeignCondition { .. })), "{refused}");
        drop(capture);
        bench.works_again();
    });
}

#[cfg(unix)]
#[test]
fn a_forked_child_waits_for_no_lock_of_a_capture_that_another_thread_held() {
    alone!();
    let context = setup();
    needs!(Branches);
    let bench = Bench::new(&context);
    let capture = bench.stream.graph_builder().begin_on_any_thread().unwrap();
    let [fork] = capture.split().unwrap();
    let (done, mut builder) = (AtomicBool::new(false), Some(capture));
    let mut children = || {
        for _ in 0..300 {
            let in_child = || {
                let capture = builder.take().unwrap();
                let calls = [capture.split::<1>().map(drop), capture.end().map(drop)];
                u8::from(calls.iter().any(Result::is_ok))
            };
            // SAFETY: nothing of this waits.
            assert_eq!(unsafe { in_forked_child(in_child) }, 0);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fork.condition().unwrap();
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut children));
        done.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

#[test]
fn a_stream_of_another_context_allocates_in_its_own() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let there = other_device().context().unwrap();
    let allocate = || {
        let bench = Bench::new(&context);
        let other = there.stream().unwrap();
        let event = context.event().unwrap();
        let capture = bench.begin();
        capture.fill(&bench.others, 1).unwrap();
        capture.stream().record(&event).unwrap();
        other.wait(&event).unwrap();
        for stream in [&other, capture.stream(), &other] {
            let zeros = stream.zeros::<u32>(4).unwrap();
            assert!(zeros.allocation().context().is_same(stream.context()));
            let unfilled = stream.alloc::<u32>(1000).unwrap();
            assert!(unfilled.allocation().context().is_same(stream.context()));
        }
        capture.stream().wait_for(&other).unwrap();
        let graph = capture.end().unwrap().into_graph();
        assert_eq!(graph.len().unwrap(), 4);
        drop(graph);
        bench.works_again();
        works_again(&other);
    };
    // The reaper keeps a stream of the other context from here on.
    allocate();
    no_leaks(allocate);
}

/// A number whose next comparison sets a node.
struct Reentrant {
    number: u32,
    next: Arc<Mutex<Option<Arc<ForeignNode<Self>>>>>,
}

impl Clone for Reentrant {
    fn clone(&self) -> Self {
        Self { number: self.number, next: Arc::clone(&self.next) }
    }
}

impl PartialEq for Reentrant {
    fn eq(&self, other: &Self) -> bool {
        let next = self.next.lock().unwrap().take();
        if let Some(node) = next {
            node.set(Self { number: 100, next: Arc::default() }).unwrap();
        }
        self.number == other.number
    }
}

#[test]
fn values_whose_comparison_sets_their_node_wait_for_nothing() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let (address, memory) = (bench.others.address(), Owner::from(&bench.others));
        let work = move |stream, values: &Reentrant| {
            // SAFETY: the memory is returned as an owner.
            raw::ok(unsafe { raw::driver().cuMemsetD32Async(address, values.number, N, stream) });
            Ok(vec![memory.clone()])
        };
        let next = Arc::new(Mutex::new(None));
        let values = |number| Reentrant { number, next: Arc::clone(&next) };
        // SAFETY: the work uses this memory alone, on the stream.
        let node = Arc::new(unsafe { capture.embed_foreign(values(1), work) }.unwrap());
        let graph = capture.end().unwrap().into_graph();
        *next.lock().unwrap() = Some(Arc::clone(&node));
        node.set(values(2)).unwrap();
        assert!(next.lock().unwrap().is_none(), "compared");
        graph.instantiate().unwrap().launch(&bench.stream).unwrap();
        assert_eq!(bench.others.read_blocking(&bench.stream).unwrap(), [2; N]);
    });
}

#[test]
fn a_failing_capture_removes_no_node_that_was_there_before() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let node = graph.root().fill(&bench.numbers, 1).unwrap();
        let failed = graph.root().capture(&bench.stream, LOCAL, |capture| -> Result<()> {
            capture.fill(&bench.others, 1)?;
            let refused = capture.add(|_| Ok(node.clone())).unwrap_err();
            assert!(matches!(refused, Error::Capture(CaptureError::NotNew { .. })), "{refused}");
            Err(refused)
        });
        failed.unwrap_err();
        assert!(!node.is_removed());
        assert_eq!(graph.len().unwrap(), 1);
        bench.works_again();
    });
}

#[test]
fn a_capture_embeds_no_graph_with_its_own_scratch_memory() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (scratch, another) = (Scratch::new(&context), Scratch::new(&context));
        let with = |scratch: &Scratch| CaptureOptions::new().scratch(scratch);
        let step = |scratch: &Scratch| {
            let step = stream.capture(with(scratch), |capture| {
                let temporary = capture.zeros::<u32>(N)?;
                capture.fill(&temporary, 77)
            });
            step.unwrap()
        };
        let (same, other) = (step(&scratch), step(&another));
        let graph = stream.capture(with(&scratch), |capture| {
            // It has the memory of the first step.
            let held = capture.zeros::<u32>(N)?;
            capture.fill(&held, 5)?;
            let always = capture.condition_with_default(1)?;
            let refused = [
                capture.embed(&same).map(drop).unwrap_err(),
                capture.if_node(&always, |body| body.embed(&same)).map(drop).unwrap_err(),
            ];
            for error in refused {
                assert!(matches!(error, Error::Capture(CaptureError::SameScratch { .. })), "{error}");
            }
            capture.if_node(&always, |body| bench.add(body, 1))?;
            capture.embed(&other)?;
            capture.copy(&held, &bench.others)
        });
        let graph = graph.unwrap();
        let count = |kind| graph.nodes().unwrap().iter().filter(|node| node.kind() == kind).count();
        assert_eq!((count(NodeKind::If), count(NodeKind::ChildGraph)), (1, 1));
        graph.instantiate().unwrap().launch(stream).unwrap();
        assert_eq!(bench.others.read_blocking(stream).unwrap(), [5; N]);
        bench.works_again();
    });
}

#[test]
fn a_body_has_memory_of_its_own_beside_memory_that_captures_share() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let scratch = Scratch::new(&context);
        let graph = stream.capture(CaptureOptions::new().scratch(&scratch), |capture| {
            let always = capture.condition_with_default(1)?;
            let dropped = capture.zeros::<u32>(N)?.address();
            let held = capture.zeros::<u32>(N)?;
            capture.fill(&held, 5)?;
            capture.if_node(&always, |body| {
                let own = body.zeros::<u32>(N)?;
                assert!(![dropped, held.address()].contains(&own.address()));
                body.fill(&own, 9)?;
                body.fill(&held, 6)
            })?;
            capture.copy(&held, &bench.others)
        });
        graph.unwrap().instantiate().unwrap().launch(stream).unwrap();
        assert_eq!(bench.others.read_blocking(stream).unwrap(), [6; N]);
        bench.works_again();
    });
}

#[test]
fn batches_that_begin_alike_keep_their_own_memory() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let [shared, own] = [(); 2].map(|()| context.alloc_blocking::<u32>(4).unwrap());
        let memory = Arc::downgrade(own.allocation());
        let capture = bench.begin();
        let enqueue = |stream| {
            let mut batch = Batch::new();
            let mut params = batch.write(&shared, 0, 1).unwrap().write(&shared, 1, 1).unwrap().params();
            // SAFETY: the stream lives, and the memory is kept.
            raw::ok(unsafe { raw::driver().cuStreamBatchMemOp(stream, 2, params.as_mut_ptr(), 0) });
        };
        // SAFETY: the batch uses this memory alone, on this stream.
        unsafe { capture.foreign(enqueue, [Owner::from(&shared)]) }.unwrap();
        let mut batch = Batch::new();
        batch.write(&shared, 0, 1).unwrap().write(&own, 1, 1).unwrap();
        capture.stream().batch(&batch).unwrap();
        drop((batch, own));
        let ended = capture.end().unwrap();
        assert_eq!(ended.unmatched().unwrap(), 0);
        let nodes = ended.graph().nodes().unwrap();
        nodes[0].remove().unwrap();
        assert!(memory.strong_count() > 0, "the second batch uses the memory");
        nodes[1].remove().unwrap();
        assert!(until(SOON, || memory.strong_count() == 0));
        bench.works_again();
    });
}

/// Runs a closure when it is dropped.
struct OnDrop<F: Fn() + Send + Sync>(F);

impl<F: Fn() + Send + Sync> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn on_drop(run: impl Fn() + Send + Sync + 'static) -> Owner {
    Owner::other(OnDrop(run))
}

/// A way for an owner to be dropped in or by a capture.
type Way = fn(&Bench, Owner);

const WAYS: [(&str, Way); 8] = [
    ("discarded", |bench, owner| {
        let capture = bench.begin();
        capture.keep(owner).unwrap();
    }),
    ("the end fails", |bench, owner| {
        let capture = bench.begin();
        capture.keep(owner).unwrap();
        let [fork] = capture.split().unwrap();
        fork.fill(&bench.others, 1).unwrap();
        capture.end().map(drop).unwrap_err();
    }),
    ("with the graph", |bench, owner| {
        let capture = bench.begin();
        capture.keep(owner).unwrap();
        drop(capture.end().unwrap());
    }),
    ("with the node of a closure", |bench, owner| {
        let capture = bench.begin();
        capture.callback(move || drop(owner.clone())).unwrap();
        let graph = capture.end().unwrap().into_graph();
        graph.nodes().unwrap()[0].remove().unwrap();
    }),
    ("a closure is refused", |bench, owner| {
        let capture = bench.begin();
        let injection = fail(Call::cuLaunchHostFunc, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        capture.callback(move || drop(owner.clone())).unwrap_err();
        drop(injection);
        drop(capture.end().unwrap());
    }),
    ("a scope fails", |bench, owner| {
        let failed = bench.stream.capture(LOCAL, |capture| -> Result<()> {
            capture.keep(owner)?;
            Err(Error::Node(NodeError::GraphMoved))
        });
        failed.unwrap_err();
    }),
    ("a body fails", |bench, owner| {
        let capture = bench.begin();
        let always = capture.condition_with_default(1).unwrap();
        let failed = capture.if_node(&always, |body| -> Result<()> {
            body.keep(owner)?;
            body.fill(&bench.others, 1)?;
            Err(Error::Node(NodeError::GraphMoved))
        });
        failed.unwrap_err();
    }),
    ("with a placed node", |bench, owner| {
        let capture = bench.begin();
        capture.fill(&bench.numbers, 1).unwrap();
        let node = capture.add(|at| at.fill(&bench.others, 1)).unwrap();
        node.keep(owner).unwrap();
        node.remove().unwrap();
        capture.end().map(drop).unwrap_err();
    }),
];

#[test]
fn destructors_of_owners_capture_and_launch() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        for (name, way) in WAYS {
            let bench = Bench::new(&context);
            let ran = Arc::new(AtomicUsize::new(0));
            let (stream, other, count) = (bench.stream.clone(), context.stream().unwrap(), Arc::clone(&ran));
            let owner = on_drop(move || {
                // The stream may still be capturing: captured or refused, nothing waits.
                let _ = stream.zeros::<u32>(4);
                let _ = stream.graph_builder().begin().map(|capture| capture.end().map(drop));
                works_again(&other);
                count.fetch_add(1, Ordering::SeqCst);
            });
            way(&bench, owner);
            let has_run = || {
                settle();
                ran.load(Ordering::SeqCst) == 1
            };
            assert!(until(SOON, has_run), "{name}");
            bench.works_again();
        }
    });
}

#[test]
fn destructors_of_owners_that_panic_leave_no_stream_capturing() {
    let context = setup();
    needs!(Branches);
    for (name, way) in WAYS {
        println!("{name}");
        let bench = Bench::new(&context);
        let run = || way(&bench, on_drop(|| panic!("in a destructor")));
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)));
        bench.works_again();
    }
}

#[test]
fn destructors_of_owners_end_other_captures() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        for (name, way) in WAYS {
            let (bench, other) = (Bench::new(&context), context.stream().unwrap());
            let capture = other.graph_builder().begin_on_any_thread().unwrap();
            capture.fill(&bench.numbers, 1).unwrap();
            let capture = Mutex::new(Some(capture));
            let end = move || drop(capture.lock().unwrap().take().unwrap().end().unwrap());
            way(&bench, on_drop(end));
            let has_ended = || {
                settle();
                is_free(&other)
            };
            assert!(until(SOON, has_ended), "{name}");
            works_again(&other);
            bench.works_again();
        }
    });
}

#[test]
fn a_capture_of_the_home_of_captured_memory_does_no_harm() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let buffer = capture.zeros::<u32>(4).unwrap();
        let home: Stream = buffer.home().unwrap().clone();
        let strange = home.graph_builder().begin_on_any_thread().unwrap();
        strange.zeros::<u32>(4).unwrap_err();
        capture.zeros::<u32>(1000).unwrap_err();
        drop(strange.end().unwrap());
        drop(capture.zeros::<u32>(1000).unwrap());
        drop(capture.end().unwrap());
        drop(buffer);
        bench.works_again();
        works_again(&home);
    });
}
