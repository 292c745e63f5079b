//! What shaping has done, and what it has left.

use core::fmt;

use crate::shape::options::Shape;
use crate::shape::planning::figures::Figures;
use crate::shape::planning::report::PlanReport;

/// What shaping has done to the graph of an executable, and what it has left and why. Its `Display`
/// is the whole report in words. Returned by
/// [`GraphExec::shape_report`](crate::GraphExec::shape_report).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeReport {
    shape: Shape,
    outcome: Outcome,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    Shaped {
        before: ShapeFigures,
        after: ShapeFigures,
        notes: Vec<String>,
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
        shape: Shape,
        plans: impl Iterator<Item = (Option<String>, &'p PlanReport)>,
        is_changed: bool,
    ) -> Self {
        let (mut figures, mut notes) = (None, Vec::new());
        for (body, report) in plans {
            figures.get_or_insert((report.before.into(), report.after.into()));
            notes.extend(report.actions.iter().map(|action| match &body {
                Some(body) => format!("in {body}: {action}"),
                None => action.to_string(),
            }));
        }
        let (before, after) = figures.unwrap_or_default();
        let outcome = match is_changed {
            true => Outcome::Shaped { before, after, notes },
            false => {
                let why = "no change would make it faster".to_owned();
                Outcome::AsDrawn { why, figures: Some(before), notes }
            }
        };
        Self { shape, outcome }
    }

    pub(super) fn as_drawn(shape: Shape, why: impl Into<String>) -> Self {
        Self { shape, outcome: Outcome::AsDrawn { why: why.into(), figures: None, notes: Vec::new() } }
    }

    /// The shape that was asked for.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
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
        self.notes().iter().try_for_each(|note| write!(formatter, "; {note}"))
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
