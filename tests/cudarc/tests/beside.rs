//! One context, two libraries: what each makes the other uses.

#![allow(clippy::unwrap_used)] // This is how a test fails.

use std::ptr::null_mut;
use std::sync::Arc;

use cuda_graph::{ContextExt, NodeKind};
use cuda_handles::{Context, Stream, reaper};
use cuda_launch::{kernel, per};
use cuda_sys::CUgraphNodeType;
use cuda_tests_cudarc::{adopt_graph, adopt_slice, adopt_stream, lend_stream, shared_context, with_slice};
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, PushKernelArg, result};

kernel! {
    // SAFETY: each of the first n threads reads x and updates y at its own index.
    unsafe in "../../kernels/saxpy.ptx";
    fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>) where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

const N: usize = 1000;

/// Both libraries on one driver, or `None` if cudarc would open another one than the tests use.
fn both() -> Option<(Arc<CudaContext>, Context)> {
    let chosen = std::env::var("CUDA_TEST_DRIVER").unwrap_or_default();
    let library = std::env::var_os("CUDA_SYS_DRIVER").is_some();
    if chosen != "system" && !library {
        println!(
            "skipped: cudarc opens a library by its name; `cargo xtask cudarc` puts the software driver there"
        );
        return None;
    }
    let theirs = CudaContext::new(0).unwrap();
    let context = shared_context(&theirs).unwrap();
    Some((theirs, context))
}

fn their_saxpy(theirs: &Arc<CudaContext>) -> CudaFunction {
    let image = cudarc::nvrtc::Ptx::from_src(include_str!("../../kernels/saxpy.ptx"));
    theirs.load_module(image).unwrap().load_function("saxpy").unwrap()
}

/// Our kernel on a stream: y = 2 x + y.
fn our_launch(
    context: &Context,
    stream: &Stream,
    x: &cuda_handles::Buffer<f32>,
    y: &cuda_handles::Buffer<f32>,
) {
    let saxpy = saxpy::load(context).unwrap();
    saxpy.launch(stream, per(N, 256), (N as u32, 2.0, x, y)).unwrap();
}

/// cudarc's launch of the same kernel.
fn their_launch(
    stream: &Arc<CudaStream>,
    kernel: &CudaFunction,
    x: &cudarc::driver::CudaSlice<f32>,
    y: &mut cudarc::driver::CudaSlice<f32>,
) {
    let (n, a) = (N as u32, 2.0_f32);
    let mut launch = stream.launch_builder(kernel);
    launch.arg(&n).arg(&a).arg(x).arg(y);
    // SAFETY: the arguments are the kernel's.
    unsafe { launch.launch(cudarc::driver::LaunchConfig::for_num_elems(n)) }.unwrap();
}

#[test]
fn contexts_are_one() {
    let Some((theirs, context)) = both() else { return };
    assert_eq!(context.as_raw().addr(), theirs.cu_ctx().addr());
    // SAFETY: cudarc keeps the context.
    let adopted = unsafe { Context::from_raw(theirs.cu_ctx().cast()) }.unwrap();
    assert_eq!(adopted, context);
    let (free, total) = theirs.mem_get_info().unwrap();
    assert!(free <= total);
    assert_eq!(context.memory_info().unwrap().1, total);
}

#[test]
fn a_stream_of_theirs_runs_our_work_in_its_order() {
    let Some((theirs, context)) = both() else { return };
    let their_stream = theirs.new_stream().unwrap();
    {
        // SAFETY: the stream lives to the end of the test.
        let stream = unsafe { adopt_stream(&context, &their_stream) }.unwrap();
        let theirs_x = their_stream.clone_htod(&[1.0_f32; N]).unwrap();
        let x = adopt_slice(&context, theirs_x).unwrap();
        let y = stream.zeros::<f32>(N).unwrap();
        our_launch(&context, &stream, &x, &y);
        assert_eq!(y.read_blocking(&stream).unwrap(), [2.0; N]);
    }
    reaper::drain();
    assert_eq!(reaper::pending(), 0);
    their_stream.synchronize().unwrap();
}

#[test]
fn a_stream_of_ours_runs_their_work_in_its_order() {
    let Some((theirs, context)) = both() else { return };
    let stream = context.stream().unwrap();
    // SAFETY: our stream outlives what is made of it here.
    let lent = unsafe { lend_stream(&theirs, &stream) };
    let kernel = their_saxpy(&theirs);
    let y = stream.upload(&[1.0_f32; N]).unwrap();
    let x = lent.clone_htod(&[3.0_f32; N]).unwrap();
    // SAFETY: all of cudarc's work is on the same stream.
    unsafe {
        with_slice(&y, &lent, |slice| {
            their_launch(&lent, &kernel, &x, slice);
            Ok(())
        })
    }
    .unwrap();
    let sum = stream.zeros::<f32>(N).unwrap();
    our_launch(&context, &stream, &y, &sum);
    assert_eq!(sum.read_blocking(&stream).unwrap(), [14.0; N]);
}

