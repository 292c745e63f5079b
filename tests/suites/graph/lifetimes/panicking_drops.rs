//! Panicking destructors of other code: the panic is contained wherever the library drops their
//! values, and later values are dropped as usual.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cuda_graph::{ContextExt, Graph, Node};
use cuda_handles::reaper::{self, DropCause, DropFailure};
use cuda_handles::{Buffer, Context, GraphHandle, Owner, Stream, UserObject};
use cuda_launch::{Launch, LaunchConfig, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, SOON, alone, fail, in_callback, kernel, no_leaks, settle, setup, until};

static DROPPED: AtomicUsize = AtomicUsize::new(0);
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
        panic!("bomb");
    }
}

/// Also panics itself.
fn hook(failure: &DropFailure) {
    let DropCause::Panicked(message) = &failure.cause else { panic!("{failure}") };
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_string());
    panic!("the hook panics as well");
}

fn told() -> usize {
    let told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(told.iter().all(|message| message == "bomb"), "{told:?}");
    told.len()
}

/// How a graph gets something that panics in its drop.
type Give = fn(&Graph, &Stream);

const KINDS: [(&str, Give); 8] = [
    ("kept by the graph", |graph, _| graph.keep(Owner::other(Bomb))),
    ("shared with the graph", |graph, _| graph.keep(Owner::shared(Arc::new(Bomb)))),
    ("kept by a node", |graph, _| graph.root().empty().unwrap().keep(Owner::other(Bomb)).unwrap()),
    ("in a closure", |graph, _| {
        let bomb = Bomb;
        graph
            .root()
            .host(move || {
                let _ = &bomb;
            })
            .unwrap();
    }),
    ("owner of foreign memory", |graph, stream| {
        let buffer = stream.zeros::<u32>(8).unwrap();
        stream.synchronize_blocking().unwrap();
        // SAFETY: the owner keeps the memory, which nobody else uses.
        let foreign = unsafe {
            Buffer::<u32>::from_foreign(stream.context(), buffer.address(), 8, (Bomb, buffer.clone()))
        };
        graph.root().fill(&foreign.unwrap(), 7).unwrap();
    }),
    ("in a user object", |graph, _| {
        let object = UserObject::new(graph.context(), Box::new(Bomb)).unwrap();
        // SAFETY: the graph lives, and nobody else calls anything on it.
        let handle = unsafe { GraphHandle::from_raw(graph.context(), graph.lend().unwrap()) }.unwrap();
        object.retain_on(&handle).unwrap();
    }),
    ("in a kept graph", |graph, _| {
        let inner = graph.context().graph().unwrap();
        inner.keep(Owner::other(Bomb));
        graph.keep(Owner::other(inner));
    }),
    ("in a kept executable", |graph, _| {
        let inner = graph.context().graph().unwrap();
        inner.keep(Owner::other(Bomb));
        graph.keep(Owner::other(Mutex::new({ inner }.instantiate().unwrap())));
    }),
];

/// The place where the graph and its owners are dropped.
type Place = fn(Graph, &Stream);

fn keep_in_another(graph: Graph) -> Graph {
    let outer = graph.context().graph().unwrap();
    outer.keep(Owner::other(graph));
    outer
}

