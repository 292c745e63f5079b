//! The graph of an ended capture, with the owners of each call at its node.
//!
//! Each node is read once. It gets the owners of the next record that describes the same call:
//! equal in kind, kernel, configuration and argument bytes, or in addresses and sizes. Owners of
//! records that match no node go to the graph as a whole, as do those of work of other code. A
//! launch with a condition's handle has to match: what sets the condition must be known.

use std::collections::{HashMap, HashSet, VecDeque};

use cuda_handles::Owner;
use cuda_handles::capture::{Captured, Record, Work};
use cuda_launch::internal::Accesses;
use cuda_sys::{CUgraphNode, CUgraphNodeType, CUstreamBatchMemOpParams, CUstreamBatchMemOpType};

use crate::clone::node_copy::NodeCopy;
use crate::error::{CaptureError, Result};
use crate::graph::Graph;
use crate::node_name::NodeName;
use crate::state::GraphState;
use crate::state::guard::GraphGuard;
use crate::state::host_function::Host;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use smallvec::SmallVec;

/// The condition handles of a captured kernel, as the driver numbers them.
pub(super) type RawHandles = SmallVec<[u64; 1]>;

/// The graph of an ended capture.
#[derive(Debug)]
pub(super) struct Adopted {
    graph: Graph,
    unmatched: usize,
    /// The condition handles of kernel nodes that have some.
    handles: HashMap<NodeId, RawHandles>,
}

impl Adopted {
    pub(super) fn new(captured: Captured) -> Result<Self> {
        let Captured { graph, records, .. } = captured;
        // Declared before the guard, so that what is not kept is dropped after the lock.
        let graph = Graph::of(graph, GraphState::unread());
        let mut unmatched = Unmatched::new(records.iter());
        let mut handles = HashMap::new();
        let mut guard = graph.enter()?;
        guard.read_graph(SubgraphId::ROOT)?;
        for raw in guard.raw_nodes()? {
            let index = guard.index(raw)?;
            let Some(id) = guard.id(index) else { continue };
            if let Some(record) = unmatched.take_for(&guard, raw, id)? {
                guard.give(id, &record);
                if !record.handles().is_empty() {
                    handles.insert(id, RawHandles::from_slice(record.handles()));
                }
            }
        }
        let left = unmatched.into_records();
        ensure_setters_found(&left)?;
        let loose = left.iter().flat_map(|record| record.owners()).chain(records.kept());
        guard.keep_each_once(loose);
        drop(guard);
        Ok(Self { graph, unmatched: left.len(), handles })
    }

    /// How many calls match no node.
    pub(super) fn unmatched(&self) -> usize {
        self.unmatched
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn into_graph(self) -> Graph {
        self.graph
    }

    /// The condition handles of a node.
    pub(super) fn handles_of(&self, id: NodeId) -> RawHandles {
        self.handles.get(&id).cloned().unwrap_or_default()
    }
}

/// The records that have not met their nodes.
struct Unmatched<'r>(HashMap<Work, VecDeque<Record<'r>>>);

impl<'r> Unmatched<'r> {
    fn new(records: impl Iterator<Item = Record<'r>>) -> Self {
        let mut by_work: HashMap<Work, VecDeque<Record<'r>>> = HashMap::new();
        for record in records {
            by_work.entry(record.work()).or_default().push_back(record);
        }
        Self(by_work)
    }

    /// Takes out the next record that describes the call of a node.
    fn take_for(
        &mut self,
        guard: &GraphGuard<'_>,
        raw: CUgraphNode,
        id: NodeId,
    ) -> Result<Option<Record<'r>>> {
        let Some((work, arguments)) = guard.work_of(raw, id)? else { return Ok(None) };
        let Some(records) = self.0.get_mut(&work) else { return Ok(None) };
        let place = records.iter().position(|record| arguments.are_of(record));
        Ok(place.and_then(|place| records.remove(place)))
    }

    fn into_records(self) -> Vec<Record<'r>> {
        self.0.into_values().flatten().collect()
    }
}

