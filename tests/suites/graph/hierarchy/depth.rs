//! Graphs nested deeper than any stack.

use cuda_graph::{ContextExt, DebugDotFlags, Graph};
use cuda_handles::Context;
use cuda_tests::{is_soft, no_leaks, raw, setup};

/// How deep graphs are nested here. A driver may go down by recursion, on a stack whose size is the
/// thread's, and says nothing of a limit; on a GPU this is what was tried.
fn deep() -> usize {
    if is_soft() { 4_000 } else { 256 }
}

/// The innermost graph of graphs nested one in each.
fn innermost(graph: &Graph) -> Graph {
    let mut inner = graph.clone();
    while let [child] = inner.children().unwrap().as_slice() {
        inner = child.embedded().unwrap();
    }
    inner
}

/// Graphs nested at least this deep, one in each, the innermost one empty. Each step nests a clone
/// in itself, so that building takes no longer than the result is deep.
fn nested(context: &Context, depth: usize) -> Graph {
    let mut graph = context.graph().unwrap();
    graph.root().child(&context.graph().unwrap()).unwrap();
    let mut reached = 1;
    while reached < depth {
        let outer = graph.clone_graph().unwrap();
        innermost(&outer).root().child(&graph).unwrap();
        graph = outer;
        reached = 2 * reached + 1;
    }
    graph
}

#[test]
fn deep_graphs_are_built_cloned_run_drawn_replaced_and_dropped() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = nested(&context, deep());
        innermost(&graph).root().fill(&buffer, 7).unwrap();
        let clone = graph.clone_graph().unwrap();
        for graph in [&graph, &clone] {
            stream.fill(&buffer, 0).unwrap();
            let mut exec = graph.instantiate().unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [7; 8]);
            let mut info = cuda_sys::CUgraphExecUpdateResultInfo::default();
            let source = clone.as_raw().unwrap();
            // SAFETY: executable and graph live, and nobody else uses them; what both own is owned
            // by the graph as well.
            raw::ok(unsafe { raw::driver().cuGraphExecUpdate(exec.as_raw(), source, &raw mut info) });
        }
        assert!(graph.to_dot().unwrap().contains("more inside"));
        assert!(graph.to_svg().unwrap().contains("more inside"));
        let path = std::env::temp_dir().join(format!("cuda-graph-nested-{}.dot", std::process::id()));
        graph.debug_dot(&path, DebugDotFlags::default()).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > deep() as u64);
        std::fs::remove_file(&path).unwrap();

        // Replaced and removed graphs go with everything in them.
        let small = context.graph().unwrap();
        let [child] = graph.children().unwrap().try_into().unwrap();
        child.set_graph(&small).unwrap();
        assert!(child.embedded().unwrap().is_empty().unwrap());
        let [child] = clone.children().unwrap().try_into().unwrap();
        let inner = child.embedded().unwrap();
        child.remove().unwrap();
        assert!(inner.len().is_err() && clone.is_empty().unwrap());
        drop((graph, clone));
        drop(nested(&context, deep()));
    });
}

#[test]
fn deep_graphs_wait_and_record_and_are_moved() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (event, first) = (context.event().unwrap(), context.event().unwrap());
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = nested(&context, deep());
        let inner = innermost(&graph);
        let fill = inner.root().fill(&buffer, 7).unwrap();
        fill.then().record(&event).unwrap();
        stream.record(&first).unwrap();
        inner.root().wait(&first).unwrap();
        // So that the launch takes the path of one that may have to wait.
        let flag = context.pinned_zeros::<u32>(1).unwrap().share();
        let mut batch = cuda_handles::Batch::new();
        batch.wait(&flag, 0, cuda_handles::Compare::Equal, 0).unwrap();
        fill.then().batch(&batch).unwrap();
        let outer = match context.driver().version() >= cuda_sys::Version::new(12, 9) {
            true => {
                let outer = context.graph().unwrap();
                outer.root().child_moved(graph).unwrap();
                outer
            }
            false => graph,
        };
        outer.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert!(event.query().unwrap());
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [7; 8]);
    });
}
