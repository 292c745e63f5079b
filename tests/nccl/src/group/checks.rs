//! The checks of a group, before its first call.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_handles::MemorySpace;
use cuda_handles::capture::Enqueue;

use super::{Call, Lane, Range, Work};
use crate::error::{Error, Result};

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Group { why: why.into() })
}

/// The streams of the calls, one for each rank.
pub(super) fn lanes<'g>(calls: &[Call<'g>]) -> Result<Vec<Lane<'g>>> {
    let mut lanes: BTreeMap<usize, Lane<'g>> = BTreeMap::new();
    for call in calls {
        let (rank, ranks) = (call.communicator.rank(), call.communicator.ranks());
        if !calls.iter().all(|other| Arc::ptr_eq(other.communicator.clique(), call.communicator.clique())) {
            return refused("its communicators were not made together");
        }
        if let Some(context) = call.communicator.context() {
            context.ensure_same(call.stream.context(), "the stream of a communicator's call")?;
        }
        let lane = lanes.entry(rank).or_insert(Lane { stream: call.stream, memory: Vec::new() });
        if lane.stream.id() != call.stream.id() {
            return refused(format!("rank {rank} makes calls on two streams; take one of them"));
        }
        if let Work::Send { peer, .. } | Work::Recv { peer, .. } = call.work
            && peer >= ranks
        {
            return refused(format!("rank {rank} names rank {peer}, and there are {ranks} ranks"));
        }
        lane.memory.extend(call.work.ranges().map(|range| range.allocation));
    }
    sums(calls)?;
    messages(calls)?;
    Ok(lanes.into_values().collect())
}

/// All ranks add as many numbers of the same type, call by call.
fn sums(calls: &[Call<'_>]) -> Result<()> {
    let ranks = calls.first().map_or(0, |call| call.communicator.ranks());
    let mut of_rank: Vec<Vec<(usize, i32)>> = vec![Vec::new(); ranks];
    for call in calls {
        let Work::Sum { from, to } = call.work else { continue };
        let rank = call.communicator.rank();
        if from.count != to.count {
            return refused(format!(
                "an all-reduce of rank {rank} has {} numbers, and memory for {} sums",
                from.count, to.count
            ));
        }
        if let Some(sums) = of_rank.get_mut(rank) {
            sums.push((from.count, call.type_));
        }
    }
    let Some((first, others)) = of_rank.split_first() else { return Ok(()) };
    match others.iter().position(|sums| sums != first) {
        None => Ok(()),
        Some(before) => refused(format!(
            "the all-reduces of rank {} are not those of rank 0 in number, lengths or types; all ranks take part \
             in each",
            before + 1
        )),
    }
}

/// What is sent is received, in the same order.
fn messages(calls: &[Call<'_>]) -> Result<()> {
    type Messages = BTreeMap<(usize, usize), Vec<(usize, i32)>>;
    let (mut sent, mut received) = (Messages::new(), Messages::new());
    for call in calls {
        let (rank, message) = (call.communicator.rank(), (call.work.count(), call.type_));
        match call.work {
            Work::Sum { .. } => {}
            Work::Send { peer, .. } => sent.entry((rank, peer)).or_default().push(message),
            Work::Recv { peer, .. } => received.entry((peer, rank)).or_default().push(message),
        }
    }
    let pairs = || sent.keys().chain(received.keys());
    match pairs().find(|pair| sent.get(pair) != received.get(pair)) {
        None => Ok(()),
        Some((from, to)) => refused(format!(
            "what rank {from} sends to rank {to} is not what rank {to} receives, in number, lengths or types"
        )),
    }
}

/// The memory is on the devices, in reach of all ranks, and no call writes what another one uses.
pub(super) fn memory(calls: &[Call<'_>]) -> Result<()> {
    for call in calls {
        for range in call.work.ranges().filter(|range| range.count > 0) {
            if range.allocation.space() != MemorySpace::Device {
                return refused("memory of the host takes part; copy it to a device");
            }
            in_reach(call, range)?;
        }
    }
    apart(calls)
}

/// Kernels of other ranks use the memory directly, where their devices can.
fn in_reach(call: &Call<'_>, range: Range<'_>) -> Result<()> {
    let mut users = call.communicator.clique().neighbours(call.communicator.rank());
    Ok(users.try_for_each(|context| range.allocation.ensure_reachable_from(context))?)
}

/// Calls of a group have no order.
fn apart(calls: &[Call<'_>]) -> Result<()> {
    let uses =
        || calls.iter().enumerate().flat_map(|(number, call)| uses_of(call.work).map(move |of| (number, of)));
    for (number, (range, writes)) in uses().filter(|(_, (_, writes))| *writes) {
        for (other, (beside, _)) in uses() {
            let is_itself = other == number && range.address == beside.address && range.bytes == beside.bytes;
            if !is_itself && overlap(range, beside) {
                return refused(
                    "a call writes memory that the same or another call of the group uses as well",
                );
            }
        }
        debug_assert!(writes, "filtered");
    }
    Ok(())
}

/// The ranges of a call, each with whether it is written.
fn uses_of(work: Work<'_>) -> impl Iterator<Item = (Range<'_>, bool)> {
    let uses = match work {
        Work::Sum { from, to } => [Some((from, false)), Some((to, true))],
        Work::Send { from, .. } => [Some((from, false)), None],
        Work::Recv { to, .. } => [Some((to, true)), None],
    };
    uses.into_iter().flatten()
}

fn overlap(one: Range<'_>, other: Range<'_>) -> bool {
    let end = |range: Range<'_>| range.address.saturating_add(range.bytes as u64);
    one.address < end(other) && other.address < end(one)
}

/// Whether all streams are in one capture of this library. Otherwise none may be in one.
pub(super) fn is_captured(rights: &[Enqueue<'_>]) -> Result<bool> {
    let captured = rights.iter().map(Enqueue::is_captured).collect::<Result<Vec<_>, _>>()?;
    if captured.iter().all(|captured| !captured) {
        return Ok(false);
    }
    if !captured.iter().all(|captured| *captured) {
        return refused(
            "some of its streams capture and others do not; let them wait for a stream of the capture \
             (`Stream::wait_for`)",
        );
    }
    let mut captures = rights.iter().map(|right| right.stream().capture_id());
    let first = captures.next().flatten();
    if first.is_none() || captures.any(|capture| capture != first) {
        return refused("its streams are in several captures, or in one of other code");
    }
    Ok(true)
}
