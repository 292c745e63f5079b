//! The order of threads: vector clocks.
//!
//! Each thread counts epochs. A new one begins where the thread gives away what it knows: at a
//! barrier, at `bar.warp.sync`, at a fence, and when it ends. An access is ordered before the
//! present of another thread if that thread knows the epoch of the access.
//!
//! Threads that met at a barrier know the same, so they share one table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::shadow::Record;

/// The known epochs of the threads of blocks, by the numbers of the blocks.
pub(super) type Known = BTreeMap<u64, Arc<[u32]>>;

/// What a thread knew at its last fence.
struct Fence {
    epoch: u32,
    own: Arc<[u32]>,
    foreign: Arc<Known>,
}

struct ThreadClock {
    epoch: u32,
    /// The known epochs of the threads of its block.
    own: Arc<[u32]>,
    foreign: Arc<Known>,
    fence: Option<Fence>,
    /// What it acquired last. A thread that spins acquires the same again and again.
    acquired: Option<Arc<Known>>,
    /// Where it released what it knew at a fence.
    released: Option<(u64, u32)>,
}

/// The clocks of the threads of a block.
pub(super) struct BlockClocks {
    block: u64,
    threads: Vec<ThreadClock>,
    /// What threads knew that arrived at a barrier without waiting.
    arrived: HashMap<u32, Meeting>,
    ended: Meeting,
}

/// What the threads that meet know together.
#[derive(Clone)]
struct Meeting {
    own: Vec<u32>,
    last: Arc<[u32]>,
    foreign: Arc<Known>,
}

impl Meeting {
    fn new(threads: usize) -> Self {
        Meeting { own: vec![0; threads], last: Arc::from(vec![0; threads]), foreign: Arc::default() }
    }

    fn add(&mut self, own: &Arc<[u32]>, foreign: &Arc<Known>) {
        if !Arc::ptr_eq(&self.last, own) {
            raise(&mut self.own, own);
            self.last = Arc::clone(own);
        }
        join(&mut self.foreign, foreign);
    }

    fn add_thread(&mut self, thread: usize, clock: &mut ThreadClock) {
        self.add(&clock.own, &clock.foreign);
        raise_to(&mut self.own, thread, clock.epoch);
        clock.epoch += 1;
    }
}

impl BlockClocks {
    pub(super) fn new(block: u64, threads: usize) -> Self {
        let nothing: Arc<[u32]> = Arc::from(vec![0; threads]);
        let foreign = Arc::<Known>::default();
        let new = || ThreadClock {
            epoch: 1,
            own: Arc::clone(&nothing),
            foreign: Arc::clone(&foreign),
            fence: None,
            acquired: None,
            released: None,
        };
        BlockClocks {
            block,
            threads: (0..threads).map(|_| new()).collect(),
            arrived: HashMap::new(),
            ended: Meeting::new(threads),
        }
    }

    /// The current epoch of a thread.
    pub(super) fn epoch(&self, thread: usize) -> u32 {
        self.threads.get(thread).map_or(0, |clock| clock.epoch)
    }

    /// Whether an access is ordered before the present of a thread.
    pub(super) fn knows(&self, thread: u16, access: &Record) -> bool {
        let (here, there) = (usize::from(thread), usize::from(access.thread));
        let Some(clock) = self.threads.get(here) else { return true };
        let known = if access.block == self.block {
            if here == there {
                return true;
            }
            clock.own.get(there)
        } else {
            clock.foreign.get(&access.block).and_then(|threads| threads.get(there))
        };
        known.is_some_and(|&epoch| epoch >= access.epoch)
    }

    /// Threads meet: at a barrier, with those that arrived there and those that have ended, or as
    /// lanes of a warp, with the lanes that have ended.
    pub(super) fn meet(&mut self, barrier: Option<u32>, threads: impl Iterator<Item = usize> + Clone) {
        let arrived = barrier.and_then(|barrier| self.arrived.remove(&barrier));
        let mut meeting = arrived.unwrap_or_else(|| Meeting::new(self.threads.len()));
        let lanes = threads.clone().next().map_or(0, |first| first / 32 * 32);
        if barrier.is_some() {
            raise(&mut meeting.own, &self.ended.own);
        } else if let (Some(own), Some(ended)) = (meeting.own.get_mut(lanes..), self.ended.own.get(lanes..)) {
            raise(own, ended.get(..32).unwrap_or(ended));
        }
        for thread in threads.clone() {
            if let Some(clock) = self.threads.get_mut(thread) {
                meeting.add_thread(thread, clock);
            }
        }
        let own: Arc<[u32]> = Arc::from(meeting.own);
        for thread in threads {
            if let Some(clock) = self.threads.get_mut(thread) {
                clock.own = Arc::clone(&own);
                clock.foreign = Arc::clone(&meeting.foreign);
            }
        }
    }

