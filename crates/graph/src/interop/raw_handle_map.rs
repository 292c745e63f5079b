//! The map from raw graphs to the graphs of this library that no handle owns: adopted and embedded
//! graphs.
//!
//! A graph that a [`GraphHandle`] owns is tied to its handle. The others are found here when other
//! code gives their raw value. Entries hold weak references, so that the map keeps nothing alive.
//! An entry whose graph is gone is ignored, and removed when the map grows.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use cuda_handles::GraphHandle;
use cuda_handles::internal::{Lock, LockGuard, Rank};
use cuda_sys::CUgraph;

use crate::error::Result;
use crate::graph::Graph;
use crate::state::GraphState;
use crate::state::current_hierarchy::CurrentHierarchy;
use crate::state::guard::GraphGuard;
use crate::state::hierarchy::Hierarchy;
use crate::state::ids::SubgraphId;

static MAP: LazyLock<Lock<RawHandleMap>> =
    LazyLock::new(|| Lock::new(Rank::RawHandleMap, RawHandleMap::default()));

#[derive(Default)]
struct RawHandleMap {
    by_raw: HashMap<usize, MapEntry>,
    /// The number of entries at which those of graphs that are gone are removed next.
    full: usize,
}

struct MapEntry {
    hierarchy: Arc<CurrentHierarchy>,
    subgraph: SubgraphId,
    /// For an embedded graph: alive as long as the graph is in its node.
    alive: Option<Weak<()>>,
}

impl MapEntry {
    fn is_of(&self, graph: &Graph) -> bool {
        core::ptr::addr_eq(self.hierarchy.get().as_ptr(), Arc::as_ptr(graph.hierarchy()))
            && self.subgraph == graph.subgraph()
    }

    /// Whether the graph is gone.
    fn is_gone(&self) -> bool {
        self.hierarchy.get().strong_count() == 0
            || self.alive.as_ref().is_some_and(|alive| alive.strong_count() == 0)
    }
}

