//! The graph as text for Graphviz.

use core::fmt::{self, Write};

use crate::detail::Detail;
use crate::error::Result;
use crate::graph::{Graph, Locked};
use crate::kind::NodeKind;
use crate::order::Index;

impl Graph {
    /// The graph as DOT text: a box for each node with its name and what it does, and its edges.
    ///
    /// ```no_run
    /// # fn example(graph: &cuda_graph::Graph) -> Result<(), Box<dyn std::error::Error>> {
    /// std::fs::write("graph.dot", graph.to_dot()?)?; // then: dot -Tsvg graph.dot -o graph.svg
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphDebugDotPrint")]
    pub fn to_dot(&self) -> Result<String> {
        let picture = Picture::of(&mut self.enter()?)?;
        Ok(picture.to_string())
    }
}

/// What is drawn, taken in one look at the graph.
struct Picture {
    nodes: Vec<(u64, NodeKind, String)>,
    edges: Vec<(u64, u64)>,
}

impl Picture {
    fn of(locked: &mut Locked<'_>) -> Result<Self> {
        let raw_nodes = locked.raw_nodes()?;
        let raw_edges = locked.raw_edges()?;
        let places = locked.indices(&raw_nodes)?;
        let nodes = places.into_iter().filter_map(|index| drawn(locked, index)).collect();
        let mut edges = Vec::with_capacity(raw_edges.len());
        for (from, to) in raw_edges {
            let (from, to) = (locked.index(from)?, locked.index(to)?);
            edges.extend(locked.id(from).zip(locked.id(to)).map(|(from, to)| (from.number, to.number)));
        }
        Ok(Self { nodes, edges })
    }
}

/// Number, kind and text of the node at a place.
fn drawn(locked: &Locked<'_>, index: Index) -> Option<(u64, NodeKind, String)> {
    let (id, row) = (locked.id(index)?, locked.at(index)?);
    Some((id.number, row.detail.kind(), text(row.name.as_deref(), &row.display_name(id), &row.detail)))
}

/// The name, then what the node does if the name does not say it.
fn text(given: Option<&str>, shown: &str, detail: &Detail) -> String {
    let kind = detail.kind();
    let mut text = shown.to_owned();
    let default_name = given.is_none();
    let facts = match detail {
        Detail::Empty | Detail::Child { .. } | Detail::Other { .. } => String::new(),
        // The default name has the kernel's in it.
        Detail::Kernel { config, .. } if default_name => config.to_string(),
        Detail::Kernel { kernel, config } => format!("{}, {config}", kernel.name()),
        Detail::Memcpy { bytes, .. } => format!("{bytes} bytes"),
        Detail::Memset { value, width, count, .. } => format!("{count} x {width} bytes = {value:#x}"),
    };
    if !default_name {
        text.push('\n');
        text.push_str(&kind.to_string());
        if !facts.is_empty() {
            text.push(' ');
        }
    } else if !facts.is_empty() {
        text.push('\n');
    }
    text.push_str(&facts);
    text
}

impl fmt::Display for Picture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "digraph {{")?;
        writeln!(formatter, "    node [shape=box, style=filled, fontname=\"sans-serif\"];")?;
        for (number, kind, text) in &self.nodes {
            let look = look(*kind);
            writeln!(formatter, "    n{number} [label={}, {look}];", Quoted(text))?;
        }
        for (from, to) in &self.edges {
            writeln!(formatter, "    n{from} -> n{to};")?;
        }
        writeln!(formatter, "}}")
    }
}

fn look(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Empty => "shape=ellipse, fillcolor=\"#eeeeee\"",
        NodeKind::Kernel => "fillcolor=\"#cfe8c9\"",
        NodeKind::Memcpy => "fillcolor=\"#cbdcf2\"",
        NodeKind::Memset => "fillcolor=\"#f5e3b8\"",
        _ => "fillcolor=\"#ffffff\"",
    }
}

/// Text as a quoted string of DOT. In one, a backslash begins an escape of the label language, and `&` an entity of HTML.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => formatter.write_str("\\\"")?,
                '\\' => formatter.write_str("\\\\")?,
                '&' => formatter.write_str("&amp;")?,
                '\n' => formatter.write_str("\\n")?,
                other if other.is_control() => formatter.write_char(' ')?,
                other => formatter.write_char(other)?,
            }
        }
        formatter.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(Quoted("a \"b\" \\N &lt;\nc\t\0").to_string(), r#""a \"b\" \\N &amp;lt;\nc  ""#);
    }

    #[test]
    fn a_picture_has_nodes_and_edges() {
        let picture = Picture {
            nodes: vec![
                (0, NodeKind::Empty, "start".to_owned()),
                (7, NodeKind::Memset, "memset#7".to_owned()),
            ],
            edges: vec![(0, 7)],
        };
        let dot = picture.to_string();
        assert!(dot.starts_with("digraph {\n") && dot.ends_with("    n0 -> n7;\n}\n"), "{dot}");
        assert!(dot.contains("n7 [label=\"memset#7\", fillcolor="), "{dot}");
    }

    #[test]
    fn a_given_name_is_followed_by_the_kind() {
        let memset = Detail::Memset { address: 0x100, value: 255, width: 4, count: 16 };
        assert_eq!(text(None, "memset#7", &memset), "memset#7\n16 x 4 bytes = 0xff");
        assert_eq!(text(Some("clear"), "clear", &memset), "clear\nmemset 16 x 4 bytes = 0xff");
        assert_eq!(text(Some("join"), "join", &Detail::Empty), "join\nempty");
        assert_eq!(text(None, "empty#7", &Detail::Empty), "empty#7");
        // A name may look like one that the library gives.
        assert_eq!(text(Some("memset#7"), "memset#7", &Detail::Empty), "memset#7\nempty");
    }
}
