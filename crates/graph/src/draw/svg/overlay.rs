//! The findings of a check, drawn over a picture.

use core::fmt::{self, Write};
use std::collections::BTreeMap;

use crate::check::{Finding, FoundNode, Report, Severity};
use crate::draw::drawing::{Drawing, DrawnNode};
use crate::draw::svg::sheet::{NodeBox, Point, Rect, Sheet};
use crate::draw::svg::xml::{Escaped, Number};
use crate::state::guard::GraphGuard;

/// The colour of errors.
pub(crate) const RED: &str = "#c8102e";
/// The colour of notes.
pub(crate) const AMBER: &str = "#b26a00";

/// How far a line between racing nodes stays away from boxes on its way; less than the margin of a
/// picture.
const BULGE: f64 = 30.0;
/// Boxes closer than this have no other box between them.
const NEAR: f64 = 90.0;

/// The style of its elements.
pub(crate) const STYLE: &str = "\
.faulty{stroke:#c8102e;stroke-width:2.6}
.doubtful{stroke:#b26a00;stroke-width:2.2}
.race path{fill:none;stroke-width:2.2;stroke-dasharray:7 5}
.race:hover path{stroke-width:4}
";

/// The findings about the nodes of a drawing and the drawings in it. Node ids are unique among all
/// of these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    /// The remarks about nodes, by id.
    nodes: BTreeMap<u32, Remarks>,
    pub(crate) pairs: Vec<MarkedPair>,
    /// The findings in one line, counted.
    pub(crate) summary: String,
}

/// The remarks about one node.
#[derive(Clone, Debug)]
struct Remarks {
    severity: Severity,
    marks: Vec<&'static str>,
    lines: Vec<String>,
}

/// Two nodes of one drawing that lack an order, or that hold nodes that do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MarkedPair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    pub(crate) is_certain: bool,
    /// The kind of finding, for the legend.
    pub(crate) words: &'static str,
    pub(crate) text: String,
}

impl Overlay {
    /// The findings of a report about nodes that still exist.
    pub(crate) fn of(report: &Report, guard: &GraphGuard<'_>) -> Self {
        let mut overlay = Self { summary: summary(report), ..Self::default() };
        let is_there = |found: &&FoundNode| {
            found.node().graph().number() == guard.number() && guard.record(found.node().id()).is_some()
        };
        for finding in report.findings() {
            if finding.nodes().iter().all(is_there) {
                overlay.add(finding, is_there);
            }
        }
        for opaque in report.opaque() {
            if is_there(&&opaque.node) {
                let remarks = overlay.remarks(opaque.node.node().id().index);
                remarks.marks.push("opaque");
                remarks.lines.push(opaque.to_string());
            }
        }
        overlay
    }

    /// Adds the remarks of a finding about nodes that still exist, and the pair that it is about.
    fn add(&mut self, finding: &Finding, is_there: impl Fn(&&FoundNode) -> bool) {
        let text = finding.to_string();
        for found in finding.nodes() {
            self.say(found, finding, &text);
        }
        let Some((edge, may_wait, words)) = missing_edge(finding) else { return };
        let (first, second) = edge;
        if [first, second].iter().all(is_there) {
            let [first, second] = [first, second].map(|found| found.node().id().index);
            self.pairs.push(MarkedPair { first, second, is_certain: !may_wait, words, text });
        }
    }

    fn remarks(&mut self, node: u32) -> &mut Remarks {
        let nothing = || Remarks { severity: Severity::Note, marks: Vec::new(), lines: Vec::new() };
        self.nodes.entry(node).or_insert_with(nothing)
    }

    fn say(&mut self, found: &FoundNode, finding: &Finding, text: &str) {
        let remarks = self.remarks(found.node().id().index);
        remarks.severity = remarks.severity.max(finding.severity());
        let mark = match finding {
            Finding::Race(race) if race.may_wait => "may race",
            other => other.class(),
        };
        if !remarks.marks.contains(&mark) {
            remarks.marks.push(mark);
        }
        remarks.lines.push(text.to_owned());
    }

    /// Adds the marks to nodes.
    pub(crate) fn mark(&self, drawing: &mut Drawing) {
        for node in &mut drawing.nodes {
            if let Some(remarks) = self.nodes.get(&node.id) {
                node.marks.extend(remarks.marks.iter().map(|mark| (*mark).to_owned()));
            }
            node.children.iter_mut().for_each(|(_, child)| self.mark(child));
        }
    }

    /// The CSS class of a node's box with a space in front, if there is a remark about the node.
    pub(crate) fn class(&self, node: &DrawnNode) -> &'static str {
        match self.nodes.get(&node.id) {
            None => "",
            Some(remarks) if remarks.severity > Severity::Note => " faulty",
            Some(remarks) if remarks.marks == ["opaque"] => "",
            Some(_) => " doubtful",
        }
    }

    /// The remarks about a node, a line each.
    pub(crate) fn lines(&self, node: &DrawnNode) -> &[String] {
        self.nodes.get(&node.id).map_or(&[], |remarks| &remarks.lines)
    }

    /// Draws the lines between racing nodes of a sheet.
    pub(crate) fn write_pairs(&self, out: &mut String, drawing: &Drawing, sheet: &Sheet) -> fmt::Result {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let rects: BTreeMap<u32, Rect> =
            sheet.boxes.iter().map(|node: &NodeBox| (drawing.nodes[node.node].id, node.rect)).collect();
        for pair in &self.pairs {
            if let (Some(one), Some(two)) = (rects.get(&pair.first), rects.get(&pair.second)) {
                write_pair(out, pair, *one, *two)?;
            }
        }
        Ok(())
    }
}