    /// A thread arrives at a barrier and goes on.
    pub(super) fn arrive(&mut self, barrier: u32, thread: usize) {
        let count = self.threads.len();
        if let Some(clock) = self.threads.get_mut(thread) {
            self.arrived.entry(barrier).or_insert_with(|| Meeting::new(count)).add_thread(thread, clock);
        }
    }

    pub(super) fn end(&mut self, thread: usize) {
        if let Some(clock) = self.threads.get_mut(thread) {
            self.ended.add_thread(thread, clock);
        }
    }

    /// A fence: what the thread knows now is released by its strong writes from now on.
    pub(super) fn fence(&mut self, thread: usize) {
        if let Some(clock) = self.threads.get_mut(thread) {
            clock.fence = Some(Fence {
                epoch: clock.epoch,
                own: Arc::clone(&clock.own),
                foreign: Arc::clone(&clock.foreign),
            });
            clock.epoch += 1;
        }
    }

    /// Releases what the thread knew at its last fence, at the place with that number.
    pub(super) fn release(&mut self, thread: usize, place: u64, released: &mut Option<Arc<Known>>) {
        let Some(clock) = self.threads.get_mut(thread) else { return };
        let Some(fence) = &clock.fence else { return };
        if clock.released.replace((place, fence.epoch)) == Some((place, fence.epoch)) && released.is_some() {
            return;
        }
        let mut own = fence.own.to_vec();
        raise_to(&mut own, thread, fence.epoch);
        let released = released.get_or_insert_default();
        join(released, &fence.foreign);
        let entry = Arc::make_mut(released).entry(self.block);
        let all = entry.or_insert_with(|| Arc::clone(&fence.own));
        raise(&mut own, all);
        *all = Arc::from(own);
    }

    /// Acquires what was released at a place.
    pub(super) fn acquire(&mut self, thread: usize, released: &Arc<Known>) {
        let Some(clock) = self.threads.get_mut(thread) else { return };
        if clock.acquired.as_ref().is_some_and(|last| Arc::ptr_eq(last, released)) {
            return;
        }
        if let Some(own) = released.get(&self.block)
            && own.iter().zip(clock.own.iter()).any(|(new, old)| new > old)
        {
            let mut all = clock.own.to_vec();
            raise(&mut all, own);
            clock.own = Arc::from(all);
        }
        join(&mut clock.foreign, released);
        clock.acquired = Some(Arc::clone(released));
    }
}

/// Raises each epoch to the other one.
fn raise(all: &mut [u32], others: &[u32]) {
    for (epoch, &other) in all.iter_mut().zip(others) {
        *epoch = (*epoch).max(other);
    }
}

fn raise_to(all: &mut [u32], thread: usize, to: u32) {
    if let Some(epoch) = all.get_mut(thread) {
        *epoch = (*epoch).max(to);
    }
}

/// Adds to `all` what `more` knows.
fn join(all: &mut Arc<Known>, more: &Arc<Known>) {
    if Arc::ptr_eq(all, more) || more.is_empty() {
        return;
    }
    if all.is_empty() {
        *all = Arc::clone(more);
        return;
    }
    for (block, threads) in more.iter() {
        match all.get(block) {
            Some(known) if Arc::ptr_eq(known, threads) => {}
            Some(known) => {
                if known.iter().zip(threads.iter()).any(|(old, new)| new > old) {
                    let mut both = known.to_vec();
                    raise(&mut both, threads);
                    Arc::make_mut(all).insert(*block, Arc::from(both));
                }
            }
            None => {
                Arc::make_mut(all).insert(*block, Arc::clone(threads));
            }
        }
    }
}
