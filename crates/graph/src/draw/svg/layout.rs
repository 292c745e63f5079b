//! Where everything of a drawing goes.

use crate::draw::drawing::{Drawing, DrawnEdgeKind, DrawnNode};
use crate::draw::svg::engine::{ASPECT, GAP, LayoutInput, place};
use crate::draw::svg::fold::{Branches, Chain, Folded, Unit, fold};
use crate::draw::svg::node_text::{BAR, NodeText, PAD};
use crate::draw::svg::text::{shortened, width};

/// Between boxes of a branch in a block.
const STEP: f64 = 30.0;
/// Between rows of branches in a block.
const ROW_GAP: f64 = 52.0;
/// Inside of the frame of a block and of a child.
pub(crate) const FRAME_PAD: f64 = 14.0;
/// For the caption of a frame.
pub(crate) const CAPTION: f64 = 20.0;
pub(crate) const CAPTION_SIZE: f64 = 10.5;
const LONGEST_CAPTION: usize = 48;
/// Alike branches wider than this go into rows.
const WIDEST: f64 = 2400.0;
/// A drawing with too much in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge {
    pub(crate) nodes: usize,
    pub(crate) edges: usize,
}

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

/// A drawing laid out, from its top left corner.
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

/// A node, at its place.
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
    /// On the sheet of the node.
    pub(crate) rect: Rect,
    /// Where its own sheet begins, on the sheet of the node.
    pub(crate) origin: Point,
    pub(crate) sheet: Sheet,
}

/// Around alike branches, or a run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Frame {
    pub(crate) rect: Rect,
    pub(crate) caption: String,
    pub(crate) is_chain: bool,
}

/// An edge, on its way from the first node's or frame's border to the second's.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Route {
    pub(crate) points: Vec<Point>,
    pub(crate) kind: DrawnEdgeKind,
    /// The nodes at its ends by position; of those in a frame, the first.
    pub(crate) ends: (usize, usize),
    /// How many edges it stands for.
    pub(crate) count: usize,
}

/// Lays out a drawing and those in it.
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

/// What the library gets to place: a node, a block or a run.
#[derive(Default)]
struct Piece {
    width: f64,
    height: f64,
    /// Nodes by position, from the piece's corner.
    inside: Vec<(usize, Rect)>,
    routes: Vec<Route>,
    caption: Option<String>,
    is_chain: bool,
}

impl Piece {
    fn of(unit: &Unit, boxes: &[NodeBox], folded: &Folded) -> Self {
        match unit {
            Unit::Node(node) => {
                let rect = boxes[*node].rect;
                let (width, height) = (rect.width, rect.height);
                Self { width, height, inside: vec![(*node, rect)], ..Self::default() }
            }
            Unit::Branches(group) => Self::of_branches(group, boxes, folded),
            Unit::Chain(chain) => Self::of_chain(chain, boxes, folded),
        }
    }

    /// From the top down in columns, so many that it comes to the shape that pictures have.
    fn of_chain(chain: &Chain, boxes: &[NodeBox], folded: &Folded) -> Self {
        let rect = |node: usize| boxes[node].rect;
        let area: f64 =
            chain.nodes.iter().map(|&node| (rect(node).width + GAP) * (rect(node).height + STEP)).sum();
        let target = (area / ASPECT).sqrt();
        let caption = chain.has_edges.then(|| format!("{} nodes, one after the other", chain.nodes.len()));
        let (pad, head) = if chain.has_edges { (FRAME_PAD, CAPTION) } else { (0.0, 0.0) };
        let mut piece = Self { caption, is_chain: true, ..Self::default() };
        // Above the columns and below each is room for an edge to the next column.
        let top = pad + head + STEP / 2.0;
        let (mut left, mut start) = (pad, 0);
        let mut before = None;
        while start < chain.nodes.len() {
            let mut height = 0.0;
            let fits = |&node: &usize| {
                let is_first = height == 0.0;
                height += rect(node).height + STEP;
                is_first || height - STEP <= target
            };
            let column: Vec<usize> = chain.nodes[start..].iter().copied().take_while(fits).collect();
            start += column.len();
            let width = column.iter().map(|&node| rect(node).width).fold(0.0, f64::max);
            let bottom =
                piece.put_branch(&column, Rect { x: left, y: top, width, height: 0.0 }, boxes, folded);
            let centre = left + width / 2.0;
            if let (Some((last, from)), Some(&first)) = (before, column.first()) {
                piece.join_columns(
                    (last, from),
                    (first, Point { x: centre, y: top }),
                    left - GAP / 2.0,
                    folded,
                );
            }
            before = column.last().map(|&last| (last, Point { x: centre, y: bottom }));
            piece.height = piece.height.max(bottom + STEP / 2.0 + pad);
            left += width + GAP;
        }
        let caption_width = piece.caption.as_deref().map_or(0.0, |caption| width(caption, CAPTION_SIZE));
        piece.width = (left - GAP + pad).max(caption_width + 2.0 * pad);
        piece
    }

