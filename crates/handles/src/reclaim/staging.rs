//! Pinned memory through which a stream writes small things: the bytes are copied there, and the
//! device reads them later.
//!
//! A stream fills blocks one after the other. A full block gets an event behind its last write,
//! unless that write was seen done, and is reused once the event was reached. Nothing waits: while
//! no block has come back, another one is added. Blocks go to the cache with the stream, or when a
//! drain finds the stream idle.

use core::ptr::NonNull;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use cuda_sys::{CUevent_flags, CUevent_st};

use super::fence::{FreeKind, PendingFree, push_free};
use super::host_cache;
use super::host_cache::HostBlock;
use crate::context::lock_unless_inside;
use crate::destroy::{self, Node, Object};
use crate::error::Result;
use crate::raw_stream::{RawStream, create_event, point};
use crate::registry::Raw;
use crate::sync::{Lock, LockGuard, Rank};

/// The size of a block.
const BLOCK: usize = 1 << 16;

/// Larger writes do not go through the blocks: they would leave too much of one unused.
pub(crate) const MOST: usize = BLOCK / 4;

/// Writes begin at multiples of this.
const ALIGN: usize = 16;

const ASKING: &str = "asking whether small writes were read";

static ALL: Lock<Vec<Weak<Staging>>> = Lock::new(Rank::AllStagings, Vec::new());

/// The blocks of one stream.
pub(crate) struct Staging(Lock<Ring>);

/// Locked before the stream's access is taken.
pub(crate) struct Ring {
    stream: Arc<RawStream>,
    /// The one that is being filled.
    current: Option<StagingBlock>,
    /// The one after that, if it was found already.
    next: Option<StagingBlock>,
    /// Full blocks, the oldest first.
    full: VecDeque<StagingBlock>,
}

struct StagingBlock {
    block: HostBlock,
    /// Made in advance, so that the drop allocates nothing.
    order: Box<Node<PendingFree>>,
    used: usize,
    /// The last write to it lies before the point with this ticket.
    ticket: u64,
    /// Made when first needed.
    event: Option<Raw<CUevent_st>>,
}

impl Staging {
    pub(crate) fn new(stream: &Arc<RawStream>) -> Arc<Self> {
        let (current, next, full) = (None, None, VecDeque::new());
        let staging = Arc::new(Self(Lock::new(
            Rank::Staging,
            Ring { stream: Arc::clone(stream), current, next, full },
        )));
        let mut all = all();
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&staging));
        staging
    }

    /// The holder may be in the driver.
    pub(crate) fn lock(&self, stream: &RawStream) -> Result<LockGuard<'_, Ring>> {
        lock_unless_inside(stream.context(), "the staging memory of a stream", &self.0)
    }
}

fn all() -> LockGuard<'static, Vec<Weak<Staging>>> {
    ALL.lock()
}

/// Gives the blocks of idle streams to the cache.
pub(crate) fn trim() {
    let all: Vec<_> = all().iter().filter_map(Weak::upgrade).collect();
    for staging in all {
        // The holder is writing.
        if let Some(mut ring) = staging.0.try_lock()
            && !ring.is_empty()
            && ring.stream.is_idle()
        {
            ring.blocks().for_each(StagingBlock::give);
        }
    }
}

impl Ring {
    /// Makes room for that many bytes; `allocate` makes a block. Without access of the stream.
    pub(crate) fn prepare(
        &mut self,
        bytes: usize,
        allocate: impl FnOnce(usize) -> Result<HostBlock>,
    ) -> Result<()> {
        let stream = &self.stream;
        if let Some(block) = &mut self.current {
            if block.has_room(bytes) {
                return Ok(());
            }
            if stream.has_done(block.ticket) {
                block.used = 0;
                return Ok(());
            }
            if block.event.is_none() {
                block.event = Some(create_event(stream.context(), CUevent_flags::CU_EVENT_DISABLE_TIMING.0)?);
            }
        }
        if self.next.is_some() {
            return Ok(());
        }
        self.full.reserve(1);
        self.next = match self.full.pop_front_if(|block| block.is_read(stream)) {
            Some(block) => Some(StagingBlock { used: 0, ..block }),
            None => Some(StagingBlock::new(stream, allocate(BLOCK)?)),
        };
        Ok(())
    }

    /// The place for that many bytes, for which there [is](Self::prepare) room. With read access of
    /// the stream, which is not capturing.
    pub(crate) fn place(&mut self, bytes: usize) -> Result<Option<NonNull<u8>>> {
        if self.current.as_ref().is_none_or(|block| !block.has_room(bytes)) {
            if let Some(event) = self.current.as_ref().and_then(|block| block.event) {
                point::record(self.stream.context(), event, self.stream.raw())?;
            }
            let full = core::mem::replace(&mut self.current, self.next.take());
            self.full.extend(full);
        }
        Ok(self.current.as_ref().and_then(StagingBlock::free_part))
    }

    /// That many bytes were written, and the copy that reads them lies before the point with this
    /// ticket.
    pub(crate) fn wrote(&mut self, bytes: usize, ticket: u64) {
        if let Some(block) = &mut self.current {
            block.used += bytes.next_multiple_of(ALIGN);
            block.ticket = ticket;
        }
    }

    fn is_empty(&self) -> bool {
        self.current.is_none() && self.next.is_none() && self.full.is_empty()
    }

    fn blocks(&mut self) -> impl Iterator<Item = StagingBlock> {
        self.full.drain(..).chain(self.current.take()).chain(self.next.take())
    }
}

impl StagingBlock {
    fn new(stream: &Arc<RawStream>, block: HostBlock) -> Self {
        let (context, what) = (stream.context().clone(), FreeKind::Host(block.clone()));
        let order = Node::new(PendingFree { context, home: Some(Arc::clone(stream)), what });
        Self { block, order, used: 0, ticket: 0, event: None }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.block.bytes.saturating_sub(self.used) >= bytes
    }

    fn free_part(&self) -> Option<NonNull<u8>> {
        // Inside the block, or just behind it where there is no room.
        NonNull::new(self.block.start.get().cast::<u8>().wrapping_add(self.used))
    }

    /// Whether all that was written to it was read. One call at most.
    fn is_read(&self, stream: &RawStream) -> bool {
        let is_reached = |event| point::is_reached(stream.context(), event, ASKING);
        stream.has_done(self.ticket) || self.event.is_some_and(is_reached)
    }

    /// Gives it to the cache; nothing reads it any more.
    fn give(self) {
        self.drop_event();
        host_cache::give(self.block);
    }

    /// Gives it to the reaper.
    fn give_later(self) {
        self.drop_event();
        push_free(self.order);
    }

    fn drop_event(&self) {
        self.event.into_iter().for_each(|event| destroy::destroy(&self.block.context, Object::Event(event)));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !destroy::may_call(self.stream.context()) {
            return;
        }
        let stream = Arc::clone(&self.stream);
        for block in self.blocks() {
            if stream.has_done(block.ticket) { block.give() } else { block.give_later() }
        }
    }
}
