//! Enqueuing the calls of a group.
//!
//! All ranks wait for each other before the group's first copy, between the copies and the sums,
//! since these may overwrite what was copied, and in the end.

use std::sync::Arc;

use cuda_handles::capture_mode::relaxed;
use cuda_sys::{CUevent, CUgraph, CUstream, Driver};

use super::communicator::{Clique, Plan, Rank};
use super::driver::{captured_graph, driver, give, new_event, new_memory, ok, record, wait, within};
use super::{Answer, INVALID_USAGE, Kernel, Queued, Work};

const BLOCK: u32 = 256;
const MOST_BLOCKS: usize = 1024;

/// A rank that takes part, with its stream and its calls.
struct Lane<'q> {
    rank: usize,
    stream: CUstream,
    works: Vec<&'q Work>,
}

/// The sums of a rank: the memory for the numbers of all ranks.
struct Parts {
    rank: usize,
    address: u64,
}

/// # Safety
/// The communicators of the calls live, and streams and memory are as NCCL wants them.
pub(super) unsafe fn all(calls: &[Queued]) -> Answer {
    let Some(first) = calls.first() else { return Ok(()) };
    // SAFETY: the caller's promise.
    let clique = unsafe { &*first.rank.cast::<Rank>() }.clique.clone();
    // As NCCL does, which allocates and frees memory beside captures, too.
    let _mode = relaxed(driver()?);
    clique.collect()?;
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    for call in calls {
        // SAFETY: the caller's promise.
        let rank = unsafe { &*call.rank.cast::<Rank>() };
        if !Arc::ptr_eq(&rank.clique, &clique) {
            return Err(INVALID_USAGE);
        }
        match lanes.iter_mut().find(|lane| lane.rank == rank.number) {
            Some(lane) => lane.works.push(&call.work),
            None => lanes.push(Lane { rank: rank.number, stream: call.stream, works: vec![&call.work] }),
        }
    }
    lanes.sort_by_key(|lane| lane.rank);
    let group = Run { clique: &clique, lanes: &lanes, driver: driver()? };
    // SAFETY: the caller's promise.
    unsafe { group.enqueue(captured_graph(group.driver, first.stream)?) }
}

struct Run<'r> {
    clique: &'r Arc<Clique>,
    lanes: &'r [Lane<'r>],
    driver: &'static Driver,
}

