//! Graphs of a lost context, and graphs in a forked child.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_graph::{ContextExt, Error};
use cuda_launch::{LaunchConfig, params};
use cuda_sys::CUresult;
use cuda_tests::{SOON, alone, count, kernel, settle, setup, until};

#[test]
fn a_fault_in_a_graph_loses_the_context_and_everything_says_so() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(8).unwrap();
    let healthy = context.graph().unwrap();
    let node = healthy.root().fill(&buffer, 1).unwrap();
    let mut healthy_exec = healthy.instantiate().unwrap();
    let graph = context.graph().unwrap();
    // SAFETY: not at all: the kernel writes where nothing is, which ends the context and this
    // process's use of it.
    unsafe {
        graph.root().launch_untyped(
            &kernel(&context, "poke"),
            LaunchConfig::new(1, 1),
            params![0x40_u64, 7_u32],
        )
    }
    .unwrap();
    let mut exec = graph.instantiate().unwrap();
    settle();
    exec.launch(&stream).unwrap();
    let first = stream.synchronize_blocking().unwrap_err();
    let cuda_handles::Error::ContextLost(cause) = first else { panic!("{first:?}") };
    assert_eq!(cause.code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let lost = Error::Handles(cuda_handles::Error::ContextLost(cause));
    assert_eq!(healthy_exec.launch(&stream).unwrap_err(), lost);
    assert_eq!(healthy_exec.upload(&stream).unwrap_err(), lost);
    assert_eq!(healthy.instantiate().unwrap_err(), lost);
    assert_eq!(healthy.root().fill(&buffer, 2).unwrap_err(), lost);
    assert_eq!(context.graph().unwrap_err(), lost);
    let ((), cost) = count(|| {
        drop((exec, healthy_exec, graph, healthy, node, buffer, stream));
        settle();
    });
    let calls = cost.total_anywhere();
    assert_eq!(calls, 0, "drops after the loss call nothing: {cost}");
}

#[test]
fn after_a_loss_a_dropped_executable_lets_its_owners_go() {
    alone!();
    let context = setup();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<u32>(8).unwrap();
    let memory = Arc::downgrade(buffer.allocation());
    let graph = context.graph().unwrap();
    graph.root().fill(&buffer, 1).unwrap();
    let mut exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    drop((graph, buffer));
    stream.synchronize_blocking().unwrap();
    settle();
    assert!(memory.upgrade().is_some(), "the executable owns it");
    let doomed = context.graph().unwrap();
    // SAFETY: not at all: the kernel writes where nothing is, which ends the context and this
    // process's use of it.
    unsafe {
        doomed.root().launch_untyped(
            &kernel(&context, "poke"),
            LaunchConfig::new(1, 1),
            params![0x40_u64, 7_u32],
        )
    }
    .unwrap();
    doomed.instantiate().unwrap().launch(&stream).unwrap();
    stream.synchronize_blocking().unwrap_err();
    assert!(memory.upgrade().is_some());
    drop(exec);
    assert!(until(SOON, || memory.upgrade().is_none()), "nothing else owns it");
}

#[cfg(unix)]
#[test]
fn a_forked_child_is_refused_and_never_waits_for_a_graph() {
    alone!();
    let context = setup();
    let graph = context.graph().unwrap();
    let node = graph.root().empty().unwrap().named("start");
    let in_child = || {
        graph.keep(cuda_handles::Owner::other(1_u32));
        let refused =
            matches!(graph.len().unwrap_err(), cuda_graph::Error::Handles(cuda_handles::Error::Forked));
        u8::from(!refused) + 2 * u8::from(node.is_removed()) + 4 * u8::from(node.name() != "empty#0")
    };
    // SAFETY: another thread may have held the lock of the graph: that nobody waits for it is what
    // is tried.
    let code = unsafe { cuda_tests::in_forked_child(in_child) };
    assert_eq!(
        code, 0,
        "1: a call was not refused, 2: the node counts as removed, 4: the name was looked up"
    );
    assert_eq!(node.name(), "start", "the parent goes on");
}

