//! The place of everything in a drawing.

use crate::draw::drawing::{Drawing, DrawnNode};
use crate::draw::svg::engine::{GAP, LayoutInput, place};
use crate::draw::svg::fold::fold;
use crate::draw::svg::node_text::{BAR, NodeText, PAD};
use crate::draw::svg::piece::Piece;
use crate::draw::svg::sheet::{
    CAPTION, CAPTION_SIZE, ChildBox, FRAME_PAD, NodeBox, Point, Rect, Route, Sheet,
};
use crate::draw::svg::text::{shortened, width};

const LONGEST_CAPTION: usize = 48;
/// Alike branches that are wider than this side by side are folded.
const WIDEST: f64 = 2400.0;

/// The size of a drawing that is too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge {
    pub(crate) nodes: usize,
    pub(crate) edges: usize,
}

/// Lays out a drawing and the drawings in it.
pub(crate) fn lay_out(drawing: &Drawing) -> Result<Sheet, TooLarge> {
    if drawing.nodes.is_empty() {
        return Ok(Sheet::noting("no nodes".to_owned()));
    }
    let boxes = drawing.nodes.iter().enumerate().map(|(position, node)| node_box(position, node));
    let boxes = boxes.collect::<Result<Vec<_>, _>>()?;
    let folded = fold(drawing, |node| boxes[node].rect.width + GAP, WIDEST);
    let pieces: Vec<Piece> = folded.units.iter().map(|unit| Piece::of(unit, &boxes, &folded)).collect();
    let sizes = pieces.iter().map(|piece| (piece.width, piece.height)).collect();
    let edges = folded.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let Some(laid) = place(&LayoutInput { sizes, edges }) else {
        return Err(TooLarge { nodes: drawing.nodes.len(), edges: drawing.edges.len() });
    };
    let (left, top) = (laid.bounds.min.x, laid.bounds.min.y);
    let mut sheet = Sheet { width: laid.bounds.width(), height: laid.bounds.height(), ..Sheet::default() };
    let mut rects: Vec<Option<Rect>> = vec![None; boxes.len()];
    for (piece, placed) in pieces.into_iter().zip(&laid.nodes) {
        let corner = Point {
            x: placed.center.x - piece.width / 2.0 - left,
            y: placed.center.y - piece.height / 2.0 - top,
        };
        piece.put(corner, &mut sheet, &mut rects);
    }
    sheet.boxes =
        boxes.into_iter().zip(rects).filter_map(|(node, rect)| Some(node.moved_to(rect?))).collect();
    for (edge, route) in folded.edges.into_iter().zip(laid.edges) {
        let points = route.points.iter().map(|point| Point { x: point.x - left, y: point.y - top }).collect();
        sheet.routes.push(Route { points, kind: edge.kind, ends: edge.ends, count: edge.count });
    }
    Ok(sheet)
}

/// The box of a node with the graphs in it, its corner at the origin.
fn node_box(position: usize, node: &DrawnNode) -> Result<NodeBox, TooLarge> {
    let text = NodeText::of(node);
    let mut rect = Rect { width: text.width, height: text.height, ..Rect::default() };
    let mut children = Vec::with_capacity(node.children.len());
    let mut left = BAR + PAD;
    for (number, (label, drawing)) in node.children.iter().enumerate() {
        let sheet = lay_out(drawing)?;
        let caption = shortened(label, LONGEST_CAPTION);
        let head = if caption.is_empty() { FRAME_PAD } else { CAPTION + FRAME_PAD };
        let inner = sheet.width.max(width(&caption, CAPTION_SIZE));
        let child = Rect {
            x: left,
            y: text.height,
            width: inner + 2.0 * FRAME_PAD,
            height: head + sheet.height + FRAME_PAD,
        };
        let origin = Point { x: child.x + (child.width - sheet.width) / 2.0, y: child.y + head };
        left += child.width + PAD;
        rect.height = rect.height.max(text.height + child.height + PAD);
        children.push(ChildBox { number, caption, rect: child, origin, sheet });
    }
    rect.width = rect.width.max(left.max(text.width));
    Ok(NodeBox { node: position, text, rect, children })
}
