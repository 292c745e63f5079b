//! Kernel node attribute calls, and ids of nodes and graphs.

use crate::graph::edit::insert;
use crate::stream::attribute;
use core::ffi::{c_uint, c_ulonglong};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_sys::{CUgraph, CUgraphExec, CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue};

use crate::abi::table::Entries;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{given, put};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::model::graphs::Graphs;
use crate::graph::model::payload::Payload;
use crate::graph::model::store::store;
use crate::graph::model::task::{KernelSpec, Task};
use crate::launch;
use crate::stream::attribute::{AttributeValue, Attributes};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphKernelNodeGetAttribute,
        cuGraphKernelNodeSetAttribute,
        cuGraphKernelNodeCopyAttributes,
        cuGraphNodeGetContainingGraph,
        cuGraphNodeGetLocalId,
        cuGraphNodeGetToolsId,
        cuGraphGetId,
        cuGraphExecGetId,
        ..entries
    }
}

type A = CUlaunchAttributeID;

fn kernel(graphs: &Graphs, node: u64) -> Answer<&KernelSpec> {
    graphs.node(node)?.payload.kernel().map(Arc::as_ref).ok_or(INVALID_VALUE)
}

/// The value of an attribute that was not set.
fn default_attribute(attribute: A) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    if attribute == A::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP {
        value.memSyncDomainMap.remote = 1;
    }
    value
}

/// Replaces the attributes of a node. A device-updatable node stays so.
fn set_attributes(node: u64, change: impl FnOnce(&Graphs, &KernelSpec) -> Answer<Attributes>) -> Answer {
    let replaced = {
        let mut store = store();
        let old = kernel(&store.graphs, node)?;
        let spec = KernelSpec { attributes: change(&store.graphs, old)?, ..old.clone() };
        let (was, is) = (
            attribute::is_device_updatable(&old.attributes),
            attribute::is_device_updatable(&spec.attributes),
        );
        if was && !is {
            return Err(INVALID_VALUE);
        }
        launch::check(&spec.function.code, &spec.sizes, &spec.attributes)?;
        insert::replace(&mut store.graphs, node, Payload::Task(Task::Kernel(Arc::new(spec))))?
    };
    replaced.end();
    Ok(())
}

/// A device-side handle of a node.
fn device_node() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    (1 << 62) + 64 * COUNT.fetch_add(1, Ordering::Relaxed)
}

entries! {
    init fn cuGraphKernelNodeGetAttribute(
        node: CUgraphNode,
        attribute: CUlaunchAttributeID,
        value: *mut CUlaunchAttributeValue,
    ) {
        let store = store();
        let kernel = kernel(&store.graphs, number(node))?;
        if !attribute::is_node_attribute(attribute.0) {
            return Err(INVALID_VALUE);
        }
        let known = kernel.attributes.get(&attribute.0).map(|known| known.0);
        put(value, known.unwrap_or_else(|| default_attribute(attribute)))
    }

    init fn cuGraphKernelNodeSetAttribute(
        node: CUgraphNode,
        attribute: CUlaunchAttributeID,
        value: *const CUlaunchAttributeValue,
    ) {
        let mut value = *given(value)?;
        if attribute == A::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING {
            // It can be set, but not read.
            return kernel(&store().graphs, number(node)).map(drop);
        }
        if !attribute::is_node_attribute(attribute.0) {
            return Err(INVALID_VALUE);
        }
        attribute::check_attribute(attribute, &mut value)?;
        if attribute == A::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE {
            value.deviceUpdatableKernelNode.devNode = core::ptr::without_provenance_mut(device_node());
        }
        set_attributes(number(node), |_, old| {
            let mut attributes = old.attributes.clone();
            attributes.insert(attribute.0, AttributeValue(value));
            Ok(attributes)
        })
    }

    init fn cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode) {
        set_attributes(number(dst), |graphs, old| {
            let attributes = kernel(graphs, number(src))?.attributes.clone();
            // A device-updatable node cannot share its attributes.
            let unique = attribute::is_device_updatable(&attributes) || attribute::is_device_updatable(&old.attributes);
            if unique { Err(INVALID_VALUE) } else { Ok(attributes) }
        })
    }

    init fn cuGraphNodeGetContainingGraph(node: CUgraphNode, graph: *mut CUgraph) {
        put(graph, to_raw(store().graphs.node(number(node))?.graph))
    }

    init fn cuGraphNodeGetLocalId(node: CUgraphNode, id: *mut c_uint) {
        put(id, store().graphs.node(number(node))?.local)
    }

    init fn cuGraphNodeGetToolsId(node: CUgraphNode, id: *mut c_ulonglong) {
        put(id, store().graphs.node(number(node))?.uid)
    }

    init fn cuGraphGetId(graph: CUgraph, id: *mut c_uint) {
        put(id, store().graphs.graph(number(graph))?.uid as c_uint)
    }

    init fn cuGraphExecGetId(exec: CUgraphExec, id: *mut c_uint) {
        put(id, store().exec(number(exec))?.uid as c_uint)
    }
}
