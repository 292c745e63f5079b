//! The graph memory of a context.

use cuda_graph::ContextExt;
use cuda_handles::{Context, GraphMemoryUsage};

use cuda_tests::alone;

use super::traceless;

const STEP: u64 = 32 << 20;

/// Used, reserved and the two high-water marks, in steps.
fn steps(context: &Context) -> [u64; 4] {
    let usage: GraphMemoryUsage = context.graph_memory_usage().unwrap();
    [usage.used, usage.reserved, usage.used_high, usage.reserved_high].map(|bytes| bytes.div_ceil(STEP))
}

#[test]
fn memory_of_graphs_rises_by_launches_and_falls_by_a_trim() {
    // All graphs of a process count.
    alone!();
    traceless(|context, stream| {
        context.trim_graph_memory().unwrap();
        context.reset_graph_memory_high_water().unwrap();
        assert_eq!(steps(context), [0; 4]);
        let graph = context.graph().unwrap();
        let (_, memory) = graph.root().alloc::<u8>(40 << 20).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        assert_eq!(steps(context), [0; 4]);
        let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(steps(context), [2; 4]);
        // A trim does not free memory in use.
        context.trim_graph_memory().unwrap();
        stream.fill(&output, 1).unwrap();
        assert_eq!(output.slice(..2).unwrap().read_blocking(stream).unwrap(), [1, 1]);
        assert_eq!(steps(context), [2; 4]);
        drop(output);
        stream.synchronize_blocking().unwrap();
        context.trim_graph_memory().unwrap();
        assert_eq!(steps(context), [0, 0, 2, 2]);
        context.reset_graph_memory_high_water().unwrap();
        assert_eq!(steps(context), [0; 4]);
        // The next launch takes what it needs.
        exec.launch(stream).unwrap();
    });
}

#[test]
fn what_another_stream_used_is_given_back_once_it_was_dropped() {
    // All graphs of a process count.
    alone!();
    traceless(|context, stream| {
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(64).unwrap();
        alloc.then().fill(&memory, 5).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        let other = context.stream().unwrap();
        // The reaper frees it, in a stream of its own. Who asks how much is free waits for that.
        for _ in 0..50 {
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            assert_eq!(output.read_blocking(&other).unwrap(), [5; 64]);
            drop(output);
            context.memory_info().unwrap();
            context.trim_graph_memory().unwrap();
            assert_eq!(steps(context)[..2], [0, 0]);
        }
    });
}
