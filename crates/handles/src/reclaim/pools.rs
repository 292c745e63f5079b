//! Destroying pools whose memory may still be being freed.
//!
//! A driver crashes if a pool is destroyed before all frees of its memory are done on the device,
//! so a pool waits here until they are. No thread waits for the device: a stream that has work gets
//! an event behind its last free, and the reaper asks from time to time. No stream waits either, so
//! a pool that waits for long holds up nothing else.
//!
//! A pool does not keep the streams on which its memory is freed. One that loses its last handle
//! stays here until it is idle, so that a stream that is gone has done its frees.

use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use cuda_sys::{CUevent_st, CUmemPoolHandle_st, CUstream};

use crate::context::Context;
use crate::destroy::{self, Destruction, List, Node, Object};
use crate::error::Result;
use crate::raw_stream::point::{is_reached, record_new, report_unless_expected};
use crate::raw_stream::{RawStream, point};
use crate::registry::Raw;

/// The action that is postponed while a stream that freed memory is capturing.
const WHAT: &str = "destroying a pool whose memory the stream freed";
const ASKING: &str = "asking whether the memory of a pool is free";

/// A pool without handles, of which nothing is allocated any more.
#[derive(Debug)]
pub(crate) struct UnusedPool {
    pub(crate) context: Context,
    pub(crate) raw: Raw<CUmemPoolHandle_st>,
    /// The streams that may not have done their frees yet.
    pub(crate) homes: Vec<Arc<RawStream>>,
    /// Whether the reaper has freed some of its memory.
    pub(crate) fenced: bool,
}

static POOLS: List<UnusedPool> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));
static CLOSING: List<Arc<RawStream>> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));

/// Hands a pool to the reaper, to be destroyed once its memory is free.
pub(crate) fn push_pool(pool: UnusedPool) {
    destroy::expect_one();
    POOLS.push(Node::new(pool));
    destroy::wake();
}

/// A stream has lost its last handle. If pools want to know when its frees are done, it stays until
/// it is idle.
pub(crate) fn close_home(stream: &Arc<RawStream>) {
    // Beside the list of all streams, which has one, only pools have weak references.
    if Arc::weak_count(stream) > 1 && destroy::may_call(stream.context()) {
        destroy::expect_one();
        CLOSING.push(Node::new(Arc::clone(stream)));
        destroy::wake();
    }
}

/// The pools and streams that wait from one round to the next.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    waiting: Vec<Waiting>,
    closing: Vec<Arc<RawStream>>,
}

/// A pool, and events behind frees of its memory.
#[derive(Debug)]
struct Waiting {
    pool: UnusedPool,
    events: Vec<Raw<CUevent_st>>,
}

impl Pools {
    pub(crate) const fn new() -> Self {
        Self { waiting: Vec::new(), closing: Vec::new() }
    }

    /// Whether nothing waits for a later try.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.closing.is_empty()
    }

    /// Destroys the pools whose memory is free by now, and releases streams that are idle. `lane`
    /// returns the reaper's own stream in a context, if there is one. Returns how much was done.
    pub(crate) fn work(&mut self, lane: impl Fn(&Context) -> Option<CUstream>) -> usize {
        let mut pools = core::mem::take(&mut self.waiting);
        pools.extend(POOLS.take().map(|pool| Waiting { pool, events: Vec::new() }));
        let mut streams = core::mem::take(&mut self.closing);
        streams.extend(CLOSING.take());
        let all = pools.len() + streams.len();
        let is_over = |stream: &Arc<RawStream>| !destroy::may_call(stream.context()) || stream.is_over();
        self.closing = streams.into_iter().filter(|stream| !is_over(stream)).collect();
        self.waiting = pools.into_iter().filter_map(|pool| pool.ended(&lane).err()).collect();
        let done = all - self.waiting.len() - self.closing.len();
        (0..done).for_each(|_| destroy::one_done());
        done
    }
}

impl Waiting {
    /// Destroys the pool, or gives it back where that is for later.
    fn ended(mut self, lane: impl Fn(&Context) -> Option<CUstream>) -> core::result::Result<(), Self> {
        let context = self.pool.context.clone();
        if destroy::may_call(&context) && !self.is_free(lane(&context)) {
            return Err(self);
        }
        destroy::try_destroy(Destruction { context, object: Object::Pool(self.pool.raw), keep: None })
            .map_err(|_doomed| self)
    }

    /// Whether all its memory is seen to be free.
    fn is_free(&mut self, lane: Option<CUstream>) -> bool {
        let Self { pool, events } = self;
        pool.homes.retain(|stream| match point_behind(stream) {
            Ok(Point::Reached) => false,
            Ok(Point::Event(event)) => {
                events.push(event);
                false
            }
            Ok(Point::End) => true,
            Err(error) => {
                report_unless_expected(WHAT, error);
                true
            }
        });
        if let Some(lane) = lane.filter(|_| pool.fenced) {
            match record_new(&pool.context, lane) {
                Ok(event) => {
                    events.push(event);
                    pool.fenced = false;
                }
                Err(error) => {
                    report_unless_expected(WHAT, error);
                    return false;
                }
            }
        }
        events.retain(|event| {
            let reached = is_reached(&pool.context, *event, ASKING);
            if reached {
                point::settle(&pool.context, *event);
                destroy::destroy(&pool.context, Object::Event(*event));
            }
            !reached
        });
        pool.homes.is_empty() && events.is_empty()
    }
}

/// When the work enqueued on a stream now is done.
enum Point {
    /// The work is done already.
    Reached,
    /// When this event is reached.
    Event(Raw<CUevent_st>),
    /// When the stream is idle; no handle of it is left.
    End,
}

fn point_behind(stream: &RawStream) -> Result<Point> {
    if !is_open(stream)? {
        return Ok(if stream.is_over() { Point::Reached } else { Point::End });
    }
    let mut open = false;
    let event = point::new(stream.context(), |event| {
        let gate = stream.gate();
        open = !gate.closed;
        if !open {
            return Ok(());
        }
        let _access = stream.enqueue()?;
        stream.refuse_capture(WHAT)?;
        point::record(stream.context(), event, stream.raw())?;
        // If other code captures the stream, a capture that began meanwhile may have caught it.
        stream.refuse_capture(WHAT)
    })?;
    if open {
        return Ok(Point::Event(event));
    }
    destroy::destroy(stream.context(), Object::Event(event));
    Ok(Point::End)
}

/// Whether the stream has handles. Refused while it is capturing.
fn is_open(stream: &RawStream) -> Result<bool> {
    let gate = stream.gate();
    if gate.closed {
        return Ok(false);
    }
    stream.refuse_capture(WHAT).map(|()| true)
}
