//! Groups: calls of several communicators that are made together.

mod checks;

use core::fmt;
use std::sync::Arc;

use cuda_handles::capture::Enqueue;
use cuda_handles::capture_mode::relaxed;
use cuda_handles::{Allocation, Owner, Slice, Stream};
use cuda_sys::CUstream;

use crate::api::{Api, RawCommunicator, SUM};
use crate::communicator::{Clique, Communicator};
use crate::error::Result;
use crate::number::Number;

/// Calls that are made together, by [`enqueue`](Self::enqueue): the kernels of the devices wait for
/// each other, so that none is of use alone.
///
/// A group collects its calls and checks them before it makes the first one. Without the checks, a
/// device would wait for ever, or write past the end of another one's memory.
#[derive(Default)]
#[must_use = "a group does nothing until it is enqueued"]
pub struct Group<'g> {
    calls: Vec<Call<'g>>,
}

/// A call on a stream.
struct Call<'g> {
    communicator: Communicator,
    stream: &'g Stream,
    work: Work<'g>,
    type_: i32,
}

/// What a call does with which memory.
#[derive(Clone, Copy)]
enum Work<'g> {
    Sum { from: Range<'g>, to: Range<'g> },
    Send { from: Range<'g>, peer: usize },
    Recv { to: Range<'g>, peer: usize },
}

/// Numbers in memory.
#[derive(Clone, Copy)]
struct Range<'g> {
    allocation: &'g Arc<Allocation>,
    address: u64,
    count: usize,
    bytes: usize,
}

impl<'g, T: Number> From<Slice<'g, T>> for Range<'g> {
    fn from(slice: Slice<'g, T>) -> Self {
        Self {
            allocation: slice.allocation(),
            address: slice.address(),
            count: slice.len(),
            bytes: slice.size_bytes(),
        }
    }
}

impl<'g> Work<'g> {
    fn ranges(self) -> impl Iterator<Item = Range<'g>> {
        let ranges = match self {
            Self::Sum { from, to } => [Some(from), Some(to)],
            Self::Send { from: range, .. } | Self::Recv { to: range, .. } => [Some(range), None],
        };
        ranges.into_iter().flatten()
    }

    fn count(self) -> usize {
        match self {
            Self::Sum { from: range, .. } | Self::Send { from: range, .. } | Self::Recv { to: range, .. } => {
                range.count
            }
        }
    }
}

/// A stream of a group, with the memory that the calls on it use.
struct Lane<'g> {
    stream: &'g Stream,
    memory: Vec<&'g Arc<Allocation>>,
}

impl<'g> Group<'g> {
    /// A group without calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the numbers of all ranks, and puts the sums into `to` on each of them. `from` and `to`
    /// may be the same memory. Every rank makes the call, with as many numbers.
    #[doc(alias = "ncclAllReduce")]
    pub fn all_reduce_sum<T: Number>(
        &mut self,
        communicator: &Communicator,
        stream: &'g Stream,
        from: impl Into<Slice<'g, T>>,
        to: impl Into<Slice<'g, T>>,
    ) -> &mut Self {
        self.add::<T>(communicator, stream, Work::Sum { from: from.into().into(), to: to.into().into() })
    }

    /// Sends numbers to another rank, which [receives](Self::recv) as many.
    #[doc(alias = "ncclSend")]
    pub fn send<T: Number>(
        &mut self,
        communicator: &Communicator,
        stream: &'g Stream,
        from: impl Into<Slice<'g, T>>,
        peer: usize,
    ) -> &mut Self {
        self.add::<T>(communicator, stream, Work::Send { from: from.into().into(), peer })
    }

    /// Receives numbers of another rank, which [sends](Self::send) as many.
    #[doc(alias = "ncclRecv")]
    pub fn recv<T: Number>(
        &mut self,
        communicator: &Communicator,
        stream: &'g Stream,
        to: impl Into<Slice<'g, T>>,
        peer: usize,
    ) -> &mut Self {
        self.add::<T>(communicator, stream, Work::Recv { to: to.into().into(), peer })
    }

    fn add<T: Number>(
        &mut self,
        communicator: &Communicator,
        stream: &'g Stream,
        work: Work<'g>,
    ) -> &mut Self {
        self.calls.push(Call { communicator: communicator.clone(), stream, work, type_: T::TYPE });
        self
    }

