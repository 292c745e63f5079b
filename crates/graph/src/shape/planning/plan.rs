//! The plan of a shape: nodes in a topological order, edges, and a report.

use super::drawn::Drawn;
use super::figures::Figures;
use super::lanes::Threading;
use super::report::{Action, PlanReport};
use super::sketch::{Sketch, SketchNode};
use super::steps::Steps;
use super::surroundings::Surroundings;
use super::wish::{Wish, Wishes};

/// A graph that does the same as the drawn one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ShapePlan {
    /// In a topological order. Each drawn node is here once, but for empty ones, which may be
    /// absent.
    pub(crate) nodes: Vec<PlannedNode>,
    /// From one node to another, by their places in `nodes`.
    pub(crate) edges: Vec<(u32, u32, PlannedEdge)>,
    pub(crate) report: PlanReport,
}

/// The kind of an edge of a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum PlannedEdge {
    Full,
    /// The drawn edge between the two nodes, which is not full.
    AsDrawn,
    /// A programmatic edge in place of a full one. Both kernels wait at their entry, so it orders
    /// them as a full one does.
    Programmatic,
}

/// A node of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlannedNode {
    /// A drawn node, by its number.
    Drawn(u32),
    /// A kernel of the library in place of a drawn node, by the number of that.
    Substitute(u32),
    /// A kernel that does nothing.
    NoOp,
}

/// Plans the shape of a graph. A graph with a cycle is left as drawn.
#[cfg(test)]
pub(crate) fn plan(drawn: &Drawn, wishes: Wishes) -> ShapePlan {
    plan_in(Surroundings::None, drawn, wishes)
}

/// Plans the shape of a graph in its surroundings. A graph with a cycle is left as drawn.
pub(crate) fn plan_in(surroundings: Surroundings, drawn: &Drawn, wishes: Wishes) -> ShapePlan {
    let Some(mut sketch) = Sketch::new(drawn) else { return cyclic(drawn) };
    let before = Figures::of(&sketch);
    let threading = match wishes.shape {
        Wish::AsBuilt => return finished(sketch, PlanReport { before, after: before, actions: Vec::new() }),
        Wish::FewerEdges | Wish::Reduced => None,
        Wish::Lanes(lanes) => Some(Threading::Lanes(lanes)),
        // In bodies lanes make runs longer.
        Wish::Auto if surroundings.is_body() => None,
        Wish::Auto => Some(Threading::Auto),
    };
    let mut steps = Steps::reduce(&mut sketch);
    let concerned = surroundings.concerned(&sketch, wishes.assume_progress);
    steps.substitute(&mut sketch, &concerned);
    steps.dissolve_empties(&mut sketch);
    if wishes.shape != Wish::FewerEdges {
        steps.replace_empties(&mut sketch, surroundings, &concerned);
    }
    if wishes.shape != Wish::FewerEdges && !surroundings.is_body() {
        steps.put_in_front(&mut sketch, &concerned);
    }
    if let Some(threading) = threading {
        steps.thread(&mut sketch, threading, &concerned);
    }
    if wishes.programmatic {
        steps.overlap(&mut sketch, wishes.no_ops);
    }
    if wishes.shape == Wish::Auto
        && let Some(edges) = steps.only_few_edges_went()
        && let Some(sketch) = Sketch::new(drawn)
    {
        let report = PlanReport { before, after: before, actions: vec![Action::RedundantLeft { edges }] };
        return finished(sketch, report);
    }
    let actions = steps.into_actions();
    let report = PlanReport { before, after: Figures::of(&sketch), actions };
    finished(sketch, report)
}

/// The figures of a graph; `None` if it has a cycle.
pub(crate) fn figures(drawn: &Drawn) -> Option<Figures> {
    Sketch::new(drawn).map(|sketch| Figures::of(&sketch))
}

/// The plan that a sketch is.
fn finished(sketch: Sketch<'_>, report: PlanReport) -> ShapePlan {
    let mut places = vec![0; sketch.nodes.len()];
    (0..).zip(sketch.numbers()).for_each(|(place, number)| places[number as usize] = place);
    let nodes = sketch.nodes.iter().filter_map(|node| match node {
        SketchNode::Drawn(number) => Some(PlannedNode::Drawn(*number)),
        SketchNode::Substitute(number) => Some(PlannedNode::Substitute(*number)),
        SketchNode::NoOp => Some(PlannedNode::NoOp),
        SketchNode::Absent => None,
    });
    let of_kind = |edges: &[(u32, u32)], kind| {
        let places = |(from, to): &(u32, u32)| (places[*from as usize], places[*to as usize], kind);
        edges.iter().map(places).collect::<Vec<_>>()
    };
    let mut edges = of_kind(&sketch.edges, PlannedEdge::Full);
    edges.extend(of_kind(&sketch.other_edges, PlannedEdge::AsDrawn));
    edges.extend(of_kind(&sketch.programmatic, PlannedEdge::Programmatic));
    edges.sort_unstable();
    ShapePlan { nodes: nodes.collect(), edges, report }
}

/// A graph as drawn, of which no topological order exists.
fn cyclic(drawn: &Drawn) -> ShapePlan {
    let nodes = (0..drawn.nodes.len() as u32).map(PlannedNode::Drawn).collect();
    let kind = |is_full| if is_full { PlannedEdge::Full } else { PlannedEdge::AsDrawn };
    let edges: Vec<_> = drawn.edges.iter().map(|edge| (edge.from, edge.to, kind(edge.is_full))).collect();
    let figures = Figures { nodes: drawn.nodes.len(), edges: edges.len(), ..Figures::default() };
    let report = PlanReport { before: figures, after: figures, actions: vec![Action::CycleLeft] };
    ShapePlan { nodes, edges, report }
}
