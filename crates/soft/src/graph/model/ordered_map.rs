//! A map from handles to values that keeps insertion order.

use std::collections::HashMap;

/// Up to this length the list is searched; longer ones have an index.
const SHORT: usize = 16;

/// The map.
#[derive(Debug, Clone)]
pub(crate) struct OrderedMap<V> {
    /// `None` for removed entries of a long list.
    list: Vec<Option<(u64, V)>>,
    live: usize,
    /// The position of each handle, if the list is long.
    index: Option<HashMap<u64, usize>>,
}

impl<V> Default for OrderedMap<V> {
    fn default() -> Self {
        Self { list: Vec::new(), live: 0, index: None }
    }
}

impl<V: Copy> OrderedMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, V)> + '_ {
        self.list.iter().flatten().copied()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.iter().map(|(key, _)| key)
    }

    fn place(&self, key: u64) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&key).copied(),
            None => self.list.iter().position(|entry| matches!(entry, Some((own, _)) if *own == key)),
        }
    }

    pub(crate) fn contains(&self, key: u64) -> bool {
        self.place(key).is_some()
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let place = self.place(key)?;
        self.list.get_mut(place)?.as_mut().map(|(_, value)| value)
    }

    /// Adds a handle that is not in the map.
    pub(crate) fn push(&mut self, key: u64, value: V) {
        self.list.push(Some((key, value)));
        self.live += 1;
        match &mut self.index {
            Some(index) => drop(index.insert(key, self.list.len() - 1)),
            None if self.list.len() > SHORT => self.tidy(),
            None => {}
        }
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        let place = self.place(key)?;
        let removed = match &mut self.index {
            None => self.list.remove(place),
            Some(index) => {
                index.remove(&key);
                self.list.get_mut(place)?.take()
            }
        };
        self.live -= 1;
        if self.live * 2 < self.list.len() {
            self.tidy();
        }
        removed.map(|(_, value)| value)
    }

    /// Removes the gaps and rebuilds the index.
    fn tidy(&mut self) {
        self.list.retain(Option::is_some);
        let places = || self.list.iter().flatten().enumerate().map(|(place, (key, _))| (*key, place));
        self.index = (self.list.len() > SHORT).then(|| places().collect());
    }
}

impl<V: Copy> FromIterator<(u64, V)> for OrderedMap<V> {
    fn from_iter<I: IntoIterator<Item = (u64, V)>>(entries: I) -> Self {
        let list: Vec<_> = entries.into_iter().map(Some).collect();
        let mut own = Self { live: list.len(), list, index: None };
        if own.live > SHORT {
            own.tidy();
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_does_what_a_plain_list_does(steps in prop::collection::vec((0u64..60, any::<bool>()), 0..400)) {
            let (mut own, mut plain) = (OrderedMap::default(), Vec::new());
            for (at, (key, add)) in steps.into_iter().enumerate() {
                let known = plain.iter().position(|(other, _)| *other == key);
                prop_assert_eq!(own.contains(key), known.is_some());
                match known {
                    None if add => {
                        own.push(key, at);
                        plain.push((key, at));
                    }
                    None => prop_assert_eq!(own.remove(key), None),
                    Some(_) if add => {}
                    Some(place) => prop_assert_eq!(own.remove(key), Some(plain.remove(place).1)),
                }
                prop_assert_eq!(own.iter().collect::<Vec<_>>(), plain.clone());
                prop_assert_eq!(own.len(), plain.len());
            }
            let copied: OrderedMap<usize> = plain.iter().copied().collect();
            prop_assert!(plain.iter().all(|(key, _)| copied.contains(*key)));
        }
    }
}
