//! What a launch does with the memory of its allocation and free nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use cuda_sys::CUresult;

use super::lifetimes::{Done, Freeing, Life, announce, leave_steps, lives, steps_of};
use crate::device::loss::Loss;
use crate::driver::result_code::{Answer, INVALID_VALUE, OUT_OF_MEMORY};
use crate::graph::model::node_memory::NodeMemory;
use crate::memory::graph_mapping::{self, MappingUser, Needs};
use crate::memory::{self, Allocation};
use crate::stream::marker::Marker;

/// What a launch does with the memory of its allocation and free nodes.
#[derive(Debug, Default)]
pub(crate) struct MemoryPlan {
    /// The memory that outlives the launch, by id, with the number of the lifetime that begins.
    kept: HashMap<u64, u64>,
    /// Its addresses.
    kept_starts: HashSet<u64>,
    /// The frees of memory that other launches allocated, by id.
    outside: HashMap<u64, Freeing>,
    /// Frees queued on other streams, of memory that the launch allocates again.
    awaited: Vec<Arc<Marker>>,
    /// Set when launches on other streams may use its chunks.
    over: Done,
}

/// An allocation or free of an executable.
#[derive(Debug, Clone)]
pub(crate) enum MemoryUse {
    Allocates(Arc<NodeMemory>),
    Frees(Arc<NodeMemory>),
}

/// Splits uses into allocations and frees.
fn split(uses: &[MemoryUse]) -> (Vec<&Arc<NodeMemory>>, Vec<&Arc<NodeMemory>>) {
    let (mut allocs, mut frees) = (Vec::new(), Vec::new());
    for used in uses {
        match used {
            MemoryUse::Allocates(memory) => allocs.push(memory),
            MemoryUse::Frees(memory) => frees.push(memory),
        }
    }
    (allocs, frees)
}

/// The chunks that a launch or an upload needs of each device: all of them, and those in use when
/// most are.
fn needs(uses: &[MemoryUse]) -> BTreeMap<i32, Needs> {
    let mut needs: BTreeMap<i32, Needs> = BTreeMap::new();
    for alloc in split(uses).0 {
        needs.entry(alloc.device).or_default().all.extend(steps_of(alloc));
    }
    for (device, needs) in &mut needs {
        // The number of allocations in each chunk.
        let mut there = BTreeMap::<u64, usize>::new();
        for used in uses {
            match used {
                MemoryUse::Allocates(memory) if memory.device == *device => {
                    steps_of(memory).for_each(|step| *there.entry(step).or_default() += 1);
                }
                MemoryUse::Frees(memory) if memory.device == *device => steps_of(memory).for_each(|step| {
                    let left = there.remove(&step).unwrap_or(0);
                    if left > 1 {
                        there.insert(step, left - 1);
                    }
                }),
                MemoryUse::Allocates(_) | MemoryUse::Frees(_) => {}
            }
            if there.len() > needs.at_once.len() {
                needs.at_once = there.keys().copied().collect();
            }
        }
    }
    needs
}

/// Maps memory for a launch or an upload. A device without enough memory has none for anything else
/// from then on.
fn map(needs: &BTreeMap<i32, Needs>, user: &MappingUser) -> Answer {
    for (device, needs) in needs {
        if !graph_mapping::map(*device, needs, user) {
            return Err(OUT_OF_MEMORY);
        }
    }
    Ok(())
}

/// Keeps the memory that an upload mapped until it is dropped.
#[derive(Debug)]
pub(crate) struct Uploading {
    _over: Done,
}

/// Maps the memory of an executable before its launch.
pub(crate) fn upload(uses: &[MemoryUse], stream: u64, exec: u64) -> Answer<Uploading> {
    let over = Done::default();
    map(&needs(uses), &MappingUser { stream, exec, done: Arc::clone(&over.0) })?;
    Ok(Uploading { _over: over })
}