/// The edge that a finding is about, whether kernels may see to the order themselves, and the words
/// for the legend.
fn missing_edge(finding: &Finding) -> Option<(&(FoundNode, FoundNode), bool, &'static str)> {
    match finding {
        Finding::Race(race) if race.may_wait => Some((&race.edge, true, "race, unless kernels wait")),
        Finding::Race(race) => Some((&race.edge, false, finding.class())),
        Finding::UnorderedCondition { edge, may_wait, .. } => Some((edge, *may_wait, finding.class())),
        Finding::MemoryOrder { edge, .. } => edge.as_ref().map(|edge| (&**edge, false, finding.class())),
        Finding::Cycle { .. }
        | Finding::NotInBody { .. }
        | Finding::MixedContexts { .. }
        | Finding::UnusedCondition { .. }
        | Finding::EndlessLoop { .. }
        | Finding::NeverFreed { .. } => None,
    }
}

fn write_pair(out: &mut String, pair: &MarkedPair, one: Rect, two: Rect) -> fmt::Result {
    let (start, enter, leave, end) = curve(one, two);
    let colour = if pair.is_certain { RED } else { AMBER };
    write!(out, "<g class=\"race\"><title>{}</title><path d=\"", Escaped(&pair.text))?;
    for (separator, point) in [("M", start), ("C", enter), (" ", leave), (" ", end)] {
        write!(out, "{separator}{} {}", Number(point.x), Number(point.y))?;
    }
    writeln!(out, "\" stroke=\"{colour}\"/>")?;
    for point in [start, end] {
        let (x, y) = (Number(point.x), Number(point.y));
        writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"{colour}\"/>")?;
    }
    writeln!(out, "</g>")
}

/// The curve from box to box: over the tops of boxes beside each other, and past the right side of
/// boxes above each other with room for others in between.
fn curve(one: Rect, two: Rect) -> (Point, Point, Point, Point) {
    let centre = |rect: Rect| Point { x: rect.x + rect.width / 2.0, y: rect.y + rect.height / 2.0 };
    let (from, to) = (centre(one), centre(two));
    let apart = (to.y - from.y).abs() - (one.height + two.height) / 2.0;
    if apart < 0.0 {
        let (left, right) = if from.x <= to.x { (one, two) } else { (two, one) };
        let start = Point { x: left.x + 0.8 * left.width, y: left.y };
        let end = Point { x: right.x + 0.2 * right.width, y: right.y };
        let top = start.y.min(end.y) - BULGE;
        return (start, Point { x: start.x, y: top }, Point { x: end.x, y: top }, end);
    }
    let (upper, lower) = if from.y <= to.y { (one, two) } else { (two, one) };
    let right = |rect: Rect| rect.x + rect.width;
    let are_in_line = (from.x - to.x).abs() < f64::midpoint(one.width, two.width);
    if !are_in_line || apart < NEAR {
        // From the bottom of one to the top of the other, where they are nearest.
        let near = |rect: Rect, x: f64| x.clamp(rect.x + 0.15 * rect.width, rect.x + 0.85 * rect.width);
        // Not in the middle, where the edges are.
        let x = near(upper, lower.x + 0.7 * lower.width);
        let start = Point { x, y: upper.y + upper.height };
        let end = Point { x: near(lower, x), y: lower.y };
        let middle = f64::midpoint(start.y, end.y);
        return (start, Point { x: start.x, y: middle }, Point { x: end.x, y: middle }, end);
    }
    let start = Point { x: right(upper), y: upper.y + 0.7 * upper.height };
    let end = Point { x: right(lower), y: lower.y + 0.3 * lower.height };
    let side = start.x.max(end.x) + BULGE;
    (start, Point { x: side, y: start.y }, Point { x: side, y: end.y }, end)
}

/// Such as `2 errors (data race, unused condition), 1 note`.
fn summary(report: &Report) -> String {
    let mut parts = Vec::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        let of = report.findings().iter().filter(|finding| finding.severity() == severity);
        let mut classes: Vec<&str> = of.clone().map(Finding::class).collect();
        classes.sort_unstable();
        classes.dedup();
        match of.count() {
            0 => {}
            1 => parts.push(format!("1 {severity} ({})", classes.join(", "))),
            count => parts.push(format!("{count} {severity}s ({})", classes.join(", "))),
        }
    }
    if report.stopped().is_some() {
        parts.push("not all was compared".to_owned());
    }
    if parts.is_empty() { "nothing found".to_owned() } else { parts.join(", ") }
}
