//! Host nodes: closures and C functions, their owners, and calls inside them.

use core::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};

use cuda_graph::{CallbackPanic, ContextExt, Error, HostCallbackNode, NodeError, NodeKind, set_panic_hook};
use cuda_handles::{Context, Owner};
use cuda_sys::{CUresult, Call};
use cuda_tests::closure::{Count, counter, seen};
use cuda_tests::{SOON, alone, count, fail, no_leaks, settle, setup, until};

/// Whether the value goes within the time of a drop that the reaper makes.
fn goes<T>(value: &Weak<T>) -> bool {
    until(SOON, || {
        settle();
        value.upgrade().is_none()
    })
}

fn run(context: &Context, graph: &cuda_graph::Graph) {
    let stream = context.stream().unwrap();
    graph.instantiate().unwrap().launch(&stream).unwrap();
    stream.synchronize_blocking().unwrap();
}

#[test]
fn a_closure_is_called_once_a_launch_in_its_place() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let push = |number: u32| {
            let order = Arc::clone(&order);
            move || order.lock().unwrap().push(number)
        };
        let first = graph.root().host(push(1)).unwrap();
        let second = first.then().host(push(2)).unwrap();
        second.then().host(push(3)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..3 {
            exec.launch(&stream).unwrap();
        }
        stream.synchronize_blocking().unwrap();
        assert_eq!(*order.lock().unwrap(), [1, 2, 3, 1, 2, 3, 1, 2, 3]);
    });
}

#[test]
fn a_closure_sees_what_was_copied_before_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let numbers = stream.zeros::<u32>(64).unwrap();
        let host = context.pinned_zeros::<u32>(64).unwrap().share();
        let fill = graph.root().fill(&numbers, 7).unwrap();
        let copy = fill.then().copy(&numbers, &host).unwrap();
        let (count, call) = counter();
        copy.then().host(call).unwrap();
        run(&context, &graph);
        assert_eq!(seen(&count), 1);
        assert_eq!(host.read_blocking(&stream).unwrap(), [7; 64]);
    });
}

#[test]
fn an_add_is_one_call() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let first = graph.root().empty().unwrap();
        let costs: Vec<_> = (0..8).map(|_| count(|| first.then().host(|| ()).unwrap()).1).collect();
        for cost in &costs {
            cost.assert_calls(&[("cuGraphAddNode", 1)]);
        }
        // The closure itself; now and then, the tables grow.
        assert_eq!(costs.iter().map(|cost| cost.heap_allocations()).min(), Some(1));
        let node = first.then().host(|| ()).unwrap();
        let (set, cost) = count(|| node.set(|| ()));
        set.unwrap();
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
    });
}

#[test]
fn the_closure_goes_with_the_last_that_can_call_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let (count, call) = counter();
        let weak = Arc::downgrade(&count);
        drop(count);
        let node = graph.root().host(call).unwrap();
        let mut exec = graph.instantiate().unwrap();
        node.remove().unwrap();
        drop(graph);
        settle();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(weak.upgrade().map(|count| seen(&count)), Some(1), "the executable keeps it");
        drop(exec);
        assert!(goes(&weak));
    });
}

#[test]
fn removing_a_node_lets_its_closure_go_at_once() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let (count, call) = counter();
        let weak = Arc::downgrade(&count);
        drop(count);
        let node = graph.root().host(call).unwrap();
        assert!(weak.upgrade().is_some());
        node.remove().unwrap();
        assert!(weak.upgrade().is_none());
        assert!(matches!(node.set(|| ()), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(node.function(), Err(Error::Node(NodeError::Removed { .. }))));
    });
}

#[test]
fn setting_swaps_closures_and_executables_keep_the_old_one() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let ((first, old), (second, new)) = (counter(), counter());
        let node = graph.root().host(old).unwrap();
        let mut before = graph.instantiate().unwrap();
        node.set(new).unwrap();
        let mut after = graph.instantiate().unwrap();
        before.launch(&stream).unwrap();
        before.launch(&stream).unwrap();
        after.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!((seen(&first), seen(&second)), (2, 1));
        let weak = Arc::downgrade(&first);
        drop((first, before));
        assert!(goes(&weak));
    });
}

