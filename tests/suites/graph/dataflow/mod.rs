//! Dataflows: nodes that are added in the order of a program wait for what their accesses need.

mod existing;
mod failures;
mod opaque;
mod orders;
mod random;

use std::collections::BTreeSet;

use cuda_graph::Node;

/// Asserts that a node waits for just these.
#[track_caller]
fn assert_waits(node: &Node, expected: &[&Node]) {
    let names = |nodes: &[&Node]| nodes.iter().map(|node| node.name()).collect::<BTreeSet<String>>();
    let found = node.predecessors().unwrap();
    let found: Vec<&Node> = found.iter().collect();
    let all_known = found.iter().all(|node| expected.contains(node));
    assert!(all_known && found.len() == expected.len(), "{:?}, not {:?}", names(&found), names(expected));
}
