//! The graph as the cycle search sees it, queried from the driver.

use std::collections::HashSet;

use smallvec::SmallVec;

use super::change::Link;
use super::query::Way;
use crate::error::{EdgeError, Error, InteropError, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::toposort::{self, Index, Neighbours, Verdict};

/// Nodes with their new labels.
pub(crate) type Labels = Vec<(Index, u64)>;

/// New edges, mostly one.
type Pairs = SmallVec<[(Index, Index); 2]>;

/// Stands for the node to be added. No state has that many records.
const NEW: Index = Index::MAX;

impl GraphGuard<'_> {
    /// The new labels after some edges are removed and others added.
    ///
    /// # Errors
    /// [`EdgeError::Cycle`], if the new edges close a cycle.
    pub(crate) fn plan(&mut self, remove: &[Link], add: &[Link]) -> Result<Labels> {
        let pairs: Pairs = add.iter().map(|link| (link.from.index, link.to.index)).collect();
        self.admit(remove, &pairs).map(|(labels, _)| labels)
    }

    /// The new labels after a node is added after some nodes and before others, and the node's own
    /// label.
    pub(crate) fn plan_new(
        &mut self,
        after: impl Iterator<Item = NodeId>,
        before: impl Iterator<Item = NodeId>,
        remove: &[Link],
    ) -> Result<(Labels, u64)> {
        let after = after.map(|node| (node.index, NEW));
        let pairs: Pairs = after.chain(before.map(|node| (NEW, node.index))).collect();
        let (mut labels, newest) = self.admit(remove, &pairs)?;
        let own = labels.iter().position(|(node, _)| *node == NEW);
        let own = own.map_or(newest, |place| labels.swap_remove(place).1);
        Ok((labels, own))
    }

    /// The new labels, and the label that the node to be added has in the search.
    fn admit(&mut self, remove: &[Link], pairs: &[(Index, Index)]) -> Result<(Labels, u64)> {
        let gone: HashSet<_> = remove.iter().map(|link| (link.from.index, link.to.index)).collect();
        loop {
            let newest = self.next_label();
            let verdict = toposort::admit(&mut View { guard: self, gone: &gone, newest }, pairs)?;
            match verdict {
                // Nodes that other code added were met, and have got labels with all others.
                _ if self.next_label() != newest => {}
                Verdict::Fits(labels) => return Ok((labels, newest)),
                Verdict::Cycle(path) => {
                    let path = path.into_iter().map(|index| self.name_at(index)).collect();
                    return Err(Error::Edge(EdgeError::Cycle { path }));
                }
            }
        }
    }

    fn name_at(&self, index: Index) -> String {
        match self.id(index) {
            Some(id) => self.name(id).into_string(),
            None => "the new node".to_owned(),
        }
    }
}

/// The graph without some edges.
struct View<'v, 'g> {
    guard: &'v mut GraphGuard<'g>,
    gone: &'v HashSet<(Index, Index)>,
    newest: u64,
}

impl View<'_, '_> {
    fn neighbours(&mut self, node: Index, way: Way) -> Result<Vec<Index>> {
        if node == NEW {
            return Ok(Vec::new());
        }
        let raw = self
            .guard
            .at(node)
            .map(|record| record.raw.0)
            .ok_or(Error::Interop(InteropError::UnknownNode { raw: 0 }))?;
        let neighbours = self.guard.neighbours(raw, way)?;
        let mut indices = Vec::with_capacity(neighbours.len());
        for (raw, _) in neighbours {
            indices.push(self.guard.index(raw)?);
        }
        if !self.gone.is_empty() {
            indices.retain(|&neighbour| {
                !self.gone.contains(&match way {
                    Way::In => (neighbour, node),
                    Way::Out => (node, neighbour),
                })
            });
        }
        Ok(indices)
    }
}

impl Neighbours for View<'_, '_> {
    type Error = Error;

    fn label(&self, node: Index) -> u64 {
        if node == NEW { self.newest } else { self.guard.at(node).map_or(0, |record| record.label) }
    }

    fn successors(&mut self, node: Index) -> Result<Vec<Index>> {
        self.neighbours(node, Way::Out)
    }

    fn predecessors(&mut self, node: Index) -> Result<Vec<Index>> {
        self.neighbours(node, Way::In)
    }
}
