//! A broken graph and everything around it: owners, other graphs, other code.

use std::sync::{Arc, Mutex, mpsc};

use cuda_graph::{ContextExt, Error, Graph};
use cuda_handles::Owner;
use cuda_sys::Call;
use cuda_tests::{Injection, SOON, fail, no_leaks, settle, setup, until};

use super::keeping::{Things, Used};
use super::{CODE, assert_broken};
use crate::common::gone::soon;
use crate::common::other;

/// Asks its graph when it is dropped: that takes the graph's lock.
struct Asks(Graph, mpsc::Sender<Result<usize, Error>>);

impl Drop for Asks {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.len());
    }
}

#[test]
fn owners_are_dropped_outside_the_graphs_lock_however_a_change_ends() {
    let context = setup();
    no_leaks(|| {
        let (send, told) = mpsc::channel();
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let asks = || Asks(graph.clone(), send.clone());
        let host = |asks: Asks| {
            graph.root().before([&*last])?.host(move || {
                let _asks = &asks;
            })
        };
        for call in [Call::cuGraphAddNode, Call::cuGraphAddDependencies] {
            let failure = fail(call, 1, CODE);
            host(asks()).unwrap_err();
            assert!(failure.hit());
            drop(failure);
            assert_eq!(told.recv_timeout(SOON).unwrap(), Ok(1), "{}", call.name());
        }
        // The graph that a broken replacement took out of a node.
        let old = context.graph().unwrap();
        old.root().empty().unwrap().keep(Owner::other(Mutex::new(asks()))).unwrap();
        old.keep(Owner::other(Mutex::new(asks())));
        let child = graph.root().child(&old).unwrap();
        drop(old);
        let failure = fail(Call::cuGraphChildGraphNodeGetGraph, 1, CODE);
        let error = child.set_graph(&context.graph().unwrap()).unwrap_err();
        assert!(failure.hit());
        drop(failure);
        assert_broken(&graph, &error);
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(SOON).unwrap(), Err(error.clone()));
        }
        // What broke it stays.
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let (held, fails) = (
            Arc::new(()),
            [fail(Call::cuGraphAddDependencies, 1, CODE), fail(Call::cuGraphDestroyNode, 1, CODE)],
        );
        let own = Arc::clone(&held);
        let host = graph.root().before([&*last]).unwrap().host(move || drop(Arc::clone(&own)));
        assert!(matches!(host, Err(Error::Broken(_))), "{host:?}");
        drop(fails);
        assert_eq!(Arc::strong_count(&held), 2);
        drop((graph, last));
        assert!(until(SOON, || Arc::strong_count(&held) == 1));
    });
}

/// The hierarchy is broken as a whole, and no other one.
#[test]
fn graphs_around_and_inside_a_broken_one_are_broken_and_clones_of_it_are_not() {
    let context = setup();
    no_leaks(|| {
        let source = context.graph().unwrap();
        source.root().child(&context.graph().unwrap()).unwrap();
        let graph = context.graph().unwrap();
        let middle = graph.root().child(&source).unwrap().embedded().unwrap();
        let inner = middle.children().unwrap().remove(0).embedded().unwrap();
        let clone = graph.clone_graph().unwrap();
        let last = middle.root().empty().unwrap();
        let fails = [fail(Call::cuGraphAddDependencies, 1, CODE), fail(Call::cuGraphDestroyNode, 1, CODE)];
        let error = middle.root().before([&*last]).unwrap().empty().unwrap_err();
        assert!(fails.iter().all(Injection::hit));
        drop(fails);
        for graph in [&graph, &middle, &inner] {
            assert_broken(graph, &error);
        }
        for graph in [&clone, &source] {
            graph.root().empty().unwrap();
            graph.instantiate().unwrap();
        }
        assert!(clone.find_clone_of(&last).is_err());
    });
}

/// Other code may make executables of a graph that was lent, broken or not: it has what they use.
#[test]
fn a_lent_graph_that_breaks_keeps_what_its_nodes_use() {
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let lent = graph.lend().unwrap();
        let used = Used::new(&things);
        let fails = [fail(Call::cuGraphAddDependencies, 1, CODE), fail(Call::cuGraphDestroyNode, 1, CODE)];
        let error = graph.root().before([&*last]).unwrap().fill(&used.buffer, 1).unwrap_err();
        assert!(fails.iter().all(Injection::hit));
        drop(fails);
        assert_broken(&graph, &error);
        // SAFETY: the graph lives.
        assert_eq!(unsafe { Graph::from_raw(&context, lent) }.unwrap_err(), error);
        let exec = other::instantiate(&context, lent);
        let memory = Arc::downgrade(used.buffer.allocation());
        drop((used, graph, last));
        settle();
        assert!(memory.strong_count() > 0);
        other::launch(exec, &things.stream);
        things.stream.synchronize_blocking().unwrap();
        other::destroy_exec(exec);
        assert!(soon(&|| memory.strong_count() == 0));
    });
}
