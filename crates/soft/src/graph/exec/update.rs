//! Updates of a whole executable from another graph: pairing of nodes, and allowed changes.

use crate::graph::exec::compile::compile;
use crate::graph::exec::instantiate;
use crate::graph::model::node_limits;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_sys::{CUgraphExecUpdateResult as Outcome, CUresult};

use crate::device::loss;
use crate::driver::result_code::{Answer, GRAPH_EXEC_UPDATE_FAILURE, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::exec::instantiate::note_instantiated;
use crate::graph::exec::update_rules::may_become;
use crate::graph::model::executable::Exec;
use crate::graph::model::graph::Owner;
use crate::graph::model::program::{Level, Step, Work};
use crate::graph::model::store::store;

/// Why an update was refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    pub(crate) outcome: Outcome,
    pub(crate) node: u64,
    pub(crate) from: u64,
}

impl Refused {
    fn new(outcome: Outcome, node: u64) -> Self {
        Self { outcome, node, from: 0 }
    }

    /// The result code of the call. Some updates are refused without a reason.
    pub(crate) fn code(&self) -> CUresult {
        match self.outcome {
            Outcome::CU_GRAPH_EXEC_UPDATE_SUCCESS => NOT_SUPPORTED,
            _ => GRAPH_EXEC_UPDATE_FAILURE,
        }
    }
}

const TOPOLOGY: Outcome = Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
const UNSUPPORTED: Outcome = Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;

/// Pairs the steps of an executable with those of a new program.
struct Pairing<'a> {
    old: &'a [Step],
    new: &'a [Step],
    /// The new step of each old one.
    partner: Vec<Option<usize>>,
    taken: Vec<bool>,
    /// Levels inside paired steps, still to be paired. A list, since they may be nested deeper than
    /// the stack allows.
    inside: Vec<(&'a Level, &'a Level)>,
    /// The last new conditional node that differs from its old one: the others are paired all the
    /// same.
    unlike: Option<u64>,
}

impl<'a> Pairing<'a> {
    fn new(old: &'a [Step], new: &'a [Step]) -> Self {
        let (partner, taken) = (vec![None; old.len()], vec![false; new.len()]);
        Self { old, new, partner, taken, inside: Vec::new(), unlike: None }
    }

    fn new_node(&self, index: usize) -> u64 {
        self.new.get(index).map_or(0, |step| step.node)
    }

    fn levels(&mut self, old: &'a Level, new: &'a Level) -> Result<(), Refused> {
        self.inside = vec![(old, new)];
        while let Some((old, new)) = self.inside.pop() {
            self.level(old, new)?;
        }
        self.unlike.map_or(Ok(()), |node| Err(Refused::new(UNSUPPORTED, node)))
    }

    fn level(&mut self, old: &Level, new: &Level) -> Result<(), Refused> {
        if old.created.len() != new.created.len() {
            return Err(Refused::new(TOPOLOGY, 0));
        }
        let (old_steps, new_steps) = (self.old, self.new);
        let differs = edge_count(old_steps, old) != edge_count(new_steps, new);
        // Pairs the sinks in the order of creation, then the dependencies of each pair in the order
        // added.
        let (old_sinks, new_sinks) = (sinks(old_steps, old), sinks(new_steps, new));
        if old_sinks.len() != new_sinks.len() {
            let node = new_sinks.first().copied().map_or(0, |index| self.new_node(index));
            return Err(Refused::new(TOPOLOGY, node));
        }
        let mut queue = Vec::new();
        for pair in old_sinks.into_iter().zip(new_sinks) {
            self.pair(pair.0, pair.1)?;
            queue.push(pair);
        }
        let mut at = 0;
        while let Some((old, new)) = queue.get(at).copied() {
            at += 1;
            let (Some(old_step), Some(new_step)) = (old_steps.get(old), new_steps.get(new)) else { continue };
            if old_step.dependencies.len() != new_step.dependencies.len() {
                return Err(Refused::new(TOPOLOGY, new_step.node));
            }
            for ((old, old_edge), (new, new_edge)) in old_step.dependencies.iter().zip(&new_step.dependencies)
            {
                if old_edge != new_edge {
                    let from = self.new_node(*new);
                    return Err(Refused { outcome: TOPOLOGY, node: new_step.node, from });
                }
                match self.partner.get(*old).copied().flatten() {
                    Some(partner) if partner == *new => {}
                    Some(_) => return Err(Refused::new(TOPOLOGY, self.new_node(*new))),
                    None => {
                        self.pair(*old, *new)?;
                        queue.push((*old, *new));
                    }
                }
            }
        }
        if differs || queue.len() != old.created.len() {
            return Err(Refused::new(TOPOLOGY, new.created.first().map_or(0, |index| self.new_node(*index))));
        }
        Ok(())
    }

