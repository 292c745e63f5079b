//! Threads that use the same graphs in opposite orders, and destructors that call the library.

use std::sync::{Arc, Mutex};
use std::thread;

use cuda_graph::{ContextExt, Error, Graph, GraphExec, NodeError};
use cuda_handles::{Context, Owner, Stream, reaper};
use cuda_tests::{Gate, SOON, needs, no_leaks, setup, until};

fn chain(context: &Context, nodes: usize) -> Graph {
    let graph = context.graph().unwrap();
    let mut last = graph.root().empty().unwrap();
    for _ in 1..nodes {
        last = last.then().empty().unwrap();
    }
    graph
}

/// Each is moved into the other one at the same time: one succeeds, whichever is larger.
#[test]
fn graphs_moved_into_each_other_at_once_end_as_one() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        for round in 0..100 {
            let sizes = [[2, 40], [40, 2], [3, 3]][round % 3];
            let [one, two] = sizes.map(|nodes| chain(&context, nodes));
            let into = |outer: &Graph, moved: &Graph| outer.root().child_moved(moved.clone()).is_ok();
            let instantiates = |graph: &Graph| match graph.instantiate() {
                Ok(_) | Err(Error::Node(NodeError::GraphMoved)) => {}
                other => panic!("{other:?}"),
            };
            let done = thread::scope(|scope| {
                let first = scope.spawn(|| into(&one, &two));
                let second = scope.spawn(|| into(&two, &one));
                scope.spawn(|| instantiates(&one));
                scope.spawn(|| instantiates(&two));
                [first, second].map(|thread| thread.join().unwrap())
            });
            assert_eq!(done.iter().filter(|done| **done).count(), 1, "in round {round}");
            let left = if done[0] { &one } else { &two };
            assert!(left.check().unwrap().is_clean());
            assert_eq!(left.children().unwrap().len(), 1);
        }
    });
}

/// Does all that a destructor may do when it is dropped.
struct ComesBack {
    graph: Graph,
    stream: Stream,
    exec: Mutex<Option<GraphExec>>,
    done: Arc<Mutex<usize>>,
}

impl Drop for ComesBack {
    fn drop(&mut self) {
        let exec = self.exec.get_mut().unwrap();
        let mut own = self.graph.instantiate().unwrap();
        if let Some(exec) = exec {
            exec.launch(&self.stream).unwrap();
        }
        own.launch(&self.stream).unwrap();
        self.graph.root().empty().unwrap();
        drop(exec.take());
        drop(own);
        reaper::drain();
        let buffer = self.stream.zeros::<u32>(16).unwrap();
        let nodes = self.graph.root().fill(&buffer, 1).unwrap();
        drop(buffer);
        nodes.remove().unwrap();
        *self.done.lock().unwrap() += 1;
    }
}

/// Wherever the destructor runs: with the executable, on the reaper's thread, with a node, with a
/// graph.
#[test]
fn destructors_may_use_the_library() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let other = context.stream().unwrap();
        let done = Arc::<Mutex<usize>>::default();
        let comes_back = |graph: &Graph, exec: Option<GraphExec>| {
            Owner::other(ComesBack {
                graph: graph.clone(),
                stream: other.clone(),
                exec: Mutex::new(exec),
                done: Arc::clone(&done),
            })
        };
        for round in 0..20 {
            let held = chain(&context, 3);
            let graph = chain(&context, 3);
            let node = graph.root().empty().unwrap();
            node.keep(comes_back(&held, held.instantiate().ok())).unwrap();
            graph.keep(comes_back(&held, None));
            let mut exec = graph.instantiate().unwrap();
            let gate = (round % 2 == 0).then(|| Gate::close(&stream));
            exec.launch(&stream).unwrap();
            node.remove().unwrap();
            drop(node);
            match round % 4 {
                0 | 1 => drop((exec, graph)),
                _ => drop((graph, exec)),
            }
            drop(gate);
            stream.synchronize_blocking().unwrap();
            assert!(until(SOON, || *done.lock().unwrap() == 2 * (round + 1)), "in round {round}");
        }
        other.synchronize_blocking().unwrap();
        assert!(until(SOON, || reaper::pending() == 0));
    });
}

/// Executables that are launched, uploaded and dropped by threads that share streams: nothing that
/// a run uses goes before its end.
#[test]
fn what_runs_use_stays_whichever_streams_they_were_on() {
    let context = setup();
    no_leaks(|| {
        thread::scope(|scope| {
            for seed in 0..3_usize {
                let context = &context;
                scope.spawn(move || {
                    for round in 0..60 {
                        let streams: Vec<Stream> = (0..3).map(|_| context.stream().unwrap()).collect();
                        let target = context.pinned_zeros::<u32>(1).unwrap().share();
                        let graph = context.graph().unwrap();
                        let buffer = streams[0].zeros::<u32>(1).unwrap();
                        let fill = graph.root().fill(&buffer, 9).unwrap();
                        fill.then().copy(&buffer, &target).unwrap();
                        drop(fill);
                        let value = Arc::new(());
                        graph.keep(Owner::other(Arc::clone(&value)));
                        drop(buffer);
                        let mut exec = graph.instantiate().unwrap();
                        let gate = Gate::close(&streams[1]);
                        exec.launch(&streams[1]).unwrap();
                        match (seed + round) % 4 {
                            0 => exec.upload(&streams[2]).unwrap(),
                            1 => exec.launch(&streams[2]).unwrap(),
                            2 => {
                                exec.launch(&streams[0]).unwrap();
                                exec.upload(&streams[2]).unwrap();
                            }
                            _ => {}
                        }
                        drop((exec, graph));
                        assert_eq!(Arc::strong_count(&value), 2, "it runs yet");
                        gate.open();
                        streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
                        let target = target.try_unique().expect("all is over");
                        assert_eq!(target[0], 9);
                        assert!(until(SOON, || Arc::strong_count(&value) == 1));
                    }
                });
            }
        });
    });
}
