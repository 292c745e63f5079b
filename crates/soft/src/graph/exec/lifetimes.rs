//! The lifetimes of graph memory that outlives the launch that allocates it.
//!
//! Calls and work come at different times, so there are two accounts: whether memory lives in the
//! order of the calls, by which launches and frees are refused, and what is there when the stream
//! gets to a node, by which accesses are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::graph::model::node_memory::NodeMemory;
use crate::memory::graph_mapping::{self, MappingUser};
use crate::memory::{self, Allocation};
use crate::stream::event::Marker;
use crate::sync::lock;

/// Memory that outlives the launch that made it.
#[derive(Debug)]
pub(super) struct Life {
    /// Whether it lives in the order of the calls.
    pub(super) lives: bool,
    /// What made it last, which also holds the address.
    pub(super) owner: Arc<NodeMemory>,
    pub(super) allocation: Arc<Allocation>,
    /// How often a launch was called that makes it, and up to which of these the work has come.
    pub(super) called: u64,
    pub(super) reached: u64,
    /// Where the free comes that was announced last.
    pub(super) freed: Option<Arc<Marker>>,
}

/// By address. It outlives graphs and executables. What is done to a life and to the memory there
/// is done under one lock: a launch takes memory that it finds without a life for that of a launch
/// on its way.
static LIVES: Mutex<BTreeMap<u64, Life>> = Mutex::new(BTreeMap::new());

pub(super) fn lives() -> MutexGuard<'static, BTreeMap<u64, Life>> {
    lock(&LIVES)
}

/// Says when work is over: with its last owner.
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

/// Nothing lives any more where memory was, but for steps in which other memory lives.
pub(super) fn leave_steps(lives: &BTreeMap<u64, Life>, memory: &NodeMemory, user: &MappingUser) {
    let living = lives.values().filter(|life| life.lives && life.owner.device == memory.device);
    let living: BTreeSet<u64> = living.flat_map(|life| steps_of(&life.owner)).collect();
    graph_mapping::end_lives(
        memory.device,
        &steps_of(memory).filter(|step| !living.contains(step)).collect(),
        user,
    );
}

/// A context is over, and its memory with it.
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
    // What it held takes other locks as it goes.
    drop(gone);
}

/// A free that a call has announced and a stream will carry out.
#[derive(Debug)]
pub(crate) struct Freeing {
    start: u64,
    life: u64,
    /// Launches that make the memory again wait for this.
    done: Arc<Marker>,
    /// Launches elsewhere may have what is behind the addresses once this is over.
    over: Done,
}

impl Drop for Freeing {
    /// Nobody may wait for ever for a free that was cut short.
    fn drop(&mut self) {
        self.done.reach();
    }
}

/// Announces the free of memory of a graph on a stream, 0 for none; `None` if nothing lives there.
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
    /// Carries the free out; `node` is the free node, 0 for the call that `how` names.
    pub(crate) fn carry_out(&self, node: u64, how: &str) {
        // Before the memory is gone, so that a trim by whoever sees that gives it back.
        self.over.set();
        self.end_life(node, how);
        self.done.reach();
    }

    fn end_life(&self, node: u64, how: &str) {
        let mut lives = lives();
        let Some(life) = lives.get(&self.start) else { return };
        if life.called != self.life {
            // Launched again since. As long as that launch has not come to its node, nothing is
            // there.
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
