//! The backing of an allocation: where its memory comes from, and so how it is freed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::graph_life::GraphMemory;
use super::pool::MemPool;
use super::users::Users;
use crate::destroy::Kept;
use crate::raw_stream::RawStream;
use crate::reclaim::{HostBlock, HostKind};
use crate::sync::{Lock, LockGuard};

/// The origin of the memory.
pub(super) enum Backing {
    Pooled(Option<MemPool>),
    Plain,
    Host(HostMemory),
    Foreign(Kept),
    /// A variable of a library, which is its owner.
    Variable {
        owner: Kept,
        managed: bool,
    },
    Imported(MemPool),
    /// Memory of an allocation node, which only the node's graph uses and frees.
    Graph(Arc<GraphMemory>),
    /// Memory of an allocation node that a launch left.
    Output(Arc<GraphMemory>),
}

impl Backing {
    /// The memory of the host, if it is that.
    #[inline]
    pub(super) fn host(&self) -> Option<&HostMemory> {
        match self {
            Self::Host(memory) => Some(memory),
            Self::Pooled(_)
            | Self::Plain
            | Self::Foreign(_)
            | Self::Variable { .. }
            | Self::Imported(_)
            | Self::Graph(_)
            | Self::Output(_) => None,
        }
    }

    /// As [`host`](Self::host), to change it.
    pub(super) fn host_mut(&mut self) -> Option<&mut HostMemory> {
        match self {
            Self::Host(memory) => Some(memory),
            Self::Pooled(_)
            | Self::Plain
            | Self::Foreign(_)
            | Self::Variable { .. }
            | Self::Imported(_)
            | Self::Graph(_)
            | Self::Output(_) => None,
        }
    }

    /// The memory of an allocation node, if it is that.
    #[inline]
    pub(super) fn graph(&self) -> Option<&Arc<GraphMemory>> {
        match self {
            Self::Graph(memory) => Some(memory),
            Self::Pooled(_)
            | Self::Plain
            | Self::Host(_)
            | Self::Foreign(_)
            | Self::Variable { .. }
            | Self::Imported(_)
            | Self::Output(_) => None,
        }
    }
}

/// Pinned, registered or managed memory.
pub(super) struct HostMemory {
    /// `None` if it has no bytes.
    pub(super) block: Option<HostBlock>,
    pub(super) kind: HostKind,
    /// Whether host code views it.
    pub(super) viewed: AtomicBool,
    /// The streams that were made ready for it since it was last unique.
    pub(super) users: Lock<Users>,
}

impl HostMemory {
    pub(super) fn begin(&self, stream: &Arc<RawStream>) {
        let others = self.users().begin(stream);
        others.into_iter().for_each(|others| self.forget_gone(others));
    }

    pub(super) fn add(&self, stream: &Arc<RawStream>) {
        let others = self.users().add(stream);
        others.into_iter().for_each(|others| self.forget_gone(others));
    }

    /// Forgets streams without handles whose work is done.
    fn forget_gone(&self, others: Vec<Arc<RawStream>>) {
        // Without the lock: the driver is asked, which may be waiting for a host function that
        // wants the lock. Streams whose handles are gone can only become idle.
        let over: Vec<_> = others.into_iter().filter(|user| user.is_closed() && user.is_idle()).collect();
        // The last reference destroys the stream: not under the lock either.
        let forgotten = self.users().forget(&over);
        drop((over, forgotten));
    }

    /// Takes the lock, which is never held over a driver call.
    pub(super) fn users(&self) -> LockGuard<'_, Users> {
        self.users.lock()
    }
}
