//! The state of a cache: which executables it has, under its lock, and what a call does next.

use std::sync::{Arc, Weak};

use cuda_handles::internal::WeakStream;
use cuda_handles::{Context, Stream};

use crate::cache::keys::{ByHash, CacheKey, Compared};
use crate::cache::slots::{Asked, Candidate, Freedom, Slots};
use crate::cache::statistics::{CachePath, CacheStatistics, GraphSize, LastCall};
use crate::exec::resources::RanOn;
use crate::graph::Graph;

/// An executable, and what it was made of.
#[derive(Debug)]
pub(crate) struct Made<P, S, E> {
    pub(crate) exec: E,
    pub(crate) params: P,
    pub(crate) stamp: Arc<S>,
    pub(crate) graph: Graph,
    /// Lives as long as the driver's executable, if the graph can have one at a time.
    pub(crate) destroyed: Weak<()>,
    pub(crate) size: GraphSize,
    /// Whether its launches wait for those of other graphs, with which it shares memory.
    pub(crate) is_one_line: bool,
}

/// The state of a cache.
#[derive(Debug)]
pub(crate) struct State<K, P, S, E> {
    /// The entries by the hashes of their keys. An entry is found by the address of its key.
    entries: ByHash<Vec<Keyed<K, P, S, E>>>,
    /// Numbers executables and calls.
    clock: u64,
    /// Executables that there are, and those about to be made.
    live: usize,
    /// Dropped executables that the driver has yet to destroy.
    deferred: Vec<Deferred>,
    /// Counts how often all were let go.
    generation: u64,
    pub(crate) counts: CacheStatistics,
}

/// An entry with its key.
type Keyed<K, P, S, E> = (Arc<CacheKey<K>>, Entry<P, S, E>);

/// The executables of one key.
#[derive(Debug)]
struct Entry<P, S, E> {
    slots: Slots<Made<P, S, E>>,
    /// Executables about to be made.
    reserved: usize,
    /// Whether their launches run one after the other anyway.
    is_one_line: bool,
    size: GraphSize,
}

/// A dropped executable whose destruction is deferred.
#[derive(Clone, Debug)]
pub(crate) struct Deferred {
    pub(crate) context: Context,
    pub(crate) destroyed: Weak<()>,
}

/// A call, as far as it has got.
pub(crate) struct Request<'r, K, S> {
    pub(crate) stream: &'r Stream,
    pub(crate) keys: Compared<CacheKey<K>>,
    pub(crate) stamps: Compared<S>,
    pub(crate) asked: Asked,
    /// Whether it has a graph for a new executable.
    pub(crate) has_graph: bool,
    /// Whether it has asked for the destruction of deferred executables.
    pub(crate) has_destroyed: bool,
    /// Whether it has waited for one.
    pub(crate) has_waited: bool,
    /// How often all were let go before its build.
    pub(crate) generation: u64,
    pub(crate) most: usize,
    pub(crate) most_per_key: usize,
    /// Whether an executable with the stamp counts as a hit at once: it is not verified.
    pub(crate) counts_hits: bool,
}

/// What a call does next.
pub(crate) enum Step<K, P, S, E> {
    /// It has an executable.
    Taken { key: Arc<CacheKey<K>>, number: u64, made: Box<Made<P, S, E>>, is_current: bool },
    /// It compares a key with its own, and if they are the same, a stamp of an executable.
    CompareKey(Arc<CacheKey<K>>, Option<Arc<S>>),
    /// It compares a stamp with its own.
    CompareStamp(Arc<S>),
    /// It builds a graph.
    Build,
    /// It makes an executable of its graph, for which there is a place now.
    Make(Arc<CacheKey<K>>),
    /// It asks a stream whether it has work.
    Ask(u64, WeakStream),
    /// It drops an executable and perhaps its key, which have left the cache.
    Drop(Box<Made<P, S, E>>, Option<Arc<CacheKey<K>>>),
    /// It lets the driver destroy deferred executables, if it need not wait for that.
    DestroyAll,
    /// It lets the driver destroy one, and waits for that.
    Destroy(Deferred),
    /// It waits until another thread puts an executable back.
    Wait,
    /// It would wait for itself: for an executable of the key, or for any.
    WaitForItself { for_any: bool },
}

/// What a key leads to.
enum Found<K> {
    Entry(Arc<CacheKey<K>>),
    /// An entry whose key has to be compared first.
    Unknown(Arc<CacheKey<K>>),
    Nothing,
}

