//! A graph as DOT text.

use crate::graph::edit::edge;
use crate::graph::model::hierarchy;
use std::fmt::Write as _;

use cuda_sys::CUgraphDebugDot_flags as Flag;

use crate::driver::result_code::Answer;
use crate::graph::model::edge::Edge;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::node::Node;
use crate::graph::model::payload::Payload;
use crate::graph::model::task::{KernelSpec, Task};

/// The details that the text shows.
#[derive(Debug, Clone, Copy)]
struct Details(u32);

impl Details {
    fn want(self, flag: Flag) -> bool {
        self.0 & (flag.0 | Flag::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE.0) != 0
    }
}

/// The DOT text of a graph with its children and bodies. `flags` are the flags of the call.
pub(crate) fn dot(graphs: &Graphs, graph: u64, flags: u32) -> Answer<String> {
    let details = Details(flags);
    graphs.graph(graph)?;
    let mut text = String::from("digraph dot {\n");
    for part in hierarchy::tree(graphs, graph) {
        // A body is gone whose capture has failed.
        let Ok(uid) = graphs.graph(part).map(|graph| graph.uid) else { continue };
        // Writing to a string does not fail.
        let _ = writeln!(text, "subgraph cluster_{uid} {{\nlabel=\"graph_{uid}\" graph[style=\"dashed\"];");
        for handle in graphs.nodes_of(part)? {
            let node = graphs.node(handle)?;
            let name = format!("graph_{uid}_node_{}", node.local);
            let label = label(handle, node, details);
            let _ = writeln!(text, "\"{name}\"[style=\"solid\" shape=\"rectangle\" label=\"{label}\"];");
        }
        for (from, to, edge) in edge::edges(graphs, part)? {
            let (from, to) = (graphs.node(from)?.local, graphs.node(to)?.local);
            let data = edge_label(edge, details);
            let _ = writeln!(text, "\"graph_{uid}_node_{from}\" -> \"graph_{uid}_node_{to}\"{data};");
        }
        text.push_str("}\n");
    }
    text.push_str("}\n");
    Ok(text)
}

fn edge_label(edge: Edge, details: Details) -> String {
    if edge.is_plain() || !details.want(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO) {
        return String::new();
    }
    format!("[label=\"from port {}, type {}\"]", edge.from_port, edge.kind)
}

/// The label of a node: its number and type, then the requested parameters.
fn label(handle: u64, node: &Node, details: Details) -> String {
    let mut lines = vec![node.local.to_string()];
    match &node.payload {
        Payload::Task(task) => task_lines(task, details, &mut lines),
        Payload::Child(child) => {
            lines.push("GRAPH".to_owned());
            if details.want(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) {
                lines.push(format!("graph {child:#x}"));
            }
        }
        Payload::Conditional(node) => {
            lines.push("CONDITIONAL".to_owned());
            if details.want(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS) {
                lines.push(format!(
                    "{:?}, handle {}, {} bodies",
                    node.condition,
                    node.handle,
                    node.bodies.len()
                ));
            }
        }
    }
    if details.want(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO) {
        lines.push(format!("{} in, {} out", node.dependencies.len(), node.dependents.len()));
    }
    if details.want(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) {
        lines.push(format!("node {handle:#x}"));
    }
    lines.join("\\n")
}

fn task_lines(task: &Task, details: Details, lines: &mut Vec<String>) {
    let mut push = |name: &str, flag: Flag, parameters: &dyn Fn() -> String| {
        lines.push(name.to_owned());
        if details.want(flag) {
            lines.push(parameters());
        }
    };
    match task {
        Task::Kernel(spec) => {
            let flag = Flag::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS;
            push(spec.function.code.kernel.name(), flag, &|| sizes(spec));
            if details.want(Flag::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES) {
                lines.extend(spec.attributes.keys().map(|id| format!("attribute {id}")));
            }
        }
        Task::Copy(node) => push("MEMCPY", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS, &|| {
            let copy = &node.copy;
            format!("{:#x} to {:#x}, {:?} bytes", copy.src.address, copy.dst.address, copy.extent)
        }),
        Task::Fill(node) => push("MEMSET", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS, &|| {
            let fill = &node.fill;
            format!("{:#x}, {} x {} of {} bytes", fill.address, fill.width, fill.height, fill.element)
        }),
        Task::Host(callback) => push("HOST", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS, &|| {
            format!("{:p}({:p})", callback.function as *const (), callback.data)
        }),
        Task::Empty => lines.push("EMPTY".to_owned()),
        Task::EventWait(event) => {
            push("EVENT_WAIT", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS, &|| {
                format!("event {event:#x}")
            })
        }
        Task::EventRecord(event) => {
            push("EVENT_RECORD", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS, &|| {
                format!("event {event:#x}")
            });
        }
        Task::Alloc(node) => push("MEM_ALLOC", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS, &|| {
            format!("{} bytes at {:#x}", node.memory.len, node.memory.start)
        }),
        Task::Free(memory) => push("MEM_FREE", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS, &|| {
            format!("{:#x}", memory.start)
        }),
        Task::Batch(node) => {
            push("BATCH_MEM_OP", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS, &|| {
                format!("{:?}", node.ops)
            });
        }
        Task::Signal(node) => {
            push("EXT_SEMAS_SIGNAL", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS, &|| {
                format!("{:?}", node.params)
            });
        }
        Task::Wait(node) => {
            push("EXT_SEMAS_WAIT", Flag::CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS, &|| {
                format!("{:?}", node.params)
            });
        }
    }
}

fn sizes(spec: &KernelSpec) -> String {
    let ([gx, gy, gz], [bx, by, bz]) = (spec.sizes.grid, spec.sizes.block);
    format!("<<<({gx}, {gy}, {gz}), ({bx}, {by}, {bz}), {}>>>", spec.sizes.shared)
}
