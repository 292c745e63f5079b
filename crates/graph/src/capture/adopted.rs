//! The graph of an ended capture, with the owners of each call at its node.
//!
//! Each node is read once, now or [later](super::unread). It gets the owners of the next record
//! that describes the same call: equal in kind, kernel, configuration and argument bytes, or in
//! addresses and sizes. Owners of records that match no node go to the graph as a whole, as do
//! those of work of other code. A launch with a condition's handle has to match: what sets the
//! condition must be known. So has a call with graph parameters, and no other node may look like
//! it: an update would change the wrong one.

use std::collections::{HashMap, HashSet, VecDeque};

use cuda_handles::capture::{Captured, Record, Records, Work};
use cuda_handles::{CopySide, FillLayout, MemorySpace, Owner};
use cuda_launch::internal::Accesses;
use cuda_sys::{CUgraphNode, CUgraphNodeType, CUstreamBatchMemOpParams, CUstreamBatchMemOpType};

use crate::capture::early_params::EarlyParams;
use crate::clone::node_copy::NodeCopy;
use crate::error::{CaptureError, Error, Result};
use crate::graph::Graph;
use crate::node_name::NodeName;
use crate::param::bind::NewBinding;
use crate::state::GraphState;
use crate::state::bindings::{Binding, BoundNode};
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
    /// The number of the hierarchy whose parameters the nodes take, if they take some.
    params_of: Option<u64>,
    /// The nodes of other code: no call of this library made them.
    foreign: HashSet<NodeId>,
}

impl Adopted {
    /// Adopts the graph of a capture whose nodes are for another graph.
    pub(super) fn new(captured: Captured) -> Result<Self> {
        let (records, graph) = graph_of(captured, None);
        Self::read(graph, &records)
    }

    /// Reads the nodes of a graph.
    fn read(graph: Graph, records: &Records) -> Result<Self> {
        let mut guard = graph.enter()?;
        guard.read_graph(SubgraphId::ROOT)?;
        let matched = Matched::new(&mut guard, records)?;
        let (mut params_of, mut handles) = (None, HashMap::new());
        for (id, record) in &matched.nodes {
            if let Some(bound) = binding_of(record) {
                params_of = Some(bound.graph());
                let binding = guard.fitted(*id, bound);
                guard.bindings.bind(*id, binding);
            }
            if !record.handles().is_empty() {
                handles.insert(*id, RawHandles::from_slice(record.handles()));
            }
        }
        let unmatched = matched.unmatched();
        let foreign = matched.give_owners(&mut guard, records);
        drop(guard);
        Ok(Self { graph, unmatched, handles, params_of, foreign })
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// How many calls match no node.
    pub(super) fn unmatched(&self) -> usize {
        self.unmatched
    }

    /// The number of the hierarchy whose parameters the nodes take, if they take some.
    pub(super) fn params_of(&self) -> Option<u64> {
        self.params_of
    }

    /// Whether other code made the node.
    pub(super) fn is_foreign(&self, id: NodeId) -> bool {
        self.foreign.contains(&id)
    }

    /// The condition handles of a node.
    pub(super) fn handles_of(&self, id: NodeId) -> RawHandles {
        self.handles.get(&id).cloned().unwrap_or_default()
    }
}

/// The graph of a capture that is for no other graph, with the parameters that were made early, and
/// how many calls match no node; `None` if its nodes are read later.
pub(super) fn result_of(captured: Captured, early: Option<EarlyParams>) -> Result<(Graph, Option<usize>)> {
    let (records, graph) = graph_of(captured, early);
    let mut guard = graph.enter_unread()?;
    if guard.can_read_later(&records)? {
        guard.read_later(records);
        drop(guard);
        return Ok((graph, None));
    }
    drop(guard);
    let Adopted { graph, unmatched, .. } = Adopted::read(graph, &records)?;
    Ok((graph, Some(unmatched)))
}

/// The records of the calls of a capture, and its graph, whose nodes have no records. In this
/// order, so that the graph is dropped before the owners of its nodes.
fn graph_of(captured: Captured, early: Option<EarlyParams>) -> (Records, Graph) {
    let Captured { graph, records, others, .. } = captured;
    let graph = match early {
        None => Graph::of(graph, GraphState::unread()),
        Some(EarlyParams { number, bindings }) => {
            Graph::numbered(graph, GraphState::unread().with_params(bindings), number)
        }
    };
    graph.hierarchy().widen(&others);
    (records, graph)
}

/// Nodes and the records of the calls that made them.
pub(super) struct Matched<'r> {
    nodes: Vec<(NodeId, Record<'r>)>,
    /// The nodes of other code.
    foreign: HashSet<NodeId>,
    /// The records of calls that match no node.
    left: Vec<Record<'r>>,
}

impl<'r> Matched<'r> {
    /// Queries the nodes of a graph that has just been read. Changes nothing.
    pub(super) fn new(guard: &mut GraphGuard<'_>, records: &'r Records) -> Result<Self> {
        let mut unmatched = Unmatched::new(records.iter());
        let (mut nodes, mut foreign) = (Vec::with_capacity(records.len()), HashSet::new());
        for raw in guard.raw_nodes()? {
            let index = guard.index(raw)?;
            let Some(id) = guard.id(index) else { continue };
            match unmatched.take_for(guard, raw, id)? {
                Some(record) => nodes.push((id, record)),
                None => drop(foreign.insert(id)),
            }
        }
        let left = unmatched.into_records();
        ensure_setters_found(&left)?;
        ensure_bound(&left)?;
        Ok(Self { nodes, foreign, left })
    }

