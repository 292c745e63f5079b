//! The updates before a launch: nodes whose graph parameters have changed.

use core::mem::take;

use cuda_handles::{Context, CopyLayout, Element, Event, FillLayout, MemorySpace, Owner, Slice};
use cuda_launch::internal::{StoredArguments, StoredMemory};
use cuda_launch::{Dim, LaunchConfig, per};
use cuda_sys::{CUgraphNodeParams, Call};
use smallvec::SmallVec;

use crate::error::{Error, LoopError, NodeError, ParamError, Result};
use crate::exec::GraphExec;
use crate::exec::exec_params::{ExecBound, ExecParams};
use crate::exec::resources::Replaced;
use crate::graph::Graph;
use crate::node::{event, memcpy, memset};
use crate::node_name::NodeName;
use crate::state::bindings::{
    BoundCopy, BoundDecider, BoundFill, BoundNode, DeciderLaunch, ParamValue, Place, Use,
};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::Owners;
use crate::state::raw_params::kernel_params;

/// Everything that updates have replaced, to be dropped after the lock.
type AllReplaced = SmallVec<[Replaced; 1]>;

/// An executable whose nodes follow parameters.
pub(crate) trait ParamTarget {
    /// Whether it has a node: the host decides in place of others.
    fn has(&self, id: NodeId) -> bool;

    /// Whether a node decides about a condition, and cannot be disabled.
    fn decides(&self, id: NodeId) -> bool;

    /// Gives a node new parameters, and keeps the owners for it. Returns what has to be dropped
    /// after the lock.
    ///
    /// # Errors
    /// The driver's error.
    fn set_params(
        &mut self,
        guard: &GraphGuard<'_>,
        id: NodeId,
        owners: Owners,
        raw: &mut CUgraphNodeParams,
    ) -> Result<Replaced>;

    /// Enables or disables a node.
    ///
    /// # Errors
    /// The driver's error.
    fn set_enabled(&mut self, guard: &GraphGuard<'_>, id: NodeId, enabled: bool) -> Result<()>;

    /// Notes the event that a node records. Returns the one before.
    fn set_event(&mut self, id: NodeId, event: Event) -> Option<Event>;
}

impl ParamTarget for GraphExec {
    fn has(&self, _: NodeId) -> bool {
        true
    }

    fn decides(&self, id: NodeId) -> bool {
        self.updates.is_deciding(id)
    }

    fn set_params(
        &mut self,
        guard: &GraphGuard<'_>,
        id: NodeId,
        owners: Owners,
        raw: &mut CUgraphNodeParams,
    ) -> Result<Replaced> {
        self.set_params(guard, id, owners, raw)
    }

    fn set_enabled(&mut self, guard: &GraphGuard<'_>, id: NodeId, enabled: bool) -> Result<()> {
        let record = guard.record(id).ok_or_else(|| guard.removed(id))?;
        let exec = self.live()?.as_raw();
        // SAFETY: the executable is live, and the exclusive reference keeps other calls on it away.
        // The node is live and of the graph that it was made of, whose lock is held.
        let code = unsafe { guard.driver().cuGraphNodeSetEnabled(exec, record.raw.0, enabled.into()) };
        guard.answer(Call::cuGraphNodeSetEnabled, code)?;
        self.updates.set_enabled(id, enabled);
        Ok(())
    }

