//! From raw handles back to their owners.
//!
//! The driver reuses addresses, so an owner registers after its object was created and unregisters
//! before the object is destroyed. An entry is a weak reference: *alive* while it can be upgraded;
//! *closing* from the drop of the last owner until it has unregistered; *gone* afterwards. Lookups
//! return only alive entries, and an owner removes only its own entry, so a later owner of the same
//! address is left alone. The upgrade happens under the map's guard, the use after it, and no owner
//! is dropped under it.
//!
//! The protocol is generic over its map and its weak references: dashmap and [`Weak`] in use,
//! models of them under loom.

use std::sync::{Arc, Weak};

/// A map whose operations on one key exclude each other.
pub(crate) trait Map<K, E> {
    /// Calls `look` with the entry of `key` under its guard.
    fn look<R>(&self, key: &K, look: impl FnOnce(Option<&E>) -> R) -> R;

    /// Calls `change` with the entry of `key` under its exclusive guard, and stores what it leaves.
    fn change<R>(&self, key: K, change: impl FnOnce(&mut Option<E>) -> R) -> R;
}

/// A weak reference to an owner.
pub(crate) trait Reference {
    /// The owner.
    type Owner;

    /// The owner, unless its last reference is gone or going.
    fn upgrade(&self) -> Option<Self::Owner>;

    /// The identity of the owner, alive or not: two references that exist at the same time have
    /// equal identities only for the same owner.
    fn identity(&self) -> usize;
}

impl<T> Reference for Weak<T> {
    type Owner = Arc<T>;

    fn upgrade(&self) -> Option<Arc<T>> {
        Weak::upgrade(self)
    }

    fn identity(&self) -> usize {
        // The reference keeps the block from being given to another owner.
        self.as_ptr().addr()
    }
}

/// Weak references to owners, by the raw values of their objects.
pub(crate) struct Registry<M> {
    map: M,
}

impl<M> Registry<M> {
    pub(crate) const fn with_map(map: M) -> Self {
        Self { map }
    }

    pub(crate) fn map(&self) -> &M {
        &self.map
    }

    /// Enters a new owner. Its object exists already, so an earlier owner of this raw value has
    /// unregistered.
    pub(crate) fn register<K, W: Reference>(&self, key: K, owner: W)
    where
        M: Map<K, W>,
    {
        // The old entry, if any, leaves the guard alive and is dropped out here.
        let _old = self.map.change(key, |entry| entry.replace(owner));
    }

    /// Enters an owner unless the raw value has one that is alive; that one is given back then.
    pub(crate) fn register_unless_known<K, W: Reference>(&self, key: K, owner: W) -> Option<W::Owner>
    where
        M: Map<K, W>,
    {
        let (known, _old) = self.map.change(key, |entry| match entry.as_ref().and_then(W::upgrade) {
            Some(known) => (Some(known), Some(owner)),
            None => (None, entry.replace(owner)),
        });
        known
    }

    /// The owner of a raw value, if it is known and alive.
    pub(crate) fn find<K, W: Reference>(&self, key: &K) -> Option<W::Owner>
    where
        M: Map<K, W>,
    {
        self.map.look(key, |entry| entry.and_then(W::upgrade))
    }

    /// Takes an owner's own entry out; called before its object is destroyed.
    pub(crate) fn unregister<K, W: Reference>(&self, key: K, identity: usize)
    where
        M: Map<K, W>,
    {
        let _own = self.map.change(key, |entry| match entry {
            Some(found) if found.identity() == identity => entry.take(),
            _ => None,
        });
    }
}
