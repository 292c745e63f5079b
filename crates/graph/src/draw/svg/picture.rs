//! A drawing as the text of an SVG file.

use core::fmt::{self, Write};
use std::collections::BTreeMap;

use crate::draw::drawing::{Drawing, DrawnEdgeKind, DrawnNode};
use crate::draw::style::{box_style, edge_style};
use crate::draw::svg::engine::LANE;
use crate::draw::svg::layout::{TooLarge, lay_out};
use crate::draw::svg::legend::{LEGEND_SIZE, Legend, LegendEntry, SAMPLE_HEIGHT, SAMPLE_WIDTH, Sample};
use crate::draw::svg::node_text::{BAR, MARK_PAD, TextLine};
use crate::draw::svg::overlay::{AMBER, Overlay, RED, STYLE};
use crate::draw::svg::sheet::{CAPTION_SIZE, FRAME_PAD, NodeBox, Point, Rect, Route, Sheet};
use crate::draw::svg::text::{shortened, width};
use crate::draw::svg::xml::{Escaped, Number};

/// The margin around everything.
const MARGIN: f64 = 28.0;
const TITLE_SIZE: f64 = 17.0;
const SUBTITLE_SIZE: f64 = 11.0;
/// The distance from the top of the title to the drawing.
const TITLE_ROOM: f64 = 52.0;
const LONGEST_TITLE: usize = 90;
/// The distance from the drawing to the legend.
const LEGEND_ROOM: f64 = 26.0;
const NARROWEST: f64 = 420.0;
/// Pictures with a longer side than this have a larger title and legend.
const MIDDLING: f64 = 1500.0;
/// The radius of the corners of edges.
const CORNER: f64 = 7.0;

