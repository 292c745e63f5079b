//! Which graph a raw value that comes back from other code stands for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cuda_handles::GraphHandle;
use cuda_sys::CUgraph;

use crate::graph::{Graph, Root};
use crate::table::Place;

/// The graphs that other code may give back by a raw value that no handle owns: those adopted, and embedded ones that were lent.
static SHARED: Mutex<Option<HashMap<usize, Shared>>> = Mutex::new(None);

struct Shared {
    root: Weak<Root>,
    place: Place,
}

impl Shared {
    fn of(graph: &Graph) -> Self {
        Self { root: Arc::downgrade(graph.hierarchy()), place: graph.place() }
    }

    fn graph(&self) -> Option<Graph> {
        Some(Graph::from_root(self.root.upgrade()?, self.place))
    }
}

fn shared() -> Guard {
    Guard(SHARED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The shared graphs, under their lock, in which nothing is dropped and no other lock taken.
struct Guard(MutexGuard<'static, Option<HashMap<usize, Shared>>>);

impl Guard {
    fn find(&self, raw: usize) -> Option<Graph> {
        self.0.as_ref()?.get(&raw)?.graph()
    }

    fn insert(&mut self, raw: usize, graph: Shared) {
        let all = self.0.get_or_insert_default();
        // Weak references to graphs that are gone: nothing is dropped with them.
        all.retain(|_, shared| shared.root.strong_count() > 0);
        all.insert(raw, graph);
    }
}

/// The graph that this library has for a handle, or for its raw value.
pub(crate) fn known(handle: &GraphHandle) -> Option<Graph> {
    if let Some(graph) = Graph::tied_to(handle) {
        return Some(graph);
    }
    let found = shared().find(handle.as_raw().addr())?;
    // An embedded graph may have gone, and its raw value been given to another.
    let is_there = found.look().is_ok_and(|locked| locked.about(found.place()).is_some());
    is_there.then_some(found)
}

/// Enters an adopted graph, unless another thread was faster: then that one's is the result.
pub(crate) fn share(raw: CUgraph, graph: Graph) -> Graph {
    let known = {
        let mut shared = shared();
        let known = shared.find(raw.addr()).filter(|known| known.place().is_root());
        if known.is_none() {
            shared.insert(raw.addr(), Shared::of(&graph));
        }
        known
    };
    known.unwrap_or(graph)
}

/// Enters an embedded graph that was lent.
pub(crate) fn share_embedded(raw: CUgraph, graph: &Graph) {
    shared().insert(raw.addr(), Shared::of(graph));
}
