//! The text in a node's box, and the room it takes.

use crate::draw::drawing::DrawnNode;
use crate::draw::svg::text::{columns, shortened, width, wrapped};

/// The width of the bar at the left of a box, in the strong colour of its type.
pub(crate) const BAR: f64 = 6.0;
/// The distance of text from border and bar.
pub(crate) const PAD: f64 = 10.0;
/// Sizes of fonts.
pub(crate) const KIND_SIZE: f64 = 9.0;
pub(crate) const NAME_SIZE: f64 = 13.0;
pub(crate) const DETAIL_SIZE: f64 = 10.5;
/// Distances from the top of a box to the base line of the type, and between base lines.
const KIND_BASE: f64 = 16.0;
const NAME_STEP: f64 = 17.0;
const DETAIL_STEP: f64 = 15.0;
/// The room below the last base line.
const FOOT: f64 = 10.0;
/// The gap between the type and a mark, and the room around the text of a mark.
const MARK_GAP: f64 = 6.0;
pub(crate) const MARK_PAD: f64 = 4.0;

const LONGEST_NAME: usize = 30;
const LONGEST_DETAIL: usize = 40;
const LONGEST_MARK: usize = 20;
const MOST_DETAILS: usize = 7;
const MOST_MARKS: usize = 4;
const NARROWEST: f64 = 92.0;
/// Widths are multiples of this, so that boxes of similar width are equally wide.
const WIDTH_STEP: f64 = 12.0;

/// The text of a box, cut to what is shown, and the size of the box without child graphs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NodeText {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) details: Vec<String>,
    pub(crate) marks: Vec<String>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A line of text from the left, or a mark.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TextLine<'f> {
    pub(crate) text: &'f str,
    pub(crate) size: f64,
    /// The distance from the left of the box.
    pub(crate) x: f64,
    /// The base line, from the top of the box.
    pub(crate) base: f64,
    /// The most room that it takes.
    pub(crate) width: f64,
}

impl NodeText {
    pub(crate) fn of(node: &DrawnNode) -> Self {
        let mut details: Vec<String> =
            node.details.iter().flat_map(|line| wrapped(line, LONGEST_DETAIL)).collect();
        if details.len() > MOST_DETAILS {
            let more = details.split_off(MOST_DETAILS - 1).len();
            details.push(format!("{more} more lines"));
        }
        let mut text = Self {
            kind: shortened(&node.kind.label, LONGEST_NAME).to_uppercase(),
            name: shortened(&node.name, LONGEST_NAME),
            details,
            marks: node.marks.iter().take(MOST_MARKS).map(|mark| shortened(mark, LONGEST_MARK)).collect(),
            width: 0.0,
            height: KIND_BASE + NAME_STEP + FOOT,
        };
        text.height += DETAIL_STEP * text.details.len() as f64;
        let right = |line: &TextLine<'_>| line.x + line.width;
        let lines = text.lines().iter().map(right).fold(0.0, f64::max) + PAD;
        let marks = text.marks().iter().map(|line| right(line) + MARK_PAD + PAD).fold(0.0, f64::max);
        text.width = (lines.max(marks).max(NARROWEST) / WIDTH_STEP).ceil() * WIDTH_STEP;
        text
    }

    /// The lines: type, name and details.
    pub(crate) fn lines(&self) -> Vec<TextLine<'_>> {
        let line = |text, size, base| TextLine { text, size, x: BAR + PAD, base, width: width(text, size) };
        let mut lines =
            vec![line(&self.kind, KIND_SIZE, KIND_BASE), line(&self.name, NAME_SIZE, KIND_BASE + NAME_STEP)];
        let bases = (1..).map(|number| KIND_BASE + NAME_STEP + DETAIL_STEP * f64::from(number));
        lines.extend(self.details.iter().zip(bases).map(|(text, base)| line(text, DETAIL_SIZE, base)));
        lines
    }

    /// The marks, beside the type.
    pub(crate) fn marks(&self) -> Vec<TextLine<'_>> {
        let mut x = BAR + PAD + width(&self.kind, KIND_SIZE);
        let mut marks = Vec::with_capacity(self.marks.len());
        for text in self.marks.iter().filter(|text| columns(text) > 0) {
            x += MARK_GAP + MARK_PAD;
            let line = TextLine { text, size: KIND_SIZE, x, base: KIND_BASE, width: width(text, KIND_SIZE) };
            x += line.width + MARK_PAD;
            marks.push(line);
        }
        marks
    }
}