#[test]
fn a_refused_set_or_add_changes_nothing_and_drops_the_closure() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let ((first, old), (second, new), (third, other)) = (counter(), counter(), counter());
        let node = graph.root().host(old).unwrap();
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        node.set(new).unwrap_err();
        drop(injected);
        assert_eq!(Arc::strong_count(&second), 1);
        let injected = fail(Call::cuGraphAddNode, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        node.then().host(other).unwrap_err();
        drop(injected);
        assert_eq!(Arc::strong_count(&third), 1);
        assert_eq!(graph.len().unwrap(), 1);
        run(&context, &graph);
        assert_eq!((seen(&first), seen(&second)), (1, 0));
    });
}

static PANICS: Mutex<Vec<CallbackPanic>> = Mutex::new(Vec::new());

#[test]
fn a_panic_is_reported_and_the_graph_goes_on() {
    alone!();
    let context = setup();
    set_panic_hook(|panic| {
        PANICS.lock().unwrap().push(panic.clone());
        panic!("a panic in the hook is lost");
    });
    let stream = context.stream().unwrap();
    let graph = context.graph().unwrap();
    let text = String::from("formatted");
    let first = graph.root().host(|| panic!("plain")).unwrap();
    let second = first.then().host(move || panic!("{text} {}", 1)).unwrap();
    let third = second.then().host(|| std::panic::panic_any(5)).unwrap();
    let (count, call) = counter();
    third.then().host(call).unwrap();
    let mut exec = graph.instantiate().unwrap();
    for _ in 0..2 {
        exec.launch(&stream).unwrap();
    }
    stream.synchronize_blocking().unwrap();
    assert_eq!(seen(&count), 2, "the graph goes on");
    let panics = PANICS.lock().unwrap();
    let messages: Vec<&str> = panics.iter().map(|panic| &*panic.message).collect();
    assert_eq!(messages[..3], ["plain", "formatted 1", "with a value that is not text"]);
    assert_eq!(messages[..3], messages[3..]);
    let text = panics[0].to_string();
    assert!(text.contains("a_panic_is_reported") && text.ends_with("panicked: plain"), "{text}");
}

#[test]
fn driver_calls_inside_are_refused_in_words() {
    let context = setup();
    no_leaks(|| {
        let (sender, receiver) = channel();
        let graph = context.graph().unwrap();
        let inside = Mutex::new((context.clone(), sender));
        graph
            .root()
            .host(move || {
                let held = inside.lock().unwrap();
                let (context, sender): &(Context, Sender<String>) = &held;
                let stream = context.stream().map(drop).unwrap_err().to_string();
                let graph = context.graph().map(drop).unwrap_err().to_string();
                sender.send(format!("{stream}|{graph}")).unwrap();
            })
            .unwrap();
        run(&context, &graph);
        let answers = receiver.recv_timeout(SOON).unwrap();
        for answer in answers.split('|') {
            assert!(answer.contains("inside a host function"), "{answer}");
        }
    });
}

#[test]
fn the_last_owner_of_buffers_and_executables_may_go_inside() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        let other = context.graph().unwrap();
        other.root().fill(&buffer, 1).unwrap();
        let held = Mutex::new(Some((other.instantiate().unwrap(), other, buffer)));
        let graph = context.graph().unwrap();
        let (done, went) = channel();
        graph
            .root()
            .host(move || {
                drop(held.lock().unwrap().take());
                done.send(()).unwrap();
            })
            .unwrap();
        run(&context, &graph);
        went.recv_timeout(SOON).unwrap();
    });
}

/// Adds the first number to the second.
#[repr(C)]
struct Sum {
    add: u32,
    to: AtomicU32,
    seen: Count,
}

unsafe extern "C" fn add(data: *mut c_void) {
    // SAFETY: given with a `Sum` that lives over the call.
    let sum = unsafe { &*data.cast::<Sum>() };
    sum.seen.store(sum.to.fetch_add(sum.add, Ordering::Relaxed) + sum.add, Ordering::Relaxed);
}

unsafe extern "C" fn double(data: *mut c_void) {
    // SAFETY: given with an `AtomicU32` that lives over the call.
    let number = unsafe { &*data.cast::<AtomicU32>() };
    number.fetch_add(number.load(Ordering::Relaxed), Ordering::Relaxed);
}

