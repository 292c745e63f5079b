//! The memory of allocation nodes: addresses, and the nodes that free it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::driver::result_code::Answer;
use crate::graph::model::address_space::NodeAddresses;
use crate::memory::graph_va;
use crate::memory::{self, Allocation, Origin, Request};
use crate::sync::lock;

/// The memory of an allocation node, owned by the node and by executables.
#[derive(Debug)]
pub(crate) struct NodeMemory {
    /// Counts up, never reused.
    pub(crate) id: u64,
    pub(crate) start: u64,
    pub(crate) len: usize,
    pub(crate) device: i32,
    /// Owns the address, which a later allocation node may share.
    pub(crate) range: NodeAddresses,
    /// The graph of the allocation node: handle and uid.
    pub(crate) home: (u64, u64),
    /// The allocation node, for messages.
    node: AtomicU64,
    /// The free nodes in all graphs, destroyed ones included: handles and uids.
    frees: Mutex<Vec<(u64, u64)>>,
    /// The allocating graph has or had a free node.
    freed_at_home: AtomicBool,
    /// It is or was part of an executable.
    instantiated: AtomicBool,
}

/// By address, the newest last.
static RESERVED_NODES: Mutex<BTreeMap<u64, Vec<Weak<NodeMemory>>>> = Mutex::new(BTreeMap::new());

fn reserved() -> MutexGuard<'static, BTreeMap<u64, Vec<Weak<NodeMemory>>>> {
    lock(&RESERVED_NODES)
}

impl Drop for NodeMemory {
    fn drop(&mut self) {
        graph_va::release(self.start, self.id);
        let mut reserved = reserved();
        if let Some(list) = reserved.get_mut(&self.start) {
            list.retain(|other| other.strong_count() > 0);
            if list.is_empty() {
                reserved.remove(&self.start);
            }
        }
    }
}

/// Creates the memory of a new allocation node.
pub(crate) fn reserve(range: NodeAddresses, len: usize, device: i32, home: (u64, u64)) -> Arc<NodeMemory> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let memory = Arc::new(NodeMemory {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        start: range.start,
        len,
        device,
        range,
        home,
        node: AtomicU64::new(0),
        frees: Mutex::default(),
        freed_at_home: AtomicBool::new(false),
        instantiated: AtomicBool::new(false),
    });
    graph_va::reserve(memory.start, memory.id, len);
    reserved().entry(memory.start).or_default().push(Arc::downgrade(&memory));
    memory
}

/// The newest memory that starts at an address. The graph frees older memory there itself.
pub(crate) fn find(address: u64) -> Option<Arc<NodeMemory>> {
    reserved().get(&address)?.iter().rev().find_map(Weak::upgrade)
}

/// Whether the allocating graph has or had a free node for the newest memory at an address.
pub(crate) fn has_free_node(address: u64) -> bool {
    let Some((start, id)) = graph_va::newest(address) else { return false };
    let found: Vec<_> = reserved().get(&start).into_iter().flatten().filter_map(Weak::upgrade).collect();
    found.iter().any(|own| own.id == id && own.freed_at_home.load(Ordering::Relaxed))
}

impl NodeMemory {
    /// Sets the node that allocates it.
    pub(crate) fn set_node(&self, node: u64) {
        self.node.store(node, Ordering::Relaxed);
        graph_va::set_node(self.start, self.id, node);
    }

    pub(crate) fn node(&self) -> u64 {
        self.node.load(Ordering::Relaxed)
    }

    /// The nodes that free it, destroyed ones included.
    pub(crate) fn frees(&self) -> Vec<(u64, u64)> {
        lock(&self.frees).clone()
    }

    /// Adds a node that frees it, in the allocating graph or in another one.
    pub(crate) fn add_free(&self, node: (u64, u64), is_at_home: bool) {
        self.freed_at_home.fetch_or(is_at_home, Ordering::Relaxed);
        lock(&self.frees).push(node);
    }

    /// Marks it as part of an executable.
    pub(crate) fn instantiate(&self) {
        self.instantiated.store(true, Ordering::Relaxed);
    }

    /// Whether it is or was part of an executable.
    pub(crate) fn is_instantiated(&self) -> bool {
        self.instantiated.load(Ordering::Relaxed)
    }

    /// Allocates the memory. It is not published yet.
    pub(crate) fn allocate(&self, context: u64) -> Answer<Arc<Allocation>> {
        let request = Request {
            origin: Origin::GraphNode,
            len: self.len,
            device: self.device,
            context,
            pool: 0,
            flags: 0,
        };
        let allocation = memory::make_at(self.start, request)?;
        allocation.await_node(self.node());
        Ok(allocation)
    }
}
