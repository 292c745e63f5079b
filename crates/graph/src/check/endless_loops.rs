//! The endless-loop rule: loops that no kernel ends.
//!
//! A loop goes by its condition, and only kernels that have the handle set that. If no kernel in
//! the body has it, and everything there is known, the loop does not end once it begins. A kernel
//! beside the loop might end it, if nothing orders the two.

use std::collections::HashMap;

use super::model::{AddressSpace, Model};
use super::namer::Namer;
use super::order::{NodeOrder, Relation};
use super::reachability::Budget;
use super::report::Finding;
use crate::node_kind::NodeKind;

/// The findings about loops without an end, in the order of the model.
pub(super) fn endless_loops(namer: &Namer<'_>, order: &mut NodeOrder<'_>, steps: u64) -> Vec<Finding> {
    let model = namer.model;
    let mut loops = loops(model);
    if loops.is_empty() {
        return Vec::new();
    }
    let (setters, is_known, mut budget) = (setters(model), known_graphs(model), Budget(steps));
    loops.retain(|&(node, number)| {
        let mut bodies = model.nodes[node as usize].inside.clone();
        let setters = setters.get(&number).map_or(&[][..], Vec::as_slice);
        bodies.all(|body| is_known[body as usize])
            && setters.iter().all(|setter| never_meets(order, *setter, node, &mut budget))
    });
    let finding = |(node, number)| Finding::EndlessLoop { number, conditional: namer.found(node) };
    loops.into_iter().map(finding).collect()
}

/// The loops that go by a condition, each with its number.
fn loops(model: &Model) -> Vec<(u32, u64)> {
    let accesses = model.accesses.iter().filter_map(|access| match access.space {
        AddressSpace::Condition(number) if !access.kind.writes() => Some((access.node, number)),
        _ => None,
    });
    accesses.filter(|(node, _)| model.nodes[*node as usize].kind == NodeKind::While).collect()
}

/// The kernels that have the handle of each condition.
fn setters(model: &Model) -> HashMap<u64, Vec<u32>> {
    let mut setters: HashMap<u64, Vec<u32>> = HashMap::new();
    for access in &model.accesses {
        if let AddressSpace::Condition(number) = access.space
            && access.kind.writes()
        {
            setters.entry(number).or_default().push(access.node);
        }
    }
    setters
}

/// Whether each graph has only nodes of which all is known, also in the graphs in these.
fn known_graphs(model: &Model) -> Vec<bool> {
    let mut is_known = vec![true; model.graphs.len()];
    // Inner graphs come after outer ones.
    for (number, graph) in model.graphs.iter().enumerate().rev() {
        is_known[number] = graph.nodes.clone().all(|node| {
            let node = &model.nodes[node as usize];
            let is_own = node.opaque.is_none() && !matches!(node.kind, NodeKind::Other(_));
            is_own && node.inside.clone().all(|inside| is_known[inside as usize])
        });
    }
    is_known
}

/// Whether a kernel runs before a loop begins or after it ends, and is not in its body.
fn never_meets(order: &mut NodeOrder<'_>, setter: u32, node: u32, budget: &mut Budget) -> bool {
    let is_first = order.places[setter as usize] < order.places[node as usize];
    let (first, second) = if is_first { (setter, node) } else { (node, setter) };
    order.relate(first, second, budget) == Some(Relation::Before)
}
