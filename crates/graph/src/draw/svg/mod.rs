//! A graph as an SVG picture.

mod engine;
mod fold;
mod layout;
mod legend;
mod node_text;
mod overlay;
mod picture;
mod text;
mod xml;

#[cfg(test)]
mod tests;

use layout::TooLarge;
use overlay::Overlay;

use super::collect::collect;
use super::drawing::Drawing;
use crate::check::Report;
use crate::error::{Error, Result};
use crate::graph::Graph;

impl Graph {
    /// The graph as a picture, an SVG file's text: a box for each node with its kind, its name and
    /// what it does, embedded graphs as boxes inside of their nodes', kinds of nodes and edges told
    /// apart by colour and otherwise, and a legend. Needs the feature `svg`, which is off by
    /// default, since the layout library behind it is large; no other program is needed.
    ///
    /// Many alike branches, between the same nodes, are put into one frame, and what leads to the
    /// frame leads to each of them. So is the inside of a chain of more than 100 nodes, in columns
    /// from left to right; what leads to that frame leads to the first of them. Long text is cut in
    /// its middle; the box's tooltip has all of it. The same graph gives the same picture.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.svg", graph.to_svg()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Some hundred nodes take milliseconds, 5000 that are in no frame about a second, and longer
    /// where many edges cross many rows; the graph can be used by others meanwhile.
    ///
    /// Stands on `cuGraphGetNodes` and `cuGraphGetEdges`, CUDA 10.0.
    ///
    /// # Errors
    /// [`Error::PictureTooLarge`](crate::Error::PictureTooLarge) above 20 000 boxes that are in no
    /// frame, 40 000 edges, or 60 000 crossings of rows by edges, in one graph of the hierarchy;
    /// and what the driver answers.
    pub fn to_svg(&self) -> Result<String> {
        // The lock is given back before the layout.
        let drawing = collect(&mut self.enter()?)?;
        picture(&drawing, &Overlay::default())
    }

    /// The picture of [`to_svg`](Self::to_svg) with what a [check](Self::check) found: nodes about
    /// which something is said have a red border and a mark, racing ones are connected by a red
    /// dashed line, and the tooltips of all say what is wrong. What is a note only is amber.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.svg", graph.to_svg_with(&graph.check()?)?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Nodes that were removed since, and those of other graphs, are left out.
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

fn picture(drawing: &Drawing, overlay: &Overlay) -> Result<String> {
    picture::svg(drawing, overlay)
        .map_err(|TooLarge { nodes, edges }| Error::PictureTooLarge { nodes, edges })
}
