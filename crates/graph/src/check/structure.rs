//! What a driver would refuse to make an executable of: cycles, what bodies cannot hold, conditions
//! without nodes.

use super::namer::Namer;
use super::order::cycle;
use super::report::Finding;
use super::subject::Wrong;

/// What is wrong with the structure of a subject. Cycles come first.
pub(crate) fn structure(namer: &Namer<'_>) -> Vec<Finding> {
    let subject = namer.subject;
    let cycles = (0..subject.graphs.len()).filter_map(|graph| cycle(subject, graph));
    let mut findings: Vec<Finding> = cycles
        .map(|cycle| Finding::Cycle { nodes: cycle.into_iter().map(|item| namer.found(item)).collect() })
        .collect();
    let items = subject.items.iter().enumerate();
    findings.extend(items.filter_map(|(number, item)| wrong(namer, number as u32, item.wrong?)));
    findings.extend(subject.conditions.iter().map(|condition| Finding::UnusedCondition {
        number: condition.number,
        default: condition.default,
        setters: condition.setters.clone(),
    }));
    findings
}

fn wrong(namer: &Namer<'_>, item: u32, wrong: Wrong) -> Option<Finding> {
    let node = namer.found(item);
    if wrong == Wrong::Incomplete {
        return Some(Finding::Incomplete { node });
    }
    let conditional = namer.body_around(item)?;
    Some(match wrong {
        Wrong::OtherContext => Finding::MixedContexts { node, conditional },
        _ => Finding::NotInBody {
            node,
            kind: namer.subject.items[item as usize].kind,
            pageable: wrong == Wrong::PageableInBody,
            conditional,
        },
    })
}