    /// How many calls match no node.
    pub(super) fn unmatched(&self) -> usize {
        self.left.len()
    }

    /// Gives the nodes their owners, and the graph those that are of no node. Returns the nodes of
    /// other code.
    pub(super) fn give_owners(self, guard: &mut GraphGuard<'_>, records: &Records) -> HashSet<NodeId> {
        self.nodes.iter().for_each(|(id, record)| guard.give(*id, record));
        let loose = self.left.iter().flat_map(|record| record.owners()).chain(records.kept());
        guard.keep_each_once(loose);
        self.foreign
    }
}

/// The records that have not met their nodes.
struct Unmatched<'r> {
    by_work: HashMap<Work, VecDeque<Record<'r>>>,
    /// The records with graph parameters that have met their nodes.
    bound: HashMap<Work, Vec<Record<'r>>>,
}

impl<'r> Unmatched<'r> {
    fn new(records: impl Iterator<Item = Record<'r>>) -> Self {
        let mut by_work: HashMap<Work, VecDeque<Record<'r>>> = HashMap::new();
        for record in records {
            by_work.entry(record.work()).or_default().push_back(record);
        }
        Self { by_work, bound: HashMap::new() }
    }

    /// Takes out the next record that describes the call of a node.
    fn take_for(
        &mut self,
        guard: &GraphGuard<'_>,
        raw: CUgraphNode,
        id: NodeId,
    ) -> Result<Option<Record<'r>>> {
        let Some((work, arguments)) = guard.work_of(raw, id)? else { return Ok(None) };
        let is_it = |record: &Record<'r>| {
            arguments.are_of(record) && binding_of(record).is_none_or(|bound| guard.looks_like(id, bound))
        };
        let records = self.by_work.get_mut(&work);
        let found = records.and_then(|records| {
            let place = records.iter().position(is_it)?;
            records.remove(place)
        });
        let Some(record) = found else {
            let bound = self.bound.get(&work);
            return match bound.and_then(|bound| bound.iter().find(|record| is_it(record))) {
                Some(record) => Err(several(record)),
                None => Ok(None),
            };
        };
        if binding_of(&record).is_some() {
            self.bound.entry(work).or_default().push(record);
        }
        Ok(Some(record))
    }

    fn into_records(self) -> Vec<Record<'r>> {
        self.by_work.into_values().flatten().collect()
    }
}

/// Refuses launches with condition handles among the records that match no node.
fn ensure_setters_found(left: &[Record<'_>]) -> Result<()> {
    match left.iter().find(|record| !record.handles().is_empty()) {
        Some(record) => Err(CaptureError::LaunchChanged { kernel: kernel_name(record) }.into()),
        None => Ok(()),
    }
}

/// The use of graph parameters by a record's call.
fn binding_of<'r>(record: &Record<'r>) -> Option<&'r NewBinding> {
    record.tag()?.downcast_ref()
}

/// Whether a record's call uses graph parameters.
pub(super) fn is_bound(record: &Record<'_>) -> bool {
    binding_of(record).is_some()
}

/// Refuses calls with graph parameters among the records that match no node.
fn ensure_bound(left: &[Record<'_>]) -> Result<()> {
    match left.iter().find_map(binding_of) {
        Some(bound) => {
            let (call, place) = bound.binding().in_words();
            Err(CaptureError::ParamCallChanged { call, place }.into())
        }
        None => Ok(()),
    }
}

/// The error of a node that looks like a call with graph parameters, and is another one.
#[cold]
fn several(record: &Record<'_>) -> Error {
    let (call, place) = binding_of(record).map(|bound| bound.binding().in_words()).unwrap_or_default();
    CaptureError::ParamCallTwice { call, place }.into()
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

    /// Whether a node of the same work as a call with graph parameters does the same in what the
    /// work does not tell.
    fn looks_like(&self, id: NodeId, bound: &NewBinding) -> bool {
        let Some(record) = self.record(id) else { return false };
        match (&bound.binding().node, &record.node_params) {
            (BoundNode::Fill(fill), NodeParams::Memset(layout)) => {
                layout.height == 1 && pattern(layout) == pattern(&fill.layout)
            }
            (BoundNode::Copy(_), NodeParams::Memcpy(layout)) => layout.height == 1 && layout.depth == 1,
            // The arguments have been compared.
            (BoundNode::Kernel { .. }, _) => true,
            (
                BoundNode::Fill(_)
                | BoundNode::Copy(_)
                | BoundNode::Decider(_)
                | BoundNode::Record(_)
                | BoundNode::Wait(_)
                | BoundNode::Plain,
                _,
            ) => false,
        }
    }

    /// The use of parameters by a captured node.
    fn fitted(&self, id: NodeId, bound: &NewBinding) -> Binding {
        let mut binding = bound.binding().clone();
        let node_params = self.record(id).map(|record| &record.node_params);
        if let (BoundNode::Copy(copy), Some(NodeParams::Memcpy(layout))) = (&mut binding.node, node_params) {
            let is_unified = |side: &CopySide| side.space == MemorySpace::Found;
            copy.unified = [is_unified(&layout.source), is_unified(&layout.destination)];
        }
        binding
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

/// The value of a fill, repeated over four bytes: the driver may fill with larger elements than it
/// was asked to.
fn pattern(layout: &FillLayout) -> u32 {
    match layout.element {
        1 => (layout.value & 0xff) * 0x0101_0101,
        2 => (layout.value & 0xffff) * 0x0001_0001,
        _ => layout.value,
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
