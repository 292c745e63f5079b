//! Colours and strokes, the same in DOT and SVG.
//!
//! The hues are Okabe and Ito's, which people with any kind of colour vision can tell apart. Fills
//! are pale, so that text stays readable. Colour is never the only distinction: boxes name their
//! type, and kinds of edges differ in their dashes, too.

use crate::draw::drawing::{DrawnEdgeKind, Family};

/// The look of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BoxStyle {
    /// The inside.
    pub(crate) fill: &'static str,
    /// The border and the bar at the left.
    pub(crate) strong: &'static str,
}

pub(crate) fn box_style(family: Family) -> BoxStyle {
    let (fill, strong) = match family {
        Family::Kernel => ("#e3f3ec", "#009e73"),
        Family::Copy => ("#e1edf7", "#0072b2"),
        Family::Fill => ("#eaf6fd", "#56b4e9"),
        Family::Host => ("#fcf0d8", "#e69f00"),
        Family::Signal => ("#f9ebf3", "#cc79a7"),
        Family::Batch => ("#fbf9d6", "#b3a700"),
        Family::Memory => ("#f3e9dc", "#8c5a1c"),
        Family::Child => ("#f6f6f6", "#4d4d4d"),
        Family::Conditional => ("#efe9f7", "#6a3d9a"),
        Family::Empty => ("#f2f2f2", "#8c8c8c"),
        Family::Other => ("#fbe6da", "#d55e00"),
    };
    BoxStyle { fill, strong }
}

/// The look of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EdgeStyle {
    /// The CSS class of the style.
    pub(crate) class: &'static str,
    pub(crate) colour: &'static str,
    /// Lengths of dashes and gaps in units of the drawing; empty for a line without gaps.
    pub(crate) dashes: &'static str,
    /// The style's name in DOT.
    pub(crate) dot: &'static str,
}

pub(crate) fn edge_style(kind: &DrawnEdgeKind) -> EdgeStyle {
    let (class, colour, dashes, dot) = match kind {
        DrawnEdgeKind::Full => ("full", "#333333", "", "solid"),
        DrawnEdgeKind::Programmatic => ("programmatic", "#d55e00", "8 4", "dashed"),
        DrawnEdgeKind::LaunchOrder => ("launch-order", "#0072b2", "2 4", "dotted"),
        DrawnEdgeKind::ProgrammaticLaunchOrder => {
            ("programmatic-launch-order", "#8a4f7d", "9 3 2 3", "dashed")
        }
        DrawnEdgeKind::Other(_) => ("other", "#7a7a00", "14 4", "dashed"),
    };
    EdgeStyle { class, colour, dashes, dot }
}
