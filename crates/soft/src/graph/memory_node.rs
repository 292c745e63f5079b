//! Memory that graphs allocate: an address for each allocation node, and whether memory lives there.
//!
//! Calls and work come at different times, so there are two accounts: whether memory lives in the order of the calls, by which launches and
//! frees are refused, and what is there when the stream gets to a node, by which accesses are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cuda_sys::CUresult;

use super::graph_memory;
use crate::code::{Answer, INVALID_VALUE, OUT_OF_MEMORY};
use crate::driver;
use crate::fault::Loss;
use crate::memory::{self, Allocation, Origin, Request};

/// A promised address, shared by allocation nodes of which each comes after the free of the one before.
#[derive(Debug)]
pub(crate) struct Slot {
    start: u64,
    pub(crate) len: usize,
    pub(crate) device: i32,
}

impl Slot {
    pub(crate) fn new(len: usize, device: i32) -> Arc<Self> {
        Arc::new(Self { start: memory::promise(len), len, device })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        memory::unpromise(self.start);
    }
}

/// The memory of an allocation node, kept by the node and by the executables that have it.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// Never reused.
    id: u64,
    pub(crate) start: u64,
    pub(crate) len: usize,
    pub(crate) device: i32,
    pub(crate) slot: Arc<Slot>,
    /// The graph that the allocation node was added to: its handle and uid.
    pub(crate) home: (u64, u64),
    /// The allocation node, for messages.
    node: AtomicU64,
    /// The free nodes of all graphs: handles and uids.
    frees: Mutex<Vec<(u64, u64)>>,
}

/// By address, the newest last.
static RESERVED: Mutex<BTreeMap<u64, Vec<Weak<Reservation>>>> = Mutex::new(BTreeMap::new());

fn reserved() -> MutexGuard<'static, BTreeMap<u64, Vec<Weak<Reservation>>>> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = reserved();
        if let Some(list) = reserved.get_mut(&self.start) {
            list.retain(|other| other.strong_count() > 0);
            if list.is_empty() {
                reserved.remove(&self.start);
            }
        }
    }
}

/// Memory for a new allocation node of a graph, at the address of the slot.
pub(crate) fn reserve(slot: Arc<Slot>, home: (u64, u64)) -> Arc<Reservation> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let reservation = Arc::new(Reservation {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        start: slot.start,
        len: slot.len,
        device: slot.device,
        slot,
        home,
        node: AtomicU64::new(0),
        frees: Mutex::default(),
    });
    reserved().entry(reservation.start).or_default().push(Arc::downgrade(&reservation));
    reservation
}

/// The newest memory that starts at an address: what lay there before is freed by its own graph.
pub(crate) fn find(address: u64) -> Option<Arc<Reservation>> {
    reserved().get(&address)?.iter().rev().find_map(Weak::upgrade)
}

impl Reservation {
    /// A launch or an upload maps the memory of its allocation nodes.
    pub(crate) fn map(&self) {
        graph_memory::map(self.device, self.start, self.len as u64);
    }

    /// The node that allocates it.
    pub(crate) fn set_node(&self, node: u64) {
        self.node.store(node, Ordering::Relaxed);
        memory::promise_to(self.start, node);
    }

    fn node(&self) -> u64 {
        self.node.load(Ordering::Relaxed)
    }

