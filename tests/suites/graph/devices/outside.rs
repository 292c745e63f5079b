//! Copies between memory of a graph of two devices and memory of a third one.

use cuda_graph::{Error, MemcpyNode, MemoryError};
use cuda_handles::{Buffer, Context, Device};
use cuda_sys::{CUcontext, CUgraphNodeParams};
use cuda_tests::{alone, setup, skip};

use super::{LEN, Two};

macro_rules! on_three_devices {
    () => {
        alone!("CUDA_SOFT_DEVICES" = "3", "CUDA_SOFT_VERSION" = "13.2");
        drop(setup());
        if Device::count().unwrap() < 3 {
            skip!("there is no third device");
        }
    };
}

/// Plain memory of the third device.
fn outside() -> (Context, Buffer<u32>) {
    let context = Device::new(2).unwrap().context().unwrap();
    let memory = context.alloc_blocking::<u32>(LEN).unwrap();
    (context, memory)
}

/// The context that the driver has for a copy, if it tells (since CUDA 13.2).
fn context_of(two: &Two, copy: &MemcpyNode) -> Option<CUcontext> {
    let mut params = CUgraphNodeParams::default();
    // SAFETY: a live node, and the out pointer is valid.
    let answer = unsafe { two.here.driver().cuGraphNodeGetParams(copy.as_raw().unwrap(), &mut params) };
    // SAFETY: the parameters of a copy node.
    answer.ok().map(|_| unsafe { params.__bindgen_anon_1.memcpy.copyCtx })
}

fn asserts_context(two: &Two, copy: &MemcpyNode, expected: &Context) {
    if let Some(found) = context_of(two, copy) {
        assert_eq!(found, expected.as_raw());
    }
}

#[test]
fn a_copy_runs_in_a_context_of_the_span() {
    on_three_devices!();
    let two = Two::new();
    let ([near, far], (third, memory)) = (&two.memory, outside());
    let stream = third.stream().unwrap();
    let pinned = two.here.pinned_zeros::<u32>(LEN).unwrap().share();
    let graph = two.graph();
    let filled = graph.root().fill(far, 4).unwrap();
    let out = filled.then().copy_peer(far, &memory).unwrap();
    asserts_context(&two, &out, &two.there);
    let back = out.then().copy_peer(&memory, near).unwrap();
    asserts_context(&two, &back, &two.here);
    let last = back.then().copy_peer(&memory, &pinned).unwrap();
    asserts_context(&two, &last, &two.here);
    back.set_peer(&memory, &two.more(1)).unwrap();
    asserts_context(&two, &back, &two.there);
    back.set_peer(&memory, near).unwrap();
    let mut exec = graph.instantiate().unwrap();
    for launched_on in &two.streams {
        two.reset();
        exec.launch(launched_on).unwrap();
        launched_on.synchronize_blocking().unwrap();
        assert_eq!([two.first(0, near), two.first(1, far)], [4, 4]);
        assert_eq!(memory.read_blocking(&stream).unwrap(), [4; LEN]);
    }
}

#[test]
fn a_pool_outside_grants_access_to_the_device_of_the_span() {
    on_three_devices!();
    let two = Two::new();
    let (third, _) = outside();
    let stream = third.stream().unwrap();
    let pooled = stream.zeros::<u32>(LEN).unwrap();
    let inside = two.streams[1].zeros::<u32>(LEN).unwrap();
    let (graph, [_, own]) = (two.graph(), two.numbers());
    for memory in [&two.memory[1], &inside] {
        for [source, destination] in [[&pooled, memory], [memory, &pooled]] {
            let error = graph.root().copy_peer(source, destination).unwrap_err();
            assert_eq!(error, Error::Memory(MemoryError::PoolOutOfReach { own, of: 2 }));
        }
    }
    assert!(graph.is_empty().unwrap());
    third.default_pool().unwrap().grant_access(two.there.device()).unwrap();
    for memory in [&two.memory[1], &inside] {
        for [source, destination] in [[&pooled, memory], [memory, &pooled]] {
            let copy = graph.root().copy_peer(source, destination).unwrap();
            asserts_context(&two, &copy, &two.there);
            copy.remove().unwrap();
        }
    }
    stream.fill(&pooled, 6).unwrap();
    stream.synchronize_blocking().unwrap();
    graph.root().copy_peer(&pooled, &inside).unwrap();
    graph.instantiate().unwrap().launch(&two.streams[0]).unwrap();
    two.streams[0].synchronize_blocking().unwrap();
    assert_eq!(two.first(1, &inside), 6);
}
