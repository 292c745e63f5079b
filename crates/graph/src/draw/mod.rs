//! Pictures of graphs.

mod collect;
mod dot;
mod drawing;
mod dump;
mod style;
mod summary;

#[cfg(feature = "svg")]
mod face;
#[cfg(feature = "svg")]
mod fold;
#[cfg(feature = "svg")]
mod layout;
#[cfg(feature = "svg")]
mod legend;
#[cfg(feature = "svg")]
mod overlay;
#[cfg(feature = "svg")]
mod place;
#[cfg(feature = "svg")]
mod svg;
#[cfg(feature = "svg")]
mod text;
#[cfg(feature = "svg")]
mod xml;

#[cfg(feature = "svg")]
#[cfg(test)]
mod tests;

pub use dump::DebugDotFlags;

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
    #[cfg(feature = "svg")]
    pub fn to_svg(&self) -> Result<String> {
        // The lock is given back before the layout.
        let drawing = collect::collect(&mut self.enter()?)?;
        picture(&drawing, &overlay::Overlay::default())
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
    #[cfg(feature = "svg")]
    pub fn to_svg_with(&self, report: &crate::Report) -> Result<String> {
        let (mut drawing, overlay) = {
            let mut guard = self.enter()?;
            let drawing = collect::collect(&mut guard)?;
            (drawing, overlay::Overlay::of(report, &guard))
        };
        overlay.mark(&mut drawing);
        picture(&drawing, &overlay)
    }
}

#[cfg(feature = "svg")]
fn picture(drawing: &drawing::Drawing, overlay: &overlay::Overlay) -> Result<String> {
    svg::svg(drawing, overlay)
        .map_err(|layout::TooLarge { nodes, edges }| crate::Error::PictureTooLarge { nodes, edges })
}
