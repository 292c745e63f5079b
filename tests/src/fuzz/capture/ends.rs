//! Captures: their begin, their ends, and the graphs that come of them.

use std::collections::BTreeSet;

use cuda_graph::capture::{AnyThread, Capturing, Ended, GraphBuilder, Origin, Primary};
use cuda_graph::{Error, Graph, GraphExec, Result, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Error as HandleError, Stream};
use cuda_sys::{CUresult, CUstreamCaptureMode, Call};

use super::expected::{Fault, judged};
use super::model::{Node, Past, Recording};
use super::ops::{Invalidation, Mode, Number};
use super::work::maybe_elsewhere;
use super::world::World;
use crate::driver::raw::driver;
use crate::faults::inject::fail;

const MAX_CAPTURES: usize = 16;
const MAX_EXECS: usize = 6;

enum Builder {
    Primary(GraphBuilder<Primary, Capturing>),
    AnyThread(GraphBuilder<AnyThread, Capturing>),
}

impl Builder {
    fn stream(&self) -> &Stream {
        match self {
            Self::Primary(builder) => builder.stream(),
            Self::AnyThread(builder) => builder.stream(),
        }
    }
}

/// A capture with its model.
pub(super) struct Capture {
    builder: Option<Builder>,
    is_forgotten: bool,
    /// The number of the stream on which it began.
    origin: u64,
    shares_scratch: bool,
    pub(super) model: Recording,
    pub(super) is_open: bool,
}

impl Capture {
    fn close(&mut self) {
        self.is_open = false;
        self.model.pasts.clear();
    }

    fn fault_of_end(&self) -> Option<Fault> {
        match () {
            () if !self.is_open => Some(Fault::Discarded),
            () if self.model.is_invalid => Some(Fault::Invalidated),
            () if !self.model.is_joined(self.origin) => Some(Fault::Unjoined),
            () => None,
        }
    }
}

/// An executable with what it does.
pub(super) struct Exec {
    exec: GraphExec,
    nodes: Vec<Node>,
    shares_scratch: bool,
}

impl World<'_> {
    /// The open capture that a stream is in.
    pub(super) fn capture_of(&self, stream: &Stream) -> Option<usize> {
        self.capture_with(stream.id())
    }

    fn capture_with(&self, stream: u64) -> Option<usize> {
        self.captures.iter().position(|capture| capture.is_open && capture.model.pasts.contains_key(&stream))
    }

    /// The fault of every call of a capture: it is invalid.
    pub(super) fn fault_of_call(&self, capture: Option<usize>) -> Option<Fault> {
        let is_invalid = capture.is_some_and(|capture| self.captures[capture].model.is_invalid);
        is_invalid.then_some(Fault::Any)
    }

    pub(super) fn begin(&mut self, stream: Number, mode: Mode, shares_scratch: bool) {
        if self.captures.len() == MAX_CAPTURES {
            return;
        }
        let stream = self.stream(stream);
        let fault = self.capture_of(&stream).map(|_| Fault::Capturing);
        let begun = self.call(fault, |bench| {
            let builder = stream.graph_builder();
            let builder = if shares_scratch { builder.scratch(&bench.scratch) } else { builder };
            let builder = match mode {
                Mode::Global => builder.mode(CaptureMode::Global),
                Mode::ThreadLocal => builder.mode(CaptureMode::ThreadLocal),
                Mode::Relaxed => builder.mode(CaptureMode::Relaxed),
                Mode::AnyThread => return builder.begin_on_any_thread().map(Builder::AnyThread),
            };
            builder.begin().map(Builder::Primary)
        });
        if let Some(builder) = begun {
            let (origin, model) = (stream.id(), Recording::begun(stream.id()));
            let (builder, is_forgotten, is_open) = (Some(builder), false, true);
            self.captures.push(Capture { builder, is_forgotten, origin, shares_scratch, model, is_open });
        }
    }

    /// A capture whose builder is still there.
    fn capture(&self, number: Number) -> Option<usize> {
        let has_builder = |capture: &Capture| capture.builder.is_some() && !capture.is_forgotten;
        let all: Vec<usize> =
            (0..self.captures.len()).filter(|capture| has_builder(&self.captures[*capture])).collect();
        Some(all[usize::from(number).checked_rem(all.len())?])
    }

    /// Makes the stream on which a capture began wait for all others that are still there.
    fn join_all(&mut self, capture: usize) {
        let Some(builder) = &self.captures[capture].builder else { return };
        let origin = builder.stream().clone();
        for stream in self.streams.clone() {
            if self.capture_of(&stream) == Some(capture) {
                self.make_wait(&origin, &stream);
            }
        }
    }

    pub(super) fn end(&mut self, capture: Number, joins: bool, elsewhere: bool) {
        let Some(at) = self.capture(capture) else { return };
        if joins {
            self.join_all(at);
        }
        let capture = &mut self.captures[at];
        let Some(builder) = capture.builder.take() else { return };
        let fault = capture.fault_of_end();
        let (nodes, shares_scratch) = (core::mem::take(&mut capture.model.nodes), capture.shares_scratch);
        capture.close();
        // Only this call: whatever else fails at an end, an object may stay.
        let code = CUresult::CUDA_ERROR_OPERATING_SYSTEM;
        let injection = self.failing.take().map(|_| fail(Call::cuStreamEndCapture, 1, code));
        let outcome = match builder {
            Builder::Primary(builder) => builder.end().map(whole),
            Builder::AnyThread(builder) => maybe_elsewhere(elsewhere, || builder.end().map(whole)),
        };
        let hit = injection.and_then(|injection| injection.hit_call());
        let Some(graph) = judged(outcome, fault, hit) else { return };
        check_graph(&graph, &nodes).expect("a graph is read");
        if self.execs.len() < MAX_EXECS {
            let exec = graph.instantiate().expect("an executable");
            self.execs.push(Exec { exec, nodes, shares_scratch });
        }
    }

    pub(super) fn drop_builder(&mut self, capture: Number) {
        if let Some(capture) = self.capture(capture) {
            let capture = &mut self.captures[capture];
            drop(capture.builder.take());
            capture.close();
        }
    }

    pub(super) fn forget_builder(&mut self, capture: Number) {
        if let Some(capture) = self.capture(capture) {
            self.captures[capture].is_forgotten = true;
        }
    }

    pub(super) fn discard(&mut self, stream: Number, elsewhere: bool) {
        let stream = self.stream(stream);
        let capture = self.capture_of(&stream);
        let discarded = maybe_elsewhere(elsewhere, || stream.discard_capture());
        assert_eq!(discarded, Ok(capture.is_some()));
        if let Some(capture) = capture {
            self.captures[capture].close();
        }
    }

    /// Ends what was forgotten, and drops all builders.
    pub(super) fn drop_captures(&mut self) {
        for capture in &mut self.captures {
            if let Some(builder) = capture.builder.as_ref().filter(|_| capture.is_forgotten) {
                builder.stream().discard_capture().expect("the capture is over");
            }
            drop(capture.builder.take());
            capture.close();
        }
    }

    pub(super) fn invalidate(&mut self, stream: Number, by: Invalidation) {
        let stream = self.stream(stream);
        let Some(capture) = self.capture_of(&stream) else { return };
        let capture = &mut self.captures[capture];
        match by {
            Invalidation::EndOnFork if capture.origin == stream.id() || capture.model.is_invalid => return,
            Invalidation::EndOnFork => end_on_fork(&stream),
            Invalidation::Query => maybe_elsewhere(true, || query_relaxed(&stream)),
        }
        capture.model.is_invalid = true;
    }

    pub(super) fn launch(&mut self, exec: Number, stream: Number) {
        let Some(exec) = usize::from(exec).checked_rem(self.execs.len()) else { return };
        let stream = self.stream(stream);
        self.launch_on(exec, &stream);
    }

    fn launch_on(&mut self, exec: usize, stream: &Stream) {
        let is_captured = self.capture_of(stream).is_some();
        // The launch waits for the last one in line, unless that was seen done.
        let is_last_captured = self.last_in_line.is_some_and(|last| self.capture_with(last).is_some());
        if !is_captured {
            self.order_before(stream);
        }
        let Exec { exec, nodes, shares_scratch } = &mut self.execs[exec];
        let launched = exec.launch(stream);
        if is_last_captured
            && *shares_scratch
            && matches!(launched, Err(Error::Handles(HandleError::Capturing { .. })))
        {
            return;
        }
        if judged(launched, is_captured.then_some(Fault::Captured), None).is_some() {
            if *shares_scratch {
                self.last_in_line = Some(stream.id());
            }
            self.memory.run(nodes);
            self.order_behind(stream);
        }
    }

    /// Launches all that is left, so that nothing is dropped without having run.
    pub(super) fn launch_all(&mut self) {
        let stream = self.runner.clone();
        for exec in 0..self.execs.len() {
            self.launch_on(exec, &stream);
        }
    }

    pub(super) fn drop_exec(&mut self, exec: Number) {
        if let Some(exec) = usize::from(exec).checked_rem(self.execs.len()) {
            drop(self.execs.swap_remove(exec));
        }
    }
}

