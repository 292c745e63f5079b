//! Host nodes with views of pinned, registered and managed memory, and nodes that clear it.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_graph::{CallbackPanic, ContextExt, Error, HostView, NodeError, set_panic_hook};
use cuda_handles::{Context, Error as HandleError, MemoryKind, SharedHostBuffer};
use cuda_tests::{SOON, alone, count, no_leaks, raw, setup};

fn all(context: &Context, len: usize) -> [SharedHostBuffer<u64>; 3] {
    let buffers = [
        context.pinned_zeros(len).unwrap(),
        context.managed_zeros(len).unwrap(),
        context.register(vec![0; len]).unwrap(),
    ];
    buffers.map(cuda_handles::HostBuffer::share)
}

static TOLD: Mutex<Vec<CallbackPanic>> = Mutex::new(Vec::new());

fn told() -> Vec<CallbackPanic> {
    core::mem::take(&mut *TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The program that took an unsafe pointer for this.
#[test]
fn a_node_reads_what_the_graph_has_copied_at_each_replay() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for host in all(&context, 1) {
            let x = stream.upload(&[42.5_f64]).unwrap();
            let floats = host.as_slice();
            let (sender, receiver) = channel();
            let graph = context.graph().unwrap();
            let bits = x.cast::<u64>().unwrap();
            let copy = graph.root().copy(&bits, floats).unwrap();
            let (node, cost) = count(|| {
                copy.then().host_with(&host, move |view| {
                    let _ = sender.send(view.get(0).map(f64::from_bits));
                })
            });
            let node = node.unwrap();
            cost.assert_calls(&[("cuGraphAddNode", 1)]);
            assert!(node.describe().unwrap().contains("a_node_reads_what"), "{:?}", node.describe());
            let mut exec = graph.instantiate().unwrap();
            for _ in 0..3 {
                exec.launch(&stream).unwrap();
                assert_eq!(receiver.recv_timeout(SOON).unwrap(), Some(42.5));
            }
            x.write_blocking(&stream, &[1.5]).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(receiver.recv_timeout(SOON).unwrap(), Some(1.5));
            stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn a_node_writes_what_the_graph_copies_and_keeps_the_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for host in all(&context, 8) {
            let buffer = stream.alloc::<u64>(8).unwrap();
            let graph = context.graph().unwrap();
            let write = graph.root().host_with((host.slice(..4).unwrap(), &host), |(half, all)| {
                half.copy_from_slice(&[3; 4]).unwrap();
                all.set(7, all.get(7).unwrap_or(0) + 1).unwrap();
            });
            write.unwrap().then().copy(&host, &buffer).unwrap();
            let mut exec = graph.instantiate().unwrap();
            drop(graph);
            let host = host.try_unique().expect_err("the executable has it");
            for _ in 0..3 {
                exec.launch(&stream).unwrap();
            }
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [3, 3, 3, 3, 0, 0, 0, 3]);
            drop(exec);
            let mut shared = Some(host);
            let back = cuda_tests::until(SOON, || {
                cuda_handles::reaper::drain();
                shared = match shared.take().unwrap().try_unique() {
                    Ok(_) => return true,
                    Err(shared) => Some(shared),
                };
                false
            });
            assert!(back, "nothing has it any more");
        }
    });
}

#[test]
fn a_node_whose_memory_somebody_looks_at_is_passed_over_and_the_hook_told() {
    alone!();
    let context = setup();
    set_panic_hook(|trouble| TOLD.lock().unwrap_or_else(PoisonError::into_inner).push(trouble.clone()));
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [host, ..] = all(&context, 4);
        let calls = Arc::new(Mutex::new(0));
        let inside = Arc::clone(&calls);
        let graph = context.graph().unwrap();
        let look = graph.root().host_with(&host, move |_: &HostView<u64>| *inside.lock().unwrap() += 1);
        let after = Arc::new(Mutex::new(0));
        let inside = Arc::clone(&after);
        look.unwrap().then().host(move || *inside.lock().unwrap() += 1).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let view = host.try_view().unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        drop(view);
        assert_eq!((*calls.lock().unwrap(), *after.lock().unwrap()), (0, 1), "the graph goes on");
        let told = told();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(!told[0].was_called && told[0].callback.contains("is_passed_over"), "{told:?}");
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!((*calls.lock().unwrap(), *after.lock().unwrap()), (1, 2));
    });
    assert!(told().is_empty());
}

