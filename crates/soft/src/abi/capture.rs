//! Stream capture calls.

use crate::graph::edit::insert;
use core::ffi::c_uint;
use std::sync::Arc;

use cuda_sys::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus as Status,
    cuuint64_t,
};

use super::graph::read_nodes;
use super::table::Entries;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, put_if, required};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::capture::{self, Info};
use crate::graph::model::edge::Edge;
use crate::graph::model::store::store;
use crate::stream::{self, Stream};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuStreamBeginCapture,
        cuStreamBeginCaptureToGraph,
        cuStreamEndCapture,
        cuStreamIsCapturing,
        cuStreamGetCaptureInfo,
        cuStreamGetCaptureInfo_v12030,
        cuStreamUpdateCaptureDependencies,
        cuStreamUpdateCaptureDependencies_v12030,
        ..entries
    }
}

/// The out parameters of a capture query.
struct InfoOut {
    status: *mut Status,
    id: *mut cuuint64_t,
    graph: *mut CUgraph,
    nodes: *mut *const CUgraphNode,
    edges: *mut *const CUgraphEdgeData,
    count: *mut usize,
}

impl InfoOut {
    const NOTHING: Self = Self {
        status: core::ptr::null_mut(),
        id: core::ptr::null_mut(),
        graph: core::ptr::null_mut(),
        nodes: core::ptr::null_mut(),
        edges: core::ptr::null_mut(),
        count: core::ptr::null_mut(),
    };
}

/// # Safety
/// The out pointers are null or valid for writes.
unsafe fn write_info(stream: &Arc<Stream>, out: &InfoOut) -> Answer {
    required(out.status)?;
    capture::check_legacy_question(stream)?;
    // SAFETY (of all blocks): the caller's promise.
    match capture::info(stream, !out.nodes.is_null(), !out.edges.is_null())? {
        // SAFETY: as above.
        Info::None => unsafe { put(out.status, Status::CU_STREAM_CAPTURE_STATUS_NONE) },
        // SAFETY: as above.
        Info::Invalidated => unsafe { put(out.status, Status::CU_STREAM_CAPTURE_STATUS_INVALIDATED) },
        Info::Active { id, graph, nodes, edges, count } => {
            // SAFETY: as above.
            unsafe {
                put_if(out.id, id);
                put_if(out.graph, to_raw(graph));
                put_if(out.nodes, nodes);
                put_if(out.edges, edges);
                put_if(out.count, count);
                put(out.status, Status::CU_STREAM_CAPTURE_STATUS_ACTIVE)
            }
        }
    }
}

fn update(h_stream: CUstream, nodes: &[(u64, Edge)], flags: c_uint) -> Answer {
    const REPLACE: c_uint = 1;
    let stream = stream::get(number(h_stream))?;
    if flags > REPLACE {
        return Err(INVALID_VALUE);
    }
    capture::update(&stream, nodes, flags == REPLACE)
}

entries! {
    owned_in_callbacks fn cuStreamBeginCapture(h_stream: CUstream, mode: CUstreamCaptureMode) {
        capture::begin(&*stream::get(number(h_stream))?, mode, None)
    }

    owned_in_callbacks fn cuStreamBeginCaptureToGraph(
        h_stream: CUstream,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
        mode: CUstreamCaptureMode,
    ) {
        let stream = stream::get(number(h_stream))?;
        let nodes = read_nodes(dependencies, data, count)?;
        let plain = nodes.iter().all(|(_, edge)| edge.is_plain());
        insert::check_dependencies(&store().graphs, number(graph), &nodes)?;
        if !plain {
            return Err(INVALID_VALUE);
        }
        capture::begin(&stream, mode, Some((number(graph), nodes)))
    }

    owned_in_callbacks fn cuStreamEndCapture(h_stream: CUstream, graph: *mut CUgraph) {
        put_if(graph, core::ptr::null_mut());
        let ended = capture::end(&*stream::get(number(h_stream))?)?;
        put_if(graph, to_raw(ended));
        Ok(())
    }

    owned_in_callbacks fn cuStreamIsCapturing(h_stream: CUstream, status: *mut Status) {
        let stream = stream::get(number(h_stream))?;
        let out = InfoOut { status, ..InfoOut::NOTHING };
        write_info(&stream, &out)
    }

    owned_in_callbacks fn cuStreamGetCaptureInfo(
        h_stream: CUstream,
        status: *mut Status,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        count: *mut usize,
    ) {
        let stream = stream::get(number(h_stream))?;
        write_info(&stream, &InfoOut { status, id, graph, nodes, edges: core::ptr::null_mut(), count })
    }

    owned_in_callbacks fn cuStreamGetCaptureInfo_v12030(
        h_stream: CUstream,
        status: *mut Status,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) {
        let stream = stream::get(number(h_stream))?;
        write_info(&stream, &InfoOut { status, id, graph, nodes, edges, count })
    }

    owned fn cuStreamUpdateCaptureDependencies(
        h_stream: CUstream,
        nodes: *mut CUgraphNode,
        count: usize,
        flags: c_uint,
    ) {
        update(h_stream, &read_nodes(nodes, core::ptr::null(), count)?, flags)
    }

    owned fn cuStreamUpdateCaptureDependencies_v12030(
        h_stream: CUstream,
        nodes: *mut CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
        flags: c_uint,
    ) {
        update(h_stream, &read_nodes(nodes, data, count)?, flags)
    }
}