    /// Makes the calls. Waits for nothing on the host, but for other groups of these communicators.
    ///
    /// On streams that capture, all of them in one capture, the calls become nodes, and the graph
    /// keeps memory and communicators. The driver adds what NCCL adds: kernels, waits for and
    /// records of its own events, and with some connections host functions. Capture in
    /// [`ThreadLocal`](cuda_handles::capture::CaptureMode::ThreadLocal) or
    /// [`Relaxed`](cuda_handles::capture::CaptureMode::Relaxed) mode, since threads of NCCL
    /// allocate memory when two ranks first work together.
    ///
    /// Executables with calls of one communicator are launched by one thread at a time, or in an
    /// order that is the same on all devices: their kernels wait for each other.
    ///
    /// Calls `ncclGroupStart`, `ncclAllReduce`, `ncclSend`, `ncclRecv` and `ncclGroupEnd`.
    ///
    /// # Errors
    /// Before any call of NCCL, and with no effect: [`Group`](crate::Error::Group) if the calls do
    /// not fit together; [`Broken`](crate::Error::Broken) after a failure;
    /// [`Handles`](crate::Error::Handles) if memory is of another context than its stream, or other
    /// ranks [cannot use](Allocation::is_reachable_from) it, or in a host function.
    ///
    /// [`Refused`](crate::Error::Refused): NCCL refuses a call. The communicators are broken then,
    /// and a capture ends with an error
    /// ([`CaptureInvalidated`](cuda_handles::Error::CaptureInvalidated)).
    #[doc(alias = "ncclGroupStart")]
    #[doc(alias = "ncclGroupEnd")]
    pub fn enqueue(&self) -> Result<()> {
        let Some(first) = self.calls.first() else { return Ok(()) };
        let clique = first.communicator.clique();
        let lanes = checks::lanes(&self.calls)?;
        checks::memory(&self.calls)?;
        // Another thread may have the turn, and NCCL may wait there for this host function.
        first.stream.context().refuse_in_callback()?;
        let _turn = clique.turn();
        clique.ensure_whole()?;
        // First without a right to enqueue: streams may have to wait for homes of memory.
        for lane in &lanes {
            drop(lane.stream.enqueue_ready(&lane.memory)?);
        }
        let rights: Vec<Enqueue<'_>> =
            lanes.iter().map(|lane| lane.stream.enqueue_ready(&lane.memory)).collect::<Result<_, _>>()?;
        let is_captured = checks::is_captured(&rights)?;
        if is_captured {
            keep(&rights, &lanes, clique)?;
        }
        let outcome = self.call_nccl(clique);
        if outcome.is_err() && is_captured {
            spoil(&rights);
        }
        outcome
    }

    fn call_nccl(&self, clique: &Clique) -> Result<()> {
        let Some(context) = clique.contexts.first() else { return Ok(()) };
        // NCCL makes contexts current by CUDA's runtime. What the thread had comes back.
        context.with_current(|| {
            // As NCCL's own calls of the driver are around a capture.
            let _mode = relaxed(context.driver());
            // SAFETY: the calls were checked, the caller has the right to enqueue on their streams,
            // and the streams are ready for their memory.
            let outcome = unsafe { self.between_start_and_end(clique) };
            outcome.inspect_err(|error| clique.note_failure(error))
        })?
    }

    /// # Safety
    /// The calls are checked, and the streams are ready for them.
    unsafe fn between_start_and_end(&self, clique: &Clique) -> Result<()> {
        let api = clique.nccl.api();
        let nobody = core::ptr::null_mut();
        // SAFETY: groups may be started on any thread.
        clique.nccl.check("ncclGroupStart", unsafe { (api.group_start)() }, nobody)?;
        let calls = self.calls.iter().filter(|call| call.work.count() > 0);
        let made = calls.map(|call| {
            let communicator = call.communicator.as_raw();
            // SAFETY: the caller's promise; communicator and memory live.
            let (name, status) = unsafe { call.make(api, communicator) };
            clique.nccl.check(name, status, communicator)
        });
        let made = made.collect::<Result<()>>();
        // After a failure as well, or all later calls of this thread would be of the group.
        // SAFETY: a group is open.
        let ended = clique.nccl.check("ncclGroupEnd", unsafe { (api.group_end)() }, nobody);
        made.and(ended)
    }
}

impl Call<'_> {
    /// # Safety
    /// As NCCL's documentation has it for the call.
    unsafe fn make(&self, api: &Api, communicator: RawCommunicator) -> (&'static str, i32) {
        let (stream, type_): (CUstream, i32) = (self.stream.as_raw(), self.type_);
        let at = |range: Range<'_>| core::ptr::with_exposed_provenance_mut(range.address as usize);
        let rank = |peer: usize| i32::try_from(peer).unwrap_or(i32::MAX);
        match self.work {
            Work::Sum { from, to } => {
                // SAFETY: the caller's promise.
                let status = unsafe {
                    (api.all_reduce)(at(from), at(to), from.count, type_, SUM, communicator, stream)
                };
                ("ncclAllReduce", status)
            }
            Work::Send { from, peer } => {
                // SAFETY: the caller's promise.
                let status =
                    unsafe { (api.send)(at(from), from.count, type_, rank(peer), communicator, stream) };
                ("ncclSend", status)
            }
            Work::Recv { to, peer } => {
                // SAFETY: the caller's promise.
                let status = unsafe { (api.recv)(at(to), to.count, type_, rank(peer), communicator, stream) };
                ("ncclRecv", status)
            }
        }
    }
}

/// Gives the capture all that the calls use.
fn keep(rights: &[Enqueue<'_>], lanes: &[Lane<'_>], clique: &Arc<Clique>) -> Result<()> {
    for (right, lane) in rights.iter().zip(lanes) {
        lane.memory.iter().try_for_each(|memory| right.keep(*memory))?;
    }
    match rights.first() {
        Some(right) => Ok(right.keep(Owner::shared(Arc::clone(clique)))?),
        None => Ok(()),
    }
}

/// Makes a capture invalid, which may have some of the calls of a group: alone, their kernels would
/// wait for ever. The driver answers a question for a stream that captures in this way.
fn spoil(rights: &[Enqueue<'_>]) {
    for right in rights {
        let stream = right.stream();
        // SAFETY: the stream is alive.
        let _refused = unsafe { stream.context().driver().cuStreamQuery(stream.as_raw()) };
    }
}

impl fmt::Debug for Group<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Group").field("calls", &self.calls.len()).finish()
    }
}
