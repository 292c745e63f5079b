//! The updates before a launch: nodes whose graph parameters have changed.

use cuda_handles::{Allocation, Event, Kernel, Owner};
use cuda_launch::LaunchConfig;
use cuda_launch::internal::{Observed, StoredArguments, StoredMemory};
use cuda_sys::CUgraphNodeParams;

use crate::error::{Error, NodeError, ParamError, Result};
use crate::exec::exec_params::{ExecBound, ExecParams};
use crate::exec::launch::LaunchState;
use crate::exec::node_updates::NodeUpdates;
use crate::exec::not_rebuilt;
use crate::exec::{ExecNodes, GraphExec};
use crate::footprint::Footprint;
use crate::graph::Graph;
use crate::node::{event, memcpy, memset};
use crate::shape::by_data::apart::{Apart, Changes};
use crate::shape::substitute::work::MemoryWork;
use crate::state::bindings::{BoundDecider, BoundNode};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::raw_params::kernel_params;
use crate::update::enable::call_set_enabled;
use crate::update::exec_node::{call_set_params, not_possible};

/// An executable whose nodes follow parameters.
pub(crate) trait ParamTarget {
    /// Whether it has a node: the host decides in place of others.
    fn has(&self, id: NodeId) -> bool;

    /// Whether a node decides about a condition, and cannot be disabled.
    fn decides(&self, id: NodeId) -> bool;

    /// Whether the driver's node is enabled.
    fn is_enabled(&self, id: NodeId) -> bool;

    /// Gives a node new parameters.
    ///
    /// # Errors
    /// The driver's error.
    fn set_params(&mut self, guard: &GraphGuard<'_>, id: NodeId, raw: &mut CUgraphNodeParams) -> Result<()>;

    /// Gives a node another fill or copy.
    ///
    /// # Errors
    /// The driver's error.
    fn set_work(&mut self, guard: &GraphGuard<'_>, id: NodeId, work: &MemoryWork) -> Result<()> {
        self.set_params(guard, id, &mut raw_work(guard, id, work))
    }

    /// Why the shape does not permit the values of parameters for a node, if it does not.
    ///
    /// # Errors
    /// The values do not fit.
    fn refusal(&self, _: &GraphGuard<'_>, _: &ExecBound) -> Result<Option<&'static str>> {
        Ok(None)
    }

    /// Why the shape does not permit that a node is disabled, if it does not.
    fn refusal_of_disabling(&self, _: NodeId) -> Option<&'static str> {
        None
    }

    /// Enables or disables a node.
    ///
    /// # Errors
    /// The driver's error.
    fn set_enabled(&mut self, guard: &GraphGuard<'_>, id: NodeId, enabled: bool) -> Result<()>;

    /// Notes the event that a node records. Returns the one before.
    fn set_event(&mut self, id: NodeId, event: Event) -> Option<Event>;

    /// The nodes that are apart in it, if edges were left out.
    fn apart(&mut self) -> Option<&mut Apart> {
        None
    }

    /// Lets the next run wait for the home of memory that may not be allocated yet.
    fn wait_for_home(&mut self, memory: &Allocation);
}

/// The parts of an executable that its parameters change.
struct ExecTarget<'e> {
    exec: ExecNodes<'e>,
    launches: &'e mut LaunchState,
    updates: &'e mut NodeUpdates,
    apart: Option<&'e mut Apart>,
}

impl ParamTarget for ExecTarget<'_> {
    fn has(&self, _: NodeId) -> bool {
        true
    }

    fn decides(&self, id: NodeId) -> bool {
        self.updates.is_deciding(id)
    }

    fn is_enabled(&self, id: NodeId) -> bool {
        self.updates.is_enabled(id)
    }

    fn set_params(&mut self, guard: &GraphGuard<'_>, id: NodeId, raw: &mut CUgraphNodeParams) -> Result<()> {
        call_set_params(self.exec, guard, id, (guard, id), raw)
    }

    fn set_work(&mut self, guard: &GraphGuard<'_>, id: NodeId, work: &MemoryWork) -> Result<()> {
        match self.exec.substitutes().and_then(|substitutes| substitutes.launch(id, work)) {
            Some(launch) => launch.with_params(|raw| self.set_params(guard, id, raw)),
            None => self.set_params(guard, id, &mut raw_work(guard, id, work)),
        }
    }