fn same(function: Option<cuda_graph::HostFunction>, expected: cuda_graph::HostFunction) -> bool {
    function.is_some_and(|function| core::ptr::fn_addr_eq(function, expected))
}

#[test]
fn c_functions_have_data_of_their_own_or_a_pointer_with_an_owner() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let total = Count::default();
        let sum = Sum { add: 3, to: AtomicU32::new(1), seen: Arc::clone(&total) };
        // SAFETY: the function takes a `Sum` and changes atomics of it only.
        let owned = unsafe { graph.root().host_function(add, sum) }.unwrap();
        let number = Arc::new(AtomicU32::new(5));
        let pointer = Arc::as_ptr(&number).cast_mut().cast::<c_void>();
        // SAFETY: the function takes an `AtomicU32`, which the owner keeps.
        let raw = unsafe { owned.then().host_raw(double, pointer, Owner::shared(number.clone())) }.unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!((seen(&total), number.load(Ordering::Relaxed)), (7, 20));
        assert!(same(owned.function().unwrap(), add) && same(raw.function().unwrap(), double));
        assert_eq!((owned.data().unwrap(), raw.data().unwrap()), (None, Some(pointer)));

        // The other way round, and then a closure.
        let other = Sum { add: 100, to: AtomicU32::new(0), seen: Arc::clone(&total) };
        // SAFETY: as above.
        unsafe {
            owned.set_raw(double, pointer, Owner::shared(number.clone())).unwrap();
            raw.set_function(add, other).unwrap();
        }
        run(&context, &graph);
        assert_eq!((seen(&total), number.load(Ordering::Relaxed)), (100, 40));
        assert!(same(owned.function().unwrap(), double) && same(raw.function().unwrap(), add));
        owned.set(|| ()).unwrap();
        assert_eq!((owned.function().unwrap(), owned.data().unwrap()), (None, None));
        let weak = Arc::downgrade(&number);
        drop((number, exec));
        assert!(goes(&weak));
    });
}

#[test]
fn nodes_come_back_with_type_name_and_text() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let node = graph.root().host(|| ()).unwrap();
        let found = HostCallbackNode::try_from(graph.nodes().unwrap().remove(0)).unwrap();
        assert_eq!(found, node);
        assert_eq!(node.kind(), NodeKind::HostCallback);
        assert!(node.name().starts_with("host callback#"), "{}", node.name());
        let text = node.describe().unwrap();
        assert!(text.starts_with("call ") && text.contains("nodes_come_back"), "{text}");
        let node = node.named("tell");
        assert_eq!(node.to_string(), "tell");
        // SAFETY: the graph is never launched.
        let raw = unsafe { node.then().host_raw(double, core::ptr::null_mut(), Owner::other(())) }.unwrap();
        assert!(raw.describe().unwrap().starts_with("call 0x"));
        // The same nodes, as the driver tells of them to one who adopts the graph.
        let lent = graph.lend().unwrap();
        assert_eq!(cuda_tests::raw::nodes(lent).len(), 2);
        // Clones and children call the same closure.
        let (count, call) = counter();
        node.set(call).unwrap();
        raw.remove().unwrap();
        let outer = context.graph().unwrap();
        outer.root().child(&graph).unwrap();
        let clone = outer.clone_graph().unwrap();
        node.remove().unwrap();
        drop((graph, outer));
        run(&context, &clone);
        assert_eq!(seen(&count), 1);
    });
}

#[test]
fn a_closure_that_ends_other_graphs_from_many_threads_is_sound() {
    let context = setup();
    no_leaks(|| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let stream = context.stream().unwrap();
                    for _ in 0..10 {
                        let graph = context.graph().unwrap();
                        let (count, call) = counter();
                        let node = graph.root().host(call).unwrap();
                        let mut exec = graph.instantiate().unwrap();
                        exec.launch(&stream).unwrap();
                        node.remove().unwrap();
                        drop((graph, exec));
                        stream.synchronize_blocking().unwrap();
                        assert_eq!(seen(&count), 1);
                    }
                });
            }
        });
    });
}
