//! Constants in which an executable's graph differs from a new build.
//!
//! Each graph is read into plain data under its own lock. The new graph is dropped before memory is
//! judged: what lives on is held by somebody else than the build, so it is the call's, and should
//! be a parameter.

use std::sync::{Arc, Weak};

use cuda_handles::{Allocation, BatchOperation, CopyLayout, FillLayout, Kernel};
use cuda_launch::Dim;
use cuda_launch::internal::{AccessRanges, Accesses};

use crate::error::{Result, StaleConstant};
use crate::graph::Graph;
use crate::node_kind::NodeKind;
use crate::node_name::NodeName;
use crate::state::bindings::{BoundNode, Place};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::nodes::NodeRecord;
use crate::state::params::NodeParams;

/// A node, as plain data.
struct NodeConstants {
    name: NodeName,
    kind: NodeKind,
    parts: Vec<(String, Constant)>,
}

/// A part of a node.
enum Constant {
    /// A graph parameter, or something that is not compared.
    Free,
    Memory {
        address: u64,
        /// The allocation, if the graph keeps it.
        memory: Option<Weak<Allocation>>,
        /// Whether a capture has allocated it for itself.
        is_scratch: bool,
    },
    Bytes(Vec<u8>),
    Words(String),
}

/// The constants that differ between a graph and a new build, which is dropped.
pub(super) fn stale_constants<P>(cached: &Graph, built: (Graph, P)) -> Result<Vec<StaleConstant>> {
    let (before, now) = (constants(cached)?, constants(&built.0)?);
    let other_kind = before.iter().zip(&now).find(|(before, now)| before.kind != now.kind);
    if let Some((before, now)) = other_kind {
        let (cached, now_is) = (before.kind.to_string(), format!("{} `{}`", now.kind, now.name));
        return Ok(vec![stale(before, "the type", cached, now_is)]);
    }
    if before.len() != now.len() {
        let longer = if before.len() > now.len() { &before } else { &now };
        let extra = longer.get(before.len().min(now.len())).map(|node| {
            let place = |nodes: &[NodeConstants]| match nodes.len() == longer.len() {
                true => format!("one of {} nodes", nodes.len()),
                false => format!("missing in a graph of {} nodes", nodes.len()),
            };
            stale(node, "", place(&before), place(&now))
        });
        return Ok(extra.into_iter().collect());
    }
    // Memory that only the build holds goes here.
    drop(built);
    let pairs = before.iter().zip(&now);
    Ok(pairs.flat_map(|(before, now)| differences(before, now)).collect())
}

fn stale(node: &NodeConstants, what: &str, cached: String, now: String) -> StaleConstant {
    StaleConstant { node: node.name.clone(), what: what.to_owned(), cached, now }
}

fn differences<'n>(
    before: &'n NodeConstants,
    now: &'n NodeConstants,
) -> impl Iterator<Item = StaleConstant> + 'n {
    before.parts.iter().zip(&now.parts).filter_map(|((what, before_is), (_, now_is))| {
        let (cached, now) = before_is.difference(now_is)?;
        Some(stale(before, what, cached, now))
    })
}

impl Constant {
    /// Both values in words, if they differ.
    fn difference(&self, now: &Self) -> Option<(String, String)> {
        match (self, now) {
            (Self::Memory { address: before, .. }, Self::Memory { address, memory, is_scratch }) => {
                let is_of_build =
                    *is_scratch || memory.as_ref().is_some_and(|memory| memory.strong_count() == 0);
                let differs = before != address && !is_of_build;
                differs.then(|| (format!("memory at {before:#x}"), format!("memory at {address:#x}")))
            }
            (Self::Bytes(before), Self::Bytes(now)) => (before != now).then(|| (number(before), number(now))),
            (Self::Words(before), Self::Words(now)) => (before != now).then(|| (before.clone(), now.clone())),
            // A parameter in one of them, or an argument that is memory in one of them.
            (Self::Free | Self::Memory { .. } | Self::Bytes(_) | Self::Words(_), _) => None,
        }
    }
}

/// A value of up to eight bytes as a number; the first bytes of a longer one.
fn number(bytes: &[u8]) -> String {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let word = u64::from_le_bytes(word);
    if bytes.len() <= 8 { format!("{word} ({word:#x})") } else { format!("{word:#x} and more bytes") }
}

