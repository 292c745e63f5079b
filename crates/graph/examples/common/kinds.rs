//! Counts the nodes of a graph by type.

use std::collections::BTreeMap;

use cuda_graph::{ChildGraphNode, Graph, Result};

/// The numbers of nodes by type, including child graphs and bodies.
pub(crate) fn kinds(graph: &Graph) -> Result<BTreeMap<String, usize>> {
    let mut found = BTreeMap::new();
    let mut graphs = vec![graph.clone()];
    while let Some(graph) = graphs.pop() {
        for node in graph.nodes()? {
            *found.entry(node.kind().to_string()).or_default() += 1;
            graphs.extend(node.all_bodies()?);
            if let Ok(child) = ChildGraphNode::try_from(node) {
                graphs.push(child.embedded()?);
            }
        }
    }
    Ok(found)
}