    fn refusal(&self, guard: &GraphGuard<'_>, bound: &ExecBound) -> Result<Option<&'static str>> {
        let (Some(shaped), context) = (self.exec.shaped, guard.context()) else { return Ok(None) };
        if shaped.substitutes().has(bound.id) {
            let (work, memory) = (bound.work()?, bound.memory_of_work());
            return Ok(work.and_then(|work| shaped.refusal_of_work(context, bound.id, &work, &memory)));
        }
        let refusal = |memory: &StoredMemory| shaped.refusal_of_memory(context, bound.id, &memory.allocation);
        Ok(bound.memory().find_map(refusal))
    }

    fn refusal_of_disabling(&self, id: NodeId) -> Option<&'static str> {
        self.exec.shaped?.refusal_of_disabling(id)
    }

    fn set_enabled(&mut self, guard: &GraphGuard<'_>, id: NodeId, enabled: bool) -> Result<()> {
        call_set_enabled(self.exec, guard, id, enabled)?;
        self.updates.set_enabled(id, enabled);
        Ok(())
    }

    fn set_event(&mut self, id: NodeId, event: Event) -> Option<Event> {
        self.launches.events.set(id, event)
    }

    fn apart(&mut self) -> Option<&mut Apart> {
        self.apart.as_deref_mut()
    }

    fn wait_for_home(&mut self, memory: &Allocation) {
        self.launches.wait_for_home(memory);
    }
}

impl GraphExec {
    /// Updates the nodes whose parameters have changed. After an error the next launch tries again.
    pub(crate) fn apply_params(&mut self) -> Result<()> {
        self.ensure_not_lent()?;
        let Self { handle, source, launches, updates, owners, shaping, apart, .. } = self;
        let since = &mut owners.since;
        let Some(params) = &mut since.params else { return Ok(()) };
        let handle = handle.as_ref().map_err(|why| not_rebuilt(why))?;
        let exec = ExecNodes::new(handle, shaping.as_deref());
        let mut target = ExecTarget { exec, launches, updates, apart: apart.as_deref_mut() };
        source.with_graph(|graph| apply(&mut target, graph, params, &mut since.replaced))
    }
}

/// Updates the nodes of an executable of a graph whose parameters have changed, and gives the
/// owners that they no longer use. After an error the next launch tries again.
pub(crate) fn apply(
    target: &mut impl ParamTarget,
    graph: Option<&Graph>,
    params: &mut ExecParams,
    replaced: &mut Vec<Owner>,
) -> Result<()> {
    let graph = graph.ok_or(Error::Node(NodeError::GraphRemoved))?;
    let pending = params.take_pending();
    let mut of_some = false;
    match apply_pending(target, graph, params, &pending.nodes, &mut of_some) {
        Ok(()) => {
            params.done(pending, replaced);
            Ok(())
        }
        Err(error) => {
            params.failed(pending, of_some);
            Err(error)
        }
    }
}

/// Updates nodes. `of_some` becomes true once one of them is updated.
fn apply_pending(
    target: &mut impl ParamTarget,
    graph: &Graph,
    params: &mut ExecParams,
    pending: &[u32],
    of_some: &mut bool,
) -> Result<()> {
    // Without the lock, since replaced values are dropped here.
    for &place in pending {
        if let Some((bound, values)) = params.node_mut(place) {
            let id = bound.id;
            bound.fill_in(graph.context(), values).map_err(|problem| problem.of(graph, id))?;
        }
    }
    let guard = graph.enter()?;
    ensure_may_be_off(target, &guard, params, pending)?;
    ensure_not_refused(target, &guard, params, pending)?;
    let changes = check_apart(target, &guard, params, pending)?;
    for &place in pending {
        let Some((bound, _)) = params.node_mut(place) else { continue };
        if !target.has(bound.id) {
            continue;
        }
        let enabled = bound.is_on;
        // A disabled node gets its parameters once it is enabled again.
        if enabled && bound.is_stale {
            update(target, &guard, bound)?;
            (bound.is_stale, *of_some) = (false, true);
        }
        if bound.is_enabled != enabled {
            enable(target, &guard, bound, enabled)?;
            (bound.is_enabled, *of_some) = (enabled, true);
        }
    }
    if let Some(apart) = target.apart() {
        apart.commit(changes);
    }
    Ok(())
}

/// Refuses values with which nodes would meet others that they are ordered with no more. All new
/// values count together, also of nodes that an update which failed half-way has reached.
fn check_apart(
    target: &mut impl ParamTarget,
    guard: &GraphGuard<'_>,
    params: &mut ExecParams,
    pending: &[u32],
) -> Result<Changes> {
    let mut changes = Changes::default();
    let Some(apart) = target.apart() else { return Ok(changes) };
    for &place in pending {
        let Some((bound, _)) = params.node_mut(place) else { continue };
        if bound.is_on
            && let Some(footprint) = Footprint::of_bound(guard.context(), &bound.binding.node)?
        {
            apart.add(&mut changes, bound.id, footprint);
        }
    }
    apart.check(&changes).map_err(|met| met.error(guard))?;
    Ok(changes)
}

