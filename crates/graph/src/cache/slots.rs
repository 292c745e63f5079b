//! Executables that stand for each other: which are free, and which one a launch takes.

use std::thread::{self, ThreadId};

use cuda_handles::Stream;
use cuda_handles::internal::WeakStream;

use crate::exec::resources::RanOn;

/// Executables with what goes with each.
#[derive(Debug)]
pub(crate) struct Slots<T>(Vec<Slot<T>>);

#[derive(Debug)]
struct Slot<T> {
    /// Identifies it in its list.
    number: u64,
    content: Content<T>,
    last_run: RanOn,
    /// When it was taken last.
    used: u64,
    /// Whether it goes once it is put back.
    is_leaving: bool,
}

#[derive(Debug)]
enum Content<T> {
    Free(Box<T>),
    Taken(ThreadId),
}

/// How well a free executable suits a stream. The first is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Freedom {
    /// Its last run is on the stream, which would follow that anyway.
    SameStream,
    /// Its last run is over.
    Over,
    /// The stream of its last run was not asked.
    Unasked,
    /// Its last run may go on.
    Running,
}

/// The streams that were asked whether they have work.
#[derive(Debug, Default)]
pub(crate) struct Asked(Vec<(u64, bool)>);

/// A free executable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    index: usize,
    pub(crate) freedom: Freedom,
    pub(crate) used: u64,
}

impl Asked {
    /// Asks a stream. A stream that cannot be asked counts as one with work.
    pub(crate) fn ask(&mut self, id: u64, stream: &WeakStream) {
        let is_idle = stream.upgrade().is_some_and(|stream| stream.query() == Ok(true));
        self.0.push((id, is_idle));
    }

    fn freedom(&self, last_run: &RanOn, of: Option<&Stream>) -> Freedom {
        match last_run {
            RanOn::None => Freedom::Over,
            RanOn::Unknown => Freedom::Running,
            RanOn::Stream(id, _) if of.is_some_and(|stream| stream.id() == *id) => Freedom::SameStream,
            RanOn::Stream(id, _) => match self.0.iter().find(|(asked, _)| asked == id) {
                None => Freedom::Unasked,
                Some((_, true)) => Freedom::Over,
                Some((_, false)) => Freedom::Running,
            },
        }
    }
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that are free.
    pub(crate) fn free(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(|slot| match &slot.content {
            Content::Free(item) => Some(&**item),
            Content::Taken(_) => None,
        })
    }

    /// Whether this thread has taken all.
    pub(crate) fn are_all_mine(&self) -> bool {
        let me = thread::current().id();
        self.0.iter().all(|slot| matches!(&slot.content, Content::Taken(by) if *by == me))
    }

    /// The free one that suits a stream best: the longest unused of those that suit equally.
    pub(crate) fn best(
        &self,
        stream: Option<&Stream>,
        asked: &Asked,
        which: impl Fn(&T) -> bool,
    ) -> Option<Candidate> {
        let free = self.0.iter().enumerate().filter_map(|(index, slot)| match &slot.content {
            Content::Free(item) if which(item) => Some((index, slot)),
            Content::Free(_) | Content::Taken(_) => None,
        });
        let candidates = free.map(|(index, slot)| Candidate {
            index,
            freedom: asked.freedom(&slot.last_run, stream),
            used: slot.used,
        });
        candidates.min_by_key(|one| (one.freedom, one.used))
    }

    /// The stream of the last run of one that is free, to be asked.
    pub(crate) fn stream_of(&self, one: Candidate) -> Option<(u64, WeakStream)> {
        match &self.0.get(one.index)?.last_run {
            RanOn::Stream(id, stream) => Some((*id, stream.clone())),
            RanOn::None | RanOn::Unknown => None,
        }
    }

    /// Takes one that is free, with its number.
    pub(crate) fn take(&mut self, one: Candidate, now: u64) -> Option<(u64, Box<T>)> {
        let slot = self.0.get_mut(one.index)?;
        slot.used = now;
        match core::mem::replace(&mut slot.content, Content::Taken(thread::current().id())) {
            Content::Free(item) => Some((slot.number, item)),
            taken @ Content::Taken(_) => {
                slot.content = taken;
                None
            }
        }
    }

