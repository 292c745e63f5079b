//! Cloning graphs, and finding a node in a clone.

use std::collections::HashMap;

use super::payload::{KernelNode, Payload};
use super::store::{Graphs, Owner};
use crate::code::{Answer, INVALID_VALUE};
use crate::fault::crash;

impl Graphs {
    /// A clone of a graph, for the given owner. The graph holds nothing that forbids it.
    pub(crate) fn duplicate(&mut self, graph: u64, owner: Owner) -> Answer<u64> {
        let nodes = self.nodes_of(graph)?;
        let objects = self.graph(graph)?.objects.duplicate();
        let clone = self.create(owner);
        self.graph_mut(clone)?.objects = objects;
        let mut twin = HashMap::with_capacity(nodes.len());
        for node in &nodes {
            let payload = self.duplicate_payload(*node)?;
            let copied = self.insert(clone, &[], payload)?;
            if let Payload::Child(child) = self.node(copied)?.payload {
                self.graph_mut(child)?.owner = Owner::Child { node: copied, moved: false };
            }
            twin.insert(*node, copied);
            let (uid, copied_uid) = (self.node(*node)?.uid, self.node(copied)?.uid);
            self.graph_mut(clone)?.from_original.insert(uid, (copied, copied_uid));
        }
        // A cycle is cloned too, so the edges come when all nodes are there.
        for node in &nodes {
            let (dependencies, dependents) = {
                let node = self.node(*node)?;
                (node.dependencies.clone(), node.dependents.clone())
            };
            let of = |node: &u64| twin.get(node).copied().ok_or(INVALID_VALUE);
            let mut copied_dependencies = Vec::with_capacity(dependencies.len());
            for (dependency, edge) in &dependencies {
                copied_dependencies.push((of(dependency)?, *edge));
            }
            let copied_dependents: Answer<Vec<u64>> = dependents.iter().map(of).collect();
            let copied = self.node_mut(of(node)?)?;
            copied.dependencies = copied_dependencies;
            copied.dependents = copied_dependents?;
        }
        Ok(clone)
    }

    fn duplicate_payload(&mut self, node: u64) -> Answer<Payload> {
        Ok(match &self.node(node)?.payload {
            Payload::Kernel(kernel) => Payload::Kernel(KernelNode::new(kernel.spec.clone())),
            Payload::Copy(copy) => Payload::Copy(*copy),
            Payload::Fill(fill) => Payload::Fill(*fill),
            Payload::Host(callback) => Payload::Host(*callback),
            Payload::Child(child) => {
                let child = *child;
                Payload::Child(self.duplicate(child, Owner::User)?)
            }
            Payload::Empty => Payload::Empty,
            Payload::EventWait(event) => Payload::EventWait(*event),
            Payload::EventRecord(event) => Payload::EventRecord(*event),
            Payload::Alloc(_) | Payload::Free(_) | Payload::Conditional(_) => {
                return Err(crate::code::NOT_SUPPORTED);
            }
        })
    }

    /// The node of a clone that stands for a node of the original.
    pub(crate) fn find_in_clone(&self, original: u64, clone: u64) -> Answer<u64> {
        let graph = self.graph(clone)?;
        let Some(node) = self.nodes.get(original) else {
            if self.is_destroyed(original) {
                crash("a destroyed node is looked up in a clone");
            }
            return Err(INVALID_VALUE);
        };
        let (found, uid) = graph.from_original.get(&node.uid).copied().ok_or(INVALID_VALUE)?;
        // It may have been destroyed since, and its handle given to another node.
        if self.node(found)?.uid == uid { Ok(found) } else { Err(INVALID_VALUE) }
    }
}
