//! Compiling a graph to the program of an executable.

use super::order::{Cycle, topological_order};
use crate::graph::model::hierarchy;
use std::collections::HashMap;

use crate::driver;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::payload::Payload;
use crate::graph::model::program::{Level, Program, Step, Work};

/// Why a graph could not be compiled.
#[derive(Debug)]
pub(crate) enum Failure {
    Cycle(Cycle),
    /// An object that should exist does not.
    Gone,
}

/// The first compute capability on which kernels begin early.
const EARLY: (u32, u32) = (9, 0);

/// Compiles a graph. Its conditions have no values yet.
pub(crate) fn compile(graphs: &Graphs, graph: u64) -> Result<Program, Failure> {
    let mut program = Program::default();
    program.top = compile_levels(graphs, graph, &mut program.steps)?;
    let root = graphs.graph(hierarchy::root(graphs, graph)).map_err(|_| Failure::Gone)?;
    program.conditions = root.conditions.iter().map(|(number, handle)| (*number, handle.default)).collect();
    Ok(program)
}

/// The steps of a graph and of all graphs inside it; steps inside a node come before the node. It
/// uses an explicit stack, since graphs may be nested deeper than the thread's stack allows.
fn compile_levels(graphs: &Graphs, graph: u64, steps: &mut Vec<Step>) -> Result<Level, Failure> {
    let mut open = vec![begin_level(graphs, graph)?];
    loop {
        let Some(top) = open.last_mut() else { return Err(Failure::Gone) };
        let Some(handle) = top.nodes.get(top.level.created.len()).copied() else {
            let level = finish_level(graphs, open.pop().ok_or(Failure::Gone)?, steps)?;
            let Some(around) = open.last_mut() else { return Ok(level) };
            around.inside.push(level);
            continue;
        };
        let node = graphs.node(handle).map_err(|_| Failure::Gone)?;
        if let Some(next) = node.payload.graphs().get(top.inside.len()).copied() {
            let next = begin_level(graphs, next)?;
            open.push(next);
            continue;
        }
        let work = work(&node.payload, std::mem::take(&mut top.inside)).ok_or(Failure::Gone)?;
        top.level.waits |= work.waits();
        top.index_of.insert(handle, steps.len());
        top.level.created.push(steps.len());
        steps.push(Step {
            node: handle,
            uid: node.uid,
            enabled: true,
            work,
            dependencies: Vec::new(),
            dependents: node.dependents.len(),
        });
    }
}

fn begin_level(graphs: &Graphs, graph: u64) -> Result<PartialLevel, Failure> {
    let nodes = graphs.nodes_of(graph).map_err(|_| Failure::Gone)?;
    let index_of = HashMap::with_capacity(nodes.len());
    let level = Level { created: Vec::with_capacity(nodes.len()), ..Level::default() };
    Ok(PartialLevel { nodes, index_of, level, inside: Vec::new() })
}

/// Adds edges and order to a level whose steps are complete.
fn finish_level(graphs: &Graphs, open: PartialLevel, steps: &mut [Step]) -> Result<Level, Failure> {
    let PartialLevel { nodes, index_of, mut level, .. } = open;
    for handle in &nodes {
        let node = graphs.node(*handle).map_err(|_| Failure::Gone)?;
        let of = |dependency: &u64| index_of.get(dependency).copied();
        let dependencies =
            node.dependencies.iter().filter_map(|(from, edge)| Some((of(&from)?, edge))).collect();
        if let Some(step) = of(handle).and_then(|index| steps.get_mut(index)) {
            step.dependencies = dependencies;
        }
    }
    let is_early = |index: &usize| {
        steps.get(*index).is_some_and(|step| step.dependencies.iter().any(|(_, edge)| !edge.is_plain()))
    };
    level.is_early = driver::config().capability >= EARLY && level.created.iter().any(is_early);
    level.order =
        topological_order(&level.created, steps, driver::config().branch_seed).map_err(Failure::Cycle)?;
    Ok(level)
}

/// A level whose steps are not complete.
struct PartialLevel {
    nodes: Vec<u64>,
    index_of: HashMap<u64, usize>,
    level: Level,
    /// The finished levels of the graphs inside the next node.
    inside: Vec<Level>,
}

/// The work of a node; `inside` are the levels of the graphs inside it.
fn work(payload: &Payload, mut inside: Vec<Level>) -> Option<Work> {
    Some(match payload {
        Payload::Child(_) => Work::Child(inside.pop()?),
        Payload::Conditional(conditional) => {
            Work::Conditional { handle: conditional.handle, condition: conditional.condition, bodies: inside }
        }
        Payload::Task(task) => Work::Task(task.clone()),
    })
}
