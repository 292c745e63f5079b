//! The log of a lent graph: everything that the graph retains for users of its raw handle.

use core::fmt;
use std::collections::HashSet;
use std::sync::Arc;

use cuda_handles::internal::{Lock, Rank};
use cuda_handles::{Context, GraphHandle, Owner, UserObject};

use crate::error::Result;

/// A log of all owners that the nodes of a lent graph have ever used. A user object retained by the
/// graph owns the log, and so does every clone and every executable that other code makes of the
/// graph.
pub(crate) struct LentLog {
    log: Arc<Log>,
    /// Besides the driver's own references, so that the log is dropped even after the context is
    /// lost, when the driver destroys nothing any more.
    _object: UserObject,
}

/// The log only grows, since the library cannot know what other code made of the graph and when.
struct Log(Lock<HashSet<Owner>>);

impl LentLog {
    /// Makes a graph retain a log that starts with these owners.
    pub(crate) fn new(context: &Context, graph: &GraphHandle, owners: Vec<Owner>) -> Result<Self> {
        let log = Arc::new(Log(Lock::new(Rank::LentLog, HashSet::new())));
        let object = UserObject::new(context, Box::new(Arc::clone(&log)))?;
        object.retain_on(graph)?;
        let lent = Self { log, _object: object };
        owners.iter().for_each(|owner| lent.log(owner));
        Ok(lent)
    }

    /// Adds an owner, unless the log has it.
    pub(crate) fn log(&self, owner: &Owner) {
        let mut owners = self.log.0.lock();
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
