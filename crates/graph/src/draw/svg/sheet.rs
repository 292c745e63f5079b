//! A drawing laid out: boxes, frames and routes at their places.

use crate::draw::drawing::DrawnEdgeKind;
use crate::draw::svg::node_text::NodeText;
use crate::draw::svg::text::width;

/// The room inside of a frame or child graph, around its contents.
pub(crate) const FRAME_PAD: f64 = 14.0;
/// The height of a caption.
pub(crate) const CAPTION: f64 = 20.0;
pub(crate) const CAPTION_SIZE: f64 = 10.5;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A drawing laid out, with its top left corner at the origin.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sheet {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) boxes: Vec<NodeBox>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) routes: Vec<Route>,
    /// Remarks in place of nodes.
    pub(crate) note: Option<String>,
}

/// A node at its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NodeBox {
    /// Its position in the drawing.
    pub(crate) node: usize,
    pub(crate) text: NodeText,
    pub(crate) rect: Rect,
    pub(crate) children: Vec<ChildBox>,
}

/// A graph in a node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ChildBox {
    /// Its position among the graphs in the node.
    pub(crate) number: usize,
    pub(crate) caption: String,
    /// Its frame, on the sheet of the node.
    pub(crate) rect: Rect,
    /// The corner of its own sheet, on the sheet of the node.
    pub(crate) origin: Point,
    pub(crate) sheet: Sheet,
}

/// A frame around branches or a chain.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Frame {
    pub(crate) rect: Rect,
    pub(crate) caption: String,
    pub(crate) is_chain: bool,
}

/// An edge on its way from the border of the first node or frame to the border of the second.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Route {
    pub(crate) points: Vec<Point>,
    pub(crate) kind: DrawnEdgeKind,
    /// The nodes at its ends, by position; for a frame, the first node in it.
    pub(crate) ends: (usize, usize),
    /// How many edges it stands for.
    pub(crate) count: usize,
}

impl Sheet {
    pub(crate) fn noting(note: String) -> Self {
        let (width, height) = (width(&note, CAPTION_SIZE), CAPTION);
        Self { width, height, note: Some(note), ..Self::default() }
    }
}

impl NodeBox {
    pub(crate) fn moved_to(mut self, rect: Rect) -> Self {
        for child in &mut self.children {
            for (x, y) in [(&mut child.rect.x, &mut child.rect.y), (&mut child.origin.x, &mut child.origin.y)]
            {
                *x += rect.x;
                *y += rect.y;
            }
        }
        Self { rect, ..self }
    }
}
