//! Fences: freeing memory that was used off its home stream.
//!
//! Every stream that ever used memory of another home is a member of all fences, until its last
//! work was waited for. For a batch of frees, the reaper's lane waits for every member and for the
//! homes of the batch, and then frees in stream order. No thread waits on the host. Memory that
//! cannot be freed in stream order (host memory, owners of foreign memory) is released once an
//! event behind the fence was reached, which the reaper asks for from time to time.

use super::fence::members;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use cuda_sys::{CUevent_st, CUresult, CUstream, Call};

use super::fence::{ACROSS, CLOSINGS, FREES, FreeKind, PendingFree, close_late, leave, may_run_elsewhere};
use super::lane::Lane;
use super::pools::Pools;
use super::{host_cache, retired};
use crate::context::{Context, capture_mode};
use crate::destroy::{self, Kept, Object};
use crate::error::{Error, Result};
use crate::raw_stream::point::{is_reached, record_new, report_unless_expected};
use crate::raw_stream::{RawStream, let_wait, point};
use crate::registry::Raw;
use crate::sync::for_at_most;

/// The state of fences from one round to the next.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    lanes: Vec<Lane>,
    /// Frees whose fence cannot be built yet: a member is capturing, or a call failed.
    postponed: Vec<PendingFree>,
    /// Frees behind fences that the host has not seen reached yet.
    held: Vec<Held>,
    /// Owners of memory that nothing uses any more. They are dropped where destructors may run.
    owners: Vec<Kept>,
    /// Pools without handles whose memory is still being freed.
    pools: Pools,
    /// The error that last postponed frees.
    postpone_error: Option<Error>,
}

/// Memory that is released when an event in a lane was reached.
#[derive(Debug)]
struct Held {
    context: Context,
    event: Raw<CUevent_st>,
    frees: Vec<PendingFree>,
    since: Instant,
}

/// How long a caller that asks for the free memory waits for a lane.
const FREES_LIMIT: Duration = Duration::from_millis(200);

/// Typical time for a lane to pass a fence over idle streams.
const PASSING: Duration = Duration::from_millis(5);

impl Fences {
    pub(crate) const fn new() -> Self {
        Self {
            lanes: Vec::new(),
            postponed: Vec::new(),
            held: Vec::new(),
            owners: Vec::new(),
            pools: Pools::new(),
            postpone_error: None,
        }
    }

    /// Whether something waits for a later try.
    pub(crate) fn has_postponed(&self) -> bool {
        !(self.postponed.is_empty() && self.held.is_empty() && self.pools.is_empty() && CLOSINGS.is_empty())
            || destroy::any_attempts()
            || members().iter().any(|member| member.gate().closed)
    }

    /// Whether [`take_owners`](Self::take_owners) would give some.
    pub(crate) fn has_owners(&self) -> bool {
        !self.owners.is_empty()
    }

    /// Whether a fence is so new that it may be reached at any moment.
    pub(crate) fn has_young(&self) -> bool {
        self.held.iter().any(|held| held.since.elapsed() < PASSING)
    }

    /// The owners of foreign memory that nothing uses any more, to be dropped without this lock:
    /// their destructors may take long.
    pub(crate) fn take_owners(&mut self) -> Vec<Kept> {
        core::mem::take(&mut self.owners)
    }

    /// Ends the lanes of contexts that nothing else holds: other code may then destroy such a
    /// context, and the driver may reuse its address.
    pub(crate) fn end_lanes(&mut self) {
        self.lanes.retain(|lane| !lane.is_ended());
    }

    /// Frees pending memory, and releases streams and pools without handles. Returns how many. Runs
    /// no destructors of other code.
    pub(crate) fn work(&mut self) -> usize {
        // Counted when they are dropped.
        self.owners.extend(destroy::try_attempts());
        let mut done = close_late() + self.release_reached();
        let mut frees = core::mem::take(&mut self.postponed);
        frees.extend(FREES.take());
        frees.extend(retired::take_due());
        let members = members();
        // Read before any fence is built: work enqueued up to a stream's closing is in front of it.
        let closed: Vec<_> = members.iter().filter(|member| member.gate().closed).cloned().collect();
        let mut contexts: Vec<Context> = Vec::new();
        for found in
            frees.iter().map(|free| &free.context).chain(closed.iter().map(|stream| stream.context()))
        {
            if !contexts.iter().any(|context| context.is_same(found)) {
                contexts.push(found.clone());
            }
        }
        let across = ACROSS.load(Ordering::Acquire);
        for context in contexts {
            let (mine, others) = frees.into_iter().partition(|free| free.context.is_same(&context));
            frees = others;
            let of_context = |stream: &&Arc<RawStream>| stream.context().is_same(&context);
            let concerned = |stream: &&Arc<RawStream>| {
                of_context(stream) || across && destroy::may_call(stream.context())
            };
            let before: Vec<_> = members.iter().filter(concerned).cloned().collect();
            done +=
                self.work_in(&context, mine, &before, closed.iter().filter(of_context).cloned().collect());
        }
        let lanes = &self.lanes;
        let lane = |context: &Context| lanes.iter().find(|lane| lane.context.is_same(context));
        // Last, as the frees above may have released pools.
        done + self.pools.work(|context| lane(context).map(|lane| lane.stream.get()))
    }

