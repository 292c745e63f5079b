//! The stages of a host loop: what the device does between two actions of the host.

use crate::clone::flattened::FlatGraph;
use crate::edge_kind::EdgeKind;
use crate::error::{EdgeError, Error, Result};
use crate::state::guard::GraphGuard;
use crate::toposort::{self, Successors};

/// A part of a run: first the device runs its nodes, then the host acts.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// Nodes for the device, in topological order.
    pub(crate) device: Vec<usize>,
    /// The edges between these.
    pub(crate) edges: Vec<(usize, usize, EdgeKind)>,
    /// Nodes that the host decides about or enters.
    pub(crate) host: Vec<usize>,
}

impl FlatGraph {
    /// The stages, one after the other.
    ///
    /// A node belongs to the stage of its latest predecessor, or to the one behind it if the host
    /// acts on that predecessor.
    pub(crate) fn stages(&self, guard: &GraphGuard<'_>) -> Result<Vec<Stage>> {
        let edges = self.edges.iter().map(|&(from, to, _)| (from as u32, to as u32));
        let successors = Successors::new(self.nodes.len(), edges);
        let Some(order) = toposort::sort(&successors) else {
            let cycle = toposort::cycle(&successors).unwrap_or_default();
            let name = |node: u32| guard.name(self.nodes[node as usize].id).into_string();
            return Err(Error::Edge(EdgeError::Cycle { path: cycle.into_iter().map(name).collect() }));
        };
        let is_of_device = |node: usize| self.nodes[node].action.is_of_device();
        let mut stage_of = vec![0_usize; self.nodes.len()];
        let mut stages: Vec<Stage> = Vec::new();
        for node in order {
            let stage = stage_of[node as usize];
            let behind = stage + usize::from(!is_of_device(node as usize));
            for &next in successors.of(node) {
                stage_of[next as usize] = stage_of[next as usize].max(behind);
            }
            if stages.len() <= stage {
                stages.resize_with(stage + 1, Stage::default);
            }
            match is_of_device(node as usize) {
                true => stages[stage].device.push(node as usize),
                false => stages[stage].host.push(node as usize),
            }
        }
        for &(from, to, kind) in &self.edges {
            if is_of_device(from) && is_of_device(to) && stage_of[from] == stage_of[to] {
                stages[stage_of[from]].edges.push((from, to, kind));
            }
        }
        Ok(stages)
    }
}
