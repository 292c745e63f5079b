//! The parameters of a node with the values of graph parameters, and their checks.

use std::sync::Arc;

use cuda_handles::{Allocation, Context, CopyLayout, Element, FillLayout, Slice};
use cuda_launch::internal::{StoredArguments, StoredMemory};
use cuda_launch::{Dim, LaunchConfig, per};
use smallvec::{SmallVec, smallvec};

use crate::error::{Error, LoopError, ParamError, Result};
use crate::exec::exec_params::ExecBound;
use crate::graph::Graph;
use crate::node::event;
use crate::node_name::NodeName;
use crate::shape::substitute::work::MemoryWork;
use crate::state::bindings::{BoundCopy, BoundDecider, BoundFill, BoundNode, ParamValue, Place, Use};
use crate::state::ids::NodeId;
use crate::update::rules::{PoolChange, keep_types};

/// Why values do not fit into a node.
pub(super) enum Problem {
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
    Exchanged(PoolChange),
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
    pub(super) fn of(self, graph: &Graph, id: NodeId) -> Error {
        let node = || -> NodeName { graph.look().map_or_else(|_| "node".into(), |guard| guard.name(id)) };
        match self {
            Self::Error(Error::Launch(cause)) => {
                ParamError::Launch { node: node(), cause: Box::new(cause) }.into()
            }
            Self::Error(error) => error,
            Self::TooLong { len, longest } => ParamError::TooLong { node: node(), len, longest }.into(),
            Self::NoRoom { bytes, room } => ParamError::NoRoom { node: node(), bytes, room }.into(),
            Self::Exchanged(PoolChange { side, is_pooled }) => {
                ParamError::Exchanged { node: node(), side, is_pooled }.into()
            }
            Self::WrongValue => ParamError::WrongValue { node: node() }.into(),
        }
    }
}

impl ExecBound {
    /// Puts the values of parameters into the node's parameters, and checks these. Notes whether
    /// the node is enabled and has something to do.
    pub(super) fn fill_in(&mut self, context: &Context, values: &[ParamValue]) -> Result<(), Problem> {
        for one in &self.binding.uses {
            if let Some(value) = values.get(one.param as usize) {
                put(&mut self.binding.node, one.place, value)?;
            }
        }
        self.is_on = self.has_work() && self.wants_enabled(values);
        if self.is_on { self.check(context) } else { Ok(()) }
    }

    /// The memory that the driver's node has from parameters.
    pub(super) fn memory(&self) -> impl Iterator<Item = &StoredMemory> {
        let memory = |one: &Use| match (&self.binding.node, one.place) {
            (BoundNode::Kernel { arguments, .. }, Place::Argument(position)) => arguments.memory(position),
            (BoundNode::Decider(BoundDecider { launch: Some(launch), .. }), Place::Tested) => {
                launch.arguments.memory(launch.tested)
            }
            (BoundNode::Fill(fill), Place::Target) => Some(&fill.memory),
            (BoundNode::Copy(copy), Place::Source) => Some(&copy.source),
            (BoundNode::Copy(copy), Place::Destination) => Some(&copy.destination),
            _ => None,
        };
        self.binding.uses.iter().filter_map(memory)
    }

    /// The fill or copy of the node, with the values of parameters.
    pub(super) fn work(&self) -> Result<Option<MemoryWork>> {
        Ok(match &self.binding.node {
            BoundNode::Fill(fill) => fill_layout(fill)?.map(MemoryWork::Fill),
            BoundNode::Copy(copy) => copy_layout(copy)?.map(MemoryWork::Copy),
            _ => None,
        })
    }

    /// The memory of the fill or copy, from parameters or not.
    pub(super) fn memory_of_work(&self) -> SmallVec<[&Arc<Allocation>; 2]> {
        match &self.binding.node {
            BoundNode::Fill(fill) => smallvec![&*fill.memory.allocation],
            BoundNode::Copy(copy) => smallvec![&*copy.source.allocation, &*copy.destination.allocation],
            _ => SmallVec::new(),
        }
    }

    /// Whether it has something to do.
    fn has_work(&self) -> bool {
        match &self.binding.node {
            BoundNode::Kernel { config, .. } => config.grid().x != 0,
            BoundNode::Fill(fill) => fill.memory.bytes != 0,
            BoundNode::Copy(copy) => copy.bytes() != 0,
            BoundNode::Decider(_) | BoundNode::Record(_) | BoundNode::Wait(_) | BoundNode::Plain => true,
        }
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
                let contexts =
                    [&copy.source, &copy.destination].map(|memory| memory.allocation.has_context());
                if let Some(change) = PoolChange::between(copy.have_context, contexts) {
                    return Err(Problem::Exchanged(change));
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

/// The layout of a copy; `None` if it copies nothing.
pub(crate) fn copy_layout(copy: &BoundCopy) -> Result<Option<CopyLayout>> {
    let bytes = copy.bytes();
    let (source, destination) = (slice::<u8>(&copy.source, bytes), slice::<u8>(&copy.destination, bytes));
    let mut layout = CopyLayout::linear(source, destination)?;
    if let Some(layout) = &mut layout {
        keep_types(layout, copy.unified);
    }
    Ok(layout)
}

/// The layout of a fill; `None` if it fills nothing.
pub(crate) fn fill_layout(BoundFill { memory, layout, clears }: &BoundFill) -> Result<Option<FillLayout>> {
    let (all, value) = (memory.bytes, layout.value);
    Ok(match layout.element {
        _ if *clears => FillLayout::clear(slice::<u8>(memory, all)),
        // The value has as many bytes.
        1 => FillLayout::linear(slice::<u8>(memory, all), value as u8)?,
        2 => FillLayout::linear(slice::<u16>(memory, all), value as u16)?,
        _ => FillLayout::linear(slice::<u32>(memory, all), value)?,
    })
}
