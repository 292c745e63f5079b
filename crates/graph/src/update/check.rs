//! Checking whether an executable would be updated from a graph.

use crate::error::wrong_context::ensure_spans;
use crate::error::{Error, NodeError, Refusal, Result};
use crate::exec::GraphExec;
use crate::exec::node_updates::Latest;
use crate::graph::Graph;
use crate::update::compare::differences;
use crate::update::whole::unpaired;

impl GraphExec {
    /// Everything for which an [update](Self::update) from a graph would be refused, node by node,
    /// in words. Empty if nothing is found. The executable is not changed.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, GraphExec, Result};
    /// # fn example(exec: &GraphExec, graph: &Graph) -> Result<()> {
    /// for refusal in exec.check_update(graph)? {
    ///     println!("{refusal}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// This is [`Graph::check_update`] with the graph of the executable, or of its last update, and
    /// with what the executable itself stands against: that kernels launch it, that nodes are
    /// disabled which decide about conditions, and that it is not known which nodes graph
    /// parameters are of. If nodes or edges of the executable's graph were changed since, there is
    /// nothing to compare with, and an update may be refused though nothing is found.
    ///
    /// Calls `cuGraphGetNodes` for each graph, and `cuGraphNodeGetDependencies` for each node (CUDA
    /// 10.0; 12.3 for edges that are not full).
    ///
    /// # Errors
    /// The errors of [`update`](Self::update), for which the driver need not be asked.
    #[doc(alias = "compare")]
    #[doc(alias = "diff")]
    #[doc(alias = "cuGraphExecUpdate")]
    #[doc(alias = "cudaGraphExecUpdate")]
    pub fn check_update(&self, graph: &Graph) -> Result<Vec<Refusal>> {
        if !graph.subgraph().is_root() {
            return Err(graph.refuse_embedded("compared"));
        }
        self.live()?;
        ensure_spans(self, graph, || "the graph to update from")?;
        let source = self.pair_with(graph)?;
        let mut found = Vec::new();
        {
            // Declared before the lock, so that nothing is dropped under it.
            let params;
            let mut guard = graph.enter()?;
            let source = source.taken_now(&guard, &self.updates);
            match self.refusal(&guard, &source) {
                Some(refusal) => found.push(refusal),
                None => {
                    guard.ensure_executable(graph, self.options())?;
                    found.extend(self.refusal_of_apart(&guard, &source)?);
                }
            }
            params = self.params_after_update(&guard, None, &source);
            match &params {
                Ok(params) => found.extend(self.disabled_fill(params.as_deref())),
                Err(_) => found.push(unpaired()),
            }
        }
        found.extend(self.differences_from(graph)?);
        Ok(found)
    }

    /// The differences between a graph and the one that the executable was made of, or updated from
    /// last. None are found if that one is not as it was.
    pub(super) fn differences_from(&self, graph: &Graph) -> Result<Vec<Refusal>> {
        let before = match self.updates.latest() {
            Latest::Own => self.source.graph(),
            Latest::Other(latest) => latest.source.graph(),
            Latest::OwnChanged => None,
        };
        let Some(before) = before.filter(|before| !before.is_in_same_hierarchy(graph)) else {
            return Ok(Vec::new());
        };
        let mut guards = match before.enter_with(graph) {
            // There is nothing to compare with.
            Err(Error::Node(NodeError::GraphMoved) | Error::Broken(_)) => return Ok(Vec::new()),
            guards => guards?,
        };
        let is_as_it_was = match self.updates.latest() {
            Latest::Own => self.updates.has_keys_as_they_were(&guards.ours),
            Latest::Other(latest) => latest.is_as_it_was(&guards.ours),
            Latest::OwnChanged => false,
        };
        match is_as_it_was {
            true => differences(&mut guards, |guard, id| self.updates.unchanged(guard, id)),
            false => Ok(Vec::new()),
        }
    }
}