    fn pair(&mut self, old: usize, new: usize) -> Result<(), Refused> {
        let node = self.new_node(new);
        if self.taken.get(new).copied().unwrap_or(true) || self.partner.get(old).is_none_or(Option::is_some) {
            return Err(Refused::new(TOPOLOGY, node));
        }
        if let (Some(partner), Some(taken)) = (self.partner.get_mut(old), self.taken.get_mut(new)) {
            *partner = Some(new);
            *taken = true;
        }
        let (Some(old), Some(new)) = (self.old.get(old), self.new.get(new)) else { return Ok(()) };
        match (&old.work, &new.work) {
            (Work::Child(old), Work::Child(new)) => {
                self.inside.push((old, new));
                Ok(())
            }
            (
                Work::Conditional { handle: old_handle, condition: old_kind, bodies: old_bodies },
                Work::Conditional { handle: new_handle, condition: new_kind, bodies: new_bodies },
            ) => {
                if old_handle != new_handle || old_kind != new_kind || old_bodies.len() != new_bodies.len() {
                    self.unlike = Some(node);
                    return Ok(());
                }
                self.inside.extend(old_bodies.iter().zip(new_bodies).rev());
                Ok(())
            }
            (old, new) => may_become(old, new).map_err(|outcome| Refused::new(outcome, node)),
        }
    }
}

/// The number of edges of a level.
fn edge_count(steps: &[Step], level: &Level) -> usize {
    level.created.iter().filter_map(|index| steps.get(*index)).map(|step| step.dependencies.len()).sum()
}

/// The steps of a level that nothing depends on.
fn sinks(steps: &[Step], level: &Level) -> Vec<usize> {
    let is_sink = |index: &usize| steps.get(*index).is_some_and(|step| step.dependents == 0);
    level.created.iter().copied().filter(is_sink).collect()
}

impl Pairing<'_> {
    fn pairs(&self) -> Vec<(usize, usize)> {
        self.partner.iter().enumerate().filter_map(|(old, new)| Some((old, (*new)?))).collect()
    }

    /// The uid of the old step for the uid of each new one.
    fn keys(&self) -> HashMap<u64, u64> {
        let uid_of = |steps: &[Step], index: usize| steps.get(index).map_or(0, |step| step.uid);
        let uids = |(old, new): (usize, usize)| (uid_of(self.new, new), uid_of(self.old, old));
        self.pairs().into_iter().map(uids).collect()
    }
}

impl Exec {
    /// Replaces tasks by those of their new steps; returns the old tasks, to be dropped without the
    /// lock.
    fn set_works(&mut self, pairs: &[(usize, usize)], new: &[Step]) -> Vec<Work> {
        let steps = &mut Arc::make_mut(&mut self.program).steps;
        let mut replaced = Vec::new();
        for (old, new_index) in pairs {
            let (Some(step), Some(from)) = (steps.get_mut(*old), new.get(*new_index)) else { continue };
            if matches!(from.work, Work::Task(_)) {
                replaced.push(std::mem::replace(&mut step.work, from.work.clone()));
            }
        }
        replaced
    }
}