impl Run<'_> {
    /// # Safety
    /// As [`all`].
    unsafe fn enqueue(&self, graph: Option<CUgraph>) -> Answer {
        let (memory, is_captured) = (self.memory()?, graph.is_some());
        if let Some(graph) = graph {
            let plan = memory.iter().map(|parts| (parts.rank, parts.address)).collect();
            // SAFETY: the graph of a capture that is open.
            unsafe { give(self.driver, graph, Plan::new(self.clique, plan), Plan::end) }?;
        }
        // SAFETY: the caller's promise, for all of these.
        unsafe {
            self.serial(|stream, event| wait(self.driver, stream, event, is_captured))?;
            self.meet()?;
            self.copy(&memory)?;
            self.meet()?;
            self.sum(&memory)?;
            self.meet()?;
            self.serial(|stream, event| record(self.driver, event, stream, is_captured))?;
            if is_captured { Ok(()) } else { self.free(&memory) }
        }
    }

    fn sums<'l>(&self, lane: &Lane<'l>) -> impl Iterator<Item = (u64, u64, usize, Kernel)> + use<'l> {
        let works = lane.works.clone();
        works.into_iter().filter_map(|work| match *work {
            Work::Sum { from, to, count, kernel } => Some((from, to, count, kernel)),
            Work::Send { .. } | Work::Recv { .. } => None,
        })
    }

    /// The memory of each rank for the numbers that it adds, one sum after the other.
    fn memory(&self) -> Answer<Vec<Parts>> {
        let mut memory = Vec::with_capacity(self.lanes.len());
        for lane in self.lanes {
            let numbers: usize = self.sums(lane).map(|(_, _, count, kernel)| count * kernel.size()).sum();
            let bytes = numbers * self.lanes.len();
            let Some(part) = self.clique.devices.get(lane.rank) else { return Err(INVALID_USAGE) };
            // SAFETY: the communicator retains the context.
            let address = unsafe { within(part.context, |driver| new_memory(driver, bytes)) }?;
            if address != 0 {
                memory.push(Parts { rank: lane.rank, address });
            }
        }
        Ok(memory)
    }

    /// Groups of the same communicators come one after the other, whether captured or not.
    fn serial(&self, call: impl Fn(CUstream, CUevent) -> Answer) -> Answer {
        self.lanes.iter().try_for_each(|lane| match self.clique.devices.get(lane.rank) {
            Some(part) => call(lane.stream, part.serial),
            None => Err(INVALID_USAGE),
        })
    }

    /// Each stream waits for all others.
    ///
    /// # Safety
    /// As [`all`].
    unsafe fn meet(&self) -> Answer {
        let mut events = Vec::with_capacity(self.lanes.len());
        let outcome = self.lanes.iter().try_for_each(|lane| {
            let Some(part) = self.clique.devices.get(lane.rank) else { return Err(INVALID_USAGE) };
            // SAFETY: the communicator retains the context.
            let event = unsafe { within(part.context, new_event) }?;
            events.push(event);
            // SAFETY: the caller's promise for the stream.
            unsafe { record(self.driver, event, lane.stream, false) }
        });
        let outcome = outcome.and_then(|()| {
            let pairs = self.lanes.iter().flat_map(|lane| events.iter().map(move |event| (lane, *event)));
            // SAFETY: as above.
            pairs
                .into_iter()
                .try_for_each(|(lane, event)| unsafe { wait(self.driver, lane.stream, event, false) })
        });
        for event in events {
            // SAFETY: the event is ours; the driver keeps what the waits need of it.
            ok(unsafe { self.driver.cuEventDestroy(event) })?;
        }
        outcome
    }

    /// Brings the numbers of all ranks to each rank, and messages to their receivers.
    ///
    /// # Safety
    /// As [`all`].
    unsafe fn copy(&self, memory: &[Parts]) -> Answer {
        for lane in self.lanes {
            let mut to = address(memory, lane.rank);
            for (index, (_, _, count, kernel)) in self.sums(lane).enumerate() {
                let bytes = count * kernel.size();
                for other in self.lanes {
                    let Some((from, ..)) = self.sums(other).nth(index) else { return Err(INVALID_USAGE) };
                    // SAFETY: the caller's promise for `from`; `to` has memory for all of it.
                    unsafe { self.copy_on(lane, from, to, bytes) }?;
                    to += bytes as u64;
                }
            }
            // SAFETY: the caller's promise.
            unsafe { self.receive(lane) }?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`all`].
    unsafe fn receive(&self, lane: &Lane<'_>) -> Answer {
        for (index, work) in lane.works.iter().enumerate() {
            let Work::Recv { to, bytes, peer } = **work else { continue };
            let is_such = |work: &&&Work| matches!(work, Work::Recv { peer: of, .. } if *of == peer);
            let before = lane.works.iter().take(index).filter(is_such).count();
            let sender = self.lanes.iter().find(|other| other.rank == peer).ok_or(INVALID_USAGE)?;
            let sent = sender.works.iter().filter_map(|work| match **work {
                Work::Send { from, bytes, peer } if peer == lane.rank => Some((from, bytes)),
                _ => None,
            });
            match sent.into_iter().nth(before) {
                // SAFETY: the caller's promise.
                Some((from, sent)) if sent == bytes => unsafe { self.copy_on(lane, from, to, bytes) }?,
                _ => return Err(INVALID_USAGE),
            }
        }
        Ok(())
    }

    /// # Safety
    /// Both addresses have as many bytes.
    unsafe fn copy_on(&self, lane: &Lane<'_>, from: u64, to: u64, bytes: usize) -> Answer {
        let Some(part) = self.clique.devices.get(lane.rank) else { return Err(INVALID_USAGE) };
        // By addresses: `cuMemcpyPeerAsync` would end a capture. Without a current context, a
        // captured copy could never be updated.
        // SAFETY: the caller's promise, and the communicator retains the context.
        unsafe { within(part.context, |driver| ok(driver.cuMemcpyAsync(to, from, bytes, lane.stream))) }
    }

    /// # Safety
    /// As [`all`].
    unsafe fn sum(&self, memory: &[Parts]) -> Answer {
        for lane in self.lanes {
            let mut parts = address(memory, lane.rank);
            for (_, to, count, kernel) in self.sums(lane) {
                // SAFETY: the memory has the numbers of all ranks, and `to` has room for the sums.
                unsafe { self.launch(lane, kernel, (count, parts, to)) }?;
                parts += (count * kernel.size() * self.lanes.len()) as u64;
            }
        }
        Ok(())
    }

    /// # Safety
    /// `parts` has so many numbers of each rank, and `to` has room for so many.
    unsafe fn launch(
        &self,
        lane: &Lane<'_>,
        kernel: Kernel,
        (count, parts, to): (usize, u64, u64),
    ) -> Answer {
        let Some(part) = self.clique.devices.get(lane.rank) else { return Err(INVALID_USAGE) };
        let (mut count, mut ranks, mut parts, mut to) = (count as u64, self.lanes.len() as u32, parts, to);
        let blocks = (count as usize).div_ceil(BLOCK as usize).clamp(1, MOST_BLOCKS) as u32;
        let mut arguments =
            [(&raw mut count).cast(), (&raw mut ranks).cast(), (&raw mut parts).cast(), (&raw mut to).cast()];
        let function = self.clique.kernel(kernel).cast();
        let arguments = arguments.as_mut_ptr();
        // SAFETY: the arguments have the kernel's types; the rest is the caller's promise. The
        // communicator retains the context.
        unsafe {
            within(part.context, |driver| {
                let none = core::ptr::null_mut();
                ok(driver.cuLaunchKernel(
                    function,
                    blocks,
                    1,
                    1,
                    BLOCK,
                    1,
                    1,
                    0,
                    lane.stream,
                    arguments,
                    none,
                ))
            })
        }
    }

    /// Frees the memory behind the group.
    ///
    /// # Safety
    /// As [`all`].
    unsafe fn free(&self, memory: &[Parts]) -> Answer {
        memory.iter().try_for_each(|parts| {
            let stream = self.lanes.iter().find(|lane| lane.rank == parts.rank).map(|lane| lane.stream);
            let stream = stream.ok_or(INVALID_USAGE)?;
            // SAFETY: the memory is ours, and nothing but the calls before uses it.
            ok(unsafe { self.driver.cuMemFreeAsync(parts.address, stream) })
        })
    }
}

/// The memory of a rank; null if it adds nothing.
fn address(memory: &[Parts], rank: usize) -> u64 {
    memory.iter().find(|parts| parts.rank == rank).map_or(0, |parts| parts.address)
}