    /// The nodes that free it, also those that are gone by now.
    pub(crate) fn frees(&self) -> Vec<(u64, u64)> {
        self.frees.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the nodes that free it.
    pub(crate) fn set_frees(&self, frees: Vec<(u64, u64)>) {
        *self.frees.lock().unwrap_or_else(PoisonError::into_inner) = frees;
    }

    fn allocate(&self, context: u64) -> Answer<Arc<Allocation>> {
        let request = Request {
            origin: Origin::GraphNode,
            len: self.len,
            device: self.device,
            context,
            pool: 0,
            flags: 0,
        };
        let allocation = memory::allocate_at(Some(self.start), request)?;
        allocation.await_node(self.node());
        Ok(allocation)
    }
}

/// Memory that outlives the launch that made it.
#[derive(Debug)]
struct Life {
    /// Whether it lives in the order of the calls.
    lives: bool,
    /// What made it last, which also holds the address.
    owner: Arc<Reservation>,
    allocation: Arc<Allocation>,
    /// How often a launch was called that makes it, and up to which of these the work has come.
    called: u64,
    reached: u64,
}

/// By address. It outlives graphs and executables. What is done to a life and to the memory there is done under one lock: a launch takes memory
/// that it finds without a life for that of a launch on its way.
static LIVES: Mutex<BTreeMap<u64, Life>> = Mutex::new(BTreeMap::new());

fn lives() -> MutexGuard<'static, BTreeMap<u64, Life>> {
    LIVES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether memory lives at an address in the order of the calls.
pub(crate) fn is_living(address: u64) -> bool {
    lives().get(&address).is_some_and(|life| life.lives)
}

/// A context is over, and its memory with it.
pub(crate) fn forget_context(context: u64) {
    let gone: Vec<Life> = {
        let mut lives = lives();
        let of_it = |life: &Life| life.allocation.context == context;
        let starts: Vec<u64> =
            lives.iter().filter(|(_, life)| of_it(life)).map(|(start, _)| *start).collect();
        starts.iter().filter_map(|start| lives.remove(start)).collect()
    };
    // What it held takes other locks as it goes.
    drop(gone);
}

/// A free that a call has announced and a stream will carry out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Freeing {
    start: u64,
    life: u64,
}

/// Announces the free of memory of a graph; `None` if nothing lives there.
pub(crate) fn announce_free(start: u64) -> Option<Freeing> {
    announce(&mut lives(), start)
}

fn announce(lives: &mut BTreeMap<u64, Life>, start: u64) -> Option<Freeing> {
    let life = lives.get_mut(&start).filter(|life| life.lives)?;
    life.lives = false;
    life.allocation.queue_free();
    Some(Freeing { start, life: life.called })
}

impl Freeing {
    /// Carries the free out; `node` is the free node, 0 for the call that `how` names.
    pub(crate) fn carry_out(self, node: u64, how: &str) {
        let mut lives = lives();
        let Some(life) = lives.get(&self.start) else { return };
        if life.called != self.life {
            // Launched again since. As long as that launch has not come to its node, nothing is there.
            if life.reached <= self.life {
                life.allocation.retire(node);
            }
            return;
        }
        let gone = lives.remove(&self.start);
        if let Some(life) = &gone {
            memory::remove(&life.allocation, how.to_owned());
        }
        // What it held takes other locks as it goes.
        drop(lives);
    }
}

/// What a launch does with the memory of its allocation and free nodes.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The memory that outlives the launch, by its id: the how-manieth life it begins.
    kept: HashMap<u64, u64>,
    /// Its addresses.
    kept_starts: HashSet<u64>,
    /// The frees of memory that other launches made, by its id.
    outside: HashMap<u64, Freeing>,
    /// The memory that the launch frees as it starts.
    ended: Vec<Freeing>,
}

/// Checks and notes at the launch call what the launch does: `allocs` and `frees` are its nodes. A refused launch changes nothing.
pub(crate) fn begin(
    allocs: &[Arc<Reservation>],
    frees: &[Arc<Reservation>],
    auto_free: bool,
    context: u64,
) -> Answer<Plan> {
    if allocs.is_empty() && frees.is_empty() {
        return Ok(Plan::default());
    }
    let ids = |list: &[Arc<Reservation>]| list.iter().map(|own| own.id).collect::<HashSet<u64>>();
    let (allocated, freed) = (ids(allocs), ids(frees));
    let mut lives = lives();
    let is_live =
        |own: &Reservation| lives.get(&own.start).is_some_and(|life| life.lives && life.owner.id == own.id);
    if !auto_free && allocs.iter().any(|alloc| is_live(alloc)) {
        return Err(INVALID_VALUE);
    }
    let outside: Vec<_> = frees.iter().filter(|free| !allocated.contains(&free.id)).collect();
    if outside.iter().any(|free| !is_live(free)) {
        return Err(INVALID_VALUE);
    }
    let kept: Vec<_> = allocs.iter().filter(|alloc| !freed.contains(&alloc.id)).collect();
    check_room(allocs, &lives)?;
    let (mut made, mut found) = (Vec::new(), Vec::new());
    for alloc in kept.iter().filter(|alloc| !lives.contains_key(&alloc.start)) {
        // A launch before, of another executable, may be using the address just now, and frees it on its way.
        if let Some(allocation) = memory::find_start(alloc.start) {
            found.push((Arc::clone(alloc), allocation));
            continue;
        }
        match alloc.allocate(context) {
            Ok(allocation) => made.push((Arc::clone(alloc), allocation)),
            Err(code) => {
                made.iter().for_each(|(_, allocation)| memory::remove(allocation, "a refused launch"));
                return Err(code);
            }
        }
    }
    for (alloc, allocation) in made.into_iter().chain(found) {
        let life = Life { lives: true, owner: Arc::clone(&alloc), allocation, called: 0, reached: 0 };
        lives.insert(alloc.start, life);
    }
    let mut plan = Plan::default();
    for alloc in kept {
        let Some(life) = lives.get_mut(&alloc.start) else { continue };
        (life.lives, life.called) = (true, life.called + 1);
        // The address is the same, so both hold it.
        life.owner = Arc::clone(alloc);
        life.allocation.unqueue_free();
        plan.kept.insert(alloc.id, life.called);
        plan.kept_starts.insert(alloc.start);
    }
    // What lives and is freed in this launch had no free node yet when it was made.
    for alloc in allocs.iter().filter(|alloc| !plan.kept_starts.contains(&alloc.start)) {
        plan.ended.extend(announce(&mut lives, alloc.start));
    }
    for free in outside {
        if let Some(freeing) = announce(&mut lives, free.start) {
            plan.outside.insert(free.id, freeing);
        }
    }
    allocs.iter().for_each(|alloc| alloc.map());
    Ok(plan)
}

