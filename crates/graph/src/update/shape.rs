//! Reading the shape of a graph from the driver.

use std::collections::HashMap;

use crate::edge::query::Way;
use crate::error::Result;
use crate::state::guard::GraphGuard;
use crate::state::ids::SubgraphId;
use crate::update::pairing::{GraphShape, NodeShape, Shape};

/// The shape of the root graph of a locked hierarchy. One driver call for each node, and two for
/// each graph.
pub(crate) fn shape(guard: &mut GraphGuard<'_>) -> Result<Shape> {
    let mut subgraphs = vec![SubgraphId::ROOT];
    let mut shape = Shape::default();
    while let Some(&subgraph) = subgraphs.get(shape.graphs.len()) {
        let raws = guard.raw_nodes_of(guard.graph_at(subgraph)?)?;
        let places: HashMap<_, u32> = raws.iter().copied().zip(0..).collect();
        let mut nodes = Vec::with_capacity(raws.len());
        for raw in raws {
            let index = guard.index_in(subgraph, raw)?;
            let (Some(id), Some(record)) = (guard.id(index), guard.at(index)) else { continue };
            let first = subgraphs.len();
            subgraphs.extend(record.node_params.subgraphs());
            let edges = guard.neighbours(raw, Way::In)?;
            let waits_for = edges.into_iter().filter_map(|(from, kind)| Some((*places.get(&from)?, kind)));
            let (kind, inside) = (record.node_params.raw_kind(), first..subgraphs.len());
            nodes.push(NodeShape { id, kind, waits_for: waits_for.collect(), inside });
        }
        shape.graphs.push(GraphShape { nodes });
    }
    Ok(shape)
}