    fn work_in(
        &mut self,
        context: &Context,
        frees: Vec<PendingFree>,
        members: &[Arc<RawStream>],
        closed: Vec<Arc<RawStream>>,
    ) -> usize {
        if !destroy::may_call(context) {
            return self.release_of(context, frees) + leave(closed);
        }
        let frees = self.hold_behind_homes(context, frees);
        if frees.is_empty() && closed.is_empty() {
            return 0;
        }
        let before: &[_] = if frees.is_empty() { &closed } else { members };
        let homes = frees.iter().filter_map(|free| free.home.as_ref());
        let ordered = self.lane(context).and_then(|lane| {
            order(before.iter().chain(homes), context, lane)?;
            if !frees.is_empty() {
                self.order_across(context, lane)?;
            }
            Ok(lane)
        });
        match ordered {
            Ok(lane) => self.free_all(context, frees, lane) + leave(closed),
            Err(error) => {
                self.postpone_error = Some(error.clone());
                report_unless_expected("fencing memory that several streams used", error);
                self.postponed.extend(frees);
                0
            }
        }
    }

    /// Only the lanes of their own contexts have waited for streams without handles. If memory is
    /// used across contexts, a lane that frees some waits for the other lanes.
    fn order_across(&self, context: &Context, lane: CUstream) -> Result<()> {
        if !ACROSS.load(Ordering::Acquire) {
            return Ok(());
        }
        let is_other = |other: &&Lane| !other.context.is_same(context) && destroy::may_call(&other.context);
        self.lanes.iter().filter(is_other).try_for_each(|other| {
            let event = match record_new(&other.context, other.stream.get()) {
                // Nothing runs there any more.
                Err(Error::ContextLost(_)) => return Ok(()),
                recorded => recorded?,
            };
            let waits = let_wait(context, lane, event);
            destroy::destroy(&other.context, Object::Event(event));
            waits
        })
    }

    fn free_all(&mut self, context: &Context, frees: Vec<PendingFree>, lane: CUstream) -> usize {
        let (in_order, held): (Vec<_>, Vec<_>) =
            frees.into_iter().partition(|free| matches!(free.what, FreeKind::Device { .. }));
        let done = if in_order.is_empty() {
            0
        } else {
            self.lanes.iter_mut().filter(|one| one.context.is_same(context)).for_each(|one| one.frees = true);
            let _mode = capture_mode::relaxed(context.driver());
            in_order.into_iter().filter(|free| self.free(free, lane)).count()
        };
        self.hold(context, held, lane);
        done
    }