/// Enables or disables a node. A fill of a row has its own parameters when it is enabled.
fn enable(
    target: &mut impl ParamTarget,
    guard: &GraphGuard<'_>,
    bound: &mut ExecBound,
    enabled: bool,
) -> Result<()> {
    match bound.spare_fill {
        Some(fill) if !enabled => {
            target.set_work(guard, bound.id, &MemoryWork::Fill(fill))?;
            bound.is_stale = true;
            Ok(())
        }
        Some(_) if target.is_enabled(bound.id) => Ok(()),
        Some(_) | None => target.set_enabled(guard, bound.id, enabled),
    }
}

/// Gives a node its new parameters.
fn update(target: &mut impl ParamTarget, guard: &GraphGuard<'_>, bound: &ExecBound) -> Result<()> {
    let id = bound.id;
    match &bound.binding.node {
        BoundNode::Kernel { kernel, arguments, config } => {
            set_launch(target, guard, id, (kernel, *config, arguments))?;
        }
        BoundNode::Decider(BoundDecider { launch: Some(launch), .. }) => {
            set_launch(target, guard, id, (&launch.kernel, launch.config, &launch.arguments))?;
        }
        BoundNode::Fill(_) | BoundNode::Copy(_) => {
            if let Some(work) = bound.work()? {
                target.set_work(guard, id, &work)?;
            }
        }
        BoundNode::Record(event) => {
            target.set_params(guard, id, &mut event::record(event))?;
            // Not the last reference: the parameter has one until all nodes are up to date.
            drop(target.set_event(bound.counterpart, event.clone()));
        }
        BoundNode::Wait(event) => target.set_params(guard, id, &mut event::wait(event.as_raw()))?,
        BoundNode::Plain => {
            if let Some(row) = bound.row {
                target.set_work(guard, id, &MemoryWork::Fill(row))?;
            }
        }
        BoundNode::Decider(BoundDecider { launch: None, .. }) => {}
    }
    bound.memory().for_each(|memory| target.wait_for_home(&memory.allocation));
    Ok(())
}

fn set_launch(
    target: &mut impl ParamTarget,
    guard: &GraphGuard<'_>,
    id: NodeId,
    (kernel, config, arguments): (&Kernel, LaunchConfig, &StoredArguments),
) -> Result<()> {
    let _observed = Observed::stored(kernel, arguments);
    arguments.with_pointers(|pointers| {
        let mut raw = kernel_params(kernel, config, pointers);
        target.set_params(guard, id, &mut raw)
    })
}

/// Refuses nodes that were removed, and nodes that would be off and decide about a condition.
fn ensure_may_be_off(
    target: &impl ParamTarget,
    guard: &GraphGuard<'_>,
    params: &mut ExecParams,
    pending: &[u32],
) -> Result<()> {
    for &place in pending {
        let Some((bound, _)) = params.node_mut(place) else { continue };
        if guard.record(bound.id).is_none() {
            return Err(guard.removed(bound.id));
        }
        if !bound.is_on && target.decides(bound.id) {
            return Err(ParamError::NotDisabled { node: guard.name(bound.id) }.into());
        }
    }
    Ok(())
}

/// Refuses values that the shape of the executable does not permit.
fn ensure_not_refused(
    target: &impl ParamTarget,
    guard: &GraphGuard<'_>,
    params: &mut ExecParams,
    pending: &[u32],
) -> Result<()> {
    for &place in pending {
        let Some((bound, _)) = params.node_mut(place) else { continue };
        let why = match bound.is_on {
            true if bound.is_stale => target.refusal(guard, bound)?,
            true => None,
            // Such a fill stays enabled.
            false if bound.spare_fill.is_some() => None,
            false => target.refusal_of_disabling(bound.id),
        };
        if let Some(why) = why {
            return Err(not_possible((guard, bound.id), why));
        }
    }
    Ok(())
}

/// The driver's form of a fill or copy.
fn raw_work(guard: &GraphGuard<'_>, id: NodeId, work: &MemoryWork) -> CUgraphNodeParams {
    match work {
        MemoryWork::Fill(layout) => memset::params(guard.context_of(id), layout),
        MemoryWork::Copy(layout) => memcpy::params(guard.context_of(id), layout),
    }
}