#[cfg(unix)]
#[test]
fn a_forked_child_waits_for_no_lock_of_callbacks_and_graphs() {
    const FORKS: usize = 60;
    unsafe extern "C" fn nothing(_: *mut core::ffi::c_void) {}
    let context = setup();
    let graphs = [(); 3].map(|()| context.graph().unwrap());
    let over = AtomicBool::new(false);
    let until_over = |work: &dyn Fn()| {
        while !over.load(Ordering::Relaxed) {
            work();
        }
    };
    let called = graphs[0].root().host(|| ()).unwrap();
    std::thread::scope(|scope| {
        // Between them they hold the locks of closures, graphs and clones most of the time.
        scope.spawn(|| until_over(&|| called.set(|| ()).unwrap()));
        scope.spawn(|| until_over(&|| drop(graphs[1].clone_graph().unwrap())));
        scope.spawn(|| {
            until_over(&|| {
                cuda_graph::set_panic_hook(|_| ());
                // SAFETY: the function takes anything.
                let node = unsafe { graphs[2].root().host_function(nothing, 1_u32) }.unwrap();
                node.remove().unwrap();
            });
        });
        let codes = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            [(); FORKS].map(|()| {
                let graph = context.graph().unwrap();
                let node = graph.root().host(|| ()).unwrap();
                let things = (graph.instantiate().unwrap(), graph.clone_graph().unwrap());
                let in_child = || {
                    let forked = |refused: Option<cuda_graph::Error>| {
                        use cuda_graph::Error::Handles;
                        matches!(refused, Some(Handles(cuda_handles::Error::Forked)))
                    };
                    let others = graphs.iter().all(|graph| {
                        // SAFETY: the function takes anything.
                        let data = unsafe { graph.root().host_function(nothing, 1_u32) };
                        // SAFETY: as above.
                        let raw = unsafe {
                            graph.root().host_raw(
                                nothing,
                                core::ptr::null_mut(),
                                cuda_handles::Owner::other(1_u32),
                            )
                        };
                        forked(graph.root().host(|| ()).err())
                            && forked(data.err())
                            && forked(raw.err())
                            && forked(graph.clone_graph().err())
                            && forked(graph.to_svg().err())
                            && forked(graph.edges().err())
                            && forked(graph.lend().err())
                            && forked(graph.instantiate().err())
                            && forked(graph.root().child(&graphs[0]).err())
                    });
                    cuda_graph::set_panic_hook(|_| ());
                    drop(cuda_handles::clones::alone(graph.context()));
                    // SAFETY: as above.
                    let set = unsafe { called.set_function(nothing, 1_u32) };
                    let set = forked(called.set(|| ()).err()) && forked(set.err());
                    let ((), cost) = count(|| drop((node, graph, things)));
                    u8::from(!others) + 2 * u8::from(!set) + 4 * u8::from(cost.total_anywhere() != 0)
                };
                // SAFETY: what other threads may have locked is not waited for: that is what is
                // tried.
                unsafe { cuda_tests::in_forked_child(in_child) }
            })
        }));
        over.store(true, Ordering::Relaxed);
        let codes = codes.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(codes, [0; FORKS], "1: a call was not refused, 2: a set, 4: drops called the driver");
    });
}

#[cfg(unix)]
#[test]
fn the_drop_of_an_executable_in_a_forked_child_waits_for_no_lock_of_streams() {
    const FORKS: usize = 60;
    let context = setup();
    let stream = context.stream().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // They hold the lock of the list of all streams much of the time.
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    drop([(); 50].map(|()| context.stream().unwrap()));
                }
            });
        }
        let codes = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            [(); FORKS].map(|()| {
                let graph = context.graph().unwrap();
                graph.root().host(|| ()).unwrap();
                let mut exec = graph.instantiate().unwrap();
                exec.launch(&stream).unwrap();
                assert!(!exec.as_raw().is_null());
                let in_child = || {
                    let ((), cost) = count(|| drop((exec, graph)));
                    u8::from(cost.total_anywhere() != 0)
                };
                // SAFETY: what other threads may have locked is not waited for: that is what is
                // tried.
                unsafe { cuda_tests::in_forked_child(in_child) }
            })
        }));
        over.store(true, Ordering::Relaxed);
        let codes = codes.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(codes, [0; FORKS], "1: drops called the driver");
    });
}
