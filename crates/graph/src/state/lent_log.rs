//! What a lent graph keeps alive for users of its raw value.

use core::fmt;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_handles::{Context, Event, GraphHandle, Kernel, Owner, Stream, UserObject};

use crate::error::Result;

/// A log of all that the nodes of a lent graph have ever used. A user object that the graph retains
/// owns it, and so does every clone and every executable that other code makes of the graph.
pub(crate) struct LentLog {
    log: Arc<Log>,
    /// Beside the driver's own references, so that the log goes after the context was lost, where
    /// nothing is destroyed any more.
    _object: UserObject,
}

/// It only grows: who cloned the graph when is not known.
#[derive(Default)]
struct Log(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    owners: Vec<Owner>,
    /// What is in the log, so that nothing is there twice. The addresses are of owners in it, and
    /// so in use for good.
    known: HashSet<Known>,
}

#[derive(PartialEq, Eq, Hash)]
enum Known {
    Address(usize),
    Kernel(Kernel),
    Event(Event),
    Stream(Stream),
    Context(Context),
}

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
        let mut entries = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known(owner).is_none_or(|known| entries.known.insert(known)) {
            entries.owners.push(owner.clone());
        }
    }
}

fn known(owner: &Owner) -> Option<Known> {
    Some(match owner {
        Owner::Allocation(allocation) => Known::Address(Arc::as_ptr(allocation).addr()),
        Owner::Other(other) => Known::Address(other.as_ptr().addr()),
        Owner::Kernel(kernel) => Known::Kernel(kernel.clone()),
        Owner::Event(event) => Known::Event(event.clone()),
        Owner::Stream(stream) => Known::Stream(stream.clone()),
        Owner::Context(context) => Known::Context(context.clone()),
        // A kind that is not known here is kept each time.
        _ => return None,
    })
}

impl fmt::Debug for LentLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lent")
    }
}