    /// The edge from the foot of a column up to the head of the next, between both.
    fn join_columns(&mut self, from: (usize, Point), to: (usize, Point), between: f64, folded: &Folded) {
        let ((last, foot), (first, head)) = (from, to);
        let Some(kind) = folded.inner.get(&(last, first)) else { return };
        let (low, high) = (foot.y + STEP / 2.0, head.y - STEP / 2.0);
        let turns = [(foot.x, low), (between, low), (between, high), (head.x, high)];
        let turns = turns.map(|(x, y)| Point { x, y });
        let points = [foot].into_iter().chain(turns).chain([head]).collect();
        self.routes.push(Route { points, kind: kind.clone(), ends: (last, first), count: 1 });
    }

    /// Branches in rows from left to right.
    fn of_branches(group: &Branches, boxes: &[NodeBox], folded: &Folded) -> Self {
        let rect = |node: &usize| boxes[*node].rect;
        let widths: Vec<f64> = group
            .branches
            .iter()
            .map(|branch| branch.iter().map(|node| rect(node).width).fold(0.0, f64::max))
            .collect();
        let heights: Vec<f64> = group
            .branches
            .iter()
            .map(|branch| branch.iter().map(|node| rect(node).height + STEP).sum::<f64>() - STEP)
            .collect();
        let area: f64 =
            widths.iter().zip(&heights).map(|(width, height)| (width + GAP) * (height + GAP)).sum();
        let target = (area * ASPECT).sqrt();
        let mean = widths.iter().map(|width| width + GAP).sum::<f64>() / widths.len() as f64;
        let per_row = ((target / mean).round() as usize).clamp(1, widths.len());
        // The last row is not to be much shorter than the others.
        let per_row = widths.len().div_ceil(widths.len().div_ceil(per_row));
        let column = |place: usize| widths.iter().skip(place).step_by(per_row).copied().fold(0.0, f64::max);
        let columns: Vec<f64> = (0..per_row).map(column).collect();
        let are_single = group.branches.iter().all(|branch| branch.len() == 1);
        let (kind, row_gap) = if are_single { ("nodes", GAP) } else { ("branches", ROW_GAP) };
        let caption =
            group.has_edges.then(|| format!("{} {kind}, each between the same nodes", group.branches.len()));
        let (pad, head) = if group.has_edges { (FRAME_PAD, CAPTION) } else { (0.0, 0.0) };

        let mut piece = Self { caption, ..Self::default() };
        let mut top = pad + head;
        let rows = group.branches.chunks(per_row).zip(heights.chunks(per_row));
        for (row, heights) in rows {
            let mut left = pad;
            for (branch, width) in row.iter().zip(&columns) {
                piece.put_branch(branch, Rect { x: left, y: top, width: *width, height: 0.0 }, boxes, folded);
                left += width + GAP;
            }
            piece.width = piece.width.max(left - GAP + pad);
            top += heights.iter().copied().fold(0.0, f64::max) + row_gap;
        }
        piece.height = top - row_gap + pad;
        let caption_width = piece.caption.as_deref().map_or(0.0, |caption| width(caption, CAPTION_SIZE));
        piece.width = piece.width.max(caption_width + 2.0 * pad);
        piece
    }

    /// A branch from the top of a column: in the middle of it, so that its edges are straight, or
    /// if it has none, at the left. Gives where it ends.
    fn put_branch(&mut self, branch: &[usize], column: Rect, boxes: &[NodeBox], folded: &Folded) -> f64 {
        let mut y = column.y;
        let centre = column.x + column.width / 2.0;
        for (number, &node) in branch.iter().enumerate() {
            let Rect { width, height, .. } = boxes[node].rect;
            if number > 0 {
                let before = branch[number - 1];
                if let Some(kind) = folded.inner.get(&(before, node)) {
                    let points = vec![Point { x: centre, y: y - STEP }, Point { x: centre, y }];
                    self.routes.push(Route { points, kind: kind.clone(), ends: (before, node), count: 1 });
                }
            }
            let x = if branch.len() == 1 { column.x } else { centre - width / 2.0 };
            self.inside.push((node, Rect { x, y, width, height }));
            y += height + STEP;
        }
        y - STEP
    }

    fn put(self, corner: Point, sheet: &mut Sheet, rects: &mut [Option<Rect>]) {
        for (node, rect) in self.inside {
            rects[node] = Some(Rect { x: rect.x + corner.x, y: rect.y + corner.y, ..rect });
        }
        for mut route in self.routes {
            for point in &mut route.points {
                point.x += corner.x;
                point.y += corner.y;
            }
            sheet.routes.push(route);
        }
        if let Some(caption) = self.caption {
            let rect = Rect { x: corner.x, y: corner.y, width: self.width, height: self.height };
            sheet.frames.push(Frame { rect, caption, is_chain: self.is_chain });
        }
    }
}

impl Sheet {
    fn noting(note: String) -> Self {
        let (width, height) = (width(&note, CAPTION_SIZE), CAPTION);
        Self { width, height, note: Some(note), ..Self::default() }
    }
}

impl NodeBox {
    fn moved_to(mut self, rect: Rect) -> Self {
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

/// A node with the graphs in it, its corner at the origin.
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
