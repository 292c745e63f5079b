//! The values of conditional handles.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::launch::ConditionSetter;
use crate::sync::{get_mut, lock};

/// The values of an executable's conditions. They persist over launches and updates.
#[derive(Debug, Default)]
pub(crate) struct ConditionValues {
    values: Mutex<HashMap<u64, u32>>,
}

/// The values of destroyed executables by their number, the latest last.
static LEFT: Mutex<BTreeMap<usize, Vec<HashMap<u64, u32>>>> = Mutex::new(BTreeMap::new());

impl ConditionValues {
    /// The values of a new executable with these conditions. As on a GPU, they are left over from a
    /// destroyed executable if there was one; the first one of a process has 0.
    pub(crate) fn again(conditions: impl ExactSizeIterator<Item = u64>) -> Arc<Self> {
        let mut left = lock(&LEFT);
        let left = left.get_mut(&conditions.len()).and_then(Vec::pop).unwrap_or_default();
        let values = conditions.map(|number| (number, left.get(&number).copied().unwrap_or(0))).collect();
        Arc::new(Self { values: Mutex::new(values) })
    }

    /// The value, 0 if none was set.
    pub(crate) fn get(&self, handle: u64) -> u32 {
        lock(&self.values).get(&handle).copied().unwrap_or(0)
    }
}

impl Drop for ConditionValues {
    fn drop(&mut self) {
        let own = std::mem::take(get_mut(&mut self.values));
        if !own.is_empty() {
            lock(&LEFT).entry(own.len()).or_default().push(own);
        }
    }
}

impl ConditionSetter for ConditionValues {
    fn set(&self, handle: u64, value: u32) {
        if let Some(known) = lock(&self.values).get_mut(&handle) {
            *known = value;
        }
    }
}