/// `cuGraphExecUpdate`.
pub(crate) fn update(exec: u64, graph: u64) -> Answer<Result<(), Refused>> {
    let device = store().exec(exec)?.device();
    if loss::is_lost(device) {
        return Ok(Err(Refused::new(Outcome::CU_GRAPH_EXEC_UPDATE_ERROR, 0)));
    }
    let dropped = {
        let mut store = store();
        store.exec(exec)?;
        let source = store.graphs.graph(graph)?;
        let (uid, live) = (source.uid, source.live_execs);
        if matches!(source.owner, Owner::Child { moved: true, .. }) {
            return Err(INVALID_VALUE);
        }
        let memory = node_limits::holds_memory_nodes(&store.graphs, graph);
        if node_limits::holds_updatable(&store.graphs, graph) {
            return Ok(Err(Refused::new(Outcome::CU_GRAPH_EXEC_UPDATE_SUCCESS, 0)));
        }
        if memory && live > 0 && store.exec(exec)?.source.1 != uid {
            return Ok(Err(Refused::new(Outcome::CU_GRAPH_EXEC_UPDATE_SUCCESS, 0)));
        }
        let Ok(new) = compile(&store.graphs, graph) else { return Ok(Err(Refused::new(TOPOLOGY, 0))) };
        let own = store.exec(exec)?;
        let mut pairing = Pairing::new(&own.program.steps, &new.steps);
        if let Err(refused) = pairing.levels(&own.program.top, &new.top) {
            return Ok(Err(refused));
        }
        let (pairs, keys) = (pairing.pairs(), pairing.keys());
        let (old_source, context) = (own.source, Arc::clone(&own.context));
        // What came with the update was not used by a run before it.
        let mut shares = instantiate::exec_objects(&store.graphs, graph, false, &context);
        // The keys stay the uids of the first graph.
        for (key, _) in &mut shares {
            key.0 = keys.get(&key.0).copied().unwrap_or(key.0);
        }
        if memory {
            instantiate::release_source(&mut store.graphs, old_source);
            store.graphs.graph_mut(graph)?.live_execs += 1;
        }
        let own = store.exec_mut(exec)?;
        if memory {
            own.source = (graph, uid);
        }
        note_instantiated(&new);
        let works = own.set_works(&pairs, &new.steps);
        let program = Arc::make_mut(&mut own.program);
        program.conditions = new.conditions;
        (works, std::mem::replace(&mut own.shares, shares))
    };
    // Destructors may run here, so the lock must not be held.
    drop(dropped);
    Ok(Ok(()))
}

/// Replaces the graph of a child node of an executable by one of the same topology.
pub(crate) fn set_child(exec: u64, node: u64, child: u64) -> Answer {
    let dropped = {
        let mut store = store();
        let step = store.step_of(exec, node)?;
        let uid = store.graphs.node(node)?.uid;
        let own = store.exec(exec)?;
        let Work::Child(level) = own.work(step)? else { return Err(INVALID_VALUE) };
        store.graphs.graph(child)?;
        let program = compile(&store.graphs, child).map_err(|_| GRAPH_EXEC_UPDATE_FAILURE)?;
        let mut pairing = Pairing::new(&own.program.steps, &program.steps);
        pairing.levels(level, &program.top).map_err(|_| GRAPH_EXEC_UPDATE_FAILURE)?;
        let (pairs, mut keys) = (pairing.pairs(), pairing.keys());
        let mut shares = instantiate::exec_objects(&store.graphs, child, own.used, &own.context);
        // The child itself and its parts: the keys stay the uids of the first graph.
        keys.insert(0, uid);
        for (key, _) in &mut shares {
            key.0 = keys.get(&key.0).copied().unwrap_or(key.0);
        }
        let replaced: HashSet<u64> = keys.into_values().collect();
        let own = store.exec_mut(exec)?;
        let works = own.set_works(&pairs, &program.steps);
        let (dropped, mut kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut own.shares).into_iter().partition(|(key, _)| replaced.contains(&key.0));
        kept.extend(shares);
        own.shares = kept;
        (works, dropped)
    };
    // Destructors may run here, so the lock must not be held.
    drop(dropped);
    Ok(())
}
