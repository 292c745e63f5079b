//! Pictures of graphs.

mod collect;
mod debug_dot;
mod dot;
mod drawing;
mod style;
mod summary;

#[cfg(feature = "svg")]
mod svg;

pub use debug_dot::DebugDotFlags;

use crate::error::Result;
use crate::graph::Graph;

impl Graph {
    /// The graph as DOT text: a box for each node with its name and what it does, embedded graphs
    /// as clusters, and its edges.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.dot", graph.to_dot()?)?; // then: dot -Tsvg graph.dot -o graph.svg
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stands on `cuGraphGetNodes` and `cuGraphGetEdges`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn to_dot(&self) -> Result<String> {
        let drawing = collect::collect(&mut self.enter()?)?;
        Ok(dot::Dot(&drawing).to_string())
    }
}
