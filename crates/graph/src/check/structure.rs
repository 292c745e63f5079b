//! The structure rule: cycles, nodes that bodies cannot hold, unused conditions.

use super::model::NodeFault;
use super::namer::Namer;
use super::order::cycle;
use super::report::Finding;

/// The findings about the structure of a model. Cycles come first.
pub(crate) fn structure(namer: &Namer<'_>) -> Vec<Finding> {
    let model = namer.model;
    let cycles = (0..model.graphs.len()).filter_map(|graph| cycle(model, graph));
    let mut findings: Vec<Finding> = cycles
        .map(|cycle| Finding::Cycle { nodes: cycle.into_iter().map(|node| namer.found(node)).collect() })
        .collect();
    let nodes = model.nodes.iter().enumerate();
    findings.extend(nodes.filter_map(|(number, node)| fault(namer, number as u32, node.fault?)));
    findings.extend(model.conditions.iter().map(|condition| Finding::UnusedCondition {
        number: condition.number,
        default: condition.default,
        setters: condition.setters.clone(),
    }));
    findings
}

/// The finding about a fault of one node.
fn fault(namer: &Namer<'_>, number: u32, fault: NodeFault) -> Option<Finding> {
    let node = namer.found(number);
    let pageable = match fault {
        NodeFault::OtherContext => {
            return Some(Finding::MixedContexts { node, conditional: namer.body_around(number)? });
        }
        NodeFault::NotInBody => false,
        NodeFault::PageableInBody => true,
    };
    let kind = namer.model.nodes[number as usize].kind;
    Some(Finding::NotInBody { node, kind, pageable, conditional: namer.body_around(number)? })
}
