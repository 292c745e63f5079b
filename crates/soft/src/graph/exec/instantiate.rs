//! Instantiating graphs, and destroying executables.

use std::sync::Arc;

use cuda_sys::CUgraphInstantiateResult as Outcome;

use crate::device::context::{self, Context};
use crate::device::loss;
use crate::driver::abort::hang;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::exec::compile::{Failure, compile};
use crate::graph::exec::instantiable::{self, Refused};
use crate::graph::model::condition_values::ConditionValues;
use crate::graph::model::executable::Exec;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::{Graphs, new_uid};
use crate::graph::model::hierarchy;
use crate::graph::model::payload::Payload;
use crate::graph::model::program::{Program, Work};
use crate::graph::model::store::{Store, store};
use crate::graph::model::task::Task;
use crate::graph::model::user_object::{ExecObjects, ObjectRefs};
use crate::stream;

/// Retains the user objects of a graph and of all its parts for an executable.
pub(crate) fn exec_objects(
    graphs: &Graphs,
    graph: u64,
    used: bool,
    context: &Arc<Context>,
) -> Vec<((u64, usize), Arc<ExecObjects>)> {
    let mut shares = Vec::new();
    for part in hierarchy::tree(graphs, graph) {
        let Ok(own) = graphs.graph(part) else { continue };
        let holdings: ObjectRefs = own.objects.duplicate();
        let key = if part == graph { (0, 0) } else { part_key(graphs, part) };
        shares.push((key, Arc::new(ExecObjects::new(holdings, used, context))));
    }
    shares
}

/// The key by which an executable knows a child or body: the uid of its node and its number there.
fn part_key(graphs: &Graphs, part: u64) -> (u64, usize) {
    let Ok(Owner::Child { node, .. } | Owner::Body { node }) = graphs.graph(part).map(|graph| graph.owner)
    else {
        return (0, 0);
    };
    let Ok(node) = graphs.node(node) else { return (0, 0) };
    let number = match &node.payload {
        Payload::Conditional(conditional) => conditional.bodies.iter().position(|body| *body == part),
        Payload::Task(_) | Payload::Child(_) => None,
    };
    (node.uid, number.unwrap_or(0))
}

/// Instantiates a graph.
pub(crate) fn instantiate(store: &mut Store, graph: u64, flags: u64) -> Result<u64, Refused> {
    instantiable::check(&store.graphs, graph, flags)?;
    let mut program = compile(&store.graphs, graph).map_err(|failure| match failure {
        Failure::Cycle(cycle) => {
            Refused::new(INVALID_VALUE, Outcome::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, cycle.node)
        }
        Failure::Gone => INVALID_VALUE.into(),
    })?;
    let context = context::current()?;
    program.values = ConditionValues::again(program.conditions.iter().map(|(number, _)| *number));
    note_instantiated(&program);
    let keys = program.steps.iter().enumerate().map(|(index, step)| (step.uid, index)).collect();
    let shares = exec_objects(&store.graphs, graph, false, &context);
    let own = store.graphs.graph_mut(graph)?;
    own.live_execs += 1;
    let source = (graph, own.uid);
    Ok(store.execs.insert(Exec {
        uid: new_uid(),
        program: Arc::new(program),
        keys,
        shares,
        flags,
        source,
        used: false,
        context,
        last: Arc::default(),
    }))
}

/// Marks the memory that a program allocates as instantiated.
pub(crate) fn note_instantiated(program: &Program) {
    for step in &program.steps {
        if let Work::Task(Task::Alloc(node)) = &step.work {
            node.memory.instantiate();
        }
    }
}

/// Uncounts an executable at its source graph.
pub(crate) fn release_source(graphs: &mut Graphs, source: (u64, u64)) {
    if let Some(graph) = graphs.graph_mut(source.0).ok().filter(|graph| graph.uid == source.1) {
        graph.live_execs = graph.live_execs.saturating_sub(1);
    }
}

/// `cuGraphExecDestroy`. Work in flight goes on. For an executable with conditional nodes the call
/// waits for all work of the process, and nothing can be enqueued meanwhile, as on a GPU.
pub(crate) fn destroy(handle: u64) -> Answer {
    let removed = {
        let mut store = store();
        let exec = store.execs.remove(handle).ok_or(INVALID_VALUE)?;
        release_source(&mut store.graphs, exec.source);
        exec
    };
    if !removed.context.is_alive() && !loss::is_lost(removed.context.device) {
        hang("an executable is destroyed after its context was reset or released");
    }
    if !removed.program.conditions.is_empty() {
        stream::while_idle(|| ());
    }
    // Destructors may run here, so the lock must not be held.
    drop(removed);
    Ok(())
}