/// The nodes of a graph, and of all graphs in them, in the order of their creation.
fn constants(graph: &Graph) -> Result<Vec<NodeConstants>> {
    let guard = graph.enter()?;
    let mut records: Vec<(NodeId, &NodeRecord)> = guard.records().collect();
    records.sort_unstable_by_key(|(id, _)| id.number);
    let memory: Vec<&Arc<Allocation>> = guard.memory().collect();
    let reader = Reader { guard: &guard, memory };
    records.into_iter().map(|(id, record)| reader.node(id, record)).collect()
}

/// Reads nodes under the lock.
struct Reader<'g> {
    guard: &'g GraphGuard<'g>,
    /// All memory that the graph keeps.
    memory: Vec<&'g Arc<Allocation>>,
}

impl Reader<'_> {
    fn node(&self, id: NodeId, record: &NodeRecord) -> Result<NodeConstants> {
        let mut parts = Vec::new();
        match &record.node_params {
            NodeParams::Kernel { kernel, accesses, .. } => {
                self.kernel(&mut parts, (id, record), kernel, *accesses)?;
            }
            NodeParams::Memset(fill) => self.fill(&mut parts, id, fill),
            NodeParams::Memcpy(copy) => self.copy(&mut parts, id, copy),
            NodeParams::Batch(operations) => {
                operations.iter().enumerate().for_each(|one| self.operation(&mut parts, one));
            }
            NodeParams::Empty
            | NodeParams::Host(_)
            | NodeParams::EventRecord(_)
            | NodeParams::EventWait(_)
            | NodeParams::Alloc { .. }
            | NodeParams::Free { .. }
            | NodeParams::SignalSemaphores(_)
            | NodeParams::WaitSemaphores(_)
            | NodeParams::Child { .. }
            | NodeParams::Conditional(_)
            | NodeParams::Other { .. } => {}
        }
        Ok(NodeConstants { name: record.display_name(id).into(), kind: record.node_params.kind(), parts })
    }

    /// Whether a graph parameter is in one of these places of a node.
    fn is_bound(&self, id: NodeId, of: impl Fn(Place) -> bool) -> bool {
        let binding = self.guard.bindings.get(id);
        binding.is_some_and(|binding| binding.uses.iter().any(|one| of(one.place)))
    }

    /// Whether an argument is the memory of a graph parameter that a loop or branch tests.
    fn is_tested(&self, id: NodeId, position: usize) -> bool {
        let node = self.guard.bindings.get(id).map(|binding| &binding.node);
        let Some(BoundNode::Decider(decider)) = node else { return false };
        decider.launch.as_ref().is_some_and(|launch| launch.tested == position)
    }

    fn memory_at(&self, address: u64) -> Constant {
        let has = |memory: &Allocation| {
            memory.address() <= address && address < memory.address().saturating_add(memory.bytes() as u64)
        };
        let found = self.memory.iter().find(|memory| has(memory));
        Constant::Memory {
            address,
            memory: found.map(|memory| Arc::downgrade(memory)),
            is_scratch: found.is_some_and(|memory| memory.is_scratch()),
        }
    }

    fn fill(&self, parts: &mut Vec<(String, Constant)>, id: NodeId, fill: &FillLayout) {
        let bound = |place| self.is_bound(id, |of| of == place);
        let extent = format!("{} by {} elements", fill.width, fill.height);
        let target = bound(Place::Target);
        let value = fill.value.to_le_bytes()[..usize::from(fill.element).min(4)].to_vec();
        parts.push(("the target".into(), unless(target, || self.memory_at(fill.address))));
        parts.push(("the value".into(), unless(bound(Place::Value), || Constant::Bytes(value))));
        parts.push(("the size".into(), unless(target, || Constant::Words(extent))));
    }

    fn copy(&self, parts: &mut Vec<(String, Constant)>, id: NodeId, copy: &CopyLayout) {
        let bound = |place| self.is_bound(id, |of| of == place);
        let (source, destination) = (bound(Place::Source), bound(Place::Destination));
        let extent = format!("{} by {} by {} bytes", copy.width, copy.height, copy.depth);
        parts.push(("the source".into(), unless(source, || self.memory_at(copy.source.address))));
        let to = || self.memory_at(copy.destination.address);
        parts.push(("the destination".into(), unless(destination, to)));
        parts.push(("the size".into(), unless(source || destination, || Constant::Words(extent))));
    }

    fn operation(&self, parts: &mut Vec<(String, Constant)>, (number, one): (usize, &BatchOperation)) {
        let of = |what: &str| format!("the {what} of operation {number}");
        if let BatchOperation::Write { address, value, .. } | BatchOperation::Wait { address, value, .. } =
            *one
        {
            parts.push((of("address"), self.memory_at(address)));
            parts.push((of("value"), Constant::Bytes(value.to_le_bytes().to_vec())));
        }
    }

    fn kernel(
        &self,
        parts: &mut Vec<(String, Constant)>,
        (id, record): (NodeId, &NodeRecord),
        kernel: &Kernel,
        accesses: Accesses,
    ) -> Result<()> {
        let params = self.guard.kernel_params(record.raw.0)?;
        let config =
            |of| self.is_bound(id, |place| place == Place::Config || of && matches!(place, Place::Grid(..)));
        let grid = Dim { x: params.gridDimX, y: params.gridDimY, z: params.gridDimZ };
        let block = Dim { x: params.blockDimX, y: params.blockDimY, z: params.blockDimZ };
        let shared = params.sharedMemBytes.to_le_bytes().to_vec();
        let dim = |dim: Dim| Constant::Words(format!("{} by {} by {}", dim.x, dim.y, dim.z));
        parts.push(("the kernel".into(), Constant::Words(format!("`{}`", kernel.name()))));
        parts.push(("the grid".into(), unless(config(true), || dim(grid))));
        parts.push(("the block".into(), unless(config(false), || dim(block))));
        parts.push(("the shared memory".into(), unless(config(false), || Constant::Bytes(shared))));
        if params.kernelParams.is_null() || params.kern != kernel.as_raw() {
            return Ok(());
        }
        let names = accesses.declaration().map_or(&[][..], |declaration| declaration.names);
        let padded = accesses.declaration().map_or(&[][..], |declaration| declaration.padded);
        for (position, parameter) in kernel.parameters().unwrap_or_default().iter().enumerate() {
            // Padding is not initialised, and differs without a reason.
            if padded.get(position) == Some(&true) {
                continue;
            }
            // SAFETY: the driver gives a pointer to each parameter of the kernel, which it reports
            // with this size, in the node's own block. Nobody changes that while the lock is held.
            let bytes = unsafe {
                let value = *params.kernelParams.add(position);
                core::slice::from_raw_parts(value.cast::<u8>(), parameter.size)
            };
            let what = names
                .get(position)
                .map_or_else(|| format!("argument {position}"), |name| format!("argument `{name}`"));
            parts.push((what, self.argument((id, record), accesses, position, bytes)));
        }
        Ok(())
    }

    fn argument(
        &self,
        (id, record): (NodeId, &NodeRecord),
        accesses: Accesses,
        position: usize,
        bytes: &[u8],
    ) -> Constant {
        let is_here = |place| match place {
            Place::Argument(at) | Place::Length { position: at, .. } => at == position,
            Place::Config
            | Place::Grid(..)
            | Place::Target
            | Place::Value
            | Place::Source
            | Place::Destination
            | Place::Tested
            | Place::Event
            | Place::Enabled => false,
        };
        if self.is_bound(id, is_here) || self.is_tested(id, position) {
            return Constant::Free;
        }
        let word = <[u8; 8]>::try_from(bytes).map(u64::from_le_bytes).ok();
        // Conditions are numbered by graph.
        if word.is_some_and(|word| self.guard.conditions.of_kernel(id.index).contains(&word)) {
            return Constant::Free;
        }
        let declared =
            accesses.declaration().map(|declaration| declaration.memory.get(position).copied().flatten());
        match (declared, word) {
            (Some(Some(parameter)), Some(address)) if parameter.by_address => self.memory_at(address),
            (Some(Some(_)), _) => match self.range(record, position) {
                Some(start) => self.memory_at(start),
                None => Constant::Free,
            },
            (None, Some(word)) => match self.memory_at(word) {
                known @ Constant::Memory { memory: Some(_), .. } => known,
                _ => Constant::Bytes(bytes.to_vec()),
            },
            (Some(None) | None, _) => Constant::Bytes(bytes.to_vec()),
        }
    }

    /// The start of the memory of a tensor map.
    fn range(&self, record: &NodeRecord, position: usize) -> Option<u64> {
        let mut owners = record.owners.kept().iter().chain(self.guard.used_by(record));
        owners.find_map(|owner| match owner {
            cuda_handles::Owner::Other(other) => {
                other.downcast_ref::<AccessRanges>()?.find(position).map(|(start, _)| start)
            }
            _ => None,
        })
    }
}

fn unless(is_free: bool, constant: impl FnOnce() -> Constant) -> Constant {
    if is_free { Constant::Free } else { constant() }
}
