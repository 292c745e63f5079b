//! A drawing as DOT text, for Graphviz.

use core::fmt::{self, Write};
use std::collections::HashSet;

use crate::draw::drawing::{Drawing, DrawnEdge, DrawnEdgeKind, DrawnNode, Family};
use crate::draw::style::{box_style, edge_style};
use crate::wording::Named;

/// A drawing as DOT text: a box for each node, a cluster for each node with graphs in it, styles
/// for kinds of edges.
pub(crate) struct Dot<'a>(pub(crate) &'a Drawing);

impl fmt::Display for Dot<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "digraph {{")?;
        if !self.0.title.is_empty() {
            writeln!(formatter, "    label={};", Quoted(&self.0.title))?;
            writeln!(formatter, "    labelloc=t;")?;
        }
        writeln!(formatter, "    fontname=\"sans-serif\";")?;
        // Lets edges end at the border of a cluster.
        writeln!(formatter, "    compound=true;")?;
        writeln!(formatter, "    node [shape=box, style=filled, fontname=\"sans-serif\"];")?;
        writeln!(formatter, "    edge [fontname=\"sans-serif\", fontsize=10];")?;
        body(formatter, self.0, "n", 0)?;
        writeln!(formatter, "}}")
    }
}

/// Writes the nodes and edges of a drawing. The names of its nodes begin with a prefix of its own.
fn body(out: &mut fmt::Formatter<'_>, drawing: &Drawing, prefix: &str, depth: usize) -> fmt::Result {
    let indent = Indent(depth + 1);
    for node in &drawing.nodes {
        if node.children.is_empty() {
            write_node(out, node, prefix, depth)?;
            continue;
        }
        writeln!(out, "{indent}subgraph \"cluster_{prefix}{}\" {{", node.id)?;
        let style = box_style(node.kind.family);
        writeln!(
            out,
            "{indent}    label=\"\"; style=\"rounded,filled\"; color=\"{}\"; fillcolor=\"{}\";",
            style.strong, style.fill
        )?;
        write_node(out, node, prefix, depth + 1)?;
        for (number, (label, child)) in node.children.iter().enumerate() {
            let inner = format!("{prefix}{}_{number}_", node.id);
            writeln!(out, "{indent}    subgraph \"cluster_{inner}\" {{")?;
            writeln!(out, "{indent}        label={}; fillcolor=\"#ffffff\";", Quoted(label))?;
            body(out, child, &inner, depth + 2)?;
            writeln!(out, "{indent}    }}")?;
        }
        write_hold(out, node, prefix, depth + 1)?;
        writeln!(out, "{indent}}}")?;
    }
    let with_graphs: HashSet<u32> =
        drawing.nodes.iter().filter(|node| !node.children.is_empty()).map(|node| node.id).collect();
    drawing.edges.iter().try_for_each(|edge| write_edge(out, edge, prefix, &with_graphs, depth))
}

fn write_edge(
    out: &mut fmt::Formatter<'_>,
    edge: &DrawnEdge,
    prefix: &str,
    with_graphs: &HashSet<u32>,
    depth: usize,
) -> fmt::Result {
    let DrawnEdge { from, to, kind } = edge;
    let mut attributes = Vec::new();
    let tail = if with_graphs.contains(from) {
        attributes.push(format!("ltail=\"cluster_{prefix}{from}\""));
        END
    } else {
        ""
    };
    if with_graphs.contains(to) {
        attributes.push(format!("lhead=\"cluster_{prefix}{to}\""));
    }
    if *kind != DrawnEdgeKind::Full {
        let style = edge_style(kind);
        let label = kind.to_string();
        attributes.push(format!(
            "style={}, color=\"{}\", tooltip={}",
            style.dot,
            style.colour,
            Quoted(&label)
        ));
        if matches!(kind, DrawnEdgeKind::Other(_)) {
            attributes.push(format!("label={}", Quoted(&label)));
        }
    }
    write!(out, "{}{prefix}{from}{tail} -> {prefix}{to}", Indent(depth + 1))?;
    if !attributes.is_empty() {
        write!(out, " [{}]", attributes.join(", "))?;
    }
    writeln!(out, ";")
}

/// The suffix for the point below the graphs in a node: its name is the node's and this.
const END: &str = "_end";

/// Holds the graphs in a node between its box and a point below them, by invisible edges. Otherwise
/// Graphviz would put them beside the box, in any order, and the node's successors beside them.
fn write_hold(out: &mut fmt::Formatter<'_>, node: &DrawnNode, prefix: &str, depth: usize) -> fmt::Result {
    let indent = Indent(depth + 1);
    let top = format!("{prefix}{}", node.id);
    writeln!(out, "{indent}{top}{END} [shape=point, style=invis, width=0, label=\"\"];")?;
    let mut hold = |from: &str, to: &str| writeln!(out, "{indent}{from} -> {to} [style=invis];");
    hold(&top, &format!("{top}{END}"))?;
    for (number, (_, child)) in node.children.iter().enumerate() {
        let entered: HashSet<u32> = child.edges.iter().map(|edge| edge.to).collect();
        let left: HashSet<u32> = child.edges.iter().map(|edge| edge.from).collect();
        for inner in &child.nodes {
            let name = format!("{top}_{number}_{}", inner.id);
            if !entered.contains(&inner.id) {
                hold(&top, &name)?;
            }
            if !left.contains(&inner.id) {
                let end = if inner.children.is_empty() { "" } else { END };
                hold(&format!("{name}{end}"), &format!("{top}{END}"))?;
            }
        }
    }
    Ok(())
}