    fn set_event(&mut self, id: NodeId, event: Event) -> Option<Event> {
        self.launches.events.set(id, event)
    }
}

impl GraphExec {
    /// Updates the nodes whose parameters have changed. After an error, those that were not updated
    /// wait for the next launch.
    #[cold]
    pub(crate) fn apply_params(&mut self) -> Result<()> {
        let Some(mut params) = self.params.take() else { return Ok(()) };
        let applied = self.ensure_not_lent().and_then(|()| apply(self, self.source.graph(), &mut params));
        self.params = Some(params);
        applied
    }
}

/// Updates the nodes of an executable of a graph whose parameters have changed. After an error,
/// those that were not updated wait for the next launch.
pub(crate) fn apply(
    target: &mut impl ParamTarget,
    graph: Option<Graph>,
    params: &mut ExecParams,
) -> Result<()> {
    let graph = graph.ok_or(Error::Node(NodeError::GraphRemoved))?;
    let pending = take(params.pending_mut());
    let applied = apply_pending(target, &graph, params, &pending);
    *params.pending_mut() = pending;
    if applied.is_ok() {
        params.done();
    }
    applied
}

fn apply_pending(
    target: &mut impl ParamTarget,
    graph: &Graph,
    params: &mut ExecParams,
    pending: &[u32],
) -> Result<()> {
    // Without the lock, since replaced values are dropped here.
    for &place in pending {
        if let Some((bound, values)) = params.node_mut(place) {
            let id = bound.id;
            bound.fill_in(graph.context(), values).map_err(|problem| problem.of(graph, id))?;
        }
    }
    // Dropped after the guard.
    let mut replaced = AllReplaced::new();
    let guard = graph.enter()?;
    ensure_may_be_off(target, &guard, params, pending)?;
    for &place in pending {
        let Some((bound, values)) = params.node_mut(place) else { continue };
        if !target.has(bound.id) {
            continue;
        }
        let enabled = bound.is_on(values);
        // A disabled node gets its parameters once it is enabled again.
        if enabled && bound.is_stale {
            let one = update(target, &guard, bound)?;
            if !one.is_empty() {
                replaced.push(one);
            }
            bound.is_stale = false;
        }
        if bound.is_enabled != enabled {
            target.set_enabled(&guard, bound.id, enabled)?;
            bound.is_enabled = enabled;
        }
    }
    Ok(())
}

/// Gives a node its new parameters.
fn update(target: &mut impl ParamTarget, guard: &GraphGuard<'_>, bound: &ExecBound) -> Result<Replaced> {
    let (context, id) = (guard.context(), bound.id);
    let owners = bound.owners();
    match &bound.binding.node {
        BoundNode::Kernel { kernel, arguments, config } => arguments.with_pointers(|pointers| {
            let mut raw = kernel_params(kernel, *config, pointers);
            target.set_params(guard, id, owners, &mut raw)
        }),
        BoundNode::Decider(BoundDecider { launch: Some(launch), .. }) => {
            let DeciderLaunch { kernel, config, arguments, .. } = &**launch;
            arguments.with_pointers(|pointers| {
                let mut raw = kernel_params(kernel, *config, pointers);
                target.set_params(guard, id, owners, &mut raw)
            })
        }
        BoundNode::Fill(fill) => match fill_layout(fill)? {
            Some(layout) => {
                let mut raw = memset::params(context, &layout);
                target.set_params(guard, id, owners, &mut raw)
            }
            None => Ok(Replaced::default()),
        },
        BoundNode::Copy(copy) => match copy_layout(copy)? {
            Some(layout) => {
                let mut raw = memcpy::params(context, &layout);
                target.set_params(guard, id, owners, &mut raw)
            }
            None => Ok(Replaced::default()),
        },
        BoundNode::Record(event) => {
            let replaced = target.set_params(guard, id, owners, &mut event::record(event))?;
            // Not the last reference: what the executable has retired, or `replaced`, has one.
            drop(target.set_event(bound.counterpart, event.clone()));
            Ok(replaced)
        }
        BoundNode::Wait(event) => target.set_params(guard, id, owners, &mut event::wait(event.as_raw())),
        BoundNode::Decider(BoundDecider { launch: None, .. }) | BoundNode::Plain => Ok(Replaced::default()),
    }
}

/// Refuses nodes that were removed, and nodes that would be off and decide about a condition.
fn ensure_may_be_off(
    target: &impl ParamTarget,
    guard: &GraphGuard<'_>,
    params: &mut ExecParams,
    pending: &[u32],
) -> Result<()> {
    for &place in pending {
        let Some((bound, values)) = params.node_mut(place) else { continue };
        if guard.record(bound.id).is_none() {
            return Err(guard.removed(bound.id));
        }
        if !bound.is_on(values) && target.decides(bound.id) {
            return Err(ParamError::NotDisabled { node: guard.name(bound.id) }.into());
        }
    }
    Ok(())
}

/// Why values do not fit into a node.
enum Problem {
    /// The error is complete.
    Error(Error),
    TooLong {
        len: u64,
        longest: u64,
    },
    NoRoom {
        bytes: u64,
        room: u64,
    },
    WrongValue,
}

impl<E: Into<Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl Problem {
    /// The error, with the node.
    #[cold]
    fn of(self, graph: &Graph, id: NodeId) -> Error {
        let node = || -> NodeName { graph.look().map_or_else(|_| "node".into(), |guard| guard.name(id)) };
        match self {
            Self::Error(error) => error,
            Self::TooLong { len, longest } => ParamError::TooLong { node: node(), len, longest }.into(),
            Self::NoRoom { bytes, room } => ParamError::NoRoom { node: node(), bytes, room }.into(),
            Self::WrongValue => ParamError::WrongValue { node: node() }.into(),
        }
    }
}

impl ExecBound {
    /// Puts the values of parameters into the node's parameters, and checks these.
    fn fill_in(&mut self, context: &Context, values: &[ParamValue]) -> Result<(), Problem> {
        for one in &self.binding.uses {
            if let Some(value) = values.get(one.param as usize) {
                put(&mut self.binding.node, one.place, value)?;
            }
        }
        if self.is_on(values) { self.check(context) } else { Ok(()) }
    }

