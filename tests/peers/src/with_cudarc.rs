//! The operations by cudarc, on its own view of the same context.
//!
//! By default, a context of cudarc's with several streams records events for every argument and
//! waits for those of other streams. Captures need that switched off, so most operations are
//! measured without it.

use std::hint::black_box;
use std::sync::Arc;

use cuda_tests_bench::{Bench, IMAGE, N, Outcome, Way, WayOf, timed};
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaGraph, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

/// Without events.
pub(crate) const OPERATIONS: &[(&str, WayOf)] = &[
    ("launch, built per call", launch),
    ("graph launch", graph_launch),
    ("capture of 8 launches, instantiated", capture),
];

/// As it is by default.
pub(crate) const WITH_EVENTS: &[(&str, WayOf)] = &[("launch, built per call", launch_with_events)];

const CONFIG: LaunchConfig = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (N, 1, 1), shared_mem_bytes: 0 };

struct Theirs {
    stream: Arc<CudaStream>,
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

impl Theirs {
    fn new(has_events: bool) -> Outcome<Self> {
        let context = CudaContext::new(0)?;
        if !has_events {
            // SAFETY: all work is on one stream.
            unsafe { context.disable_event_tracking() };
        }
        let stream = context.new_stream()?;
        let saxpy = context.load_module(Ptx::from_src(IMAGE))?.load_function("saxpy")?;
        let (x, y) = (stream.alloc_zeros(N as usize)?, stream.alloc_zeros(N as usize)?);
        stream.synchronize()?;
        Ok(Self { stream, saxpy, x, y })
    }

    #[inline]
    fn launch(&mut self) -> Outcome<()> {
        let (n, a) = black_box((N, 2.0_f32));
        let mut launch = self.stream.launch_builder(black_box(&self.saxpy));
        launch.arg(&n).arg(&a).arg(&self.x).arg(&mut self.y);
        // SAFETY: the arguments are the kernel's, and both slices have `N` elements.
        unsafe { launch.launch(CONFIG) }?;
        Ok(())
    }

    /// cudarc ends a capture with an executable.
    fn capture(&mut self, launches: usize) -> Outcome<CudaGraph> {
        self.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        (0..launches).try_for_each(|_| self.launch())?;
        self.stream
            .end_capture(CUgraphInstantiate_flags(0))?
            .ok_or_else(|| "the capture gave no graph".into())
    }
}

fn launch(_: &Bench) -> Outcome<Way<'_>> {
    launches(Theirs::new(false)?)
}

fn launch_with_events(_: &Bench) -> Outcome<Way<'_>> {
    launches(Theirs::new(true)?)
}

fn launches<'a>(mut theirs: Theirs) -> Outcome<Way<'a>> {
    Ok(Box::new(move |count| {
        let time = timed(count, || theirs.launch())?;
        theirs.stream.synchronize()?;
        Ok(time)
    }))
}

fn graph_launch(_: &Bench) -> Outcome<Way<'_>> {
    let mut theirs = Theirs::new(false)?;
    let graph = theirs.capture(1)?;
    graph.launch()?;
    theirs.stream.synchronize()?;
    Ok(Box::new(move |count| {
        // cudarc's graphs do not keep kernels and memory, so all of this moves in here.
        let theirs = &theirs;
        let time = timed(count, || Ok(black_box(&graph).launch()?))?;
        theirs.stream.synchronize()?;
        Ok(time)
    }))
}

fn capture(_: &Bench) -> Outcome<Way<'_>> {
    let mut theirs = Theirs::new(false)?;
    Ok(Box::new(move |count| {
        let mut made = Vec::with_capacity(count as usize);
        timed(count, || {
            made.push(theirs.capture(8)?);
            Ok(())
        })
    }))
}
