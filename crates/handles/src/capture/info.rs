//! What the driver says of a capture, by whichever call it has.

use core::ptr;

use cuda_sys::{CUgraph, CUgraphEdgeData, CUgraphNode, CUstreamCaptureStatus, Call};

use crate::error::Result;
use crate::raw_stream::RawStream;
use crate::stream::Stream;

/// What the driver says of the capture that a stream is in; see [`Stream::capture_info`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CaptureInfo {
    /// Whether calls are captured. Otherwise a call has invalidated the capture, and there is
    /// neither a number nor a graph.
    pub is_active: bool,
    /// The driver's number of the capture; 0 if it is invalid.
    pub id: u64,
    /// The graph into which it captures; null if it is invalid.
    pub graph: CUgraph,
    /// The nodes that the next captured call will depend on, each with the data of that edge.
    pub dependencies: Vec<(CUgraphNode, CUgraphEdgeData)>,
}

/// The driver's answer. Its arrays are valid until the next call on a stream of the capture.
struct Answer {
    status: CUstreamCaptureStatus,
    id: u64,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    /// Null if the driver does not know such data, or there is none.
    edges: *const CUgraphEdgeData,
    count: usize,
}

impl Stream {
    /// The state of the capture that the stream is in, be it of this library or of other code;
    /// `None` if it is not capturing. No driver call for a stream that only this library can
    /// capture and that is in none.
    ///
    /// Waits until no other thread enqueues on the stream, since the driver's arrays change with
    /// the next captured call. Do not hold an [`Enqueue`](super::Enqueue) guard of the stream.
    ///
    /// Calls `cuStreamGetCaptureInfo` with the data of edges (CUDA 12.3), or without (CUDA 11.3).
    ///
    /// # Errors
    /// Other threads use the stream all the time ([`Busy`](crate::Error::Busy)), or the driver
    /// refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuStreamGetCaptureInfo")]
    #[doc(alias = "cuStreamGetCaptureInfo_v3")]
    #[doc(alias = "cudaStreamGetCaptureInfo")]
    pub fn capture_info(&self) -> Result<Option<CaptureInfo>> {
        self.context().ensure_usable()?;
        let raw = self.raw_stream();
        if raw.capture() == 0 && !raw.is_foreign() {
            return Ok(None);
        }
        let streams = core::slice::from_ref(raw);
        let alone = raw.insist(|| RawStream::try_leave(streams))?;
        let answer = ask(self)?;
        // SAFETY: exclusive access is held, so no call of the capture is made on this stream.
        let info = unsafe { answer.read() };
        drop(alone);
        Ok(info)
    }
}

impl Answer {
    /// Copies what the answer leads to.
    ///
    /// # Safety
    /// The arrays are still valid.
    unsafe fn read(&self) -> Option<CaptureInfo> {
        let is_active = match self.status {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => return None,
            status => status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
        };
        let count = if self.nodes.is_null() { 0 } else { self.count };
        let dependency = |index: usize| {
            // SAFETY: both arrays have `count` elements, by the caller's promise.
            unsafe {
                let edge =
                    if self.edges.is_null() { CUgraphEdgeData::default() } else { *self.edges.add(index) };
                (*self.nodes.add(index), edge)
            }
        };
        let dependencies = (0..count).map(dependency).collect();
        Some(CaptureInfo { is_active, id: self.id, graph: self.graph, dependencies })
    }
}

/// The graph into which other code captures; `None` if that capture is invalid, so that it never
/// becomes a graph. The caller has read access of the stream.
pub(super) fn graph(stream: &Stream) -> Result<Option<CUgraph>> {
    let Answer { status, graph, .. } = ask(stream)?;
    Ok(Some(graph).filter(|_| status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE))
}

/// Asks with a place for the data of edges, if the driver knows such data: while edges with data
/// are pending, it refuses to answer without.
fn ask(stream: &Stream) -> Result<Answer> {
    let context = stream.context();
    let driver = context.driver();
    let mut answer = Answer {
        status: CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        id: 0,
        graph: ptr::null_mut(),
        nodes: ptr::null(),
        edges: ptr::null(),
        count: 0,
    };
    let Answer { status, id, graph, nodes, edges, count } = &mut answer;
    // SAFETY: the stream is alive and the out pointers are valid.
    let with_data = unsafe {
        driver.cuStreamGetCaptureInfo_v12030(stream.as_raw(), status, id, graph, nodes, edges, count)
    };
    let (call, code) = match with_data {
        Ok(code) => (Call::cuStreamGetCaptureInfo_v12030, code),
        Err(_missing) => {
            // SAFETY: as above.
            let code =
                unsafe { driver.cuStreamGetCaptureInfo(stream.as_raw(), status, id, graph, nodes, count) };
            (Call::cuStreamGetCaptureInfo, code)
        }
    };
    context.check(call, code).map(|()| answer)
}