impl<K, S: PartialEq> Request<'_, K, S> {
    /// Compares the stamp of an executable with the call's own.
    pub(crate) fn compare_stamp(&mut self, known: Arc<S>, own: &S) {
        let is_same = *known == *own;
        self.stamps.note(known, is_same);
    }
}

impl<P, S, E> Entry<P, S, E> {
    fn new() -> Self {
        Self { slots: Slots::new(), reserved: 0, is_one_line: false, size: GraphSize::default() }
    }

    fn count(&self) -> usize {
        self.slots.len() + self.reserved
    }

    /// The stamp of a free executable that was not compared.
    fn unknown_stamp(&self, stamps: &Compared<S>) -> Option<Arc<S>> {
        let mut of_free = self.slots.free().map(|made| &made.stamp);
        of_free.find(|stamp| stamps.outcome(stamp).is_none()).map(Arc::clone)
    }
}

impl<K, P, S, E> State<K, P, S, E> {
    pub(crate) fn new() -> Self {
        Self {
            entries: ByHash::default(),
            clock: 0,
            live: 0,
            deferred: Vec::new(),
            generation: 0,
            counts: CacheStatistics::default(),
        }
    }

    /// Counts a call that has its executable.
    pub(crate) fn called(&mut self, path: CachePath, size: GraphSize) {
        self.counts.last = Some(LastCall { path, nodes: size.nodes });
        if path == CachePath::Hit {
            self.counts.hits += 1;
        }
    }

    /// The statistics as they are now.
    pub(crate) fn statistics(&mut self) -> CacheStatistics {
        CacheStatistics { live: self.live, deferred: self.deferred(), ..self.counts.clone() }
    }