    /// Frees in the lane's order. False if it has to be tried again.
    fn free(&mut self, free: &PendingFree, lane: CUstream) -> bool {
        let FreeKind::Device { address, ref keep } = free.what else { return false };
        // SAFETY: the address came from the driver's allocator and has no owner any more; all its
        // uses are before this point.
        let code = unsafe { free.context.driver().cuMemFreeAsync(address, lane) };
        if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
            self.postpone_error = Some(Error::Driver { call: Call::cuMemFreeAsync, code });
            self.postponed.push(free.clone());
            return false;
        }
        if let Err(error) = free.context.check(Call::cuMemFreeAsync, code) {
            if let Some(keep) = keep {
                keep.free_failed(&error);
            }
            destroy::report("freeing a buffer", error);
        }
        destroy::one_done();
        true
    }

    /// Holds memory that cannot be freed in the lane's order until the lane has reached this point.
    fn hold(&mut self, context: &Context, frees: Vec<PendingFree>, lane: CUstream) {
        if frees.is_empty() {
            return;
        }
        match record_new(context, lane) {
            Ok(event) => {
                self.held.push(Held { context: context.clone(), event, frees, since: Instant::now() })
            }
            Err(error) => {
                report_unless_expected("fencing host memory", error);
                self.postponed.extend(frees);
            }
        }
    }

    /// Lets go of everything that only its home stream uses, if that is idle. Otherwise holds it
    /// behind an event in the stream itself, as the lane may be waiting for other streams. Returns
    /// the rest.
    fn hold_behind_homes(&mut self, context: &Context, frees: Vec<PendingFree>) -> Vec<PendingFree> {
        const WHAT: &str = "releasing what an executable graph no longer uses";
        let mut rest = Vec::new();
        for free in frees {
            let FreeKind::Behind(owner) = &free.what else {
                rest.push(free);
                continue;
            };
            if free.home.as_ref().is_some_and(|home| home.is_idle()) {
                self.owners.push(owner.clone());
                continue;
            }
            match free.home.as_ref().map_or(Ok(None), |home| home.record_end(WHAT)) {
                Ok(Some(event)) => {
                    let (context, since) = (context.clone(), Instant::now());
                    self.held.push(Held { context, event, frees: vec![free], since });
                }
                Ok(None) => rest.push(free),
                Err(error) => {
                    self.postpone_error = Some(error.clone());
                    report_unless_expected(WHAT, error);
                    self.postponed.push(free);
                }
            }
        }
        rest
    }

    /// Releases memory behind fences that were reached meanwhile.
    fn release_reached(&mut self) -> usize {
        let mut done = 0;
        for held in core::mem::take(&mut self.held) {
            if is_reached(&held.context, held.event, "asking whether host memory is free") {
                destroy::destroy(&held.context, Object::Event(held.event));
                done += self.release_of(&held.context, held.frees);
            } else {
                self.held.push(held);
            }
        }
        done
    }

    /// [`release`](Self::release) for memory of a context that may be lost. Its own work is over
    /// then, and that of other contexts perhaps not: memory of the host, and of other owners, stays
    /// to the end of the process.
    fn release_of(&mut self, context: &Context, frees: Vec<PendingFree>) -> usize {
        if !may_run_elsewhere(context) {
            return self.release(frees);
        }
        let is_of_others = |free: &PendingFree| matches!(free.what, FreeKind::Host(_) | FreeKind::Owned(_));
        let (staying, rest): (Vec<_>, Vec<_>) = frees.into_iter().partition(is_of_others);
        let count = staying.len();
        staying.into_iter().for_each(|free| {
            core::mem::forget(free);
            destroy::one_done();
        });
        count + self.release(rest)
    }

    /// Lets go of memory that nothing uses any more. Returns how much is done with.
    fn release(&mut self, frees: Vec<PendingFree>) -> usize {
        let mut done = 0;
        for free in frees {
            match free.what {
                FreeKind::Host(block) => host_cache::give(block),
                FreeKind::Owned(owner) | FreeKind::Behind(owner) => {
                    self.owners.push(owner);
                    continue;
                }
                FreeKind::Device { .. } => {}
            }
            destroy::one_done();
            done += 1;
        }
        done
    }

    /// Waits a moment for the frees in the lane of a context, and makes the driver process them.
    pub(crate) fn see_freed(&mut self, context: &Context) {
        let with_frees = |lane: &&mut Lane| lane.frees && lane.context.is_same(context);
        let Some(lane) = self.lanes.iter_mut().find(with_frees) else { return };
        let Ok(event) = record_new(context, lane.stream.get()) else { return };
        let is_free = || is_reached(context, event, "asking whether memory is free").then_some(());
        if for_at_most(FREES_LIMIT, is_free).is_some() {
            point::settle(context, event);
        }
        // No later caller waits again behind work that takes long.
        lane.frees = false;
        destroy::destroy(context, Object::Event(event));
    }

    /// Makes a stream wait for all that was freed in the lane of its context. A failure changes
    /// nothing.
    pub(crate) fn let_wait_for_frees(&self, stream: &RawStream) {
        let context = stream.context();
        let Some(lane) = self.lanes.iter().find(|lane| lane.context.is_same(context)) else { return };
        let Ok(event) = record_new(context, lane.stream.get()) else { return };
        let access = stream.enqueue();
        if access.is_ok() && matches!(stream.is_capturing(), Ok(false)) {
            // SAFETY: stream and event are alive.
            let code = unsafe { context.driver().cuStreamWaitEvent(stream.raw(), event.get(), 0) };
            // Only to note a lost context: the allocation that follows has the answer that
            // matters.
            let _ = context.check(Call::cuStreamWaitEvent, code);
        }
        drop(access);
        destroy::destroy(context, Object::Event(event));
    }

    /// The lane of a context, made when first needed and kept as long as the context.
    fn lane(&mut self, context: &Context) -> Result<CUstream> {
        if let Some(lane) = self.lanes.iter().find(|lane| lane.context.is_same(context)) {
            return Ok(lane.stream.get());
        }
        let lane = Lane::create(context)?;
        let stream = lane.stream.get();
        self.lanes.push(lane);
        Ok(stream)
    }

    /// The error that postponed frees since it was last [cleared](Self::clear_postpone_error).
    pub(crate) fn postpone_error(&self) -> Result<()> {
        self.postpone_error.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn clear_postpone_error(&mut self) {
        self.postpone_error = None;
    }

    /// Makes a stream wait for all that was freed in the lane of its context. Refused while it is
    /// capturing.
    pub(crate) fn order_after_frees(&self, stream: &RawStream) -> Result<()> {
        let context = stream.context();
        let Some(lane) = self.lanes.iter().find(|lane| lane.context.is_same(context)) else { return Ok(()) };
        let event = record_new(context, lane.stream.get())?;
        let waits = stream.enqueue().and_then(|_access| {
            stream.refuse_capture("waiting for memory to be freed")?;
            let_wait(context, stream.raw(), event)
        });
        destroy::destroy(context, Object::Event(event));
        waits
    }
}

/// Makes the lane wait for each stream, once.
fn order<'a>(
    streams: impl Iterator<Item = &'a Arc<RawStream>>,
    context: &Context,
    lane: CUstream,
) -> Result<()> {
    let mut seen = Vec::new();
    for stream in streams {
        if !seen.contains(&stream.id()) {
            seen.push(stream.id());
            stream.order_before_uncaptured(context, lane, "freeing memory that the stream used")?;
        }
    }
    Ok(())
}
