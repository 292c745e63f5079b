//! Rows for nodes that other code added.

use std::collections::{BTreeSet, HashMap, HashSet};

use cuda_handles::Owner;
use cuda_sys::{CUgraphNode, CUgraphNodeType};

use crate::detail::Detail;
use crate::edge::EdgeKind;
use crate::error::{Error, Result};
use crate::graph::Locked;
use crate::order::Index;
use crate::table::{NodeId, Owners, Place, Taken};

impl Locked<'_> {
    /// Where the row of a raw node of the graph is. If other code added it, it gets one now, like all others that have none.
    #[inline]
    pub(crate) fn index(&mut self, raw: CUgraphNode) -> Result<Index> {
        self.index_in(self.place(), raw)
    }

    /// [`index`](Self::index) for a graph of the hierarchy.
    #[inline]
    pub(crate) fn index_in(&mut self, place: Place, raw: CUgraphNode) -> Result<Index> {
        match self.find(raw) {
            Some(index) => Ok(index),
            None => self.adopted(place, raw),
        }
    }

    #[cold]
    fn adopted(&mut self, place: Place, raw: CUgraphNode) -> Result<Index> {
        self.adopt(place)?;
        self.find(raw).ok_or(Error::UnknownNode { raw: raw.addr() })
    }

    /// Gives rows to the nodes of a graph, and of those embedded in it, that have none, and an order to all of them that their edges go along.
    pub(crate) fn adopt(&mut self, place: Place) -> Result<()> {
        let mut places = vec![place];
        while let Some(place) = places.pop() {
            let graph = self.graph_at(place)?;
            let nodes = self.raw_nodes_of(graph)?;
            let mut known = Vec::with_capacity(nodes.len());
            for raw in nodes {
                let index = match self.find(raw) {
                    Some(index) => index,
                    None => self.adopt_node(place, raw)?,
                };
                known.push(index);
                places.extend(self.at(index).and_then(|row| row.detail.embedded()));
            }
            let edges = self.raw_edges_of(graph)?;
            self.put_in_order(&known, &edges);
        }
        Ok(())
    }

    /// Takes out the rows of nodes of a graph, and of those embedded in it, that other code has removed. What they kept is the caller's to drop,
    /// after the lock.
    pub(crate) fn take_vanished(&mut self, place: Place, vanished: &mut (Taken, Vec<Owner>)) -> Result<()> {
        let mut places = vec![place];
        while let Some(place) = places.pop() {
            let graph = self.graph_at(place)?;
            let there: HashSet<usize> = self.raw_nodes_of(graph)?.into_iter().map(|raw| raw.addr()).collect();
            for id in self.rows_within(place) {
                let Some(row) = self.row(id) else { continue };
                let (raw, inner) = (row.raw.0, row.detail.embedded());
                if !there.contains(&raw.addr()) {
                    vanished.0.extend(self.take(id));
                } else if let Some(inner) = inner {
                    places.push(self.renewed(id, raw, inner, vanished)?);
                }
            }
        }
        Ok(())
    }

    /// The place of the graph that is in a node now: a new one, if other code has replaced the graph.
    fn renewed(
        &mut self,
        node: NodeId,
        raw: CUgraphNode,
        place: Place,
        vanished: &mut (Taken, Vec<Owner>),
    ) -> Result<Place> {
        let graph = self.raw_embedded(raw)?;
        if self.embedded(place).is_some_and(|embedded| embedded.raw.0 == graph) {
            return Ok(place);
        }
        let (taken, kept) = self.take_inside(place);
        vanished.0.extend(taken);
        vanished.1.extend(kept);
        let place = self.embed(graph, node);
        if let Some(row) = self.row_mut(node) {
            row.detail.set_embedded(place);
        }
        Ok(place)
    }

    fn adopt_node(&mut self, place: Place, raw: CUgraphNode) -> Result<Index> {
        let kind = self.raw_type(raw)?;
        let inner = match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => Some(self.raw_embedded(raw)?),
            _ => None,
        };
        let detail = match inner {
            // Its place is known once the row is.
            Some(_) => Detail::Child { graph: place },
            None => self.read(kind, raw)?,
        };
        self.reserve(place);
        let id = self.insert(place, raw, detail, Owners::new());
        if let Some(inner) = inner {
            let inner = self.embed(inner, id);
            if let Some(row) = self.row_mut(id) {
                row.detail.set_embedded(inner);
            }
        }
        Ok(id.index)
    }

    /// Gives labels that all edges go along; nodes of a cycle come last.
    fn put_in_order(&mut self, nodes: &[Index], edges: &[(CUgraphNode, CUgraphNode, EdgeKind)]) {
        let ends = edges.iter().filter_map(|&(from, to, _)| Some((self.find(from)?, self.find(to)?)));
        let ends: Vec<(Index, Index)> = ends.collect();
        let mut labels: Vec<u64> = nodes.iter().filter_map(|&index| Some(self.at(index)?.label)).collect();
        labels.sort_unstable();
        // Nodes without a way between them may have had the same.
        for place in 1..labels.len() {
            labels[place] = labels[place].max(labels[place - 1] + 1);
        }
        self.relabel(in_order(nodes, &ends).into_iter().zip(labels).collect());
    }
}

/// The nodes, each after those that an edge leads from, else in their own order.
fn in_order(nodes: &[Index], edges: &[(Index, Index)]) -> Vec<Index> {
    let place: HashMap<Index, usize> = nodes.iter().enumerate().map(|(place, node)| (*node, place)).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut waits_for = vec![0_usize; nodes.len()];
    for (from, to) in edges {
        if let (Some(&from), Some(&to)) = (place.get(from), place.get(to)) {
            after[from].push(to);
            waits_for[to] += 1;
        }
    }
    let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|&node| waits_for[node] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    let mut done = vec![false; nodes.len()];
    while let Some(node) = ready.pop_first() {
        order.push(nodes[node]);
        done[node] = true;
        for &next in &after[node] {
            waits_for[next] -= 1;
            if waits_for[next] == 0 {
                ready.insert(next);
            }
        }
    }
    order.extend((0..nodes.len()).filter(|&node| !done[node]).map(|node| nodes[node]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_put_in_order() {
        assert_eq!(in_order(&[3, 5, 7], &[]), [3, 5, 7]);
        assert_eq!(in_order(&[3, 5, 7], &[(7, 3), (3, 5)]), [7, 3, 5]);
        assert_eq!(in_order(&[3, 5, 7, 9], &[(5, 7), (7, 5), (9, 3)]), [9, 3, 5, 7]);
    }
}