    /// The keys with executables.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (&Arc<CacheKey<K>>, usize, GraphSize)> {
        self.all().map(|(key, entry)| (key, entry.slots.len(), entry.size))
    }

    /// All entries with their keys.
    fn all(&self) -> impl Iterator<Item = &Keyed<K, P, S, E>> {
        self.entries.values().flatten()
    }

    fn entry(&self, key: &Arc<CacheKey<K>>) -> Option<&Entry<P, S, E>> {
        let entries = self.entries.get(&key.hash)?;
        entries.iter().find(|(known, _)| Arc::ptr_eq(known, key)).map(|(_, entry)| entry)
    }

    fn entry_mut(&mut self, key: &Arc<CacheKey<K>>) -> Option<&mut Entry<P, S, E>> {
        let entries = self.entries.get_mut(&key.hash)?;
        entries.iter_mut().find(|(known, _)| Arc::ptr_eq(known, key)).map(|(_, entry)| entry)
    }

    /// What a key leads to, by the comparisons so far.
    fn find(&self, sought: &CacheKey<K>, compared: &Compared<CacheKey<K>>) -> Found<K> {
        let entries = self.entries.get(&sought.hash).into_iter().flatten();
        for (key, _) in entries.filter(|(key, _)| key.may_be(sought)) {
            match compared.outcome(key) {
                Some(true) => return Found::Entry(Arc::clone(key)),
                Some(false) => {}
                None => return Found::Unknown(Arc::clone(key)),
            }
        }
        Found::Nothing
    }

    /// Notes the graph that was built last for a key.
    pub(crate) fn note_size(&mut self, key: &Arc<CacheKey<K>>, size: GraphSize, is_one_line: bool) {
        if let Some(entry) = self.entry_mut(key) {
            entry.size = size;
            entry.is_one_line = is_one_line;
        }
    }

    /// Notes an executable that is dropped without leaving a place, if its destruction is deferred.
    pub(crate) fn defer(&mut self, context: &Context, destroyed: &Weak<()>) {
        if destroyed.strong_count() > 0 {
            self.deferred.push(Deferred { context: context.clone(), destroyed: destroyed.clone() });
        }
    }

    /// The number of dropped executables that the driver has yet to destroy.
    fn deferred(&mut self) -> usize {
        self.deferred.retain(|deferred| deferred.destroyed.strong_count() > 0);
        self.deferred.len()
    }

    /// An executable leaves. It is dropped without the lock.
    fn leave(&mut self, made: Box<Made<P, S, E>>) -> Box<Made<P, S, E>> {
        self.live -= 1;
        self.defer(made.graph.context(), &made.destroyed);
        made
    }

    /// The next step of a call. The key is taken if it is needed for a new entry.
    pub(crate) fn step(
        &mut self,
        key: &mut Option<CacheKey<K>>,
        request: &mut Request<'_, K, S>,
    ) -> Option<Step<K, P, S, E>> {
        let has_room = self.live + self.deferred() < request.most;
        let known = match self.find(key.as_ref()?, &request.keys) {
            Found::Entry(known) => known,
            Found::Unknown(known) => {
                let stamp = self.entry(&known).and_then(|entry| entry.unknown_stamp(&request.stamps));
                return Some(Step::CompareKey(known, stamp));
            }
            Found::Nothing => return self.step_to_new(key, None, request),
        };
        let entry = self.entry(&known)?;
        let (asked, stamps, stream) = (&request.asked, &request.stamps, Some(request.stream));
        if let Some(stamp) = entry.unknown_stamp(stamps) {
            return Some(Step::CompareStamp(stamp));
        }
        let current = entry.slots.best(stream, asked, |made| stamps.is_same(&made.stamp));
        let other = || entry.slots.best(stream, asked, |made| !stamps.is_same(&made.stamp));
        let may_grow = has_room && entry.count() < request.most_per_key && !entry.is_one_line;
        // One whose run may go on is taken only if there is no choice.
        let has_choice = may_grow || entry.slots.len() > 1;
        let chosen = match current {
            Some(one) if one.freedom <= Freedom::Over || !has_choice => Some((one, true)),
            Some(one) if one.freedom == Freedom::Unasked => {
                return entry.slots.stream_of(one).map(|(id, stream)| Step::Ask(id, stream));
            }
            Some(_) | None => match other() {
                Some(one) => Some((one, false)),
                None => current.filter(|_| !may_grow).map(|one| (one, true)),
            },
        };
        match chosen {
            Some((one, is_current)) => self.take(known, one, is_current, request.counts_hits),
            None if may_grow => self.step_to_new(key, Some(known), request),
            None if entry.reserved == 0 && entry.slots.are_all_mine() => {
                Some(Step::WaitForItself { for_any: false })
            }
            None => Some(Step::Wait),
        }
    }

    fn take(
        &mut self,
        key: Arc<CacheKey<K>>,
        one: Candidate,
        is_current: bool,
        counts_hits: bool,
    ) -> Option<Step<K, P, S, E>> {
        self.clock += 1;
        let now = self.clock;
        let (number, made) = self.entry_mut(&key)?.slots.take(one, now)?;
        if is_current && counts_hits {
            self.called(CachePath::Hit, made.size);
        }
        Some(Step::Taken { key, number, made, is_current })
    }

    /// The next step towards a new executable, for an entry that is `known` or a new one.
    fn step_to_new(
        &mut self,
        key: &mut Option<CacheKey<K>>,
        known: Option<Arc<CacheKey<K>>>,
        request: &mut Request<'_, K, S>,
    ) -> Option<Step<K, P, S, E>> {
        if !request.has_graph {
            request.generation = self.generation;
            return Some(Step::Build);
        }
        let deferred = self.deferred();
        if self.live + deferred >= request.most {
            return Some(self.step_to_room(known.as_ref(), request, deferred > 0));
        }
        // A key that is there already is dropped by the caller, without the lock.
        let known = known.or_else(|| key.take().map(Arc::new))?;
        self.entry_or_new(&known).reserved += 1;
        self.live += 1;
        Some(Step::Make(known))
    }

    fn entry_or_new(&mut self, key: &Arc<CacheKey<K>>) -> &mut Entry<P, S, E> {
        let entries = self.entries.entry(key.hash).or_default();
        let index = entries.iter().position(|(known, _)| Arc::ptr_eq(known, key));
        let index = index.unwrap_or_else(|| {
            entries.push((Arc::clone(key), Entry::new()));
            entries.len() - 1
        });
        &mut entries[index].1
    }

    /// The next step towards room for another executable of a key.
    fn step_to_room(
        &mut self,
        sought: Option<&Arc<CacheKey<K>>>,
        request: &Request<'_, K, S>,
        has_deferred: bool,
    ) -> Step<K, P, S, E> {
        if has_deferred && !request.has_destroyed {
            return Step::DestroyAll;
        }
        // Dropping one whose destruction is deferred makes no room while others are deferred.
        let makes_room = |made: &Made<P, S, E>| !has_deferred || made.destroyed.strong_count() == 0;
        let is_other = |key: &Arc<CacheKey<K>>| sought.is_none_or(|sought| !Arc::ptr_eq(key, sought));
        let victims = self.all().filter(|(key, _)| is_other(key)).filter_map(|(key, entry)| {
            let one = entry.slots.best(None, &request.asked, makes_room)?;
            Some((Arc::clone(key), one))
        });
        let victim = victims.min_by_key(|(_, one)| (one.freedom, one.used));
        match victim {
            Some((key, one)) if one.freedom == Freedom::Unasked => {
                let asked = self.entry(&key).and_then(|entry| entry.slots.stream_of(one));
                asked.map_or(Step::Wait, |(id, stream)| Step::Ask(id, stream))
            }
            Some((key, one)) => self.evict(key, one).unwrap_or(Step::Wait),
            None => match self.deferred.first() {
                // It is being destroyed by another thread, then.
                Some(_) if request.has_waited => Step::Wait,
                Some(deferred) => Step::Destroy(deferred.clone()),
                None if self.are_all_mine() => Step::WaitForItself { for_any: true },
                None => Step::Wait,
            },
        }
    }

    fn evict(&mut self, key: Arc<CacheKey<K>>, one: Candidate) -> Option<Step<K, P, S, E>> {
        let made = self.entry_mut(&key)?.slots.remove(one)?;
        let made = self.leave(made);
        self.counts.evictions += 1;
        let known = self.forget_if_empty(&key);
        Some(Step::Drop(made, known.or(Some(key))))
    }

    /// Whether this thread has all executables that could be dropped.
    fn are_all_mine(&self) -> bool {
        self.all().all(|(_, entry)| entry.reserved == 0 && entry.slots.are_all_mine())
    }

    /// Removes an entry without executables. Returns the key, to be dropped without the lock.
    fn forget_if_empty(&mut self, key: &Arc<CacheKey<K>>) -> Option<Arc<CacheKey<K>>> {
        let entries = self.entries.get_mut(&key.hash)?;
        let is_it = |(known, entry): &Keyed<K, P, S, E>| Arc::ptr_eq(known, key) && entry.count() == 0;
        let index = entries.iter().position(is_it)?;
        let (known, _) = entries.swap_remove(index);
        if entries.is_empty() {
            self.entries.remove(&key.hash);
        }
        Some(known)
    }

    /// Fills the place of a new executable, which this thread has. Returns its number.
    pub(crate) fn fill(&mut self, key: &Arc<CacheKey<K>>, generation: u64) -> u64 {
        self.clock += 1;
        let is_leaving = generation != self.generation;
        let number = self.clock;
        let entry = self.entry_or_new(key);
        entry.reserved = entry.reserved.saturating_sub(1);
        entry.slots.add_taken(number, is_leaving);
        number
    }

    /// Gives up the place of a new executable. Returns the key if it is empty.
    pub(crate) fn give_up(&mut self, key: &Arc<CacheKey<K>>) -> Option<Arc<CacheKey<K>>> {
        self.live -= 1;
        if let Some(entry) = self.entry_mut(key) {
            entry.reserved = entry.reserved.saturating_sub(1);
        }
        self.forget_if_empty(key)
    }

    /// Puts an executable back, unless it can no more be launched. Returns what is to be dropped
    /// without the lock.
    pub(crate) fn put(
        &mut self,
        key: &Arc<CacheKey<K>>,
        number: u64,
        made: Box<Made<P, S, E>>,
        last_run: Option<RanOn>,
    ) -> Option<Left<K, P, S, E>> {
        let left = match self.entry_mut(key) {
            Some(entry) => entry.slots.put(number, made, last_run)?,
            None => made,
        };
        let left = self.leave(left);
        Some((vec![left], self.forget_if_empty(key).into_iter().collect()))
    }

    /// Lets all executables go, those that are taken once they are put back. Returns what is to be
    /// dropped without the lock.
    pub(crate) fn clear(&mut self) -> Left<K, P, S, E> {
        self.generation += 1;
        let (mut left, mut keys) = (Vec::new(), Vec::new());
        for (key, mut entry) in core::mem::take(&mut self.entries).into_values().flatten() {
            for made in entry.slots.clear() {
                left.push(self.leave(made));
            }
            match entry.count() {
                0 => keys.push(key),
                _ => self.entries.entry(key.hash).or_default().push((key, entry)),
            }
        }
        (left, keys)
    }
}

/// Executables and keys that have left a cache.
pub(crate) type Left<K, P, S, E> = (Vec<Box<Made<P, S, E>>>, Vec<Arc<CacheKey<K>>>);