    /// The owners of the memory and events of parameters. Everything else that the node uses is the
    /// graph's, and kept by the executable as long as it has this graph's nodes.
    fn owners(&self) -> Owners {
        let owner = |one: &Use| {
            let memory = match (&self.binding.node, one.place) {
                (BoundNode::Kernel { arguments, .. }, Place::Argument(position)) => {
                    arguments.memory(position)
                }
                (BoundNode::Decider(BoundDecider { launch: Some(launch), .. }), Place::Tested) => {
                    launch.arguments.memory(launch.tested)
                }
                (BoundNode::Fill(fill), Place::Target) => Some(&fill.memory),
                (BoundNode::Copy(copy), Place::Source) => Some(&copy.source),
                (BoundNode::Copy(copy), Place::Destination) => Some(&copy.destination),
                (BoundNode::Record(event) | BoundNode::Wait(event), Place::Event) => {
                    return Some(Owner::from(event));
                }
                _ => None,
            };
            memory.map(|memory| Owner::from(&memory.allocation))
        };
        self.binding.uses.iter().filter_map(owner).collect()
    }

    /// Whether it is enabled and has something to do.
    fn is_on(&self, values: &[ParamValue]) -> bool {
        let is_empty = match &self.binding.node {
            BoundNode::Kernel { config, .. } => config.grid().x == 0,
            BoundNode::Fill(fill) => fill.memory.bytes == 0,
            BoundNode::Copy(copy) => copy.bytes() == 0,
            BoundNode::Decider(_) | BoundNode::Record(_) | BoundNode::Wait(_) | BoundNode::Plain => false,
        };
        !is_empty && self.wants_enabled(values)
    }