/// Checks and plans a launch at the launch call. A refused launch changes nothing, except that a
/// device without enough memory is exhausted.
pub(crate) fn begin(
    uses: &[MemoryUse],
    auto_free: bool,
    context: u64,
    (stream, exec): (u64, u64),
) -> Answer<MemoryPlan> {
    if uses.is_empty() {
        return Ok(MemoryPlan::default());
    }
    let (allocs, frees) = split(uses);
    let ids = |list: &[&Arc<NodeMemory>]| list.iter().map(|own| own.id).collect::<HashSet<u64>>();
    let (allocated, freed) = (ids(&allocs), ids(&frees));
    let mut lives = lives();
    let is_live =
        |own: &NodeMemory| lives.get(&own.start).is_some_and(|life| life.lives && life.owner.id == own.id);
    if !auto_free && allocs.iter().any(|alloc| is_live(alloc)) {
        return Err(INVALID_VALUE);
    }
    let outside: Vec<_> = frees.into_iter().filter(|free| !allocated.contains(&free.id)).collect();
    if outside.iter().any(|free| !is_live(free)) {
        return Err(INVALID_VALUE);
    }
    let awaited = allocs.iter().filter_map(|alloc| lives.get(&alloc.start)?.freed.clone());
    let awaited = awaited.filter(|free| free.time().is_none()).collect();
    let kept: Vec<_> = allocs.into_iter().filter(|alloc| !freed.contains(&alloc.id)).collect();
    let mut plan = MemoryPlan { awaited, ..MemoryPlan::default() };
    let user = MappingUser { stream, exec, done: Arc::clone(&plan.over.0) };
    let mut needs = needs(uses);
    for alloc in &kept {
        needs.entry(alloc.device).or_default().kept.extend(steps_of(alloc));
    }
    map(&needs, &user)?;
    make_lives(&kept, &mut lives, context)
        .inspect_err(|_| kept.iter().for_each(|alloc| leave_steps(&lives, alloc, &user)))?;
    for alloc in kept {
        let Some(life) = lives.get_mut(&alloc.start) else { continue };
        (life.lives, life.called) = (true, life.called + 1);
        // Both own the same address.
        life.owner = Arc::clone(alloc);
        life.allocation.unqueue_free();
        plan.kept.insert(alloc.id, life.called);
        plan.kept_starts.insert(alloc.start);
    }
    for free in outside {
        if let Some(freeing) = announce(&mut lives, free.start, stream) {
            plan.outside.insert(free.id, freeing);
        }
    }
    Ok(plan)
}

/// Begins lifetimes for memory that outlives a launch.
fn make_lives(kept: &[&Arc<NodeMemory>], lives: &mut BTreeMap<u64, Life>, context: u64) -> Answer {
    let mut found = Vec::new();
    let mut made: Vec<(&Arc<NodeMemory>, Arc<Allocation>)> = Vec::new();
    for alloc in kept.iter().copied().filter(|alloc| !lives.contains_key(&alloc.start)) {
        // An earlier launch of another executable may be using the address and free it before it
        // ends.
        let there = memory::find_start(alloc.start).filter(|there| there.len == alloc.len);
        if let Some(allocation) = there {
            found.push((alloc, allocation));
            continue;
        }
        match alloc.allocate(context) {
            Ok(allocation) => {
                memory::publish_unless_taken(&allocation);
                made.push((alloc, allocation));
            }
            Err(code) => {
                made.iter().for_each(|(_, allocation)| memory::remove(allocation, "a refused launch"));
                return Err(code);
            }
        }
    }
    for (alloc, allocation) in made.into_iter().chain(found) {
        let owner = Arc::clone(alloc);
        let life = Life { lives: true, owner, allocation, called: 0, reached: 0, freed: None };
        lives.insert(alloc.start, life);
    }
    Ok(())
}

impl MemoryPlan {
    /// Starts the launch: memory that it allocates again is gone until its node is reached.
    pub(crate) fn start(&self) {
        self.awaited.iter().for_each(|free| free.wait());
        let lives = lives();
        for start in &self.kept_starts {
            let Some(life) = lives.get(start) else { continue };
            if life.reached > 0 && self.kept.get(&life.owner.id).is_some_and(|own| life.reached < *own) {
                life.allocation.retire(0);
            }
        }
    }

    /// The stream reaches an allocation node.
    pub(crate) fn allocate(&self, own: &NodeMemory, context: u64) -> Result<(), Loss> {
        let mut lives = lives();
        // Even if the lifetime belongs to a later launch.
        if let Some(life) = lives.get_mut(&own.start).filter(|life| life.allocation.len == own.len) {
            memory::publish_reached(&life.allocation);
            life.allocation.renew(own.node());
            if let Some(number) = self.kept.get(&own.id) {
                life.reached = life.reached.max(*number);
            }
            return Ok(());
        }
        if self.kept.contains_key(&own.id) {
            return Ok(());
        }
        match own.allocate(context) {
            Ok(allocation) => {
                memory::publish_reached(&allocation);
                allocation.renew(own.node());
                Ok(())
            }
            Err(code) => Err(Loss::new(code, "a graph's allocation does not fit into the device's memory")),
        }
    }

    /// The stream reaches a free node.
    pub(crate) fn free(&self, own: &NodeMemory, node: u64) -> Result<(), Loss> {
        let how = format!("free node {node:#x}");
        if let Some(freeing) = self.outside.get(&own.id) {
            freeing.carry_out(node, &how);
            return Ok(());
        }
        let lives = lives();
        let Some(allocation) = memory::find_start(own.start).filter(|found| found.len == own.len) else {
            let sentence = format!(
                "{how} is reached before allocation node {:#x}, whose memory it frees: it is not ordered after that node",
                own.node()
            );
            return Err(Loss::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, sentence));
        };
        if lives.get(&own.start).is_some_and(|life| life.allocation.id == allocation.id) {
            allocation.retire(node);
            return Ok(());
        }
        memory::remove(&allocation, how);
        // Memory that outlives its launch is visible again at these addresses.
        for (_, life) in lives.range(own.start..allocation.end()) {
            memory::publish_unless_taken(&life.allocation);
        }
        Ok(())
    }
}
