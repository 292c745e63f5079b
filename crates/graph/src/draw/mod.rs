//! Drawings of graphs: DOT text, SVG pictures, the driver's own dump.
//!
//! A [drawing] of the graph as plain data is collected under the lock; the writers of
//! pictures know nothing else.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`drawing`], [`collect`] | the drawing, and how it is read from a graph |
//! | [`summary`] | a node's parameters in one line |
//! | [`style`] | colours and strokes, common to all pictures |
//! | [`dot`] | DOT text: `Graph::to_dot` |
//! | `svg` | SVG pictures: `Graph::to_svg`, with the feature `svg` |
//! | [`debug_dot`] | the driver's dump: `Graph::debug_dot` |

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
    /// The graph as DOT text for Graphviz: a box for each node with its name and parameters, a
    /// cluster for each embedded graph, and the edges.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.dot", graph.to_dot()?)?; // then: dot -Tsvg graph.dot -o graph.svg
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphGetNodes` and `cuGraphGetEdges` (CUDA 10.0). [`debug_dot`](Self::debug_dot)
    /// writes the driver's own dump.
    ///
    /// # Errors
    /// The driver fails to list nodes or edges.
    #[doc(alias = "graphviz")]
    #[doc(alias = "cudaGraphDebugDotPrint")]
    pub fn to_dot(&self) -> Result<String> {
        let drawing = collect::collect(&mut self.enter()?)?;
        Ok(dot::Dot(&drawing).to_string())
    }
}