/// The graph of a capture, each of whose calls has a node.
fn whole<K: Origin>(ended: GraphBuilder<K, Ended>) -> Graph {
    assert_eq!(ended.unmatched().ok(), Some(0), "calls without a node");
    ended.into_graph()
}

/// A call that is forbidden on a capturing stream, and harmless for other captures.
fn query_relaxed(stream: &Stream) {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the pointer is valid. The thread ends soon.
    crate::driver::raw::ok(unsafe { driver().cuThreadExchangeStreamCaptureMode(&raw mut mode) });
    // SAFETY: the stream lives; the driver answers by invalidating the capture.
    let code = unsafe { driver().cuStreamQuery(stream.as_raw()) };
    assert_eq!(code, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/// Ends a capture on a stream that was drawn into it.
fn end_on_fork(stream: &Stream) {
    let mut graph = core::ptr::null_mut();
    // SAFETY: the stream lives and the out pointer is valid; the driver refuses.
    let code = unsafe { driver().cuStreamEndCapture(stream.as_raw(), &raw mut graph) };
    assert_eq!(code, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
}

/// Compares the nodes of a graph and their order with the model. The driver has the nodes in the
/// order of the calls.
fn check_graph(graph: &Graph, nodes: &[Node]) -> Result<()> {
    let handles = graph.nodes()?;
    let kinds: Vec<_> = handles.iter().map(|node| node.kind()).collect();
    assert_eq!(kinds, nodes.iter().map(|node| node.kind).collect::<Vec<_>>(), "nodes");
    let number_of = |node: &cuda_graph::Node| {
        handles.iter().position(|other| other == node).expect("an edge between nodes of the graph")
    };
    let edges: BTreeSet<(usize, usize)> =
        graph.edges()?.iter().map(|edge| (number_of(&edge.to), number_of(&edge.from))).collect();
    let mut pasts: Vec<Past> = Vec::new();
    for number in 0..nodes.len() {
        let before = edges.range((number, 0)..=(number, usize::MAX)).map(|(_, from)| *from);
        let past = before.flat_map(|from| pasts[from].iter().copied().chain([from])).collect();
        pasts.push(past);
        assert_eq!(pasts[number], nodes[number].past, "the nodes before number {number}");
    }
    Ok(())
}
