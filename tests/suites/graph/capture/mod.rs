//! Captures as graphs: builders, scopes, bodies, and what a captured graph keeps alive.

use cuda_graph::capture::{Capturing, GraphBuilder, Kind, Primary};
use cuda_graph::{Condition, Graph, Result, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Error as HandleError, Stream};
use cuda_launch::{kernel, per};
use cuda_sys::{CUresult, CUstreamCaptureMode, CUstreamCaptureStatus};
pub(crate) use cuda_tests::add_to;
use cuda_tests::raw;

mod beside;
mod bodies;
mod cublas;
mod foreign_nodes;
mod host_functions;
mod hostile;
mod matched;
mod messages;
mod model;
mod owners;
mod scopes;
mod smoke;
mod states;
mod sweep;
mod unread;
mod unread_uses;

/// The elements of a buffer.
pub(crate) const N: usize = 16;

pub(crate) const MODES: [CaptureMode; 3] =
    [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed];

kernel! {
    // SAFETY: the kernel in the file has these parameters, and touches the elements below `n`.
    unsafe in "../../../kernels/increment.ptx";

    pub(crate) fn increment_all(n: u32, values: InOut<u32>)
    where values.len() >= n;
}

kernel! {
    // SAFETY: the kernels in the file have these parameters, and each touches the first element
    // alone.
    unsafe in "../../../kernels/conditions.ptx";

    pub(crate) fn set_to(value: u32, handle: ConditionalHandle);
    pub(crate) fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

pub(crate) type Capture = GraphBuilder<Primary, Capturing>;

/// A stream, settled numbers, and kernels.
pub(crate) struct Bench {
    pub(crate) stream: Stream,
    pub(crate) numbers: Buffer<u32>,
    pub(crate) others: Buffer<u32>,
    pub(crate) add: add_to,
    pub(crate) all: increment_all,
    pub(crate) set_to: set_to,
    pub(crate) count_down: count_down,
}

impl Bench {
    pub(crate) fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros(N).unwrap();
        let others = stream.zeros(N).unwrap();
        stream.synchronize_blocking().unwrap();
        Self {
            add: add_to::load(context).unwrap(),
            all: increment_all::load(context).unwrap(),
            set_to: set_to::load(context).unwrap(),
            count_down: count_down::load(context).unwrap(),
            stream,
            numbers,
            others,
        }
    }

    pub(crate) fn begin(&self) -> Capture {
        self.stream.graph_builder().begin().unwrap()
    }

    /// Adds to the first number.
    pub(crate) fn add<K: Kind>(&self, at: &GraphBuilder<K, Capturing>, amount: u32) -> Result<()> {
        at.launch(&self.add, per(1, 1), (amount, &self.numbers))
    }

    /// Adds 1 to all of the other numbers.
    pub(crate) fn add_to_others<K: Kind>(&self, at: &GraphBuilder<K, Capturing>) -> Result<()> {
        at.launch(&self.all, per(N, 32), (N as u32, &self.others))
    }

    /// Sets a condition.
    pub(crate) fn set<K: Kind>(
        &self,
        at: &GraphBuilder<K, Capturing>,
        condition: &Condition,
        value: u32,
    ) -> Result<()> {
        at.launch(&self.set_to, per(1, 1), (value, condition))
    }

    /// The first number after one run, in which it started from 0.
    #[track_caller]
    pub(crate) fn run(&self, graph: &Graph) -> u32 {
        self.stream.fill(&self.numbers, 0).unwrap();
        graph.instantiate().unwrap().launch(&self.stream).unwrap();
        self.numbers.read_blocking(&self.stream).unwrap()[0]
    }

    /// The stream is in no capture, and works.
    #[track_caller]
    pub(crate) fn works_again(&self) {
        works_again(&self.stream);
    }
}

/// The driver's capture status of a stream.
#[track_caller]
pub(crate) fn status(stream: &Stream) -> CUstreamCaptureStatus {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the stream lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuStreamIsCapturing(stream.as_raw(), &raw mut status) });
    status
}

/// Whether a stream is in no capture, as the library and the driver say.
#[track_caller]
pub(crate) fn is_free(stream: &Stream) -> bool {
    stream.capture_id().is_none() && status(stream) == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// The stream is in no capture; it takes a new capture, and new work unless it is the stream of a
/// fork or a body.
#[track_caller]
pub(crate) fn works_again(stream: &Stream) {
    assert!(is_free(stream), "the stream still captures");
    stream.synchronize_blocking().unwrap();
    let (work, numbers) = match stream.upload(&[3_u32; 4]) {
        Err(HandleError::CaptureOver) => {
            let other = stream.context().stream().unwrap();
            let numbers = other.upload(&[3; 4]).unwrap();
            (other, numbers)
        }
        numbers => (stream.clone(), numbers.unwrap()),
    };
    assert_eq!(numbers.read_blocking(&work).unwrap(), [3; 4]);
    let graph = stream.capture(CaptureMode::ThreadLocal, |capture| capture.fill(&numbers, 7)).unwrap();
    assert!(is_free(stream));
    assert_eq!(graph.len().unwrap(), 1);
    assert_eq!(numbers.read_blocking(&work).unwrap(), [3; 4], "a capture runs nothing");
    graph.instantiate().unwrap().launch(&work).unwrap();
    assert_eq!(numbers.read_blocking(&work).unwrap(), [7; 4]);
}

/// Invalidates the capture that a stream is in, as other code does, and no other.
#[track_caller]
pub(crate) fn invalidate(stream: &Stream) {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream lives; the driver answers by invalidating the capture. The mode of the
    // thread is as before afterwards.
    let code = unsafe {
        raw::ok(raw::driver().cuThreadExchangeStreamCaptureMode(&raw mut mode));
        let code = raw::driver().cuStreamQuery(stream.as_raw());
        raw::ok(raw::driver().cuThreadExchangeStreamCaptureMode(&raw mut mode));
        code
    };
    assert_eq!(code, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}
