//! Nodes that use graph parameters, as they are added.

use core::any::TypeId;

use cuda_handles::{Event, FillLayout, Kernel, NodeMemory, Placeholder, Slice};
use cuda_launch::internal::{Placeholders, StoredArguments, StoredMemory};
use cuda_launch::{ArgumentsOf, LaunchConfig, Prepared, Signature, TypedKernel};
use cuda_sys::CUmemorytype;

use crate::error::wrong_context::Spans;
use crate::error::{Error, ParamError, Result};
use crate::node_name::NodeName;
use crate::param::config::ConfigSource;
use crate::state::bindings::{
    Binding, Bindings, BoundCopy, BoundDecider, BoundFill, BoundNode, ParamValue, Place, Use, Uses,
};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// What a new node uses, with the graph that its parameters belong to.
#[derive(Debug)]
pub(crate) struct NewBinding {
    graph: u64,
    binding: Binding,
}

/// The uses of parameters, all of which belong to one hierarchy.
#[derive(Default)]
struct Found {
    graph: Option<u64>,
    uses: Uses,
}

impl Found {
    /// Notes a parameter in a place for values of a type. Implementations of safe traits may name
    /// a parameter of another type.
    fn note(&mut self, placeholder: Placeholder, place: Place, of: Option<TypeId>) -> Result<()> {
        if of != Some(placeholder.of()) {
            return Err(ParamError::WrongType.into());
        }
        if *self.graph.get_or_insert(placeholder.graph()) != placeholder.graph() {
            return Err(ParamError::Foreign.into());
        }
        self.uses.push(Use { param: placeholder.number(), place });
        Ok(())
    }

    fn into_binding(self, node: BoundNode) -> Option<NewBinding> {
        Some(NewBinding { graph: self.graph?, binding: Binding { node, uses: self.uses } })
    }
}

/// What a launch uses; `None` if there is no parameter.
pub(crate) fn of_launch<K: TypedKernel>(
    kernel: &Kernel,
    config: LaunchConfig,
    source: Option<ConfigSource>,
    placeholders: &Placeholders,
    prepared: &Prepared<'_, K>,
) -> Result<Option<NewBinding>> {
    let mut found = Found::default();
    for &(position, placeholder) in placeholders {
        let place = match placeholder.longest() {
            None => Place::Argument(position),
            Some(longest) => Place::Length { position, longest, element: placeholder.element() },
        };
        found.note(placeholder, place, K::Signature::value_type(position))?;
    }
    if let Some(ConfigSource { placeholder, place }) = source {
        // Made by this crate alone.
        found.note(placeholder, place, Some(placeholder.of()))?;
    }
    let not_storable = || Error::Param(ParamError::NotStorable { kernel: kernel.name().into() });
    let arguments: Box<StoredArguments> = Box::new(prepared.store().ok_or_else(not_storable)?);
    Ok(found.into_binding(BoundNode::Kernel { kernel: kernel.clone(), arguments, config }))
}

/// What a fill uses; `None` if there is no parameter.
pub(crate) fn of_fill<T: 'static>(
    target: Option<Placeholder>,
    value: Option<Placeholder>,
    memory: StoredMemory,
    layout: FillLayout,
    clears: bool,
) -> Result<Option<NewBinding>> {
    let mut found = Found::default();
    target.map(|target| found.note(target, Place::Target, Some(TypeId::of::<[T]>()))).transpose()?;
    value.map(|value| found.note(value, Place::Value, Some(TypeId::of::<T>()))).transpose()?;
    Ok(found.into_binding(BoundNode::Fill(BoundFill { memory, layout, clears })))
}

/// What a copy of the memory of both sides uses; `None` if there is no parameter.
pub(crate) fn of_copy<T: 'static>(
    placeholders: [Option<Placeholder>; 2],
    sides: impl FnOnce() -> (StoredMemory, StoredMemory),
) -> Result<Option<NewBinding>> {
    let [from, to] = placeholders;
    if from.is_none() && to.is_none() {
        return Ok(None);
    }
    let mut found = Found::default();
    from.map(|from| found.note(from, Place::Source, Some(TypeId::of::<[T]>()))).transpose()?;
    to.map(|to| found.note(to, Place::Destination, Some(TypeId::of::<[T]>()))).transpose()?;
    let (source, destination) = sides();
    let follows = [from.is_some(), to.is_some()];
    let allocations = [&source.allocation, &destination.allocation];
    let have_context = allocations.map(|memory| memory.has_context());
    let unified = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
    let unified = allocations.map(|memory| memory.space().memory_type() == unified);
    let copy = BoundCopy { source, destination, follows, unified, have_context };
    Ok(found.into_binding(BoundNode::Copy(copy)))
}

/// What a node that decides by memory of a type uses.
pub(crate) fn of_decider(
    placeholder: Placeholder,
    of: TypeId,
    decider: BoundDecider,
) -> Result<Option<NewBinding>> {
    let mut found = Found::default();
    found.note(placeholder, Place::Tested, Some(of))?;
    Ok(found.into_binding(BoundNode::Decider(decider)))
}

/// What a node that records an event or waits for it uses.
pub(crate) fn of_event(placeholder: Placeholder, node: BoundNode) -> Result<Option<NewBinding>> {
    let mut found = Found::default();
    found.note(placeholder, Place::Event, Some(TypeId::of::<Event>()))?;
    Ok(found.into_binding(node))
}