const PLACES: [(&str, Place); 15] = [
    ("graph", |graph, _| drop(graph)),
    ("nodes removed", |graph, _| {
        let nodes: Vec<Node> = graph.nodes().unwrap();
        graph.remove_nodes(&nodes.iter().collect::<Vec<_>>()).unwrap();
        drop(nodes);
    }),
    ("kept by a graph", |graph, _| drop(keep_in_another(graph))),
    ("kept by a graph in a graph in a graph", |graph, _| {
        drop(keep_in_another(keep_in_another(keep_in_another(graph))));
    }),
    ("two beside each other", |graph, _| {
        let outer = graph.context().graph().unwrap();
        outer.keep(Owner::other(Bomb));
        outer.keep(Owner::other(graph));
        outer.keep(Owner::other(Bomb));
        drop(outer);
    }),
    ("clone", |graph, _| drop((graph.clone_graph().unwrap(), graph))),
    ("child", |graph, _| {
        let outer = graph.context().graph().unwrap();
        outer.root().child(&graph).unwrap();
        drop(graph);
        drop(outer);
    }),
    ("lent", |graph, _| {
        graph.lend().unwrap();
        drop(graph);
    }),
    ("executable that never ran", |graph, _| drop({ graph }.instantiate().unwrap())),
    ("executable at rest", |graph, stream| {
        let mut exec = { graph }.instantiate().unwrap();
        exec.launch(stream).unwrap();
        stream.synchronize_blocking().unwrap();
        drop(exec);
    }),
    ("executable in flight", |graph, stream| {
        let mut exec = { graph }.instantiate().unwrap();
        let gate = Gate::close(stream);
        exec.launch(stream).unwrap();
        drop(exec);
        gate.open();
        stream.synchronize_blocking().unwrap();
    }),
    ("thread that ends", |graph, _| std::thread::spawn(move || drop(graph)).join().unwrap()),
    ("host function", |graph, stream| {
        in_callback(stream, move || drop(graph));
        stream.synchronize_blocking().unwrap();
    }),
    ("unwinding", |graph, _| {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _graph = graph;
            std::panic::panic_any(1);
        }));
        assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&1));
    }),
    ("executable, unwinding", |graph, _| {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _outer = keep_in_another(graph.clone());
            let _exec = { graph }.instantiate().unwrap();
            std::panic::panic_any(2);
        }));
        assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&2));
    }),
];

/// Asserts that later drops work, on this thread and on the reaper's.
fn assert_all_is_well(context: &Context, stream: &Stream) {
    let value = Arc::new(());
    let graph = || {
        let graph = context.graph().unwrap();
        graph.keep(Owner::shared(value.clone()));
        graph
    };
    drop(keep_in_another(keep_in_another(graph())));
    assert_eq!(Arc::strong_count(&value), 1, "dropped here");
    let (calls, kept) = (context.graph().unwrap(), keep_in_another(graph()));
    calls
        .root()
        .host(move || {
            let _ = &kept;
        })
        .unwrap();
    let mut exec = { calls }.instantiate().unwrap();
    exec.launch(stream).unwrap();
    drop(exec);
    stream.synchronize_blocking().unwrap();
    assert!(until(SOON, || Arc::strong_count(&value) == 1), "dropped by the reaper");
}

#[test]
fn a_panic_in_a_destructor_ends_nothing_else_wherever_it_is_dropped() {
    alone!();
    let context = setup();
    reaper::set_hook(hook);
    for (kind, give) in KINDS {
        for (place, end) in PLACES {
            for bombs in [1, 3] {
                let case = format!("{bombs} {kind}, {place}");
                println!("{case}");
                no_leaks(|| {
                    let stream = context.stream().unwrap();
                    let (before, told_before) = (DROPPED.load(Ordering::SeqCst), told());
                    let graph = context.graph().unwrap();
                    (0..bombs).for_each(|_| give(&graph, &stream));
                    end(graph, &stream);
                    let expected = before + bombs + if place == "two beside each other" { 2 } else { 0 };
                    let gone = || {
                        settle();
                        DROPPED.load(Ordering::SeqCst) == expected
                    };
                    assert!(until(SOON, gone), "{case}: {} of {expected}", DROPPED.load(Ordering::SeqCst));
                    let all_told = || told() - told_before == expected - before;
                    assert!(until(SOON, all_told), "{case}: the hook was told of {}", told() - told_before);
                    assert_all_is_well(&context, &stream);
                });
            }
        }
    }
}

