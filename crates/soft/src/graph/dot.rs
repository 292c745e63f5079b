//! A graph as DOT text.

use std::fmt::Write as _;

use super::payload::Payload;
use super::store::Graphs;
use crate::code::Answer;

impl Graphs {
    /// The DOT text of a graph with its children and bodies.
    pub(crate) fn dot(&self, graph: u64) -> Answer<String> {
        self.graph(graph)?;
        let mut text = String::from("digraph dot {\n");
        for part in self.tree(graph) {
            let uid = self.graph(part)?.uid;
            // Writing to a string does not fail.
            let _ =
                writeln!(text, "subgraph cluster_{uid} {{\nlabel=\"graph_{uid}\" graph[style=\"dashed\"];");
            for handle in self.nodes_of(part)? {
                let node = self.node(handle)?;
                let _ = writeln!(text, "\"node_{}\"[label=\"{}\"];", node.uid, label(&node.payload));
            }
            for (from, to, _) in self.edges(part)? {
                let _ =
                    writeln!(text, "\"node_{}\" -> \"node_{}\";", self.node(from)?.uid, self.node(to)?.uid);
            }
            text.push_str("}\n");
        }
        text.push_str("}\n");
        Ok(text)
    }
}

fn label(payload: &Payload) -> String {
    match payload {
        Payload::Kernel(kernel) => {
            let sizes = &kernel.spec.sizes;
            format!("{}\\n{:?} x {:?}", kernel.spec.function.code.kernel.name(), sizes.grid, sizes.block)
        }
        Payload::Copy(node) => format!("MEMCPY {:?}", node.copy.extent),
        Payload::Fill(node) => format!("MEMSET {} x {}", node.fill.width, node.fill.height),
        Payload::Host(_) => "HOST".to_owned(),
        Payload::Child(_) => "GRAPH".to_owned(),
        Payload::Empty => "EMPTY".to_owned(),
        Payload::EventWait(_) => "EVENT_WAIT".to_owned(),
        Payload::EventRecord(_) => "EVENT_RECORD".to_owned(),
        Payload::Alloc(node) => format!("MEM_ALLOC {}", node.memory.len),
        Payload::Free(_) => "MEM_FREE".to_owned(),
        Payload::Conditional(node) => format!("CONDITIONAL {:?}", node.condition),
    }
}
