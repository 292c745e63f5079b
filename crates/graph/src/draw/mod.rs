//! Drawings of graphs: DOT text, SVG pictures, the driver's own dump.
//!
//! A [drawing] of the graph as plain data is collected under the lock; the writers of
//! pictures know nothing else.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`drawing`], [`collect`] | the drawing, and how it is read from a graph |
//! | [`executable`] | the drawing of an executable, which may be shaped |
//! | [`summary`] | a node's parameters in one line |
//! | [`style`] | colours and strokes, common to all pictures |
//! | [`dot`] | DOT text: `Graph::to_dot` |
//! | `svg` | SVG pictures: `Graph::to_svg`, with the feature `svg` |
//! | [`debug_dot`] | the driver's dump: `Graph::debug_dot` |

mod collect;
mod debug_dot;
mod dot;
mod drawing;
mod executable;
mod style;
mod summary;

#[cfg(feature = "svg")]
mod svg;

pub use debug_dot::DebugDotFlags;

use crate::error::Result;
use crate::exec::GraphExec;
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

impl GraphExec {
    /// The graph that the executable was made of, as [`Graph::to_dot`] writes it: the graph of its
    /// own, if it was [shaped](crate::InstantiateOptions::shape), and the graph as drawn otherwise.
    ///
    /// Nodes have the parameters that they have in the graph now, and not those of updates of the
    /// executable. Kernels that shaping has put in place of other nodes say so.
    ///
    /// ```no_run
    /// # use cuda_graph::{InstantiateOptions, Shape};
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// let exec = graph.instantiate_with(InstantiateOptions::new().shape(Shape::Auto))?;
    /// std::fs::write("drawn.dot", graph.to_dot()?)?;
    /// std::fs::write("shaped.dot", exec.to_dot()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Graph::to_dot`]; [`NodeError::GraphRemoved`](crate::NodeError::GraphRemoved) if the
    /// graph was adopted and has no other handle.
    #[doc(alias = "graphviz")]
    pub fn to_dot(&self) -> Result<String> {
        Ok(dot::Dot(&executable::drawing_of(self)?).to_string())
    }
}
