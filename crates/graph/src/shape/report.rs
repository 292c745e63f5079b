//! What shaping has done, and what it has left.

use core::fmt;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::footprint::{Footprint, WhyOpaque};
use crate::shape::by_data::dropped::WhyDropped;
use crate::shape::options::{Order, Shape};
use crate::shape::planning::figures::Figures;
use crate::shape::planning::report::PlanReport;
use crate::wording::Named;

/// What shaping has done to the graph of an executable, and what it has left and why. Its `Display`
/// is the whole report in words. Returned by
/// [`GraphExec::shape_report`](crate::GraphExec::shape_report).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeReport {
    shape: Shape,
    order: Order,
    outcome: Outcome,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    Shaped {
        before: ShapeFigures,
        after: ShapeFigures,
        notes: Vec<String>,
        dropped: Vec<DroppedEdge>,
    },
    /// The figures are of a graph that was looked at.
    AsDrawn {
        why: String,
        figures: Option<ShapeFigures>,
        notes: Vec<String>,
    },
}

/// The size of a graph. Nodes in child graphs count as nodes of the graph, and each child graph as
/// two empty nodes, before and behind them. A conditional node is one node; what its bodies hold is
/// not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ShapeFigures {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes that wait for no other, or for empty nodes alone: a launch starts each
    /// of them by itself.
    pub roots: usize,
    /// The number of edges.
    pub edges: usize,
    /// The number of nodes in the widest level: those that are as far from the roots.
    pub widest: usize,
    /// The number of nodes that the host submits at every launch: fills of less than 8 KiB, and
    /// copies with memory that is not the device's. Each costs the launch 0.65 to 3 µs.
    pub host_submitted: usize,
}

impl From<Figures> for ShapeFigures {
    fn from(figures: Figures) -> Self {
        let Figures { nodes, roots, edges, widest_level, host_submitted } = figures;
        Self { nodes, roots, edges, widest: widest_level, host_submitted }
    }
}

impl ShapeReport {
    /// Of the plans of a graph and of the bodies in it, each with the name of the body. If nothing
    /// is changed, nothing gains.
    pub(super) fn of<'p>(
        (shape, order): (Shape, Order),
        plans: impl Iterator<Item = (Option<String>, &'p PlanReport)>,
        ordered: OrderReport,
        is_changed: bool,
    ) -> Self {
        let OrderReport { dropped, mut notes } = ordered;
        let mut figures = None;
        for (body, report) in plans {
            figures.get_or_insert((report.before.into(), report.after.into()));
            let actions = report.actions.iter().map(ToString::to_string);
            notes.extend(actions.map(|action| within(body.as_deref(), action)));
        }
        let (before, after) = figures.unwrap_or_default();
        let outcome = match is_changed {
            true => Outcome::Shaped { before, after, notes, dropped },
            false => {
                let why = "no change would make it faster".to_owned();
                Outcome::AsDrawn { why, figures: Some(before), notes }
            }
        };
        Self { shape, order, outcome }
    }

    pub(super) fn as_drawn(shape: Shape, order: Order, why: impl Into<String>) -> Self {
        let outcome = Outcome::AsDrawn { why: why.into(), figures: None, notes: Vec::new() };
        Self { shape, order, outcome }
    }

    /// The shape that was asked for.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The order that was asked for.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// The drawn edges that no access needs, in no particular order. They are left out of the
    /// executable; two nodes of one may still be ordered, by others between them. None unless
    /// [`Order::ByData`] was asked for.
    #[must_use]
    pub fn dropped_edges(&self) -> &[DroppedEdge] {
        match &self.outcome {
            Outcome::Shaped { dropped, .. } => dropped,
            Outcome::AsDrawn { .. } => &[],
        }
    }

    /// Why the executable is as the graph was drawn; `None` if it was shaped.
    #[must_use]
    pub fn reason_to_leave(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Shaped { .. } => None,
            Outcome::AsDrawn { why, .. } => Some(why),
        }
    }

    /// The graph as drawn, with its child graphs expanded; `None` if it cannot be shaped.
    #[must_use]
    pub fn before(&self) -> Option<ShapeFigures> {
        match self.outcome {
            Outcome::Shaped { before, .. } => Some(before),
            Outcome::AsDrawn { figures, .. } => figures,
        }
    }

    /// The graph of the executable, with child graphs expanded; `None` if it cannot be shaped.
    #[must_use]
    pub fn after(&self) -> Option<ShapeFigures> {
        match self.outcome {
            Outcome::Shaped { after, .. } => Some(after),
            Outcome::AsDrawn { figures, .. } => figures,
        }
    }

    /// What was done, and what was left and why, a sentence each. Sentences about a body of a
    /// conditional node begin with its name.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        match &self.outcome {
            Outcome::Shaped { notes, .. } | Outcome::AsDrawn { notes, .. } => notes,
        }
    }
}

