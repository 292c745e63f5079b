//! Memory of graphs: allocation nodes, free nodes, and the memory that launches leave.

use cuda_graph::{AllocNode, ContextExt, FreeNode, NodeKind};
use cuda_handles::{Context, Image, Stream};
use cuda_launch::{kernel, per};
use cuda_tests::{SMALL, SOON, needs, no_leaks, settle, setup, until};

mod freed_later;
mod ordered_uses;
mod outputs;
mod read_back;
mod refused;
mod same_memory_each_time;
mod usage;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    pub(crate) fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

pub(crate) const N: usize = 64;
pub(crate) const COUNT: u32 = N as u32;

/// Runs `section` and asserts that it leaves nothing: no object of the driver's, and no memory of
/// graphs.
#[track_caller]
pub(crate) fn traceless(section: impl FnOnce(&Context, &Stream)) {
    let context = setup();
    let before = in_use(&context);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        section(&context, &stream);
    });
    // The reaper frees on a stream of its own, for which no call here waits.
    let mut after = before;
    let is_back = until(SOON, || {
        after = in_use(&context);
        after == before
    });
    assert!(is_back, "{after:?} in place of {before:?}");
}

/// The memory that graphs have of the device and that a trim does not free.
pub(crate) fn in_use(context: &Context) -> (u64, u64) {
    settle();
    context.synchronize_blocking().unwrap();
    // The reaper's stream may be freeing some.
    context.memory_info().unwrap();
    context.trim_graph_memory().unwrap();
    let usage = context.graph_memory_usage().unwrap();
    (usage.used, usage.reserved)
}

#[test]
fn memory_is_allocated_used_and_freed() {
    traceless(|context, stream| {
        let kernel = increment::load(context).unwrap();
        let out = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let fill = alloc.then().fill(&memory, 5).unwrap();
        let add = fill.then().launch(&kernel, per(N, 32), (&memory, COUNT)).unwrap();
        let half = add.then().launch(&kernel, per(N, 32), (memory.slice(32..).unwrap(), 32)).unwrap();
        let copy = half.then().copy(&memory, &out).unwrap();
        let free = copy.then().free(&memory).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..3 {
            exec.launch(stream).unwrap();
            let numbers = out.read_blocking(stream).unwrap();
            assert_eq!((&numbers[..32], &numbers[32..]), (&[6; 32][..], &[7; 32][..]));
        }
        let kinds: Vec<NodeKind> = graph.nodes().unwrap().iter().map(|node| node.kind()).collect();
        assert_eq!((kinds[0], kinds[5]), (NodeKind::Alloc, NodeKind::Free));
        assert_eq!(AllocNode::try_from(graph.nodes().unwrap()[0].clone()).unwrap(), alloc);
        assert_eq!(FreeNode::try_from(graph.nodes().unwrap()[5].clone()).unwrap(), free);
        assert_eq!((alloc.address().unwrap(), alloc.bytes().unwrap()), (memory.address(), 4 * N));
        assert_eq!(
            (alloc.freed_by().unwrap(), free.allocation().unwrap()),
            (Some(free.clone()), Some(alloc))
        );
    });
}

#[test]
fn what_is_not_freed_comes_out() {
    traceless(|context, stream| {
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        alloc.then().fill(&memory, 5).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        for _ in 0..3 {
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            assert_eq!((output.address(), output.len(), output.home()), (memory.address(), N, Some(stream)));
            assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
        }
        // Without further calls, everything goes at once.
        for _ in 0..3 {
            exec.launch(stream).unwrap();
        }
        assert!(exec.launch_with_outputs(stream).unwrap().len() == 1);
    });
}

#[test]
fn a_loop_goes_by_memory_of_its_graph() {
    traceless(|context, stream| {
        needs!(Conditionals);
        let out = stream.zeros::<u32>(2).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, words) = graph.root().alloc::<u32>(2).unwrap();
        let start = alloc.then().fill(&words, 1).unwrap();
        let (flag, rounds) = (words.slice(..1).unwrap(), words.slice(1..).unwrap());
        let kernel = increment::load(context).unwrap();
        let repeat = start.then().while_loop(cuda_graph::Test::nonzero(flag), |body| {
            let step = body.root().launch(&kernel, per(1, 1), (rounds, 1))?;
            step.then().fill(flag, 0)
        });
        repeat.unwrap().then().copy(&words, &out).unwrap();
        graph.free(&words).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!(out.read_blocking(stream).unwrap(), [0, 2]);
    });
}
