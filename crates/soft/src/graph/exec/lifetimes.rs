//! The lifetimes of graph memory that outlives the launch that allocates it.
//!
//! There are two accounts, since calls and work happen at different times. In the order of calls,
//! memory is live or not: this decides whether launches and frees are refused. In the order of
//! work, memory is there or not when a stream reaches a node: this decides whether accesses fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::graph::model::node_memory::NodeMemory;
use crate::memory::graph_mapping::{self, MappingUser};
use crate::memory::{self, Allocation};
use crate::stream::marker::Marker;
use crate::sync::lock;

/// The lifetime of memory that outlives the launch that allocates it.
#[derive(Debug)]
pub(super) struct Life {
    /// Whether it is live in the order of calls.
    pub(super) lives: bool,
    /// The node memory that allocated it last and owns the address.
    pub(super) owner: Arc<NodeMemory>,
    pub(super) allocation: Arc<Allocation>,
    /// How many launches that allocate it were called, and which of them the work has reached.
    pub(super) called: u64,
    pub(super) reached: u64,
    /// Reached when the last announced free is executed.
    pub(super) freed: Option<Arc<Marker>>,
}

/// By address. Lifetimes outlive graphs and executables. A lifetime and the memory at its address
/// change under this one lock: a launch takes memory without a lifetime for memory of a launch in
/// flight.
static LIVES: Mutex<BTreeMap<u64, Life>> = Mutex::new(BTreeMap::new());

pub(super) fn lives() -> MutexGuard<'static, BTreeMap<u64, Life>> {
    lock(&LIVES)
}

/// A flag that is set when its owner is dropped.
#[derive(Debug, Default)]
pub(super) struct Done(pub(super) Arc<AtomicBool>);

impl Done {
    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.set();
    }
}

pub(super) fn steps_of(memory: &NodeMemory) -> impl Iterator<Item = u64> + use<> {
    graph_mapping::steps(memory.start, memory.len as u64)
}

/// Releases the address chunks of memory, except those in which other memory lives.
pub(super) fn leave_steps(lives: &BTreeMap<u64, Life>, memory: &NodeMemory, user: &MappingUser) {
    let living = lives.values().filter(|life| life.lives && life.owner.device == memory.device);
    let living: BTreeSet<u64> = living.flat_map(|life| steps_of(&life.owner)).collect();
    graph_mapping::end_lives(
        memory.device,
        &steps_of(memory).filter(|step| !living.contains(step)).collect(),
        user,
    );
}

/// Ends the memory of a context that has ended.
pub(crate) fn forget_context(context: u64) {
    let gone: Vec<Life> = {
        let mut lives = lives();
        let of_it = |life: &Life| life.allocation.context == context;
        let starts: Vec<u64> =
            lives.iter().filter(|(_, life)| of_it(life)).map(|(start, _)| *start).collect();
        let gone: Vec<Life> = starts.iter().filter_map(|start| lives.remove(start)).collect();
        let nobody = MappingUser { stream: 0, exec: 0, done: Arc::new(AtomicBool::new(true)) };
        gone.iter().for_each(|life| leave_steps(&lives, &life.owner, &nobody));
        gone
    };
    // Dropping it takes other locks.
    drop(gone);
}

/// A free that a call has announced and a stream will execute.
#[derive(Debug)]
pub(crate) struct Freeing {
    start: u64,
    life: u64,
    /// Launches that allocate the memory again wait for this.
    done: Arc<Marker>,
    /// Set when launches on other streams may use the chunks behind the addresses.
    over: Done,
}

impl Drop for Freeing {
    /// Ends the waits for a free that is never executed.
    fn drop(&mut self) {
        self.done.reach();
    }
}

/// Announces a free of graph memory on a stream (0 for none); `None` if nothing lives there.
pub(crate) fn announce_free(start: u64, stream: u64) -> Option<Freeing> {
    announce(&mut lives(), start, stream)
}

pub(super) fn announce(lives: &mut BTreeMap<u64, Life>, start: u64, stream: u64) -> Option<Freeing> {
    let life = lives.get_mut(&start).filter(|life| life.lives)?;
    let done = Arc::<Marker>::default();
    life.lives = false;
    life.freed = Some(Arc::clone(&done));
    life.allocation.queue_free();
    let (called, owner, over) = (life.called, Arc::clone(&life.owner), Done::default());
    leave_steps(lives, &owner, &MappingUser { stream, exec: 0, done: Arc::clone(&over.0) });
    Some(Freeing { start, life: called, done, over })
}

impl Freeing {
    /// Executes the free; `node` is the free node, or 0 for the call that `how` names.
    pub(crate) fn carry_out(&self, node: u64, how: &str) {
        // Set first, so that a thread that sees the memory gone can trim it.
        self.over.set();
        self.end_life(node, how);
        self.done.reach();
    }

    fn end_life(&self, node: u64, how: &str) {
        let mut lives = lives();
        let Some(life) = lives.get(&self.start) else { return };
        if life.called != self.life {
            // Launched again since. Nothing is there until that launch reaches its node.
            if life.reached <= self.life {
                life.allocation.retire(node);
            }
            return;
        }
        let gone = lives.remove(&self.start);
        if let Some(life) = &gone {
            memory::remove(&life.allocation, how.to_owned());
        }
        // Dropping it takes other locks.
        drop(lives);
    }
}
