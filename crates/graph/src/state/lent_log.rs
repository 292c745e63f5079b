//! What a lent graph keeps alive for users of its raw value.

use core::fmt;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_handles::{Context, GraphHandle, Owner, UserObject};

use crate::error::Result;

/// A log of all that the nodes of a lent graph have ever used. A user object that the graph retains
/// owns it, and so does every clone and every executable that other code makes of the graph.
pub(crate) struct LentLog {
    log: Arc<Log>,
    /// Beside the driver's own references, so that the log goes after the context was lost, where
    /// nothing is destroyed any more.
    _object: UserObject,
}

/// It only grows, as nobody knows what was made of the graph when.
#[derive(Default)]
struct Log(Mutex<HashSet<Owner>>);

impl LentLog {
    /// Lets a graph retain a log that begins with these owners.
    pub(crate) fn new(context: &Context, graph: &GraphHandle, owners: Vec<Owner>) -> Result<Self> {
        let log = Arc::new(Log::default());
        let object = UserObject::new(context, Box::new(Arc::clone(&log)))?;
        object.retain_on(graph)?;
        let lent = Self { log, _object: object };
        owners.iter().for_each(|owner| lent.log(owner));
        Ok(lent)
    }

    /// Keeps one owner more.
    pub(crate) fn log(&self, owner: &Owner) {
        let mut owners = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !owners.contains(owner) {
            owners.insert(owner.clone());
        }
    }
}

impl fmt::Debug for LentLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lent")
    }
}