/// Whether the device has room for what a launch allocates and does not find there.
fn check_room(allocs: &[Arc<Reservation>], lives: &BTreeMap<u64, Life>) -> Answer {
    let mut wanted: BTreeMap<i32, BTreeMap<u64, u64>> = BTreeMap::new();
    for alloc in allocs.iter().filter(|alloc| !lives.contains_key(&alloc.start)) {
        wanted.entry(alloc.device).or_default().insert(alloc.start, alloc.len as u64);
    }
    let fits = |(device, ranges): (&i32, &BTreeMap<u64, u64>)| {
        let sum = ranges.values().fold(memory::used(*device), |sum, len| sum.saturating_add(*len));
        sum <= driver::config().memory
    };
    if wanted.iter().all(fits) { Ok(()) } else { Err(OUT_OF_MEMORY) }
}

impl Plan {
    /// The launch starts: what it will allocate anew is not there until it does.
    pub(crate) fn start(&self) {
        self.ended.iter().for_each(|freeing| freeing.carry_out(0, "a launch that frees by itself"));
        let lives = lives();
        for start in &self.kept_starts {
            let Some(life) = lives.get(start) else { continue };
            if life.reached > 0 && self.kept.get(&life.owner.id).is_some_and(|own| life.reached < *own) {
                life.allocation.retire(0);
            }
        }
    }

    /// The stream gets to an allocation node.
    pub(crate) fn allocate(&self, own: &Reservation, context: u64) -> Result<(), Loss> {
        let mut lives = lives();
        // Also if it is a later launch that leaves some there.
        if let Some(life) = lives.get_mut(&own.start) {
            life.allocation.renew(own.node());
            if let Some(number) = self.kept.get(&own.id) {
                life.reached = life.reached.max(*number);
            }
            return Ok(());
        }
        if self.kept_starts.contains(&own.start) {
            return Ok(());
        }
        match own.allocate(context) {
            Ok(allocation) => {
                allocation.renew(own.node());
                Ok(())
            }
            Err(code) => Err(Loss::new(code, "a graph's allocation does not fit into the device's memory")),
        }
    }

    /// The stream gets to a free node.
    pub(crate) fn free(&self, own: &Reservation, node: u64) -> Result<(), Loss> {
        let how = format!("free node {node:#x}");
        if let Some(freeing) = self.outside.get(&own.id) {
            freeing.carry_out(node, &how);
            return Ok(());
        }
        let lives = lives();
        match memory::find_start(own.start) {
            Some(allocation) if lives.contains_key(&own.start) => allocation.retire(node),
            Some(allocation) => memory::remove(&allocation, how),
            None => {
                let sentence = format!(
                    "{how} is reached before allocation node {:#x}, whose memory it frees: it is not ordered after that node",
                    own.node()
                );
                return Err(Loss::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, sentence));
            }
        }
        Ok(())
    }
}
