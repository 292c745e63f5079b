//! A long chain of graphs that own each other is dropped on a small stack.

use cuda_graph::{ContextExt, Graph};
use cuda_handles::{Context, Owner};
use cuda_tests::{is_soft, no_leaks, setup};

/// How the next graph keeps the one before.
type Keep = fn(&Graph, Graph);

fn other(graph: Graph) -> Owner {
    Owner::other(graph)
}

const WAYS: [(&str, usize, Keep); 4] = [
    ("a graph", 60_000, |graph, before| graph.keep(other(before))),
    ("a node", 10_000, |graph, before| {
        graph.root().empty().unwrap().keep(other(before)).unwrap();
    }),
    ("a call of the host", 10_000, |graph, before| {
        let call = move || drop(before.clone());
        graph.root().host(call).unwrap();
    }),
    ("an executable", 2_000, |graph, before| {
        let exec = before.instantiate().unwrap();
        drop(before);
        graph.keep(Owner::other(exec));
    }),
];

fn line(context: &Context, len: usize, keep: Keep) -> Graph {
    let mut last = context.graph().unwrap();
    for _ in 0..len {
        let next = context.graph().unwrap();
        keep(&next, last);
        last = next;
    }
    last
}

#[test]
fn a_long_line_of_graphs_that_keep_each_other_is_dropped_on_a_small_stack() {
    let context = setup();
    no_leaks(|| {
        for (what, len, keep) in WAYS {
            let len = if is_soft() { len } else { len.min(1000) };
            let graph = line(&context, len, keep);
            println!("{what}: {len}");
            let small = std::thread::Builder::new().stack_size(256 << 10);
            small.spawn(move || drop(graph)).unwrap().join().unwrap();
        }
    });
}

thread_local!(static LATE: core::cell::RefCell<Option<Graph>> = const { core::cell::RefCell::new(None) });

/// When the thread's values are dropped, those of the library are gone already: they came later.
#[test]
fn a_long_line_is_dropped_by_a_thread_that_is_ending() {
    let context = setup();
    no_leaks(|| {
        for (what, len, keep) in WAYS {
            let len = if is_soft() { len } else { len.min(1000) };
            let graph = line(&context, len, keep);
            let short = line(&context, 2, keep);
            println!("{what}: {len}");
            let small = std::thread::Builder::new().stack_size(256 << 10);
            let end = move || {
                LATE.set(Some(graph));
                drop(short);
            };
            small.spawn(end).unwrap().join().unwrap();
        }
    });
}
