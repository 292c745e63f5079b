//! Queries whether edges exist, and of which kind they are.

use std::collections::HashMap;

use super::query::{Neighbour, Way};
use crate::edge_kind::EdgeKind;
use crate::error::Result;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

use cuda_sys::CUgraphNode;

/// The two ends of an edge that may exist.
pub(crate) type Ends = (NodeId, NodeId);

/// If a node has this many times more neighbours than are asked about, the nodes at the other ends
/// are queried instead, provided that they have few.
const MANY: usize = 32;

impl GraphGuard<'_> {
    /// The kind of the edge between two existing nodes; `None` if there is no edge.
    pub(crate) fn kind_of(&self, from: NodeId, to: NodeId) -> Result<Option<EdgeKind>> {
        Ok(self.kinds_of(&[(from, to)])?.pop().flatten())
    }

    /// The kinds of the edges between pairs of existing nodes, each pair given once; `None` where
    /// there is no edge.
    ///
    /// One query for each node that an edge would enter, if that node has few edges or many of its
    /// edges are asked about; otherwise the nodes that the edges would leave are queried.
    pub(crate) fn kinds_of(&self, pairs: &[Ends]) -> Result<Vec<Option<EdgeKind>>> {
        let mut kinds = vec![None; pairs.len()];
        let mut entering: HashMap<NodeId, Vec<usize>> = HashMap::new();
        for (place, (_, to)) in pairs.iter().enumerate() {
            entering.entry(*to).or_default().push(place);
        }
        for (to, places) in entering {
            let mut from = HashMap::with_capacity(places.len());
            for place in places {
                from.insert(self.raw_of(pairs[place].0)?, place);
            }
            self.kinds_to(self.raw_of(to)?, &from, &mut kinds)?;
        }
        Ok(kinds)
    }

    /// The kinds of the edges that enter one node. `from` maps the nodes at their other ends to
    /// places in `kinds`.
    fn kinds_to(
        &self,
        to: CUgraphNode,
        from: &HashMap<CUgraphNode, usize>,
        kinds: &mut [Option<EdgeKind>],
    ) -> Result<()> {
        let mut note = |neighbours: &[Neighbour]| {
            for (node, kind) in neighbours {
                if let Some(&place) = from.get(node) {
                    kinds[place] = Some(*kind);
                }
            }
        };
        if let Some(neighbours) = self.few_neighbours(to, Way::In)? {
            note(&neighbours);
            return Ok(());
        }
        let count = self.degree(to, Way::In)?;
        if count > MANY * from.len()
            && let Some(found) = self.kinds_from(to, from, count)?
        {
            found.into_iter().for_each(|(node, kind)| note(&[(node, kind)]));
            return Ok(());
        }
        note(&self.many_neighbours(to, Way::In, count)?);
        Ok(())
    }

    /// The same, asked of the nodes that the edges would leave. `None` if one of them has more
    /// edges than `to`.
    fn kinds_from(
        &self,
        to: CUgraphNode,
        from: &HashMap<CUgraphNode, usize>,
        count: usize,
    ) -> Result<Option<Vec<Neighbour>>> {
        let mut found = Vec::new();
        for &node in from.keys() {
            let neighbours = match self.few_neighbours(node, Way::Out)? {
                Some(few) => few.into_vec(),
                None => match self.degree(node, Way::Out)? {
                    more if more > count => return Ok(None),
                    degree => self.many_neighbours(node, Way::Out, degree)?,
                },
            };
            let edge = neighbours.into_iter().find(|(neighbour, _)| *neighbour == to);
            found.extend(edge.map(|(_, kind)| (node, kind)));
        }
        Ok(Some(found))
    }

    /// The raw node of a record.
    pub(crate) fn raw_of(&self, id: NodeId) -> Result<CUgraphNode> {
        let raw = self.record(id).map(|record| record.raw.0);
        raw.ok_or_else(|| self.removed(id))
    }
}