#[test]
fn memory_of_theirs_is_given_back_when_our_graphs_are_done_with_it() {
    let Some((theirs, context)) = both() else { return };
    let their_stream = theirs.new_stream().unwrap();
    let x = adopt_slice(&context, their_stream.clone_htod(&[1.0_f32; N]).unwrap()).unwrap();
    let streams = Arc::strong_count(&their_stream);
    let stream = context.stream().unwrap();
    let y = stream.zeros::<f32>(N).unwrap();
    let saxpy = saxpy::load(&context).unwrap();
    let graph = context.graph().unwrap();
    graph.root().launch(&saxpy, per(N, 256), (N as u32, 2.0, &x, &y)).unwrap();
    let mut exec = graph.instantiate().unwrap();
    drop((x, graph));
    for _ in 0..3 {
        exec.launch(&stream).unwrap();
    }
    assert_eq!(y.read_blocking(&stream).unwrap(), [6.0; N]);
    assert_eq!(Arc::strong_count(&their_stream), streams, "the executable keeps cudarc's memory");
    drop(exec);
    let back = cuda_tests::until(cuda_tests::SOON, || {
        reaper::drain();
        Arc::strong_count(&their_stream) < streams
    });
    assert!(back, "cudarc has its memory back");
}

#[test]
fn a_graph_that_they_captured_is_changed_and_launched_here() {
    let Some((theirs, context)) = both() else { return };
    // SAFETY: nothing here goes to another stream without a wait.
    unsafe { theirs.disable_event_tracking() };
    let their_stream = theirs.new_stream().unwrap();
    let kernel = their_saxpy(&theirs);
    let x = their_stream.clone_htod(&[1.0_f32; N]).unwrap();
    let mut y = their_stream.clone_htod(&[0.0_f32; N]).unwrap();
    their_stream.synchronize().unwrap();
    their_stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    their_launch(&their_stream, &kernel, &x, &mut y);
    their_launch(&their_stream, &kernel, &x, &mut y);
    let captured = their_stream.end_capture(CUgraphInstantiate_flags(0)).unwrap().unwrap();
    {
        // SAFETY: the graph, the memory and the kernel live to the end of the test.
        let graph = unsafe { adopt_graph(&context, &captured) }.unwrap();
        let nodes = graph.nodes().unwrap();
        assert_eq!(
            nodes.iter().map(|node| node.kind()).collect::<Vec<_>>(),
            [NodeKind::Other(CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL); 2]
        );
        let stream = context.stream().unwrap();
        let seen = stream.zeros::<f32>(N).unwrap();
        let more = stream.upload(&[10.0_f32; N]).unwrap();
        let saxpy = saxpy::load(&context).unwrap();
        graph.after([&nodes[1]]).unwrap().launch(&saxpy, per(N, 256), (N as u32, 1.0, &more, &seen)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(seen.read_blocking(&stream).unwrap(), [20.0; N]);
    }
    reaper::drain();
    // Two launches of two nodes, and one of cudarc's own executable of the graph as it was.
    captured.launch().unwrap();
    assert_eq!(their_stream.clone_dtoh(&y).unwrap(), [12.0; N]);
}

#[test]
fn a_graph_of_ours_is_instantiated_and_launched_there() {
    let Some((theirs, context)) = both() else { return };
    let their_stream = theirs.new_stream().unwrap();
    let stream = context.stream().unwrap();
    let (x, y) = (stream.upload(&[1.0_f32; N]).unwrap(), stream.zeros::<f32>(N).unwrap());
    let saxpy = saxpy::load(&context).unwrap();
    let graph = context.graph().unwrap();
    graph.root().launch(&saxpy, per(N, 256), (N as u32, 5.0, &x, &y)).unwrap();
    stream.synchronize_blocking().unwrap();
    theirs.bind_to_thread().unwrap();
    // SAFETY: the graph is lent; what its executable uses, it keeps.
    let exec =
        unsafe { result::graph::instantiate(graph.lend().unwrap().cast(), CUgraphInstantiate_flags(0)) }
            .unwrap();
    drop((graph, x));
    for _ in 0..2 {
        // SAFETY: both live.
        unsafe { result::graph::launch(exec, their_stream.cu_stream()) }.unwrap();
    }
    their_stream.synchronize().unwrap();
    assert_eq!(y.read_blocking(&stream).unwrap(), [10.0; N]);
    // SAFETY: nobody uses it any more.
    unsafe { result::graph::exec_destroy(exec) }.unwrap();
}

#[test]
fn they_capture_a_stream_of_ours_with_our_launches() {
    let Some((theirs, context)) = both() else { return };
    let stream = context.stream().unwrap();
    // SAFETY: our stream outlives what is made of it here, and nobody enqueues on it while a
    // capture begins or ends.
    let lent = unsafe { lend_stream(&theirs, &stream) };
    let (x, y) = (stream.upload(&[1.0_f32; N]).unwrap(), stream.zeros::<f32>(N).unwrap());
    let saxpy = saxpy::load(&context).unwrap();
    stream.synchronize_blocking().unwrap();
    lent.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    saxpy.launch(&stream, per(N, 256), (N as u32, 2.0, &x, &y)).unwrap();
    drop(x);
    let captured = lent.end_capture(CUgraphInstantiate_flags(0)).unwrap().unwrap();
    captured.launch().unwrap();
    captured.launch().unwrap();
    lent.synchronize().unwrap();
    assert_eq!(y.read_blocking(&stream).unwrap(), [4.0; N], "the captured graph keeps the dropped buffer");
    assert_ne!(captured.cu_graph(), null_mut());
}