/// Memory for a call that takes no parameters.
#[inline]
pub(crate) fn fixed<'a, T>(memory: impl NodeMemory<'a, T>, call: &'static str) -> Result<Slice<'a, T>> {
    match memory.placeholder() {
        None => Ok(memory.operand()),
        Some(_) => Err(ParamError::NotTaken { call }.into()),
    }
}

/// Refuses parameters among the arguments of a call that takes none.
pub(crate) fn ensure_no_params<'a, S: Signature>(
    arguments: &impl ArgumentsOf<'a, S>,
    call: &'static str,
) -> Result<()> {
    if arguments.placeholders().is_empty() { Ok(()) } else { Err(ParamError::NotTaken { call }.into()) }
}

impl GraphGuard<'_> {
    /// Refuses to set a node by hand that takes parameters, apart from being enabled.
    pub(crate) fn ensure_not_bound(&self, id: NodeId) -> Result<()> {
        match self.bindings.get(id).map(|binding| &binding.node) {
            None | Some(BoundNode::Plain) => Ok(()),
            Some(_) => Err(ParamError::Bound { node: self.name(id) }.into()),
        }
    }

    /// Refuses parameters of another hierarchy, lengths that an argument cannot express, and memory
    /// out of reach of a kernel.
    pub(crate) fn ensure_own_params(&self, binding: &NewBinding) -> Result<()> {
        binding.ensure_of(self.number(), &self.bindings)?;
        match &binding.binding.node {
            BoundNode::Kernel { kernel, .. } => self.ensure_reach(binding, kernel),
            _ => Ok(()),
        }
    }

    /// Refuses memory parameters for a kernel of another context than the home, of which their
    /// values are.
    fn ensure_reach(&self, binding: &NewBinding, kernel: &Kernel) -> Result<()> {
        if self.home().is_same(kernel.context()) {
            return Ok(());
        }
        let values = self.bindings.values();
        let is_memory = |used: &Use| matches!(values.get(used.param as usize), Some(ParamValue::Memory(_)));
        match binding.binding.uses.iter().any(is_memory) {
            true => Err(ParamError::MemoryElsewhere { kernel: kernel.name().into() }.into()),
            false => Ok(()),
        }
    }
}

impl Binding {
    /// The call that uses the parameters, and the place of the first one, for errors.
    #[cold]
    pub(crate) fn in_words(&self) -> (NodeName, NodeName) {
        let call = match &self.node {
            BoundNode::Kernel { kernel, .. } => format!("launch of `{}`", kernel.name()),
            BoundNode::Fill(_) => "fill".to_owned(),
            BoundNode::Copy(_) => "copy".to_owned(),
            BoundNode::Decider(_) => "loop or branch".to_owned(),
            BoundNode::Record(_) => "record".to_owned(),
            BoundNode::Wait(_) => "wait".to_owned(),
            BoundNode::Plain => "call".to_owned(),
        };
        let place = self.uses.first().map(|one| self.place_in_words("its", one.place));
        (call.into(), place.unwrap_or_default().into())
    }

    /// A place in the node, for errors: an argument by its name, or another part behind a word.
    #[cold]
    pub(crate) fn place_in_words(&self, word: &str, place: Place) -> String {
        let part = match place {
            Place::Argument(position) | Place::Length { position, .. } => {
                let BoundNode::Kernel { arguments, .. } = &self.node else { return "an argument".to_owned() };
                let name = arguments.declaration().names.get(position).copied().unwrap_or("?");
                return format!("argument `{name}`");
            }
            Place::Config => "configuration",
            Place::Grid(..) => "grid",
            Place::Target | Place::Tested => "memory",
            Place::Value => "value",
            Place::Source => "source",
            Place::Destination => "destination",
            Place::Event => "event",
            Place::Enabled => "switch",
        };
        format!("{word} {part}")
    }
}

impl NewBinding {
    /// The number of the hierarchy that its parameters belong to.
    pub(crate) fn graph(&self) -> u64 {
        self.graph
    }

    /// The memory that it keeps.
    pub(crate) fn each_memory(&mut self, mut each: impl FnMut(&mut StoredMemory)) {
        match &mut self.binding.node {
            BoundNode::Kernel { arguments, .. } => arguments.all_memory_mut().for_each(each),
            BoundNode::Decider(BoundDecider { launch, .. }) => {
                launch.iter_mut().for_each(|launch| launch.arguments.all_memory_mut().for_each(&mut each));
            }
            BoundNode::Fill(fill) => each(&mut fill.memory),
            BoundNode::Copy(copy) => [&mut copy.source, &mut copy.destination].into_iter().for_each(each),
            BoundNode::Record(_) | BoundNode::Wait(_) | BoundNode::Plain => {}
        }
    }

    pub(crate) fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Refuses parameters of another hierarchy than the one with this number and these parameters,
    /// and lengths that an argument cannot express.
    pub(crate) fn ensure_of(&self, graph: u64, params: &Bindings) -> Result<()> {
        if self.graph != graph {
            return Err(ParamError::Foreign.into());
        }
        self.binding.uses.iter().try_for_each(|one| {
            let value = params.values().get(one.param as usize);
            let (Some(ParamValue::Memory(memory)), Place::Length { longest, element, .. }) =
                (value, one.place)
            else {
                return Ok(());
            };
            let len = memory.count(element);
            let node = || match &self.binding.node {
                BoundNode::Kernel { kernel, .. } => kernel.name().into(),
                _ => "node".into(),
            };
            if len > longest {
                Err(ParamError::TooLong { node: node(), len, longest }.into())
            } else {
                Ok(())
            }
        })
    }

    pub(crate) fn into_binding(self) -> Binding {
        self.binding
    }
}
