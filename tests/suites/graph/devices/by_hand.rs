//! Graphs of two devices, made node by node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{AllocOptions, AllocPlace, ContextExt, Graph};
use cuda_handles::{MemPool, PoolAccess, PoolOptions};
use cuda_launch::per;
use cuda_tests::on_two_devices;

use super::{LEN, N, Two, leaves_nothing, offset_copy};

#[test]
fn kernels_fills_and_copies_of_both_devices_run_in_their_order() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    leaves_nothing(|| {
        let graph = two.graph();
        let filled = graph.root().fill(far, 5).unwrap();
        let far_step = filled.then().launch(&two.increments[1], per(LEN, 32), (far, N)).unwrap();
        let copied = far_step.then().copy(far, near).unwrap();
        let near_step = copied.then().launch(&two.increments[0], per(LEN, 32), (near, N)).unwrap();
        near_step.then().copy(near, far).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for device in [0, 1] {
            exec.launch(&two.streams[device]).unwrap();
            two.streams[device].synchronize_blocking().unwrap();
            assert_eq!([two.first(0, near), two.first(1, far)], [7, 7]);
        }
        assert!(graph.contexts().eq([&*two.here, &two.there]));
    });
}

#[test]
fn pooled_memory_of_the_other_device_is_filled_and_copied() {
    on_two_devices!();
    let two = Two::new();
    leaves_nothing(|| {
        let far = two.streams[1].zeros::<u32>(LEN).unwrap();
        let graph = two.graph();
        let filled = graph.root().fill(&far, 3).unwrap();
        let copied = filled.then().copy(&far, &two.memory[0]).unwrap();
        filled.set_value(4_u32).unwrap();
        copied.set_destination(&two.memory[0]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        // The first launch waits for the home of the memory, which is of the other device.
        exec.launch(&two.streams[0]).unwrap();
        assert_eq!(two.first(0, &two.memory[0]), 4);
    });
}

fn pool(two: &Two) -> MemPool {
    two.there.pool(PoolOptions::default()).unwrap()
}

#[test]
fn kernels_use_memory_of_the_other_device_once_they_have_access() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    let adds = offset_copy::load(&two.here).unwrap();
    let pool = pool(&two);
    let pooled = two.streams[1].zeros_from::<u32>(&pool, LEN).unwrap();
    let graph = two.graph();
    let refused = |from: &cuda_handles::Buffer<u32>| {
        let error = graph.root().launch(&adds, per(LEN, 32), (from, near, 1, N)).unwrap_err();
        error.to_string()
    };
    let [own, other] = two.numbers();
    let who = format!(
        "the memory of argument `from` of kernel `offset_copy` belongs to the context of device {other}, the \
         kernel to the context of device {own}; let the kernel's"
    );
    let copy = "or copy it to memory of that context (`Stream::copy_peer`)";
    assert_eq!(refused(far), format!("{who} context use it (`Context::enable_peer_access`), {copy}"));
    assert_eq!(refused(&pooled), format!("{who} device use its pool (`MemPool::grant_access`), {copy}"));
    assert!(!two.here.has_peer_access(&two.there));
    two.reach();
    two.reach();
    assert!(two.here.has_peer_access(&two.there) && !two.there.has_peer_access(&two.here));
    pool.grant_access(two.here.device()).unwrap();
    assert_eq!(pool.access(two.here.device()).unwrap(), PoolAccess::ReadWrite);
    for from in [far, &pooled] {
        let graph = two.graph();
        let filled = graph.root().fill(from, 8).unwrap();
        filled.then().launch(&adds, per(LEN, 32), (from, near, 1, N)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for stream in &two.streams {
            exec.launch(stream).unwrap();
            stream.synchronize_blocking().unwrap();
        }
        assert_eq!(two.first(0, near), 9);
        // A graph of one context may have such arguments, too, and so may launches on streams.
        let alone = two.here.graph().unwrap();
        alone.root().launch(&adds, per(LEN, 32), (from, near, 1, N)).unwrap();
        alone.instantiate().unwrap().launch(&two.streams[0]).unwrap();
        adds.launch(&two.streams[0], per(LEN, 32), (from, near, 2, N)).unwrap();
        assert_eq!(two.first(0, near), 10);
    }
}

#[test]
fn clones_and_child_graphs_span_as_their_originals() {
    on_two_devices!();
    let two = Two::new();
    let [near, far] = &two.memory;
    leaves_nothing(|| {
        two.reset();
        let step = two.there.graph().unwrap();
        step.root().launch(&two.increments[1], per(LEN, 32), (far, N)).unwrap();
        let graph = two.graph();
        let child = graph.root().child(&step).unwrap();
        child.then().copy(far, near).unwrap();
        let inside = child.embedded().unwrap();
        inside.nodes().unwrap()[0].then().launch(&two.increments[1], per(LEN, 32), (far, N)).unwrap();
        let clone = graph.clone_graph().unwrap();
        assert!(clone.contexts().eq(graph.contexts()));
        clone.root().fill(&two.more(1), 1).unwrap();
        let outer = two.graph();
        outer.root().child(&clone).unwrap();
        for (graph, expected) in [(graph, 2), (clone, 4), (outer, 6)] {
            let mut exec = graph.instantiate().unwrap();
            exec.launch(&two.streams[1]).unwrap();
            two.streams[1].synchronize_blocking().unwrap();
            assert_eq!(two.first(0, near), expected);
        }
    });
}

#[test]
fn host_functions_and_events_stand_between_nodes_of_both_devices() {
    on_two_devices!();
    let two = Two::new();
    leaves_nothing(|| {
        two.reset();
        let events = [two.here.event().unwrap(), two.there.event().unwrap()];
        let seen = Arc::new(AtomicU32::new(0));
        let graph = two.graph();
        let first = graph.root().fill(&two.memory[1], 1).unwrap();
        let recorded = first.then().record(&events[1]).unwrap();
        let counts = Arc::clone(&seen);
        let host = recorded
            .then()
            .host(move || {
                counts.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        let last = host.then().launch(&two.increments[0], per(LEN, 32), (&two.memory[0], N)).unwrap();
        last.then().record(&events[0]).unwrap();
        last.then().wait(&events[1]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&two.streams[1]).unwrap();
        exec.launch(&two.streams[0]).unwrap();
        for (event, stream) in events.iter().zip(&two.streams) {
            stream.wait(event).unwrap();
            event.synchronize_blocking().unwrap();
        }
        assert_eq!(seen.load(Ordering::Relaxed), 2);
        assert_eq!(two.first(0, &two.memory[0]), 2);
    });
}

#[test]
fn allocation_nodes_of_the_other_device_serve_kernels_of_both() {
    on_two_devices!();
    let two = Two::new();
    let adds = offset_copy::load(&two.here).unwrap();
    leaves_nothing(|| {
        let graph = two.graph();
        let there = AllocOptions::new().on(AllocPlace::Device(two.there.device()));
        let (alloc, scratch) = graph.root().alloc_with::<u32>(LEN, there).unwrap();
        let filled = alloc.then().fill(&scratch, 20).unwrap();
        let far = filled.then().launch(&two.increments[1], per(LEN, 32), (&scratch, N)).unwrap();
        let near = far.then().launch(&adds, per(LEN, 32), (&scratch, &two.memory[0], 1, N)).unwrap();
        near.then().free(&scratch).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for stream in &two.streams {
            exec.launch(stream).unwrap();
            stream.synchronize_blocking().unwrap();
            assert_eq!(two.first(0, &two.memory[0]), 22);
        }
        // Memory of the home is not for the other device, unless that is said.
        let other = two.graph();
        let (alloc, own) = other.root().alloc::<u32>(LEN).unwrap();
        let error = alloc.then().launch(&two.increments[1], per(LEN, 32), (&own, N)).unwrap_err();
        assert!(error.to_string().ends_with(
            "let the kernel's device use it (`AllocOptions::accessible_from`), or allocate it on that device \
             (`AllocOptions::on`)"
        ));
        let (alloc, shared) = {
            let options = AllocOptions::new().accessible_from(two.there.device(), PoolAccess::ReadWrite);
            other.root().alloc_with::<u32>(LEN, options).unwrap()
        };
        alloc.then().launch(&two.increments[1], per(LEN, 32), (&shared, N)).unwrap();
    });
}

#[test]
fn a_context_stated_twice_or_as_its_home_counts_once() {
    on_two_devices!();
    let two = Two::new();
    let graph = Graph::spanning(&two.here, &[&two.there, &two.here, &two.there]).unwrap();
    assert_eq!(graph.contexts().count(), 2);
    let alone = Graph::spanning(&two.here, &[&two.here]).unwrap();
    assert!(alone.contexts().eq([&*two.here]));
    alone
        .condition()
        .map_or_else(|error| assert!(!error.to_string().contains("several contexts"), "{error}"), drop);
}
