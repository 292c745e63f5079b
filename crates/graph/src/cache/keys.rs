//! Keys and stamps of a cache. Their code is of users, so it runs without the cache's lock.

use core::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::exec::options::RunOptions;

/// A key with everything that is part of it by itself.
#[derive(Debug)]
pub(crate) struct CacheKey<K> {
    /// The hash of the context and the key. Few keys are used with several options.
    pub(crate) hash: u64,
    /// The address of the driver's context. The graphs of the executables keep the context, so
    /// that no other one gets the address.
    context: usize,
    /// The options of the executable.
    options: RunOptions,
    pub(crate) key: K,
}

/// Values by the hashes of keys, which are not hashed again.
pub(crate) type ByHash<V> = HashMap<u64, V, BuildHasherDefault<AsItIs>>;

/// Returns the number that it is given.
#[derive(Debug, Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Keys or stamps that a call has compared with its own, with the outcomes. It keeps them, so that
/// no other one gets their address meanwhile.
#[derive(Debug)]
pub(crate) struct Compared<T>(SmallVec<[(Arc<T>, bool); 2]>);

impl<K: Hash> CacheKey<K> {
    /// Hashes the key.
    pub(crate) fn new(hasher: &RandomState, context: usize, options: RunOptions, key: K) -> Self {
        let hash = hasher.hash_one((context, &key));
        Self { hash, context, options, key }
    }
}

impl<K> CacheKey<K> {
    /// Whether the keys have to be compared: all else is the same.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        (self.hash, self.context, self.options) == (other.hash, other.context, other.options)
    }
}

impl<T> Compared<T> {
    pub(crate) fn new() -> Self {
        Self(SmallVec::new())
    }

    /// The outcome, if there was a comparison.
    pub(crate) fn outcome(&self, one: &Arc<T>) -> Option<bool> {
        self.0.iter().find(|(known, _)| Arc::ptr_eq(known, one)).map(|(_, is_same)| *is_same)
    }

    pub(crate) fn is_same(&self, one: &Arc<T>) -> bool {
        self.outcome(one) == Some(true)
    }

    pub(crate) fn note(&mut self, one: Arc<T>, is_same: bool) {
        self.0.push((one, is_same));
    }
}