#[test]
fn a_node_is_given_other_memory_and_another_closure() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [first, second, _] = all(&context, 2);
        let graph = context.graph().unwrap();
        let node = graph.root().host_with(&first, |view| view.set(0, 1).unwrap()).unwrap();
        node.set_with(&second, |view| view.set(1, 2).unwrap()).unwrap();
        let first = first.try_unique().expect("the node has let go of it");
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(first[..], [0, 0]);
        assert_eq!(second.read_blocking(&stream).unwrap(), [0, 2]);
        node.set(|| ()).unwrap();
        drop((node, graph));
    });
}

#[test]
fn memory_that_the_host_does_not_reach_is_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u64>(4).unwrap();
        let graph = context.graph().unwrap();
        let (refused, cost) = count(|| graph.root().host_with(buffer.as_slice(), |_| ()).unwrap_err());
        cost.assert_calls(&[]);
        let kind = MemoryKind::Pooled;
        assert!(matches!(refused, Error::Handles(HandleError::NotOnHost { kind: found }) if found == kind));
        assert_eq!(graph.len().unwrap(), 0);
    });
}

#[test]
fn a_cleared_node_is_one_fill_of_the_largest_elements() {
    fn try_with<T: cuda_handles::Element>(context: &Context, value: T, element: u32) {
        let stream = context.stream().unwrap();
        let buffer = stream.upload(&[value; 12]).unwrap();
        let graph = context.graph().unwrap();
        let part = buffer.slice(2..8).unwrap();
        let (node, cost) = count(|| graph.root().clear(part).unwrap());
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        let layout = node.layout().unwrap();
        assert_eq!(
            (u32::from(layout.element), layout.bytes(), layout.value),
            (element, 6 * size_of::<T>(), 0)
        );
        let seen = raw::memset(raw::nodes(graph.as_raw().unwrap())[0]);
        assert_eq!((seen.dst, seen.value, seen.elementSize), (layout.address, 0, element));
        assert_eq!((seen.width, seen.height), (layout.width, 1));
        graph.instantiate().unwrap().launch(&stream).unwrap();
        let zero_bytes =
            |elements: &[T]| elements.iter().filter(|it| bytes(*it).iter().all(|byte| *byte == 0)).count();
        let found = buffer.read_blocking(&stream).unwrap();
        assert_eq!((zero_bytes(&found), zero_bytes(&found[2..8])), (6, 6));
        node.set_clear(&buffer).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(zero_bytes(&buffer.read_blocking(&stream).unwrap()), 12);
    }
    fn bytes<T: cuda_handles::Element>(element: &T) -> &[u8] {
        // SAFETY: an element has bytes that are all initialised.
        unsafe { core::slice::from_raw_parts((&raw const *element).cast(), size_of::<T>()) }
    }
    let context = setup();
    no_leaks(|| {
        try_with(&context, 0xff_u8, 2);
        try_with(&context, -1_i16, 4);
        try_with(&context, 1.5_f32, 4);
        try_with(&context, -1.0_f64, 4);
        try_with(&context, u128::MAX, 4);
        try_with(&context, [1_u8, 2, 3], 2);
        let graph = context.graph().unwrap();
        let empty = context.stream().unwrap().zeros::<u64>(0).unwrap();
        assert!(matches!(graph.root().clear(&empty), Err(Error::Node(NodeError::NoElements { .. }))));
        // Memory of the graph as well.
        let (alloc, memory) = graph.root().alloc::<f64>(4).unwrap();
        let clear = alloc.then().clear(&memory).unwrap();
        clear.then().free(&memory).unwrap();
        let stream = context.stream().unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
    });
}