    fn check(&self, context: &Context) -> Result<(), Problem> {
        match &self.binding.node {
            BoundNode::Kernel { kernel, arguments, config } => {
                config.check(kernel)?;
                arguments.check(kernel, config)?;
            }
            BoundNode::Copy(copy) => {
                let (bytes, room) = (copy.bytes(), copy.source.bytes.min(copy.destination.bytes));
                if bytes > room {
                    return Err(Problem::NoRoom { bytes, room });
                }
                copy_layout(copy)?;
            }
            BoundNode::Fill(fill) => {
                fill_layout(fill)?;
            }
            BoundNode::Decider(BoundDecider { bytes, element, .. }) => {
                if bytes < element {
                    return Err(Error::Loop(LoopError::NothingToTest).into());
                }
            }
            BoundNode::Record(event) => event::ensure_own(context, event)?,
            BoundNode::Wait(_) | BoundNode::Plain => {}
        }
        Ok(())
    }
}

/// Puts a value into a place of a node.
fn put(node: &mut BoundNode, place: Place, value: &ParamValue) -> Result<(), Problem> {
    let fits = match (node, place, value) {
        (BoundNode::Kernel { arguments, .. }, Place::Argument(position), value) => {
            put_argument(arguments, position, value)
        }
        (
            BoundNode::Kernel { arguments, .. },
            Place::Length { position, longest, element },
            ParamValue::Memory(memory),
        ) => {
            let len = memory.count(element);
            if len > longest {
                return Err(Problem::TooLong { len, longest });
            }
            put_length(arguments, position, len, longest)
        }
        (BoundNode::Kernel { config, .. }, Place::Config, ParamValue::Config(new)) => {
            *config = resized(config, new.grid(), new.block(), new.shared());
            true
        }
        (BoundNode::Kernel { config, .. }, Place::Grid(block, element), ParamValue::Memory(memory)) => {
            let len = usize::try_from(memory.count(element)).unwrap_or(usize::MAX);
            *config = resized(config, per(len, block).grid(), config.block(), config.shared());
            true
        }
        (BoundNode::Fill(fill), Place::Target, ParamValue::Memory(memory)) => {
            fill.memory.replace_by(memory);
            true
        }
        (BoundNode::Fill(fill), Place::Value, ParamValue::Bytes(value)) => {
            let bits = value.bits();
            fill.layout.value = bits.unwrap_or(fill.layout.value);
            bits.is_some()
        }
        (BoundNode::Copy(copy), Place::Source, ParamValue::Memory(memory)) => {
            copy.source.replace_by(memory);
            true
        }
        (BoundNode::Copy(copy), Place::Destination, ParamValue::Memory(memory)) => {
            copy.destination.replace_by(memory);
            true
        }
        (BoundNode::Decider(decider), Place::Tested, ParamValue::Memory(memory)) => {
            decider.bytes = memory.bytes;
            decider.launch.as_mut().is_none_or(|launch| {
                // SAFETY: the memory holds numbers of the type that the kernel tests: the parameter
                // was given for them.
                unsafe { launch.arguments.set_memory(launch.tested, memory.clone()).is_some() }
            })
        }
        (BoundNode::Record(event) | BoundNode::Wait(event), Place::Event, ParamValue::Event(new)) => {
            *event = new.clone();
            true
        }
        (_, Place::Enabled, ParamValue::Enabled(_)) => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(Problem::WrongValue) }
}

fn put_argument(arguments: &mut StoredArguments, position: usize, value: &ParamValue) -> bool {
    match value {
        // SAFETY: the type of the parameter is the declared one: it was given for that argument.
        ParamValue::Bytes(value) => unsafe { arguments.set_value(position, &value.bytes) },
        // SAFETY: as above.
        ParamValue::Memory(memory) => unsafe {
            arguments.memory(position).is_some_and(|known| known.is_same(memory))
                || arguments.set_memory(position, memory.clone()).is_some()
        },
        ParamValue::Event(_) | ParamValue::Config(_) | ParamValue::Enabled(_) => false,
    }
}

/// Puts a length into an argument that can express it: one of four bytes, or of eight.
fn put_length(arguments: &mut StoredArguments, position: usize, len: u64, longest: u64) -> bool {
    let (short, long) = ((len as u32).to_ne_bytes(), len.to_ne_bytes());
    let bytes: &[u8] = if longest <= u64::from(u32::MAX) { &short } else { &long };
    let bytes: SmallVec<[core::mem::MaybeUninit<u8>; 8]> =
        bytes.iter().map(|byte| core::mem::MaybeUninit::new(*byte)).collect();
    // SAFETY: lengths are given for integer arguments alone, and these have this size.
    unsafe { arguments.set_value(position, &bytes) }
}

/// Another grid, block and size of shared memory; the attributes stay.
fn resized(config: &LaunchConfig, grid: Dim, block: Dim, shared: u32) -> LaunchConfig {
    LaunchConfig::new(grid, block).shared_bytes(shared).attributes_of(config)
}

impl BoundCopy {
    /// The bytes that are copied: those of the parameters.
    fn bytes(&self) -> u64 {
        match self.follows {
            [true, true] => self.source.bytes.max(self.destination.bytes),
            [true, false] => self.source.bytes,
            [false, _] => self.destination.bytes,
        }
    }
}

/// The first bytes of memory, as elements of a type.
fn slice<T: Element>(memory: &StoredMemory, bytes: u64) -> Slice<'_, T> {
    let len = bytes.min(memory.bytes) as usize / size_of::<T>().max(1);
    // SAFETY: there are as many bytes, and each pattern is a value of the small integers that this
    // is called for. The driver reads and writes them; no Rust reference leads there.
    unsafe { Slice::within(&memory.allocation, memory.start, len) }
}

fn copy_layout(copy: &BoundCopy) -> Result<Option<CopyLayout>> {
    let bytes = copy.bytes();
    let layout = CopyLayout::linear(slice::<u8>(&copy.source, bytes), slice::<u8>(&copy.destination, bytes))?;
    Ok(layout.map(|mut layout| {
        for (side, unified) in [&mut layout.source, &mut layout.destination].into_iter().zip(copy.unified) {
            if unified {
                side.space = MemorySpace::Found;
            }
        }
        layout
    }))
}

fn fill_layout(BoundFill { memory, layout, clears }: &BoundFill) -> Result<Option<FillLayout>> {
    let (all, value) = (memory.bytes, layout.value);
    Ok(match layout.element {
        _ if *clears => FillLayout::clear(slice::<u8>(memory, all)),
        // The value has as many bytes.
        1 => FillLayout::linear(slice::<u8>(memory, all), value as u8)?,
        2 => FillLayout::linear(slice::<u16>(memory, all), value as u16)?,
        _ => FillLayout::linear(slice::<u32>(memory, all), value)?,
    })
}
