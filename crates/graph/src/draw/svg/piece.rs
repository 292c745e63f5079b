//! A unit of the layout, with its nodes at their places inside.

use crate::draw::svg::engine::{ASPECT, GAP};
use crate::draw::svg::fold::{Branches, Chain, Folded, Unit};
use crate::draw::svg::sheet::{CAPTION, CAPTION_SIZE, FRAME_PAD, Frame, NodeBox, Point, Rect, Route, Sheet};
use crate::draw::svg::text::width;

/// The gap between boxes of a branch or chain in a frame.
const STEP: f64 = 30.0;
/// The gap between rows of branches in a frame.
const ROW_GAP: f64 = 52.0;

/// One box for the layout library: a node, branches or a chain.
#[derive(Default)]
pub(crate) struct Piece {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The rectangles of its nodes by position, from the corner of the piece.
    inside: Vec<(usize, Rect)>,
    routes: Vec<Route>,
    caption: Option<String>,
    is_chain: bool,
}

impl Piece {
    /// A node, branches or a chain, as one box for the layout.
    pub(crate) fn of(unit: &Unit, boxes: &[NodeBox], folded: &Folded) -> Self {
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

    /// A chain from the top down in columns, as many as give the preferred shape.
    fn of_chain(chain: &Chain, boxes: &[NodeBox], folded: &Folded) -> Self {
        let rect = |node: usize| boxes[node].rect;
        let area: f64 =
            chain.nodes.iter().map(|&node| (rect(node).width + GAP) * (rect(node).height + STEP)).sum();
        let target = (area / ASPECT).sqrt();
        let caption = chain.has_edges.then(|| format!("{} nodes, one after the other", chain.nodes.len()));
        let (pad, head) = if chain.has_edges { (FRAME_PAD, CAPTION) } else { (0.0, 0.0) };
        let mut piece = Self { caption, is_chain: true, ..Self::default() };
        // Leaves room above the columns and below each for an edge to the next column.
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

    /// The edge from the foot of a column up to the head of the next, between the two.
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
        // Keeps the last row from being much shorter than the others.
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

    /// Puts a branch at the top of a column: centred, so that its edges are straight, or at the
    /// left if it has no edges. Returns where it ends.
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

    /// Puts the piece on a sheet, and enters the places of its nodes.
    pub(crate) fn put(self, corner: Point, sheet: &mut Sheet, rects: &mut [Option<Rect>]) {
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
