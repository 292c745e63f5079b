//! Which graph a raw value that comes back from other code stands for.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use cuda_handles::GraphHandle;
use cuda_sys::CUgraph;

use crate::graph::Graph;
use crate::state::GraphState;
use crate::state::guard::GraphGuard;
use crate::state::hierarchy::Hierarchy;
use crate::state::home::Home;
use crate::state::ids::SubgraphId;

/// The graphs that this library knows and that no handle owns: those adopted, and all embedded
/// ones.
static SHARED: LazyLock<Mutex<Shared>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Shared {
    by_raw: HashMap<usize, Entry>,
    /// With this many entries it is time to look for those that are over.
    full: usize,
}

struct Entry {
    home: Arc<Home>,
    subgraph: SubgraphId,
    /// Of an embedded graph: it is in its node as long as this lives.
    there: Option<Weak<()>>,
}

impl Entry {
    fn is_of(&self, graph: &Graph) -> bool {
        core::ptr::addr_eq(self.home.root().as_ptr(), Arc::as_ptr(graph.hierarchy()))
            && self.subgraph == graph.subgraph()
    }

    fn is_over(&self) -> bool {
        self.home.root().strong_count() == 0
            || self.there.as_ref().is_some_and(|there| there.strong_count() == 0)
    }
}

/// The shared graphs, under their lock. It is the last to be taken: under it no other is, and
/// nothing is dropped that may take one. So a graph that is found comes out of it.
struct Open(MutexGuard<'static, Shared>);

/// Takes the lock of the shared graphs.
fn open() -> Open {
    Open(SHARED.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Open {
    fn find(&self, raw: CUgraph) -> Option<Graph> {
        // What is over may have another's place by now, since its table became that of another
        // hierarchy.
        let entry = self.0.by_raw.get(&raw.addr()).filter(|entry| !entry.is_over())?;
        let root = entry.home.root().upgrade()?.downcast().ok()?;
        Some(Graph::from_hierarchy(root, entry.subgraph))
    }

    fn insert(&mut self, raw: CUgraph, entry: Entry) {
        const FEW: usize = 64;
        let shared = &mut *self.0;
        if shared.by_raw.len() >= shared.full {
            // Weak references: nothing is dropped with them.
            shared.by_raw.retain(|_, entry| !entry.is_over());
            shared.full = FEW.max(2 * shared.by_raw.len());
        }
        shared.by_raw.insert(raw.addr(), entry);
    }

    /// Enters an adopted graph, unless there is one: then that is the result, if it is still there.
    fn claim(&mut self, raw: CUgraph, graph: &Graph) -> Option<Graph> {
        let known = self.find(raw);
        if known.is_none() {
            let home = Home::new(graph.hierarchy());
            self.insert(raw, Entry { home, subgraph: graph.subgraph(), there: None });
        }
        known
    }

    fn give_up(&mut self, raw: CUgraph, graph: &Graph) {
        if self.0.by_raw.get(&raw.addr()).is_some_and(|entry| entry.is_of(graph)) {
            self.0.by_raw.remove(&raw.addr());
        }
    }

    /// Whether a graph is known as one of its own that was adopted.
    fn is_adopted(&self, raw: CUgraph) -> bool {
        self.0.by_raw.get(&raw.addr()).is_some_and(|entry| entry.subgraph.is_root() && !entry.is_over())
    }

    /// Enters graphs that are embedded in nodes.
    fn enter(&mut self, root: &Arc<Hierarchy>, table: &mut GraphState, subgraphs: &[SubgraphId]) {
        let home = Arc::clone(table.home.get_or_insert_with(|| Home::new(root)));
        for &subgraph in subgraphs {
            if let Some(graph) = table.embedded(subgraph) {
                let entry = Entry { home: Arc::clone(&home), subgraph, there: Some(graph.there()) };
                self.insert(graph.raw.0, entry);
            }
        }
    }
}

impl GraphGuard<'_> {
    /// Lets graphs that are embedded in nodes be found by their raw values.
    pub(crate) fn share(&mut self, subgraphs: &[SubgraphId]) {
        if subgraphs.iter().any(|subgraph| !subgraph.is_root()) {
            let root = Arc::clone(self.hierarchy());
            open().enter(&root, self, subgraphs);
        }
    }

    /// After the table became that of this hierarchy: all graphs that it has entered are found as
    /// graphs of this one, and those that have new places there.
    pub(crate) fn share_anew(&mut self, subgraphs: &[SubgraphId]) {
        let mut shared = open();
        let root = Arc::clone(self.hierarchy());
        if let Some(home) = &self.home {
            home.move_to(&root);
        }
        shared.enter(&root, self, subgraphs);
    }

    /// The same for the graphs in a graph that was read, unless one of them was adopted by
    /// itself: that is the result then, and none is entered.
    pub(crate) fn share_read(&mut self, subgraphs: &[SubgraphId]) -> Option<CUgraph> {
        if subgraphs.is_empty() {
            return None;
        }
        let mut shared = open();
        let mut raws = subgraphs.iter().filter_map(|subgraph| Some(self.embedded(*subgraph)?.raw.0));
        let alone = raws.find(|raw| shared.is_adopted(*raw));
        if alone.is_none() {
            let root = Arc::clone(self.hierarchy());
            shared.enter(&root, self, subgraphs);
        }
        alone
    }
}

/// The graph that this library has for a handle, or for its raw value.
pub(crate) fn known(handle: &GraphHandle) -> Option<Graph> {
    if let Some(graph) = Graph::tied_to(handle) {
        return Some(graph);
    }
    loop {
        let found = open().find(handle.as_raw())?;
        if found.is_there() {
            return Some(found);
        }
        // An embedded graph that has gone, and its raw value may have been given to another; or it
        // was moved, and has another entry by now.
        open().give_up(handle.as_raw(), &found);
    }
}

/// Enters an adopted graph, unless another thread was faster or the graph has come into a node of
/// one that is known: then that one is the result.
pub(crate) fn share(raw: CUgraph, graph: Graph) -> Graph {
    loop {
        let known = open().claim(raw, &graph);
        match known {
            None => return graph,
            Some(known) if known.is_there() => return known,
            Some(known) => open().give_up(raw, &known),
        }
    }
}
