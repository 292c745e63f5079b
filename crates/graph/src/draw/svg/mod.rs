//! SVG pictures of graphs.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`fold`] | alike branches and long chains, each folded into one unit |
//! | [`node_text`], [`text`] | the text in a node's box, and the room it takes |
//! | [`engine`] | the call of the layout library |
//! | [`layout`](mod@layout), [`piece`], [`sheet`] | the place of everything |
//! | [`overlay`], [`legend`] | findings of a check, and what boxes and lines mean |
//! | [`picture`](mod@picture), [`xml`] | the SVG text |

mod engine;
mod fold;
mod layout;
mod legend;
mod node_text;
mod overlay;
mod picture;
mod piece;
mod sheet;
mod text;
mod xml;

#[cfg(test)]
mod tests;

use layout::TooLarge;
use overlay::Overlay;

use super::collect::collect;
use super::drawing::Drawing;
use super::executable::drawing_of;
use crate::check::Report;
use crate::error::{DrawError, Error, Result};
use crate::exec::GraphExec;
use crate::graph::Graph;

impl Graph {
    /// The graph as an SVG picture, the text of a file: a box for each node with its type, name and
    /// parameters, embedded graphs as boxes within their nodes, the edges, and a legend.
    ///
    /// Types of nodes and edges differ in colour and in something else. Needs the feature `svg`,
    /// which is off by default since the layout library behind it is large; no other program is
    /// needed.
    ///
    /// Many alike branches between the same nodes share a frame; an edge to the frame leads to each
    /// of them. The inside of a chain of more than 100 nodes gets a frame, too, in columns from
    /// left to right; an edge to that frame leads to the first node. Long text is cut in its
    /// middle; the tooltip of the box has all of it. The same graph gives the same picture.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.svg", graph.to_svg()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A graph of some hundred nodes takes milliseconds, one of 5000 nodes outside of frames about
    /// a second, and longer if many edges cross many rows. Other threads can use the graph
    /// meanwhile.
    ///
    /// Calls `cuGraphGetNodes` and `cuGraphGetEdges` (CUDA 10.0).
    ///
    /// # Errors
    /// [`DrawError::PictureTooLarge`] for more than 20 000 boxes outside of frames, 40 000 edges,
    /// or 60 000 crossings of rows by edges, in one graph of the hierarchy. The driver fails to
    /// list nodes or edges.
    #[doc(alias = "picture")]
    #[doc(alias = "visualise")]
    pub fn to_svg(&self) -> Result<String> {
        // The lock is released before the layout.
        let drawing = collect(&mut self.enter()?)?;
        picture(&drawing, &Overlay::default())
    }

    /// The picture of [`to_svg`](Self::to_svg) with the findings of a [check](Self::check). Nodes
    /// in findings have a red border and a mark, racing nodes are connected by a red dashed line,
    /// and their tooltips tell what is wrong. Notes are amber.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.svg", graph.to_svg_with(&graph.check()?)?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Findings about nodes that were removed since, or about other graphs, are left out.
    ///
    /// # Errors
    /// As [`to_svg`](Self::to_svg).
    pub fn to_svg_with(&self, report: &Report) -> Result<String> {
        let (mut drawing, overlay) = {
            let mut guard = self.enter()?;
            let drawing = collect(&mut guard)?;
            (drawing, Overlay::of(report, &guard))
        };
        overlay.mark(&mut drawing);
        picture(&drawing, &overlay)
    }
}

impl GraphExec {
    /// The graph that the executable was made of, as [`Graph::to_svg`] draws it: the graph of its
    /// own, if it was [shaped](crate::InstantiateOptions::shape), and the graph as drawn otherwise;
    /// see [`to_dot`](Self::to_dot).
    ///
    /// # Errors
    /// As [`Graph::to_svg`] and [`to_dot`](Self::to_dot).
    #[doc(alias = "picture")]
    pub fn to_svg(&self) -> Result<String> {
        picture(&drawing_of(self)?, &Overlay::default())
    }
}

fn picture(drawing: &Drawing, overlay: &Overlay) -> Result<String> {
    picture::svg(drawing, overlay)
        .map_err(|TooLarge { nodes, edges }| Error::Draw(DrawError::PictureTooLarge { nodes, edges }))
}
