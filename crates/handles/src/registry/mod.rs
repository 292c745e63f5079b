//! From raw handles back to their owners, for every kind of object that has a table: contexts,
//! streams, events, kernels and graphs.

mod protocol;
mod raw;

use core::hash::Hash;
use std::sync::{Arc, Weak};

use crate::sync::process;
use protocol::Map;

pub(crate) use protocol::Registry;
pub(crate) use raw::{Raw, identity};

impl<V> Registry<Sharded<V>> {
    /// All owners that are alive.
    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        self.map().iter().filter_map(|entry| entry.value().as_ref().and_then(Weak::upgrade)).collect()
    }

    /// [`unregister`](Self::unregister) for the drop of an owner. In a forked child the map may be
    /// locked forever, and is not used.
    pub(crate) fn forget(&self, key: usize, owner: &V) {
        if process::is_running() {
            self.unregister::<usize, Weak<V>>(key, core::ptr::from_ref(owner).addr());
        }
    }
}

/// The map in use. The inner option is never empty between operations.
pub(crate) type Sharded<V> = dashmap::DashMap<usize, Option<Weak<V>>>;

impl<K: Eq + Hash, E> Map<K, E> for dashmap::DashMap<K, Option<E>> {
    fn look<R>(&self, key: &K, look: impl FnOnce(Option<&E>) -> R) -> R {
        match self.get(key) {
            Some(entry) => look(entry.as_ref()),
            None => look(None),
        }
    }

    fn change<R>(&self, key: K, change: impl FnOnce(&mut Option<E>) -> R) -> R {
        match self.entry(key) {
            dashmap::Entry::Occupied(mut occupied) => {
                let result = change(occupied.get_mut());
                if occupied.get().is_none() {
                    occupied.remove();
                }
                result
            }
            dashmap::Entry::Vacant(vacant) => {
                let mut entry = None;
                let result = change(&mut entry);
                if entry.is_some() {
                    vacant.insert(entry);
                }
                result
            }
        }
    }
}
