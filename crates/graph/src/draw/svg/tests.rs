//! Properties that hold for every picture.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::fold::fold;
use super::layout::{TooLarge, lay_out};
use super::overlay::Overlay;
use super::sheet::{NodeBox, Point, Rect, Sheet};
use crate::draw::drawing::{Drawing, DrawnEdge, DrawnEdgeKind, DrawnKind, DrawnNode, Family};

/// Tolerance for rounding.
const SLACK: f64 = 1e-6;

fn svg(drawing: &Drawing) -> Result<String, TooLarge> {
    super::picture::svg(drawing, &Overlay::default())
}

fn node(id: u32, family: Family, label: &str, name: &str) -> DrawnNode {
    let kind = DrawnKind { family, label: label.to_owned() };
    DrawnNode { id, kind, name: name.to_owned(), details: vec![], children: vec![], marks: vec![] }
}

fn full(from: u32, to: u32) -> DrawnEdge {
    DrawnEdge { from, to, kind: DrawnEdgeKind::Full }
}

/// Kernel nodes with full edges.
fn plain(nodes: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Drawing {
    let nodes =
        (0..nodes).map(|id| node(id, Family::Kernel, "kernel", &format!("kernel#{id} step"))).collect();
    let edges = edges.into_iter().map(|(from, to)| full(from, to)).collect();
    Drawing { title: "plain".to_owned(), nodes, edges }
}

fn chain(nodes: u32) -> Drawing {
    plain(nodes, (1..nodes).map(|id| (id - 1, id)))
}

/// One node, many, one.
fn fan(width: u32) -> Drawing {
    plain(width + 2, (1..=width).flat_map(|id| [(0, id), (id, width + 1)]))
}

fn nested(depth: u32) -> Drawing {
    let mut drawing = chain(3);
    if depth > 0 {
        drawing.nodes[1].kind = DrawnKind { family: Family::Child, label: "child graph".to_owned() };
        drawing.nodes[1].children = vec![(format!("level {depth}"), nested(depth - 1))];
    }
    drawing
}

fn contains(outer: &Rect, inner: &Rect) -> bool {
    inner.x >= outer.x - SLACK
        && inner.y >= outer.y - SLACK
        && inner.x + inner.width <= outer.x + outer.width + SLACK
        && inner.y + inner.height <= outer.y + outer.height + SLACK
}

fn are_apart(a: &Rect, b: &Rect) -> bool {
    let are_apart =
        |a: f64, a_size: f64, b: f64, b_size: f64| a + a_size <= b + SLACK || b + b_size <= a + SLACK;
    are_apart(a.x, a.width, b.x, b.width) || are_apart(a.y, a.height, b.y, b.height)
}

fn is_on_border(rect: &Rect, point: &Point) -> bool {
    let is_inside = contains(rect, &Rect { x: point.x, y: point.y, width: 0.0, height: 0.0 });
    let distances =
        [point.x - rect.x, rect.x + rect.width - point.x, point.y - rect.y, rect.y + rect.height - point.y];
    is_inside && distances.iter().any(|distance| distance.abs() < 1e-3)
}

/// Checks all properties of a sheet and the sheets in it.
fn check(drawing: &Drawing, sheet: &Sheet) {
    let page = Rect { x: 0.0, y: 0.0, width: sheet.width, height: sheet.height };
    assert_eq!(sheet.boxes.len(), drawing.nodes.len());
    assert_eq!(sheet.note.is_some(), drawing.nodes.is_empty());
    for (number, node) in sheet.boxes.iter().enumerate() {
        assert!(contains(&page, &node.rect), "{node:?} is not on its sheet");
        let others = sheet.boxes[..number].iter();
        others.for_each(|other| assert!(are_apart(&node.rect, &other.rect), "{node:?} lies over {other:?}"));
        check_box(&drawing.nodes[node.node], node);
    }
    for frame in &sheet.frames {
        assert!(contains(&page, &frame.rect));
        for node in &sheet.boxes {
            assert!(contains(&frame.rect, &node.rect) || are_apart(&frame.rect, &node.rect));
        }
    }
    for route in &sheet.routes {
        let ends = [(route.ends.0, route.points.first()), (route.ends.1, route.points.last())];
        for (node, point) in ends {
            let node = sheet.boxes.iter().find(|other| other.node == node).unwrap();
            let mut borders: Vec<&Rect> = vec![&node.rect];
            let frames = sheet.frames.iter().map(|frame| &frame.rect);
            borders.extend(frames.filter(|frame| contains(frame, &node.rect)));
            let point = point.unwrap();
            assert!(borders.iter().any(|rect| is_on_border(rect, point)), "{route:?} ends beside {node:?}");
        }
    }
    let ids: BTreeSet<u32> = drawing.nodes.iter().map(|node| node.id).collect();
    let edges: BTreeSet<_> = drawing
        .edges
        .iter()
        .filter(|edge| ids.contains(&edge.from) && ids.contains(&edge.to))
        .map(|edge| (edge.from, edge.to, &edge.kind))
        .collect();
    assert_eq!(sheet.routes.iter().map(|route| route.count).sum::<usize>(), edges.len());
}

fn check_box(node: &DrawnNode, node_box: &NodeBox) {
    let text = &node_box.text;
    let top = Rect { height: text.height, ..node_box.rect };
    for line in text.lines().iter().chain(&text.marks()) {
        assert!(line.x >= 0.0 && line.x + line.width <= text.width, "{line:?} leaves {text:?}");
        assert!(line.base >= line.size && line.base < text.height, "{line:?} leaves {text:?}");
    }
    assert!(text.width <= node_box.rect.width + SLACK);
    assert_eq!(node_box.children.len(), node.children.len());
    for (number, child) in node_box.children.iter().enumerate() {
        assert!(contains(&node_box.rect, &child.rect) && are_apart(&top, &child.rect));
        assert!(node_box.children[..number].iter().all(|other| are_apart(&other.rect, &child.rect)));
        let (Point { x, y }, Sheet { width, height, .. }) = (child.origin, &child.sheet);
        assert!(contains(&child.rect, &Rect { x, y, width: *width, height: *height }));
        check(&node.children[child.number].1, &child.sheet);
    }
}

/// Checks the geometry and the text of a picture, and returns both.
fn checked(drawing: &Drawing) -> (Sheet, String) {
    let sheet = lay_out(drawing).unwrap();
    check(drawing, &sheet);
    let text = svg(drawing).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let root = document.root_element();
    let size = |name| root.attribute(name).unwrap().parse::<f64>().unwrap();
    let view: Vec<f64> =
        root.attribute("viewBox").unwrap().split(' ').map(|number| number.parse().unwrap()).collect();
    assert_eq!(view, [0.0, 0.0, size("width"), size("height")]);
    let mut shown = Vec::new();
    for group in document.descendants().filter(|element| element.attribute("class") == Some("node")) {
        let title = group.children().find(|child| child.has_tag_name("title")).unwrap();
        shown.push(title.text().unwrap_or_default().to_owned());
    }
    let mut told = Vec::new();
    tooltips(drawing, &mut told);
    shown.sort();
    told.sort();
    assert_eq!(shown, told);
    (sheet, text)
}

/// The expected tooltips, as XML readers return them.
fn tooltips(drawing: &Drawing, told: &mut Vec<String>) {
    for node in &drawing.nodes {
        let lines = [&node.name, &node.kind.label].into_iter().chain(&node.details).chain(&node.marks);
        let text = lines.map(String::as_str).collect::<Vec<_>>().join("\n");
        let character = |character| match character {
            '\r' => '\n',
            '\t' | '\n' => character,
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            other => other,
        };
        told.push(text.chars().map(character).collect());
        node.children.iter().for_each(|(_, child)| tooltips(child, told));
    }
}

#[test]
fn a_graph_without_nodes_and_one_with_one_have_pictures() {
    let (_, text) = checked(&Drawing::default());
    assert!(text.contains("no nodes"));
    let (sheet, text) = checked(&chain(1));
    assert!(sheet.routes.is_empty() && !text.contains("<marker"));
    assert!(text.contains("kernel × 1") && text.contains("1 node, 0 edges"), "{text}");
}

#[test]
fn a_fan_becomes_a_frame_and_a_chain_columns() {
    let (sheet, text) = checked(&fan(200));
    assert_eq!((sheet.frames.len(), sheet.routes.len()), (1, 2));
    assert!(text.contains("200 nodes, each between the same nodes") && text.contains("(one of 200)"));
    assert!(sheet.width < 3.0 * sheet.height && sheet.height < 3.0 * sheet.width);
    let (sheet, _) = checked(&chain(200));
    assert!(sheet.width < 3.0 * sheet.height && sheet.height < 3.0 * sheet.width);
    // A fan that is not too wide shows every edge.
    let (sheet, _) = checked(&fan(8));
    assert_eq!((sheet.frames.len(), sheet.routes.len()), (0, 16));
}

/// How many boxes the layout library gets. Its time is quadratic in those that follow each other.
fn boxes(drawing: &Drawing) -> usize {
    fold(drawing, |_| 100.0, 2400.0).units.len()
}

#[test]
fn the_inside_of_a_long_chain_is_one_box_for_the_layout() {
    for nodes in [101, 1000] {
        let (sheet, _) = checked(&chain(nodes));
        assert_eq!((sheet.frames.len(), sheet.routes.len()), (0, nodes as usize - 1));
        assert!(sheet.width < 3.0 * sheet.height && sheet.height < 3.0 * sheet.width);
        assert_eq!(boxes(&chain(nodes)), 1);
    }
    assert_eq!((boxes(&chain(100)), boxes(&chain(200_000))), (100, 1));
    // Chains between other nodes: their ends are boxes of their own.
    let ends = [(0, 1), (0, 500), (499, 1000), (999, 1000)];
    let inside = (1..499).chain(500..999).map(|id| (id, id + 1));
    let drawing = plain(1001, ends.into_iter().chain(inside));
    let (sheet, text) = checked(&drawing);
    assert_eq!((sheet.frames.len(), boxes(&drawing)), (2, 2 + 2 * 3));
    assert!(text.contains("497 nodes, one after the other") && text.contains("498 nodes, one"), "{text}");
    assert!(text.contains("one of the first or the last") && !text.contains("per branch"), "{text}");
    // A ring is no chain.
    let ring = plain(300, (0..300).map(|id| (id, (id + 1) % 300)));
    checked(&ring);
    assert_eq!(boxes(&ring), 300);
    // A chain with an edge back to its head has no end outside.
    let back = plain(300, (1..300).map(|id| (id - 1, id)).chain([(299, 0), (5, 5)]));
    checked(&back);
}

#[test]
fn nodes_of_all_sizes_go_into_columns() {
    let mut drawing = chain(150);
    drawing.nodes[70].children = vec![("inner".to_owned(), chain(120))];
    drawing.nodes[3].name = "x".repeat(200);
    let (sheet, text) = checked(&drawing);
    assert_eq!(sheet.routes.len(), 149);
    assert!(text.contains("inner"));
    // No edge goes through a node.
    for ends in sheet.routes.iter().flat_map(|route| route.points.windows(2)) {
        let (x, y) = (ends[0].x.min(ends[1].x), ends[0].y.min(ends[1].y));
        let (width, height) = ((ends[0].x - ends[1].x).abs(), (ends[0].y - ends[1].y).abs());
        let segment = Rect { x, y, width, height };
        assert!(sheet.boxes.iter().all(|node| are_apart(&node.rect, &segment)), "{segment:?}");
    }
}

#[test]
fn long_branches_keep_their_edges_in_the_frame() {
    let branch = |first: u32| [(0, first), (first, first + 1), (first + 1, first + 2), (first + 2, 91)];
    let (sheet, text) = checked(&plain(92, (0..30).flat_map(|number| branch(1 + 3 * number))));
    assert_eq!((sheet.frames.len(), sheet.routes.len()), (1, 2 + 60));
    assert!(text.contains("30 branches, each between the same nodes"));
}

#[test]
fn nodes_without_edges_are_put_in_rows_without_a_frame() {
    let (sheet, _) = checked(&plain(60, []));
    assert!(sheet.frames.is_empty() && sheet.width < 3.0 * sheet.height);
}

#[test]
fn cycles_loops_doubles_and_loose_ends_are_drawn_or_left_out() {
    let edges = [(0, 1), (1, 2), (2, 0), (3, 3), (3, 4), (4, 3), (0, 1), (9, 1), (1, 77)];
    let (sheet, _) = checked(&plain(5, edges));
    assert_eq!(sheet.routes.len(), 6);
}

#[test]
fn graphs_in_graphs_lie_inside_of_them() {
    let (_, text) = checked(&nested(3));
    assert_eq!(text.matches("class=\"child\"").count(), 3);
    assert!(text.contains("3 nodes, 2 edges; 12 nodes, with those inside of others"), "{text}");
    assert!(text.contains("level 1") && text.contains("child graph × 3"), "{text}");
    checked(&nested(32));
}

#[test]
fn kinds_of_edges_are_told_apart() {
    let mut drawing = chain(6);
    let kinds = [
        DrawnEdgeKind::Full,
        DrawnEdgeKind::Programmatic,
        DrawnEdgeKind::LaunchOrder,
        DrawnEdgeKind::ProgrammaticLaunchOrder,
        DrawnEdgeKind::Other("type 3 from port 4 to port 0".to_owned()),
    ];
    drawing.edges.iter_mut().zip(kinds).for_each(|(edge, kind)| edge.kind = kind);
    let (_, text) = checked(&drawing);
    assert_eq!(text.matches("<marker").count(), 5);
    assert!(
        text.contains("programmatic edge × 1") && text.contains("type 3 from port 4 to port 0"),
        "{text}"
    );
}

#[test]
fn the_order_of_edges_makes_no_difference() {
    let mut drawing = fan(9);
    drawing.edges.extend([full(1, 5), full(2, 7), full(3, 4)]);
    let (_, text) = checked(&drawing);
    drawing.edges.reverse();
    assert_eq!(svg(&drawing), Ok(text));
}

#[test]
fn too_large_a_graph_is_refused_at_once() {
    let ladder = plain(20_001, (0..20_000).flat_map(|id| [(id, id + 1), (id, id + 2)]));
    assert_eq!(svg(&ladder).unwrap_err(), TooLarge { nodes: 20_001, edges: 40_000 });
    // Each edge from the first node crosses all rows in between.
    let long = plain(1500, (1..1500).flat_map(|id| [(id - 1, id), (0, id)]));
    assert!(svg(&long).is_err());
}

fn words() -> impl Strategy<Value = String> {
    let nasty = [
        "",
        "]]>",
        "<!--",
        "&amp;",
        "a<b>\"c'\\d",
        "\u{202e}x",
        "\0\u{fffe}",
        "\r\n\t",
        "漢字👩‍🚀",
        "-->",
        "&#0;",
        "<![CDATA[",
    ];
    prop_oneof![".*", "[a-z_]{0,80}", proptest::sample::select(nasty.to_vec()).prop_map(str::to_owned)]
}

fn drawings() -> impl Strategy<Value = Drawing> {
    let families = [
        Family::Kernel,
        Family::Copy,
        Family::Fill,
        Family::Host,
        Family::Signal,
        Family::Batch,
        Family::Child,
        Family::Conditional,
        Family::Empty,
        Family::Other,
    ];
    let kind = (proptest::sample::select(families.to_vec()), words())
        .prop_map(|(family, label)| DrawnKind { family, label })
        .boxed();
    let edge_kind = prop_oneof![
        4 => Just(DrawnEdgeKind::Full),
        1 => Just(DrawnEdgeKind::Programmatic),
        1 => words().prop_map(DrawnEdgeKind::Other),
    ]
    .boxed();
    let level = move |children: BoxedStrategy<Vec<(String, Drawing)>>| {
        let lists = (proptest::collection::vec(words(), 0..9), proptest::collection::vec(words(), 0..5));
        let node = (kind.clone(), words(), lists, children);
        let edge = (0..20_u32, 0..20_u32, edge_kind.clone());
        let nodes = proptest::collection::vec(node, 0..18);
        (words(), nodes, proptest::collection::vec(edge, 0..40)).prop_map(|(title, nodes, edges)| Drawing {
            title,
            nodes: (0..)
                .zip(nodes)
                .map(|(id, (kind, name, (details, marks), children))| DrawnNode {
                    id,
                    kind,
                    name,
                    details,
                    children,
                    marks,
                })
                .collect(),
            edges: edges.into_iter().map(|(from, to, kind)| DrawnEdge { from, to, kind }).collect(),
        })
    };
    let inner = level(Just(Vec::new()).boxed());
    let children = prop_oneof![
        6 => Just(Vec::new()),
        1 => proptest::collection::vec((words(), inner), 1..3),
    ];
    level(children.boxed())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_picture_is_sound(drawing in drawings()) {
        let (_, text) = checked(&drawing);
        prop_assert_eq!(svg(&drawing), Ok(text));
    }
}
