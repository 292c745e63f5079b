//! The accesses that share bytes with another one.

use std::collections::BTreeMap;

use super::Touch;
use crate::check::model::AddressSpace;

/// Accesses of nodes, found by the bytes between their first and their last.
///
/// They are sorted by the power of two below their length, and then by where they begin. So those
/// that meet a range begin in one short range of each class, and few of these do not meet it.
#[derive(Debug)]
pub(crate) struct AccessIndex<N> {
    entries: BTreeMap<Key, Entry<N>>,
    /// How many accesses to memory have a length of each power of two.
    lengths: [usize; 65],
    next: u64,
}

/// The place of an access in an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    space: AddressSpace,
    length: u32,
    start: u64,
    number: u64,
}

/// An access of a node.
#[derive(Clone, Debug)]
pub(crate) struct Entry<N> {
    pub(crate) node: N,
    pub(crate) touch: Touch,
}

impl<N> Default for AccessIndex<N> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), lengths: [0; 65], next: 0 }
    }
}

/// The class of a length: how many bits it has.
fn class(touch: &Touch) -> u32 {
    let (start, end) = touch.region.bounds();
    u64::BITS - end.saturating_sub(start).leading_zeros()
}

impl<N> AccessIndex<N> {
    /// Adds an access.
    pub(crate) fn insert(&mut self, node: N, touch: Touch) -> Key {
        let key = Key {
            space: touch.space,
            length: class(&touch),
            start: touch.region.bounds().0,
            number: self.next,
        };
        self.next += 1;
        if let Some(count) = self.lengths.get_mut(key.length as usize) {
            *count += 1;
        }
        self.entries.insert(key, Entry { node, touch });
        key
    }

    /// Takes an access out.
    pub(crate) fn remove(&mut self, key: Key) {
        if self.entries.remove(&key).is_some()
            && let Some(count) = self.lengths.get_mut(key.length as usize)
        {
            *count -= 1;
        }
    }

    /// The accesses whose first and last bytes enclose some of those of another. Whether they share
    /// bytes is for [`Touch::shares`] to say.
    pub(crate) fn near<'s>(&'s self, touch: &Touch) -> impl Iterator<Item = (Key, &'s Entry<N>)> {
        let (space, (start, end)) = (touch.space, touch.region.bounds());
        let classes = (1_u32..).zip(self.lengths.get(1..).unwrap_or_default());
        let used = classes.filter(|(_, count)| **count > 0).map(|(length, _)| length);
        let ranges = used.filter(move |_| start < end).flat_map(move |length| {
            let longest = 1_u64.checked_shl(length).unwrap_or(u64::MAX);
            let first = Key { space, length, start: start.saturating_sub(longest), number: 0 };
            let last = Key { space, length, start: end, number: 0 };
            self.entries.range(first..last)
        });
        ranges
            .filter_map(move |(key, entry)| (entry.touch.region.bounds().1 > start).then_some((*key, entry)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::check::region::Region;

    fn touch(start: u64, bytes: u64) -> Touch {
        Touch { space: AddressSpace::Memory, region: Region::linear(start, bytes), writes: true }
    }

    proptest! {
        #[test]
        fn what_is_near_meets(
            ranges in prop::collection::vec((0..200_u64, 0..90_u64), 0..30),
            removed in prop::collection::vec(any::<bool>(), 30),
            (start, bytes) in (0..200_u64, 0..90_u64),
        ) {
            let mut index = AccessIndex::default();
            let keys: Vec<Key> =
                (0..).zip(&ranges).map(|(node, (start, bytes))| index.insert(node, touch(*start, *bytes))).collect();
            for (key, _) in keys.iter().zip(&removed).filter(|(_, removed)| **removed) {
                index.remove(*key);
            }
            let asked = touch(start, bytes);
            let mut found: Vec<usize> = index.near(&asked).map(|(_, entry)| entry.node).collect();
            found.sort_unstable();
            let meets = |node: &usize| !removed[*node] && touch(ranges[*node].0, ranges[*node].1).shares(&asked);
            let expected: Vec<usize> = (0..ranges.len()).filter(meets).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_last_addresses_are_found() {
        let mut index = AccessIndex::default();
        index.insert(0, touch(u64::MAX - 8, 8));
        index.insert(1, touch(0, u64::MAX));
        let found =
            |start, bytes| index.near(&touch(start, bytes)).map(|(_, entry)| entry.node).collect::<Vec<_>>();
        assert_eq!(found(u64::MAX - 2, 1), [0, 1]);
        assert_eq!(found(4, 1), [1]);
    }
}