#[test]
fn a_panic_in_a_destructor_ends_nothing_else_after_the_context_was_lost() {
    alone!();
    let context = setup();
    reaper::set_hook(hook);
    let stream = context.stream().unwrap();
    let (mut graphs, mut execs, mut expected) = (Vec::new(), Vec::new(), 0);
    for (kind, give) in KINDS {
        // The end of what the driver alone refers to is never told then.
        if kind == "in a user object" {
            continue;
        }
        for _ in 0..2 {
            let graph = context.graph().unwrap();
            (0..2).for_each(|_| give(&graph, &stream));
            execs.push(graph.instantiate().unwrap());
            graphs.push(keep_in_another(graph));
            expected += 2;
        }
    }
    settle();
    let doomed = context.graph().unwrap();
    let nowhere = params![0x40_u64, 7_u32];
    // SAFETY: not at all: the kernel writes where nothing is, which ends the context and this
    // process's use of it.
    unsafe { doomed.root().launch_untyped(&kernel(&context, "poke"), LaunchConfig::new(1, 1), nowhere) }
        .unwrap();
    doomed.instantiate().unwrap().launch(&stream).unwrap();
    stream.synchronize_blocking().unwrap_err();
    assert_eq!(DROPPED.load(Ordering::SeqCst), 0);
    drop((graphs, execs));
    let gone = || {
        settle();
        DROPPED.load(Ordering::SeqCst) == expected
    };
    assert!(until(SOON, gone), "{} of {expected}", DROPPED.load(Ordering::SeqCst));
    assert!(until(SOON, || told() == expected));
}

/// The rule that the documentation states: what the caller drops by a reference of its own is the
/// caller's.
#[test]
fn a_value_that_the_caller_has_as_well_panics_where_the_caller_drops_it() {
    alone!();
    let context = setup();
    reaper::set_hook(hook);
    let value = Arc::new(Bomb);
    let graph = context.graph().unwrap();
    graph.keep(Owner::shared(value.clone()));
    drop(graph);
    settle();
    assert_eq!((DROPPED.load(Ordering::SeqCst), told()), (0, 0));
    catch_unwind(AssertUnwindSafe(|| drop(value))).unwrap_err();
    assert_eq!((DROPPED.load(Ordering::SeqCst), told()), (1, 0));
    // By hand, but by an owner of this library.
    drop(Owner::other(Bomb));
    assert_eq!((DROPPED.load(Ordering::SeqCst), told()), (2, 1));
}

/// Owners that a call replaces or refuses.
#[test]
fn calls_that_drop_what_they_are_given_or_replace_do_not_panic() {
    alone!();
    let context = setup();
    reaper::set_hook(hook);
    no_leaks(|| {
        let call = || {
            let bomb = Bomb;
            move || {
                let _ = &bomb;
            }
        };
        let graph = context.graph().unwrap();
        let node = graph.root().host(call()).unwrap();
        let removed = graph.root().empty().unwrap();
        removed.remove().unwrap();
        node.set(call()).unwrap();
        assert_eq!(told(), 1, "replaced");
        for (failing, drops) in [(Call::cuGraphAddNode, 2), (Call::cuGraphNodeSetParams, 3)] {
            let failure = fail(failing, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
            match failing {
                Call::cuGraphAddNode => graph.root().host(call()).map(drop).unwrap_err(),
                _ => node.set(call()).unwrap_err(),
            };
            assert!(failure.hit());
            assert_eq!(told(), drops, "{}", failing.name());
        }
        removed.keep(Owner::other(Bomb)).unwrap_err();
        removed.then().host(call()).unwrap_err();
        assert_eq!(told(), 5, "not taken");
        // The closure that the node has now.
        drop((removed, node, graph));
        settle();
        assert_eq!((told(), DROPPED.load(Ordering::SeqCst)), (6, 6));
    });
}

/// Holders of parameters own memory, and memory its owner.
#[test]
fn holders_of_parameters_let_go_of_what_panics() {
    alone!();
    let context = setup();
    reaper::set_hook(hook);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let increment = kernel(&context, "increment");
        let memory = [(); 2].map(|()| {
            let buffer = stream.upload(&[1_u32; 64]).unwrap();
            stream.synchronize_blocking().unwrap();
            let owner = (Bomb, buffer.clone());
            // SAFETY: the owner keeps the memory, which nobody else uses.
            unsafe { Buffer::<u32>::from_foreign(&context, buffer.address(), 64, owner) }.unwrap()
        });
        let [first, second] = &memory;
        let holders = (params![first, 64_u32].into_owned(), params![second, 64_u32].into_owned());
        drop(memory);
        // SAFETY: the arguments are the kernel's, and the buffer has 64 elements.
        unsafe { increment.launch(&stream, per(64, 64), &holders.0) }.unwrap();
        assert_eq!(told(), 0);
        drop(holders);
        assert!(until(SOON, || {
            settle();
            (told(), DROPPED.load(Ordering::SeqCst)) == (2, 2)
        }));
    });
}
