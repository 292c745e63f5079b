//! The legend: what the boxes and lines that occur in a picture mean.

use std::collections::BTreeMap;

use crate::draw::drawing::{Drawing, DrawnEdgeKind, DrawnKind};
use crate::draw::svg::overlay::Overlay;
use crate::draw::svg::sheet::Sheet;
use crate::draw::svg::text::{shortened, width};

pub(crate) const LEGEND_SIZE: f64 = 11.0;
/// The size of the sample before the words.
pub(crate) const SAMPLE_WIDTH: f64 = 30.0;
pub(crate) const SAMPLE_HEIGHT: f64 = 14.0;
const SAMPLE_GAP: f64 = 8.0;
const ITEM_GAP: f64 = 26.0;
const ROW: f64 = 24.0;
const LONGEST: usize = 44;

/// The sample of an entry.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Sample {
    Kind(DrawnKind),
    Edge(DrawnEdgeKind),
    /// A line between nodes that race, or may.
    Race {
        is_certain: bool,
    },
    /// A frame around branches or a chain.
    Frame,
}

/// A sample with its words.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LegendEntry {
    pub(crate) sample: Sample,
    pub(crate) words: String,
    /// The left and top of the sample, from the legend's corner.
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl LegendEntry {
    /// Where the words begin.
    pub(crate) fn words_x(&self) -> f64 {
        self.x + SAMPLE_WIDTH + SAMPLE_GAP
    }
}

/// The legend of a picture.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Legend {
    pub(crate) items: Vec<LegendEntry>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The contents of a drawing and the drawings in it, counted.
#[derive(Default)]
struct Counts {
    kinds: BTreeMap<DrawnKind, usize>,
    edges: BTreeMap<DrawnEdgeKind, usize>,
    /// Whether there is a frame around branches.
    has_branches: bool,
    has_chains: bool,
}

impl Counts {
    fn add(&mut self, drawing: &Drawing, sheet: &Sheet) {
        self.has_branches |= sheet.frames.iter().any(|frame| !frame.is_chain);
        self.has_chains |= sheet.frames.iter().any(|frame| frame.is_chain);
        for route in &sheet.routes {
            *self.edges.entry(route.kind.clone()).or_default() += route.count;
        }
        for node_box in &sheet.boxes {
            let node = &drawing.nodes[node_box.node];
            *self.kinds.entry(node.kind.clone()).or_default() += 1;
            for child in &node_box.children {
                self.add(&node.children[child.number].1, &child.sheet);
            }
        }
    }
}

impl Legend {
    /// The legend in rows no wider than `widest`, if the entries allow it.
    pub(crate) fn of(drawing: &Drawing, sheet: &Sheet, overlay: &Overlay, widest: f64) -> Self {
        let mut counts = Counts::default();
        counts.add(drawing, sheet);
        let kinds = counts.kinds.into_iter().map(|(kind, count)| {
            let words = format!("{} × {count}", kind.label);
            (Sample::Kind(kind), words)
        });
        let edges = counts.edges.into_iter().map(|(kind, count)| {
            let plural = if count == 1 { "edge" } else { "edges" };
            let words = format!("{kind} {plural} × {count}");
            (Sample::Edge(kind), words)
        });
        let words = match (counts.has_branches, counts.has_chains) {
            (true, false) => Some("an edge here stands for one per branch"),
            (false, true) => Some("an edge here is one of the first or the last"),
            (true, true) => Some("an edge here is one per branch or end"),
            (false, false) => None,
        };
        let frame = words.map(|words| (Sample::Frame, words.to_owned()));
        let mut legend = Self::default();
        let (mut x, mut y) = (0.0, 0.0);
        let mut pairs: BTreeMap<(bool, &str), usize> = BTreeMap::new();
        for pair in &overlay.pairs {
            // Certain races come first.
            *pairs.entry((!pair.is_certain, pair.words)).or_default() += 1;
        }
        let pairs = pairs.into_iter().map(|((may_be, words), count)| {
            (Sample::Race { is_certain: !may_be }, format!("{words} × {count}"))
        });
        for (sample, words) in kinds.chain(edges).chain(frame).chain(pairs) {
            let words = shortened(&words, LONGEST);
            let item_width = SAMPLE_WIDTH + SAMPLE_GAP + width(&words, LEGEND_SIZE);
            if x > 0.0 && x + item_width > widest {
                (x, y) = (0.0, y + ROW);
            }
            legend.items.push(LegendEntry { sample, words, x, y });
            legend.width = legend.width.max(x + item_width);
            legend.height = y + ROW;
            x += item_width + ITEM_GAP;
        }
        legend
    }
}