/// Refuses launches with condition handles among the records that match no node.
fn ensure_setters_found(left: &[Record<'_>]) -> Result<()> {
    match left.iter().find(|record| !record.handles().is_empty()) {
        Some(record) => Err(CaptureError::LaunchChanged { kernel: kernel_name(record) }.into()),
        None => Ok(()),
    }
}

/// The name of the kernel that a record's call launched.
fn kernel_name(record: &Record<'_>) -> NodeName {
    let kernel_of = |owner: &Owner| match owner {
        Owner::Kernel(kernel) => Some(NodeName::from(kernel.name())),
        _ => None,
    };
    record.owners().find_map(kernel_of).unwrap_or_default()
}

/// The arguments of a node.
enum NodeArguments {
    None,
    /// Of a kernel node, as the driver holds them.
    Kernel(*mut *mut core::ffi::c_void),
    /// The addresses of a batch.
    Batch(Vec<[u8; 8]>),
}

impl NodeArguments {
    /// Whether a record has the same arguments. Bytes that may be padding are not compared.
    fn are_of(&self, record: &Record<'_>) -> bool {
        let mut arguments = record.arguments().enumerate();
        let held = match self {
            Self::Kernel(held) if !held.is_null() => *held,
            Self::Batch(addresses) => {
                return record.arguments().eq(addresses.iter().map(|address| Some(&address[..])));
            }
            Self::None | Self::Kernel(_) => return arguments.next().is_none(),
        };
        arguments.all(|(index, argument)| {
            let Some(bytes) = argument else { return true };
            // SAFETY: the node launches the kernel of the record, with a pointer for each
            // parameter. The launch that made the record had an argument for each parameter, of
            // the parameter's size: that was checked, or the caller promised it. The node lives
            // while the lock is held.
            let held = unsafe { core::slice::from_raw_parts((*held.add(index)).cast::<u8>(), bytes.len()) };
            held == bytes
        })
    }
}

impl GraphGuard<'_> {
    /// The call that made a node, as a record describes it; `None` for nodes that no call of this
    /// library makes.
    fn work_of(&self, raw: CUgraphNode, id: NodeId) -> Result<Option<(Work, NodeArguments)>> {
        let Some(record) = self.record(id) else { return Ok(None) };
        let work = match &record.node_params {
            NodeParams::Kernel { .. } => return self.kernel_work(raw).map(Some),
            NodeParams::Memcpy(layout) => Work::Copy {
                source: layout.source.address,
                destination: layout.destination.address,
                bytes: layout.bytes() as u64,
            },
            NodeParams::Memset(layout) => {
                Work::Fill { destination: layout.address, bytes: layout.bytes() as u64 }
            }
            NodeParams::Host(Host::Raw(function, data)) => {
                Work::Host { function: *function as usize, data: data.0.addr() }
            }
            NodeParams::Other { kind } if *kind == CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
                return self.kernel_work(raw).map(Some);
            }
            NodeParams::Other { kind } if *kind == CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                let copy = NodeCopy::of(self, raw, id)?;
                return Ok(copy.and_then(|mut copy| batch_work(&mut copy)));
            }
            NodeParams::Empty
            | NodeParams::Host(Host::Closure(_) | Host::Function(_))
            | NodeParams::EventRecord(_)
            | NodeParams::EventWait(_)
            | NodeParams::Batch(_)
            | NodeParams::Alloc { .. }
            | NodeParams::Free { .. }
            | NodeParams::SignalSemaphores(_)
            | NodeParams::WaitSemaphores(_)
            | NodeParams::Child { .. }
            | NodeParams::Conditional(_)
            | NodeParams::Other { .. } => return Ok(None),
        };
        Ok(Some((work, NodeArguments::None)))
    }

    fn kernel_work(&self, raw: CUgraphNode) -> Result<(Work, NodeArguments)> {
        let params = self.kernel_params(raw)?;
        let work = Work::Kernel {
            kernel: params.kern.addr(),
            grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
            block: [params.blockDimX, params.blockDimY, params.blockDimZ],
            shared: params.sharedMemBytes,
        };
        Ok((work, NodeArguments::Kernel(params.kernelParams)))
    }

    /// Gives a node the owners of a record.
    fn give(&mut self, id: NodeId, record: &Record<'_>) {
        let in_params = self.record(id).and_then(|node| node.node_params.owner());
        let more = record.owners().filter(|owner| Some(*owner) != in_params.as_ref());
        let mut owners: Owners = more.cloned().collect();
        // A node just read has no owners to give back.
        self.swap_owners(id, &mut owners);
        let node_params = self.record_mut(id).map(|node| &mut node.node_params);
        if let Some(NodeParams::Kernel { accesses, .. }) = node_params {
            *accesses = Accesses::of_record(record);
        }
    }

    /// Keeps owners for the whole graph.
    fn keep_each_once<'o>(&mut self, owners: impl Iterator<Item = &'o Owner>) {
        let mut seen = HashSet::new();
        for owner in owners {
            if seen.insert(owner) {
                self.keep(SubgraphId::ROOT, owner);
            }
        }
    }
}

/// The call that made a batch node, and the address of each operation, 0 for those without one.
fn batch_work(copy: &mut NodeCopy) -> Option<(Work, NodeArguments)> {
    // SAFETY: the parameters of a batch node were read into this part of the union.
    let batch = unsafe { copy.params().__bindgen_anon_1.memOp };
    if batch.paramArray.is_null() || batch.count == 0 {
        return None;
    }
    // SAFETY: the driver has an array of this length for as long as the node lives.
    let operations = unsafe { core::slice::from_raw_parts(batch.paramArray, batch.count as usize) };
    let addresses: Vec<u64> = operations.iter().map(address_of).collect();
    let work = Work::Batch { first: addresses.first().copied().unwrap_or(0), count: batch.count };
    let addresses = addresses.into_iter().map(u64::to_ne_bytes).collect();
    Some((work, NodeArguments::Batch(addresses)))
}

fn address_of(operation: &CUstreamBatchMemOpParams) -> u64 {
    // SAFETY: every operation begins with its type, and those with an address have it at the same
    // place.
    let (kind, address) = unsafe { (operation.operation, operation.writeValue.address) };
    let has_address = !matches!(
        kind,
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER
            | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES
    );
    if has_address { address } else { 0 }
}