fn write_node(out: &mut fmt::Formatter<'_>, node: &DrawnNode, prefix: &str, depth: usize) -> fmt::Result {
    let style = box_style(node.kind.family);
    let indent = Indent(depth + 1);
    write!(out, "{indent}{prefix}{} [label={}", node.id, Quoted(&text(node)))?;
    if node.kind.family == Family::Empty {
        write!(out, ", shape=ellipse")?;
    }
    writeln!(out, ", fillcolor=\"{}\", color=\"{}\"];", style.fill, style.strong)
}

/// The name, then the type unless the name begins with it, then the parameters.
fn text(node: &DrawnNode) -> String {
    let mut lines = vec![Named(&node.name).to_string()];
    let label = &node.kind.label;
    if !node.name.starts_with(label.as_str()) {
        lines.push(label.clone());
    }
    lines.extend(node.details.iter().map(|detail| Named(detail).to_string()));
    lines.extend(node.marks.iter().map(|mark| format!("[{mark}]")));
    lines.join("\n")
}

struct Indent(usize);

impl fmt::Display for Indent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.0).try_for_each(|_| formatter.write_str("    "))
    }
}

/// How many bytes of a text are written. Graphviz takes strings of less than 16 384 bytes, and a
/// character is written as five bytes at most.
const LONGEST: usize = 3000;

/// Text as a quoted DOT string; very long text is cut at the end. In such a string a backslash
/// begins an escape of the label language, and `&` an HTML entity.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        let shown = match self.0.char_indices().find(|(at, _)| *at >= LONGEST) {
            Some((end, _)) => self.0.get(..end).unwrap_or_default(),
            None => self.0,
        };
        for character in shown.chars() {
            match character {
                '"' => formatter.write_str("\\\"")?,
                '\\' => formatter.write_str("\\\\")?,
                '&' => formatter.write_str("&amp;")?,
                '\n' => formatter.write_str("\\n")?,
                other if other.is_control() => formatter.write_char(' ')?,
                other => formatter.write_char(other)?,
            }
        }
        if shown.len() < self.0.len() {
            formatter.write_char('…')?;
        }
        formatter.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::drawing::DrawnKind;

    fn node(id: u32, family: Family, label: &str, name: &str) -> DrawnNode {
        let kind = DrawnKind { family, label: label.to_owned() };
        DrawnNode { id, kind, name: name.to_owned(), details: vec![], children: vec![], marks: vec![] }
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(Quoted("a \"b\" \\N &lt;\nc\t\0").to_string(), r#""a \"b\" \\N &amp;lt;\nc  ""#);
    }

    #[test]
    fn long_text_is_cut_below_what_graphviz_takes() {
        for text in ["&", "\"", "漢", "x\n"] {
            let written = Quoted(&text.repeat(100_000)).to_string();
            assert!(written.len() < 16_384 && written.ends_with("…\""), "{}", written.len());
        }
        let mut long = node(1, Family::Kernel, "kernel", &"n".repeat(1_000_000));
        long.details = vec!["d".repeat(1_000_000), "a\0b\nc".to_owned()];
        let label = text(&long);
        assert!(label.len() < 400 && label.ends_with("a\\u{0}b\\nc"), "{label}");
    }

    #[test]
    fn a_picture_has_nodes_and_edges() {
        let nodes =
            vec![node(0, Family::Empty, "empty", "start"), node(7, Family::Fill, "memset", "memset#7")];
        let edges = vec![
            DrawnEdge { from: 0, to: 7, kind: DrawnEdgeKind::Full },
            DrawnEdge { from: 7, to: 0, kind: DrawnEdgeKind::Programmatic },
        ];
        let dot = Dot(&Drawing { title: String::new(), nodes, edges }).to_string();
        assert!(dot.starts_with("digraph {\n") && dot.ends_with("}\n"), "{dot}");
        assert!(dot.contains("    n0 -> n7;\n") && dot.contains("    n7 -> n0 [style=dashed"), "{dot}");
        assert!(dot.contains("n7 [label=\"memset#7\", fillcolor="), "{dot}");
        assert!(dot.contains("n0 [label=\"start\\nempty\", shape=ellipse"), "{dot}");
    }

    #[test]
    fn a_child_is_a_cluster_with_names_of_its_own() {
        let mut outer = node(3, Family::Child, "child graph", "step");
        let inner = Drawing { nodes: vec![node(3, Family::Kernel, "kernel", "inner")], ..Drawing::default() };
        outer.children = vec![("once".to_owned(), inner)];
        let drawing = Drawing { title: "whole".to_owned(), nodes: vec![outer], edges: vec![] };
        let dot = Dot(&drawing).to_string();
        assert!(dot.contains("subgraph \"cluster_n3\" {"), "{dot}");
        assert!(dot.contains("label=\"once\"") && dot.contains("label=\"whole\""), "{dot}");
        assert!(dot.contains("n3_0_3 [label=\"inner\\nkernel\""), "{dot}");
        // It is held between the box of its node and the point that the node's outgoing edges start
        // from.
        for edge in ["n3 -> n3_0_3", "n3_0_3 -> n3_end", "n3 -> n3_end"] {
            assert!(dot.contains(&format!("{edge} [style=invis];")), "{edge} is not in {dot}");
        }
        assert_eq!(dot.matches('{').count(), dot.matches('}').count());
    }

    #[test]
    fn the_name_is_followed_by_the_kind_unless_it_says_it() {
        let mut memset = node(1, Family::Fill, "memset", "memset#7");
        memset.details = vec!["16 x 4 bytes = 0xff".to_owned()];
        assert_eq!(text(&memset), "memset#7\n16 x 4 bytes = 0xff");
        memset.name = "clear".to_owned();
        memset.marks = vec!["disabled".to_owned()];
        assert_eq!(text(&memset), "clear\nmemset\n16 x 4 bytes = 0xff\n[disabled]");
    }
}
