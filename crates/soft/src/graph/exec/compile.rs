//! From a graph to what an executable runs.

use super::order::{Cycle, topological_order};
use crate::graph::model::hierarchy;
use std::collections::HashMap;

use crate::driver;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::payload::Payload;
use crate::graph::model::program::{Level, Program, Step, Work};

/// Why no program could be made.
#[derive(Debug)]
pub(crate) enum Failure {
    Cycle(Cycle),
    /// Something is gone that should be there.
    Gone,
}

/// The program of a graph, with conditions that have no values yet.
pub(crate) fn compile(graphs: &Graphs, graph: u64) -> Result<Program, Failure> {
    let mut program = Program::default();
    program.top = compile_levels(graphs, graph, &mut program.steps)?;
    let root = graphs.graph(hierarchy::root(graphs, graph)).map_err(|_| Failure::Gone)?;
    program.conditions = root.conditions.iter().map(|(number, handle)| (*number, handle.default)).collect();
    Ok(program)
}

/// The steps of a graph and of all in it, the inner before the node that they are in. With a
/// stack of its own, as they may be nested deeper than the thread's is.
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

/// The edges and the order of a level whose steps are there.
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
    level.order =
        topological_order(&level.created, steps, driver::config().branch_seed).map_err(Failure::Cycle)?;
    Ok(level)
}

/// A level of which not all steps are there.
struct PartialLevel {
    nodes: Vec<u64>,
    index_of: HashMap<u64, usize>,
    level: Level,
    /// The finished levels of the graphs in the next node.
    inside: Vec<Level>,
}

/// The work of a node, with the levels of the graphs in it.
fn work(payload: &Payload, mut inside: Vec<Level>) -> Option<Work> {
    Some(match payload {
        Payload::Child(_) => Work::Child(inside.pop()?),
        Payload::Conditional(conditional) => {
            Work::Conditional { handle: conditional.handle, condition: conditional.condition, bodies: inside }
        }
        Payload::Task(task) => Work::Task(task.clone()),
    })
}