impl fmt::Display for ShapeReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::AsDrawn { why, .. } => write!(formatter, "as drawn: {why}")?,
            Outcome::Shaped { before, after, .. } => write!(formatter, "{before} became {after}")?,
        }
        self.notes().iter().try_for_each(|note| write!(formatter, "; {note}"))?;
        write_dropped(formatter, self.dropped_edges())
    }
}

/// A sentence about a level: a body, by its name, or the root graph.
fn within(body: Option<&str>, sentence: String) -> String {
    match body {
        Some(body) => format!("in {body}: {sentence}"),
        None => sentence,
    }
}

/// Writes the first few dropped edges.
fn write_dropped(formatter: &mut fmt::Formatter<'_>, dropped: &[DroppedEdge]) -> fmt::Result {
    const MOST: usize = 8;
    for (place, edge) in dropped.iter().take(MOST).enumerate() {
        write!(formatter, "{}{edge}", if place == 0 { ": " } else { ", " })?;
    }
    match dropped.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => write!(formatter, ", and {more} more"),
    }
}

/// A drawn edge that no access needs. Its `Display` form names both nodes and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DroppedEdge {
    from: Arc<str>,
    to: Arc<str>,
    why: WhyDropped,
}

impl DroppedEdge {
    /// The name of the node that the edge leaves.
    #[must_use]
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The name of the node that it leads to.
    #[must_use]
    pub fn to(&self) -> &str {
        &self.to
    }

    /// Why no access needs it.
    #[must_use]
    pub fn why(&self) -> WhyDropped {
        self.why
    }
}

impl fmt::Display for DroppedEdge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` → `{}` ({})", Named(&self.from), Named(&self.to), self.why)
    }
}

/// The outcome of ordering by data: dropped edges, and notes.
#[derive(Debug, Default)]
pub(super) struct OrderReport {
    dropped: Vec<DroppedEdge>,
    notes: Vec<String>,
}

impl OrderReport {
    /// `dropped` and `footprints` go by the numbers of nodes.
    pub(super) fn new(
        dropped: Vec<(u32, u32, WhyDropped)>,
        footprints: &[Footprint],
        name: impl Fn(u32) -> Arc<str>,
    ) -> Self {
        let mut names = HashMap::new();
        let mut name = |number| Arc::clone(names.entry(number).or_insert_with(|| name(number)));
        let dropped =
            dropped.into_iter().map(|(from, to, why)| DroppedEdge { from: name(from), to: name(to), why });
        let dropped: Vec<DroppedEdge> = dropped.collect();
        let mut opaque: BTreeMap<WhyOpaque, usize> = BTreeMap::new();
        for footprint in footprints {
            if let Footprint::Opaque(why) = footprint {
                *opaque.entry(*why).or_default() += 1;
            }
        }
        let kept = opaque.into_iter().map(|(why, count)| match count {
            1 => format!("kept the order of 1 node: {why}"),
            count => format!("kept the order of {count} nodes: {why}"),
        });
        let mut notes: Vec<String> = kept.collect();
        notes.push(match dropped.len() {
            0 => "dropped no edge: accesses need all".to_owned(),
            1 => "dropped 1 edge that no access needs".to_owned(),
            count => format!("dropped {count} edges that no access needs"),
        });
        Self { dropped, notes }
    }

    /// Adds what was done to a level: a body, by its name, or the root graph.
    pub(super) fn add(&mut self, body: Option<&str>, level: Self) {
        self.dropped.extend(level.dropped);
        self.notes.extend(level.notes.into_iter().map(|note| within(body, note)));
    }

    /// Of a graph that keeps its order.
    pub(super) fn too_large() -> Self {
        let note = "left the order as drawn: the graph is too large to find the one that accesses need";
        Self { dropped: Vec::new(), notes: vec![note.to_owned()] }
    }

    /// Whether edges were left out.
    pub(super) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }
}

impl fmt::Display for WhyOpaque {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kernel => "a kernel is untyped, or declared as `unsafe fn`",
            Self::Image => "a kernel is of an image that may have state, or of no PTX",
            Self::Memory => "memory is not pooled, plain or pinned memory of this library",
            Self::Node => "it is no kernel, copy or fill, or other code has changed it",
        })
    }
}

impl fmt::Display for ShapeFigures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, roots, edges, widest, host_submitted } = self;
        write!(formatter, "{nodes} nodes ({roots} roots, {edges} edges, {widest} in the widest level")?;
        match host_submitted {
            0 => formatter.write_str(")"),
            count => write!(formatter, ", {count} submitted by the host)"),
        }
    }
}