/// The style of all elements.
const SHEET_STYLE: &str = "\
text{fill:#1a1a1a;white-space:pre}
.name{font-size:13px;font-weight:bold}
.detail{font-size:10.5px;fill:#333}
.kind{font-size:9px;fill:#444}
.caption{font-size:10.5px;fill:#444}
.box{stroke-width:1.2}
.frame{fill:#f4f6f8;stroke:#9aa5b1;stroke-width:1}
.child{fill:#fff;stroke:#8c8c8c;stroke-width:1}
.mark{fill:#fff;stroke:#8c8c8c;stroke-width:.8}
.edge path{fill:none;stroke-width:1.4}
.edge .many{stroke-width:3}
.node:hover>.box,.edge:hover path{stroke-width:3.5}
";

/// A drawing as the text of an SVG file: self-contained, with the full text of each node as its
/// tooltip.
pub(crate) fn svg(drawing: &Drawing, overlay: &Overlay) -> Result<String, TooLarge> {
    let sheet = lay_out(drawing)?;
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = Picture { drawing, sheet: &sheet, overlay }.write(&mut text);
    Ok(text)
}

struct Picture<'p> {
    drawing: &'p Drawing,
    sheet: &'p Sheet,
    overlay: &'p Overlay,
}

impl Picture<'_> {
    fn write(&self, out: &mut String) -> fmt::Result {
        let Self { drawing, sheet, overlay } = *self;
        let title = shortened(&drawing.title, LONGEST_TITLE);
        let subtitle = subtitle(sheet, overlay);
        // A large picture is looked at from farther away: its title and legend are larger.
        let scale = (sheet.width.max(sheet.height) / MIDDLING).clamp(1.0, 2.5);
        let content = sheet.width.max(width(&title, TITLE_SIZE) * scale).max(NARROWEST);
        let legend = Legend::of(drawing, sheet, overlay, content / scale);
        let full_width = content.max(legend.width * scale) + 2.0 * MARGIN;
        let top = MARGIN + TITLE_ROOM * scale;
        let legend_top = top + sheet.height + LEGEND_ROOM * scale;
        let full_height = legend_top + legend.height * scale + MARGIN;
        let (w, h) = (Number(full_width.ceil()), Number(full_height.ceil()));

        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\""
        )?;
        writeln!(
            out,
            " font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace\">"
        )?;
        writeln!(out, "<title>{}</title>", Escaped(&drawing.title))?;
        writeln!(out, "<desc>{}</desc>", Escaped(&subtitle))?;
        let more = if overlay.summary.is_empty() { "" } else { STYLE };
        writeln!(out, "<style>\n{SHEET_STYLE}{more}</style>")?;
        self.write_arrows(out)?;
        writeln!(out, "<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>")?;
        write_scaled(out, Point { x: MARGIN, y: MARGIN }, scale)?;
        write!(out, "<text y=\"{TITLE_SIZE}\" font-size=\"{TITLE_SIZE}\" font-weight=\"bold\">")?;
        writeln!(out, "{}</text>", Escaped(&title))?;
        let base = TITLE_SIZE + 18.0;
        writeln!(out, "<text y=\"{base}\" font-size=\"{SUBTITLE_SIZE}\">{}</text></g>", Escaped(&subtitle))?;
        let left = MARGIN + (content - sheet.width) / 2.0;
        write_sheet(out, drawing, sheet, overlay, Point { x: left, y: top })?;
        write_legend(out, &legend, Point { x: MARGIN, y: legend_top }, scale)?;
        writeln!(out, "</svg>")
    }

    /// Writes the arrow heads, one for each kind of edge that occurs.
    fn write_arrows(&self, out: &mut String) -> fmt::Result {
        let mut styles = BTreeMap::new();
        each_route(self.sheet, &mut |route: &Route| {
            let style = edge_style(&route.kind);
            styles.insert(style.class, style.colour);
        });
        if styles.is_empty() {
            return Ok(());
        }
        writeln!(out, "<defs>")?;
        for (class, colour) in styles {
            write!(out, "<marker id=\"cuda-graph-{class}\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\"")?;
            write!(
                out,
                " markerWidth=\"{LANE}\" markerHeight=\"{LANE}\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
            )?;
            writeln!(out, "<path d=\"M0 1 10 5 0 9z\" fill=\"{colour}\"/></marker>")?;
        }
        writeln!(out, "</defs>")
    }
}

/// The line below the title: the numbers of nodes and edges, and the findings.
fn subtitle(sheet: &Sheet, overlay: &Overlay) -> String {
    let edges = sheet.routes.iter().map(|route| route.count).sum();
    let mut text = format!("{}, {}", counted(sheet.boxes.len(), "node"), counted(edges, "edge"));
    let all = nodes_in(sheet);
    if all > sheet.boxes.len() {
        text.push_str(&format!("; {}, with those inside of others", counted(all, "node")));
    }
    if !overlay.summary.is_empty() {
        text.push_str(&format!("; {}", overlay.summary));
    }
    text
}

fn nodes_in(sheet: &Sheet) -> usize {
    let inside = |node: &NodeBox| node.children.iter().map(|child| nodes_in(&child.sheet)).sum::<usize>();
    sheet.boxes.iter().map(|node| 1 + inside(node)).sum()
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn each_route(sheet: &Sheet, visit: &mut impl FnMut(&Route)) {
    sheet.routes.iter().for_each(&mut *visit);
    sheet.boxes.iter().flat_map(|node| &node.children).for_each(|child| each_route(&child.sheet, visit));
}

fn write_sheet(
    out: &mut String,
    drawing: &Drawing,
    sheet: &Sheet,
    overlay: &Overlay,
    origin: Point,
) -> fmt::Result {
    writeln!(out, "<g transform=\"translate({} {})\">", Number(origin.x), Number(origin.y))?;
    if let Some(note) = &sheet.note {
        writeln!(out, "<text class=\"caption\" y=\"{CAPTION_SIZE}\">{}</text>", Escaped(note))?;
    }
    for frame in &sheet.frames {
        writeln!(out, "<rect class=\"frame\" {} rx=\"8\"/>", Placed(frame.rect))?;
        let corner = Point { x: frame.rect.x, y: frame.rect.y };
        write_caption(out, &frame.caption, corner)?;
    }
    for route in &sheet.routes {
        let (from, to) = (&drawing.nodes[route.ends.0].name, &drawing.nodes[route.ends.1].name);
        write_route(out, route, from, to)?;
    }
    for node in &sheet.boxes {
        write_box(out, &drawing.nodes[node.node], node, overlay)?;
    }
    overlay.write_pairs(out, drawing, sheet)?;
    writeln!(out, "</g>")
}

fn write_caption(out: &mut String, caption: &str, corner: Point) -> fmt::Result {
    if caption.is_empty() {
        return Ok(());
    }
    let (x, y) = (Number(corner.x + FRAME_PAD), Number(corner.y + FRAME_PAD + 6.0));
    writeln!(out, "<text class=\"caption\" x=\"{x}\" y=\"{y}\">{}</text>", Escaped(caption))
}

fn write_route(out: &mut String, route: &Route, from: &str, to: &str) -> fmt::Result {
    write!(
        out,
        "<g class=\"edge\"><title>{} → {}: {}",
        Escaped(from),
        Escaped(to),
        Escaped(&route.kind.to_string())
    )?;
    if route.count > 1 {
        write!(out, " (one of {})", route.count)?;
    }
    let class = if route.count > 1 { "class=\"many\" " } else { "" };
    write!(out, "</title><path {class}d=\"")?;
    write_path(out, &route.points)?;
    writeln!(out, "\" {}/></g>", Stroke(&route.kind))
}

/// A line through the points with rounded corners.
fn write_path(out: &mut String, points: &[Point]) -> fmt::Result {
    let Some(first) = points.first() else { return Ok(()) };
    write!(out, "M{} {}", Number(first.x), Number(first.y))?;
    for (number, window) in points.windows(3).enumerate() {
        if let &[before, corner, after] = window {
            let is_last = number + 3 == points.len();
            // The arrow head follows a straight segment.
            let room = if is_last { distance(corner, after) - LANE } else { distance(corner, after) / 2.0 };
            let radius = CORNER.min(distance(before, corner) / 2.0).min(room).max(0.0);
            let (enter, leave) = (towards(corner, before, radius), towards(corner, after, radius));
            write!(out, "L{} {}", Number(enter.x), Number(enter.y))?;
            write!(
                out,
                "Q{} {} {} {}",
                Number(corner.x),
                Number(corner.y),
                Number(leave.x),
                Number(leave.y)
            )?;
        }
    }
    match points {
        [_, .., last] => write!(out, "L{} {}", Number(last.x), Number(last.y)),
        _ => Ok(()),
    }
}

fn distance(a: Point, b: Point) -> f64 {
    (a.x - b.x).hypot(a.y - b.y)
}

/// The point at some distance from a corner, towards another point.
fn towards(corner: Point, other: Point, radius: f64) -> Point {
    let part = if radius > 0.0 { radius / distance(corner, other) } else { 0.0 };
    Point { x: corner.x + (other.x - corner.x) * part, y: corner.y + (other.y - corner.y) * part }
}

fn write_box(out: &mut String, node: &DrawnNode, node_box: &NodeBox, overlay: &Overlay) -> fmt::Result {
    let Rect { x, y, height, .. } = node_box.rect;
    let style = box_style(node.kind.family);
    writeln!(out, "<g class=\"node\"><title>{}</title>", Escaped(&tooltip(node, overlay)))?;
    let (fill, strong) = (style.fill, style.strong);
    writeln!(
        out,
        "<rect class=\"box{}\" {} rx=\"4\" fill=\"{fill}\" stroke=\"{strong}\"/>",
        overlay.class(node),
        Placed(node_box.rect)
    )?;
    let bar = Rect { width: BAR, height, x, y };
    writeln!(out, "<rect {} rx=\"2\" fill=\"{strong}\"/>", Placed(bar))?;
    for (line, class) in
        node_box.text.lines().iter().zip(["kind", "name"].into_iter().chain(core::iter::repeat("detail")))
    {
        write_line(out, line, class, x, y)?;
    }
    for mark in node_box.text.marks() {
        let pill = Rect {
            x: x + mark.x - MARK_PAD,
            y: y + mark.base - mark.size - 1.0,
            width: mark.width + 2.0 * MARK_PAD,
            height: mark.size + 5.0,
        };
        writeln!(out, "<rect class=\"mark\" {} rx=\"4\"/>", Placed(pill))?;
        write_line(out, &mark, "kind", x, y)?;
    }
    for child in &node_box.children {
        writeln!(out, "<rect class=\"child\" {} rx=\"4\"/>", Placed(child.rect))?;
        write_caption(out, &child.caption, Point { x: child.rect.x, y: child.rect.y })?;
        if let Some((_, drawing)) = node.children.get(child.number) {
            write_sheet(out, drawing, &child.sheet, overlay, child.origin)?;
        }
    }
    writeln!(out, "</g>")
}

fn write_line(out: &mut String, line: &TextLine<'_>, class: &str, x: f64, y: f64) -> fmt::Result {
    let (x, y) = (Number(x + line.x), Number(y + line.base));
    writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", Escaped(line.text))
}

/// The full text of a node, a line each.
fn tooltip(node: &DrawnNode, overlay: &Overlay) -> String {
    let mut lines = vec![node.name.as_str(), node.kind.label.as_str()];
    lines.extend(node.details.iter().map(String::as_str));
    lines.extend(node.marks.iter().map(String::as_str));
    lines.extend(overlay.lines(node).iter().map(String::as_str));
    lines.join("\n")
}

/// Begins a group with an origin and scale of its own.
fn write_scaled(out: &mut String, origin: Point, scale: f64) -> fmt::Result {
    let (x, y) = (Number(origin.x), Number(origin.y));
    writeln!(out, "<g transform=\"translate({x} {y}) scale({scale:.2})\">")
}

fn write_legend(out: &mut String, legend: &Legend, origin: Point, scale: f64) -> fmt::Result {
    write_scaled(out, origin, scale)?;
    for item in &legend.items {
        write_sample(out, item)?;
        let (x, y) = (Number(item.words_x()), Number(item.y + LEGEND_SIZE));
        writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{LEGEND_SIZE}\">{}</text>",
            Escaped(&item.words)
        )?;
    }
    writeln!(out, "</g>")
}

fn write_sample(out: &mut String, item: &LegendEntry) -> fmt::Result {
    let rect = Rect { x: item.x, y: item.y, width: SAMPLE_WIDTH, height: SAMPLE_HEIGHT };
    match &item.sample {
        Sample::Kind(kind) => {
            let style = box_style(kind.family);
            writeln!(
                out,
                "<rect class=\"box\" {} rx=\"3\" fill=\"{}\" stroke=\"{}\"/>",
                Placed(rect),
                style.fill,
                style.strong
            )?;
            writeln!(
                out,
                "<rect {} rx=\"2\" fill=\"{}\"/>",
                Placed(Rect { width: BAR, ..rect }),
                style.strong
            )
        }
        Sample::Edge(kind) => {
            let middle = Number(item.y + SAMPLE_HEIGHT / 2.0);
            let (left, right) = (Number(item.x), Number(item.x + SAMPLE_WIDTH));
            writeln!(
                out,
                "<g class=\"edge\"><path d=\"M{left} {middle}L{right} {middle}\" {}/></g>",
                Stroke(kind)
            )
        }
        Sample::Race { is_certain } => {
            let middle = Number(item.y + SAMPLE_HEIGHT / 2.0);
            let (left, right) = (Number(item.x), Number(item.x + SAMPLE_WIDTH));
            let colour = if *is_certain { RED } else { AMBER };
            writeln!(
                out,
                "<g class=\"race\"><path d=\"M{left} {middle}L{right} {middle}\" stroke=\"{colour}\"/></g>"
            )
        }
        Sample::Frame => writeln!(out, "<rect class=\"frame\" {} rx=\"4\"/>", Placed(rect)),
    }
}

/// The attributes for a rectangle's position and size.
struct Placed(Rect);

impl fmt::Display for Placed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rect { x, y, width, height } = self.0;
        write!(formatter, "x=\"{}\" y=\"{}\" ", Number(x), Number(y))?;
        write!(formatter, "width=\"{}\" height=\"{}\"", Number(width), Number(height))
    }
}

/// The attributes of a line, for a kind of edge.
struct Stroke<'k>(&'k DrawnEdgeKind);

impl fmt::Display for Stroke<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = edge_style(self.0);
        write!(formatter, "stroke=\"{}\"", style.colour)?;
        if !style.dashes.is_empty() {
            write!(formatter, " stroke-dasharray=\"{}\"", style.dashes)?;
        }
        write!(formatter, " marker-end=\"url(#cuda-graph-{})\"", style.class)
    }
}
