//! The values that conditional nodes look at.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::launch::Conditions;

/// The values of a root graph's conditions. They stay over launches and executables.
#[derive(Debug, Default)]
pub(crate) struct Values {
    values: Mutex<HashMap<u64, u32>>,
}

impl Values {
    /// Makes a condition known.
    pub(crate) fn add(&self, handle: u64) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).entry(handle).or_insert(0);
    }

    /// The value, 0 where none was set.
    pub(crate) fn get(&self, handle: u64) -> u32 {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).get(&handle).copied().unwrap_or(0)
    }
}

impl Conditions for Values {
    fn set(&self, handle: u64, value: u32) {
        if let Some(known) = self.values.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&handle) {
            *known = value;
        }
    }
}