    /// Adds one that this thread has taken already. The number is new.
    pub(crate) fn add_taken(&mut self, number: u64, is_leaving: bool) {
        let content = Content::Taken(thread::current().id());
        self.0.push(Slot { number, content, last_run: RanOn::None, used: number, is_leaving });
    }

    /// Adds a free one.
    pub(crate) fn add(&mut self, number: u64, item: Box<T>) {
        let content = Content::Free(item);
        self.0.push(Slot { number, content, last_run: RanOn::None, used: 0, is_leaving: false });
    }

    /// Puts one back that was taken, with its last run; without one it goes. Returns it if it goes.
    pub(crate) fn put(&mut self, number: u64, item: Box<T>, last_run: Option<RanOn>) -> Option<Box<T>> {
        let Some(index) = self.0.iter().position(|slot| slot.number == number) else { return Some(item) };
        match (self.0.get_mut(index), last_run) {
            (Some(slot), Some(last_run)) if !slot.is_leaving => {
                slot.last_run = last_run;
                slot.content = Content::Free(item);
                None
            }
            (Some(_) | None, _) => {
                self.0.swap_remove(index);
                Some(item)
            }
        }
    }

    /// Removes one that is free.
    pub(crate) fn remove(&mut self, one: Candidate) -> Option<Box<T>> {
        match &self.0.get(one.index)?.content {
            Content::Taken(_) => None,
            Content::Free(_) => match self.0.swap_remove(one.index).content {
                Content::Free(item) => Some(item),
                Content::Taken(_) => None,
            },
        }
    }

    /// Removes all that are free; the others go once they are put back.
    pub(crate) fn clear(&mut self) -> Vec<Box<T>> {
        let mut free = Vec::new();
        for mut slot in core::mem::take(&mut self.0) {
            match slot.content {
                Content::Free(item) => free.push(item),
                Content::Taken(_) => {
                    slot.is_leaving = true;
                    self.0.push(slot);
                }
            }
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(count: u64) -> Slots<u64> {
        let mut slots = Slots::new();
        (0..count).for_each(|number| slots.add(number, Box::new(number)));
        slots
    }

    fn take(slots: &mut Slots<u64>, now: u64) -> Option<u64> {
        let one = slots.best(None, &Asked::default(), |_| true)?;
        slots.take(one, now).map(|(number, _)| number)
    }

    #[test]
    fn the_longest_unused_is_taken_first_and_a_taken_one_not_again() {
        let mut slots = slots(3);
        assert_eq!(
            [take(&mut slots, 1), take(&mut slots, 2), take(&mut slots, 3)],
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!(take(&mut slots, 4), None);
        assert!(slots.are_all_mine());
        for number in [1, 0, 2] {
            assert!(slots.put(number, Box::new(number), Some(RanOn::None)).is_none());
        }
        assert!(!slots.are_all_mine());
        assert_eq!(
            [take(&mut slots, 5), take(&mut slots, 6), take(&mut slots, 7)],
            [Some(0), Some(1), Some(2)]
        );
    }

    #[test]
    fn an_unknown_run_counts_as_running() {
        let mut slots = slots(2);
        take(&mut slots, 1);
        slots.put(0, Box::new(0), Some(RanOn::Unknown));
        take(&mut slots, 2);
        slots.put(1, Box::new(1), Some(RanOn::None));
        let best = slots.best(None, &Asked::default(), |_| true);
        assert_eq!(best.map(|best| (best.index, best.freedom)), Some((1, Freedom::Over)));
    }

    #[test]
    fn after_a_clear_taken_ones_go_once_they_are_put_back() {
        let mut slots = slots(2);
        assert_eq!(take(&mut slots, 1), Some(0));
        assert_eq!(slots.clear().len(), 1);
        assert_eq!(slots.len(), 1);
        assert!(slots.put(0, Box::new(0), Some(RanOn::None)).is_some());
        assert!(slots.is_empty());
    }
}
