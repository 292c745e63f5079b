//! The call of the layout library: boxes and edges in, positions and routes out.

use graphlay::{
    BranchStyle, CrossPlacement, Direction, Effort, Graph, GraphBuilder, Layout, LayoutOptions, Limits,
    NodeId, PortSides, Size,
};

/// The gap between boxes of a row.
pub(crate) const GAP: f64 = 26.0;
/// The gap between parallel segments of edges, and so the least length of their ends.
pub(crate) const LANE: f64 = 8.0;
/// The preferred ratio of width to height.
pub(crate) const ASPECT: f64 = 1.5;
/// A picture wider than this may be better laid out from left to right.
const WIDE: f64 = 3000.0;
const MOST_NODES: usize = 20_000;
const MOST_EDGES: usize = 40_000;

/// How much time the library spends on a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quality {
    Best,
    /// Without repair of routes, which takes time quadratic in the edges at a node.
    Fast,
    /// Without everything that is slow on dense graphs.
    Coarse,
}

/// Boxes by their sizes, and edges by the positions of their ends.
pub(crate) struct LayoutInput {
    pub(crate) sizes: Vec<(f64, f64)>,
    pub(crate) edges: Vec<(usize, usize)>,
}

/// Lays out from the top down or, if that gets much too wide, from left to right; `None` if there
/// is too much to lay out.
pub(crate) fn place(input: &LayoutInput) -> Option<Layout> {
    let graph = input.graph();
    let down = input.place(&graph, Direction::TopBottom)?;
    let (width, height) = (down.bounds.width(), down.bounds.height());
    if width < WIDE || width < 2.0 * ASPECT * height {
        return Some(down);
    }
    let right = input.place(&graph, Direction::LeftRight)?;
    let longer = |layout: &Layout| layout.bounds.width().max(layout.bounds.height() * ASPECT);
    Some(if longer(&right) < longer(&down) { right } else { down })
}

impl LayoutInput {
    fn graph(&self) -> Graph {
        let mut builder = GraphBuilder::new();
        for &(width, height) in &self.sizes {
            builder.add_box(Size::new(width, height));
        }
        for &(from, to) in &self.edges {
            builder.connect(NodeId(from as u32), NodeId(to as u32));
        }
        builder.build()
    }

    /// The layout of the best quality that takes well under a second for this input. The time
    /// depends above all on how many layers edges cross, which the library finds out first.
    fn place(&self, graph: &Graph, direction: Direction) -> Option<Layout> {
        let boxes = self.sizes.len();
        let qualities = [(Quality::Best, 600), (Quality::Fast, boxes.max(1000)), (Quality::Coarse, 60_000)];
        let is_large = boxes > 400 || self.most_neighbours() > 48;
        qualities.into_iter().filter(|(quality, _)| !(is_large && *quality == Quality::Best)).find_map(
            |(quality, most)| {
                let mut options = self.options(quality, direction);
                options.limits = Limits {
                    max_nodes: Some(MOST_NODES),
                    max_edges: Some(MOST_EDGES),
                    max_dummies: Some(most),
                };
                graphlay::layout(graph, &options).ok()
            },
        )
    }

    fn most_neighbours(&self) -> usize {
        let mut neighbours = vec![0_usize; self.sizes.len()];
        self.edges.iter().flat_map(|(from, to)| [*from, *to]).for_each(|end| neighbours[end] += 1);
        neighbours.into_iter().max().unwrap_or(0)
    }

    fn options(&self, quality: Quality, direction: Direction) -> LayoutOptions {
        let mut options = LayoutOptions::layered_default();
        options.direction = direction;
        options.spacing.layer_gap = 44.0;
        options.spacing.node_gap = GAP;
        options.spacing.dummy_gap = 18.0;
        options.spacing.port_gap = 14.0;
        options.spacing.isolated_gap = GAP / 2.0;
        options.spacing.isolated_max_columns = self.columns_of_isolated();
        options.routing.lane_gap = LANE;
        options.routing.port_sides = PortSides::FacingOnly;
        options.coords.branch_style = BranchStyle::Free;
        options.wrap.viewport_aspect = ASPECT;
        options.tuning.wrap.max_rows = 40;
        options.tuning.wrap.max_cut_edges = 16;
        let tuning = &mut options.tuning;
        if self.sizes.len() > 120 {
            tuning.order.kick_rounds = 0;
        }
        if quality != Quality::Best {
            options.effort = Effort::Fast;
            options.coords.branch_bands = false;
            tuning.routing.overlap_repair_rounds = 0;
            tuning.routing.port_relax_rounds = 0;
        }
        if quality == Quality::Coarse {
            options.coords.placement = CrossPlacement::BrandesKoepf;
            tuning.routing.step_flatten = 0.0;
            tuning.order.chain_lane_rounds = 0;
            tuning.order.balance_rounds = 0;
            tuning.order.sifting_max_work = 1000;
            tuning.coords.flatten_room = 0;
            tuning.coords.main_path_room = 0;
        }
        options
    }

    /// The number of columns of the grid for boxes without edges.
    fn columns_of_isolated(&self) -> usize {
        let mut is_isolated = vec![true; self.sizes.len()];
        self.edges.iter().flat_map(|(from, to)| [*from, *to]).for_each(|end| is_isolated[end] = false);
        let isolated = || self.sizes.iter().zip(&is_isolated).filter(|(_, is)| **is).map(|(size, _)| size);
        let area: f64 = isolated().map(|(width, height)| (width + GAP) * (height + GAP)).sum();
        let widest = isolated().map(|(width, _)| width + GAP).fold(GAP, f64::max);
        ((area * ASPECT).sqrt() / widest).ceil().max(1.0) as usize
    }
}