/// The locked map. Its lock is taken last: no lock but those of its entries is taken under it, and
/// nothing is dropped there that may take one. Therefore a graph that is found leaves the lock
/// alive.
struct MapGuard(LockGuard<'static, RawHandleMap>);

fn lock_map() -> MapGuard {
    MapGuard(MAP.lock())
}

impl MapGuard {
    fn find(&self, raw: CUgraph) -> Option<Graph> {
        // After its state was merged into another hierarchy, the id of a graph that is gone may
        // belong to another graph.
        let entry = self.0.by_raw.get(&raw.addr()).filter(|entry| !entry.is_gone())?;
        let hierarchy = entry.hierarchy.get().upgrade()?.downcast().ok()?;
        Some(Graph::from_hierarchy(hierarchy, entry.subgraph))
    }

    fn insert(&mut self, raw: CUgraph, entry: MapEntry) {
        const FEW: usize = 64;
        let map = &mut *self.0;
        if map.by_raw.len() >= map.full {
            // Only weak references are dropped here.
            map.by_raw.retain(|_, entry| !entry.is_gone());
            map.full = FEW.max(2 * map.by_raw.len());
        }
        map.by_raw.insert(raw.addr(), entry);
    }

    /// Registers an adopted graph. If the raw graph is registered already, returns that graph
    /// instead.
    fn insert_adopted(&mut self, raw: CUgraph, graph: &Graph) -> Option<Graph> {
        let found = self.find(raw);
        if found.is_none() {
            let hierarchy = CurrentHierarchy::new(graph.hierarchy());
            self.insert(raw, MapEntry { hierarchy, subgraph: graph.subgraph(), alive: None });
        }
        found
    }

    /// Removes the entry of a raw graph, if it leads to this graph.
    fn remove(&mut self, raw: CUgraph, graph: &Graph) {
        if self.0.by_raw.get(&raw.addr()).is_some_and(|entry| entry.is_of(graph)) {
            self.0.by_raw.remove(&raw.addr());
        }
    }

    /// Whether a raw graph was adopted as a root graph.
    fn is_adopted(&self, raw: CUgraph) -> bool {
        self.0.by_raw.get(&raw.addr()).is_some_and(|entry| entry.subgraph.is_root() && !entry.is_gone())
    }

    /// Registers embedded graphs of a hierarchy.
    fn insert_embedded(
        &mut self,
        hierarchy: &Arc<Hierarchy>,
        state: &mut GraphState,
        subgraphs: &[SubgraphId],
    ) {
        let current = state.current_hierarchy.get_or_insert_with(|| CurrentHierarchy::new(hierarchy));
        let current = Arc::clone(current);
        for &subgraph in subgraphs {
            if let Some(graph) = state.embedded(subgraph) {
                let alive = Some(graph.alive());
                let entry = MapEntry { hierarchy: Arc::clone(&current), subgraph, alive };
                self.insert(graph.raw.0, entry);
            }
        }
    }
}

impl GraphGuard<'_> {
    /// Registers embedded graphs, so that they are found by their raw values.
    pub(crate) fn register(&mut self, subgraphs: &[SubgraphId]) {
        if subgraphs.iter().any(|subgraph| !subgraph.is_root()) {
            let hierarchy = Arc::clone(self.hierarchy());
            lock_map().insert_embedded(&hierarchy, self, subgraphs);
        }
    }

    /// Registers graphs after this hierarchy has taken over the state of another one. Graphs that
    /// the state registered before are now found in this hierarchy; `subgraphs` are those that have
    /// new ids.
    pub(crate) fn register_taken_over(&mut self, subgraphs: &[SubgraphId]) {
        let mut map = lock_map();
        let hierarchy = Arc::clone(self.hierarchy());
        if let Some(current) = &self.current_hierarchy {
            current.set(&hierarchy);
        }
        map.insert_embedded(&hierarchy, self, subgraphs);
    }

    /// Registers the embedded graphs of a graph that was read. If one of them was adopted as a root
    /// graph, registers none and returns that one.
    pub(crate) fn register_read(&mut self, subgraphs: &[SubgraphId]) -> Option<CUgraph> {
        if subgraphs.is_empty() {
            return None;
        }
        let mut map = lock_map();
        let mut raws = subgraphs.iter().filter_map(|subgraph| Some(self.embedded(*subgraph)?.raw.0));
        let adopted = raws.find(|raw| map.is_adopted(*raw));
        if adopted.is_none() {
            let hierarchy = Arc::clone(self.hierarchy());
            map.insert_embedded(&hierarchy, self, subgraphs);
        }
        adopted
    }
}

/// The graph of this library behind a handle or its raw value.
///
/// # Errors
/// A graph was found, and cannot be locked here; see [`Graph::exists`].
pub(crate) fn find_graph(handle: &GraphHandle) -> Result<Option<Graph>> {
    if let Some(graph) = Graph::tied_to(handle) {
        return Ok(Some(graph));
    }
    loop {
        let found = lock_map().find(handle.as_raw());
        let Some(found) = found else { return Ok(None) };
        if found.exists()? {
            return Ok(Some(found));
        }
        // The embedded graph is gone, and another graph may have its raw value; or it was moved,
        // and has another entry by now.
        lock_map().remove(handle.as_raw(), &found);
    }
}

/// Registers an adopted graph. If another thread was faster, or if the graph was meanwhile moved
/// into a known one, returns the graph that is registered.
///
/// # Errors
/// As for [`find_graph`].
pub(crate) fn register_adopted(raw: CUgraph, graph: Graph) -> Result<Graph> {
    loop {
        let found = lock_map().insert_adopted(raw, &graph);
        let Some(found) = found else { return Ok(graph) };
        if found.exists()? {
            return Ok(found);
        }
        lock_map().remove(raw, &found);
    }
}
