//! User objects: reference-counted by the driver, destroyed by a function of the user.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::device::context::Context;
use crate::device::loss;
use crate::driver::abort::crash;
use crate::driver::handle::{Kind, Slots};
use crate::graph::model::ordered_map::OrderedMap;
use crate::stream::callback::{self, Callback};
use crate::sync::lock;

#[derive(Debug)]
struct Object {
    callback: Callback,
    count: u64,
}

static OBJECTS: Mutex<Slots<Object>> = Mutex::new(Slots::new(Kind::UserObject));

fn objects() -> MutexGuard<'static, Slots<Object>> {
    lock(&OBJECTS)
}

pub(crate) fn create(callback: Callback, count: u32) -> u64 {
    objects().insert(Object { callback, count: count.into() })
}

/// The number of live objects.
pub(crate) fn count() -> usize {
    objects().len()
}

pub(crate) fn retain(handle: u64, count: u32) {
    match objects().get_mut(handle) {
        Some(object) => object.count += u64::from(count),
        None => crash("a user object is retained that does not exist any more"),
    }
}

/// Crashes unless the object lives, before a graph takes over references of its caller.
pub(crate) fn expect_live(handle: u64) {
    if objects().get(handle).is_none() {
        crash("a graph retains a user object that does not exist any more");
    }
}

/// Releases references; returns the destructor if they were the last ones. It must be called
/// without a lock. Releasing too many is not detected, as in the driver.
#[must_use]
pub(crate) fn release(handle: u64, count: u32) -> Option<Callback> {
    let mut objects = objects();
    let Some(object) = objects.get_mut(handle) else {
        drop(objects);
        crash("a user object is released that does not exist any more");
    };
    object.count = object.count.saturating_sub(count.into());
    if object.count > 0 {
        return None;
    }
    objects.remove(handle).map(|object| object.callback)
}

/// The references to user objects that a graph or executable owns, in the order of retaining.
#[derive(Debug, Default)]
pub(crate) struct ObjectRefs {
    held: OrderedMap<u32>,
}

impl ObjectRefs {
    /// Adds references.
    pub(crate) fn add(&mut self, object: u64, count: u32) {
        match self.held.get_mut(object) {
            Some(held) => *held = held.saturating_add(count),
            None => self.held.push(object, count),
        }
    }

    /// Removes references, as many as there are, without releasing them.
    pub(crate) fn remove(&mut self, object: u64, count: u32) {
        let Some(own) = self.held.get_mut(object) else { return };
        *own = own.saturating_sub(count);
        if *own == 0 {
            self.held.remove(object);
        }
    }

    /// Retains the same references once more.
    pub(crate) fn duplicate(&self) -> Self {
        for (object, count) in self.held.iter() {
            retain(object, count);
        }
        Self { held: self.held.clone() }
    }

    /// Releases all references; returns the destructors to call.
    #[must_use]
    pub(crate) fn release_all(&mut self) -> Vec<Callback> {
        let held = std::mem::take(&mut self.held);
        held.iter().filter_map(|(object, count)| release(object, count)).collect()
    }
}

/// The user objects of an executable, shared with its launches in flight. The last owner releases
/// them: immediately if the executable was never used, otherwise on the thread of deferred
/// destructors. There the references go back as well, so that another owner's release meanwhile is
/// not the last.
#[derive(Debug)]
pub(crate) struct ExecObjects {
    holdings: ObjectRefs,
    used: AtomicBool,
    /// The context of the executable.
    context: Arc<Context>,
}

impl ExecObjects {
    pub(crate) fn new(holdings: ObjectRefs, used: bool, context: &Arc<Context>) -> Self {
        Self { holdings, used: AtomicBool::new(used), context: Arc::clone(context) }
    }

    /// The executable has been launched or uploaded.
    pub(crate) fn mark_used(&self) {
        self.used.store(true, Ordering::Release);
    }
}

impl Drop for ExecObjects {
    fn drop(&mut self) {
        let later = self.used.load(Ordering::Acquire) && !loss::is_lost(self.context.device);
        let mut holdings = std::mem::take(&mut self.holdings);
        if later {
            callback::destruct_later(self.context.handle, move || holdings.release_all());
        } else {
            holdings.release_all().into_iter().for_each(Callback::destruct);
        }
    }
}
