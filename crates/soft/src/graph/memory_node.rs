//! Memory that graphs allocate: an address for each allocation node, and whether memory lives there.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::code::{Answer, INVALID_VALUE, OUT_OF_MEMORY};
use crate::driver;
use crate::fault::Loss;
use crate::memory::{self, Allocation, Origin, Request};

/// The address of an allocation node, kept by the node and by the executables that have it.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(crate) start: u64,
    pub(crate) len: usize,
    pub(crate) device: i32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Memory lives here, in the order of the calls.
    live: bool,
    /// The graph that the allocation node was added to: its handle and uid.
    home: (u64, u64),
    /// The free node of the graph itself or of another graph, by the uid of the root graph.
    freed_in: Vec<u64>,
}

static RESERVED: Mutex<BTreeMap<u64, Weak<Reservation>>> = Mutex::new(BTreeMap::new());

/// The reservations whose memory lives: it outlives their graphs and executables.
static LIVING: Mutex<BTreeMap<u64, Arc<Reservation>>> = Mutex::new(BTreeMap::new());

fn living() -> MutexGuard<'static, BTreeMap<u64, Arc<Reservation>>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What graphs use of each device and have reserved, each with its highest value.
static FIGURES: Mutex<BTreeMap<i32, Figures>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
}

const STEP: u64 = 32 << 20;

/// Changes and reads the figures of a device.
pub(crate) fn with_figures<R>(device: i32, act: impl FnOnce(&mut Figures) -> R) -> R {
    act(FIGURES.lock().unwrap_or_else(PoisonError::into_inner).entry(device).or_default())
}

impl Drop for Reservation {
    fn drop(&mut self) {
        RESERVED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.start);
        memory::unpromise(self.start);
    }
}

/// An address for a new allocation node.
pub(crate) fn reserve(len: usize, device: i32) -> Arc<Reservation> {
    let reservation =
        Arc::new(Reservation { start: memory::promise(len), len, device, state: Mutex::default() });
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    reserved.insert(reservation.start, Arc::downgrade(&reservation));
    reservation
}

/// The reservation that starts at an address.
pub(crate) fn find(address: u64) -> Option<Arc<Reservation>> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).get(&address)?.upgrade()
}

/// Whether memory of a graph may be freed by a call; it counts as freed from then on. Other memory is none of ours.
pub(crate) fn may_free(allocation: &Allocation) -> bool {
    if allocation.origin != Origin::GraphNode {
        return true;
    }
    match find(allocation.start) {
        Some(reservation) => reservation.set_live(false),
        // The graph and its executables are gone, the memory is not.
        None => true,
    }
}

impl Reservation {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether memory lives here; what was noted before.
    fn set_live(self: &Arc<Self>, live: bool) -> bool {
        let was_live = std::mem::replace(&mut self.lock().live, live);
        if live {
            living().insert(self.start, Arc::clone(self));
        } else {
            let gone = living().remove(&self.start);
            // It may be the last one, which takes other locks as it goes.
            drop(gone);
        }
        was_live
    }

    pub(crate) fn home(&self) -> (u64, u64) {
        self.lock().home
    }

    pub(crate) fn set_home(&self, home: (u64, u64)) {
        self.lock().home = home;
    }

    /// The free node of a root graph is gone.
    pub(crate) fn remove_free(&self, graph: u64) {
        self.lock().freed_in.retain(|own| *own != graph);
    }

    /// Notes the free node of a root graph. A graph has at most one for an address, and only its own if it has one there.
    pub(crate) fn add_free(&self, graph: u64, own: u64) -> Answer {
        let mut state = self.lock();
        let freed_by_own = state.freed_in.contains(&own);
        if state.freed_in.contains(&graph) || freed_by_own || (graph == own && !state.freed_in.is_empty()) {
            return Err(INVALID_VALUE);
        }
        state.freed_in.push(graph);
        Ok(())
    }

    fn request(&self, context: u64) -> Request {
        Request { origin: Origin::GraphNode, len: self.len, device: self.device, context, pool: 0, flags: 0 }
    }

    /// Makes the memory when the stream gets to the node.
    pub(crate) fn allocate_now(&self, context: u64) -> Result<(), Loss> {
        match memory::allocate_at(Some(self.start), self.request(context)) {
            Ok(allocation) => {
                allocation.reach();
                Ok(())
            }
            Err(code) => Err(Loss::new(code, "a graph's allocation does not fit into the device's memory")),
        }
    }

    /// Ends the memory when the stream gets to the free node.
    pub(crate) fn free_now(&self) {
        if let Some(allocation) = memory::find_start(self.start) {
            memory::remove(&allocation, "a free node");
        }
    }

    /// Marks memory as reached by the stream.
    pub(crate) fn reach_now(&self) {
        if let Some(allocation) = memory::find_start(self.start) {
            allocation.reach();
        }
    }
}

/// What a launch does to the memory of its allocation and free nodes.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Allocated and freed in the launch itself.
    pub(crate) inside: HashSet<u64>,
}

/// Checks and notes at the launch call what the launch does: `allocs` and `frees` are its nodes.
pub(crate) fn begin(
    allocs: &[Arc<Reservation>],
    frees: &[Arc<Reservation>],
    auto_free: bool,
    context: u64,
) -> Answer<Plan> {
    let total: u64 = allocs.iter().map(|alloc| alloc.len as u64).sum();
    if total > driver::config().memory {
        return Err(OUT_OF_MEMORY);
    }
    let starts = |list: &[Arc<Reservation>]| list.iter().map(|own| own.start).collect::<HashSet<u64>>();
    let (allocated, freed) = (starts(allocs), starts(frees));
    if !auto_free && allocs.iter().any(|alloc| alloc.lock().live) {
        return Err(INVALID_VALUE);
    }
    if frees.iter().any(|free| !allocated.contains(&free.start) && !free.lock().live) {
        return Err(INVALID_VALUE);
    }
    let mut plan = Plan::default();
    for alloc in allocs {
        with_figures(alloc.device, |figures| {
            figures.used = figures.used.max(total.next_multiple_of(STEP));
            figures.used_high = figures.used_high.max(figures.used);
            figures.reserved = figures.reserved.max(figures.used);
            figures.reserved_high = figures.reserved_high.max(figures.reserved);
        });
        if freed.contains(&alloc.start) {
            plan.inside.insert(alloc.start);
            alloc.set_live(false);
        } else {
            let was_live = alloc.set_live(true);
            if !(was_live && memory::find_start(alloc.start).is_some()) {
                memory::allocate_at(Some(alloc.start), alloc.request(context))?;
            }
        }
    }
    for free in frees {
        free.set_live(false);
    }
    Ok(plan)
}
