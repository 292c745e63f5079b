//! Updates of fills and copies in whose place kernels run.

use cuda_graph::{
    ContextExt, Error, GraphExec, InstantiateOptions, RefusalReason, Result, Shape, UpdateError,
};
use cuda_handles::{Buffer, Copy2d, SharedHostBuffer, Stream};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, no_leaks, setup};

use super::by_kernels;

const N: usize = 64;

/// As drawn, and with kernels.
fn all_options() -> Vec<InstantiateOptions> {
    [InstantiateOptions::new().shape(Shape::AsBuilt)].into_iter().chain(by_kernels()).collect()
}

/// Checks that no node is submitted by the host, if the executable was shaped.
fn assert_by_kernels(exec: &GraphExec) {
    let after = exec.shape_report().map(|report| report.after().unwrap());
    assert!(after.is_none_or(|after| after.host_submitted == 0), "{:?}", exec.shape_report());
}

struct Memories {
    device: [Buffer<u8>; 2],
    host: [SharedHostBuffer<u8>; 2],
}

impl Memories {
    fn new(context: &cuda_handles::Context, stream: &Stream) -> Self {
        let host = [50, 100].map(|start| {
            let mut host = context.pinned_zeros::<u8>(N).unwrap();
            host.iter_mut().zip(start..).for_each(|(byte, value)| *byte = value);
            host.share()
        });
        Self { device: [stream.zeros(N).unwrap(), stream.zeros(N).unwrap()], host }
    }

    fn read(&self, stream: &Stream) -> [Vec<u8>; 4] {
        let [x, y] = &self.device;
        let [a, b] = &self.host;
        [x.read_blocking(stream), y.read_blocking(stream), a.read_blocking(stream), b.read_blocking(stream)]
            .map(|read| read.unwrap())
    }
}

/// What a program leaves in memory, with each of the options.
fn outcomes(
    context: &cuda_handles::Context,
    program: impl Fn(InstantiateOptions, &Memories, &Stream) -> Vec<[Vec<u8>; 4]>,
) {
    let stream = context.stream().unwrap();
    let run = |options| {
        let outcome = program(options, &Memories::new(context, &stream), &stream);
        stream.synchronize_blocking().unwrap();
        outcome
    };
    let mut all = all_options().into_iter().map(run);
    let drawn = all.next().unwrap();
    all.for_each(|outcome| assert_eq!(outcome, drawn));
}

#[test]
fn nodes_are_set_and_disabled_as_those_that_are_drawn() {
    let context = setup();
    no_leaks(|| {
        outcomes(&context, |options, memories, stream| {
            let ([x, y], [a, b]) = (&memories.device, &memories.host);
            let graph = context.graph().unwrap();
            let fill = graph.root().fill(x.slice(3..20).unwrap(), 7).unwrap();
            let words = x.slice(32..64).unwrap().cast::<u32>().unwrap();
            let rectangle = fill.then().fill_2d(words, 4, [1, 2], 0x0102_0304).unwrap();
            let input = rectangle.then().copy(a.slice(1..11).unwrap(), y.slice(5..15).unwrap()).unwrap();
            let output = input.then().copy(y.slice(1..14).unwrap(), b.slice(0..13).unwrap()).unwrap();
            let boxed = Copy2d {
                source: x.slice(..).unwrap(),
                source_pitch: 5,
                destination: b.slice(40..).unwrap(),
                destination_pitch: 4,
                width: 3,
                height: 2,
            };
            output.then().copy_2d(boxed).unwrap();
            // A node at a programmatic edge cannot be disabled.
            let mut exec = graph.instantiate_with(options.programmatic_edges(false)).unwrap();
            assert_by_kernels(&exec);
            let mut seen = Vec::new();
            let mut launch = |exec: &mut GraphExec| {
                exec.launch(stream).unwrap();
                seen.push(memories.read(stream));
            };
            launch(&mut exec);
            exec.node(&fill).set(y.slice(33..64).unwrap(), 9).unwrap();
            exec.node(&rectangle).set_2d(words, 4, [1, 2], 0x0506_0708).unwrap();
            exec.node(&input).set(b.slice(20..60).unwrap(), y.slice(0..40).unwrap()).unwrap();
            launch(&mut exec);
            exec.node(&fill).set(y.slice(0..6).unwrap().cast::<u16>().unwrap(), 0xabcd).unwrap();
            exec.node(&input).set_enabled(false).unwrap();
            exec.node(&output).set(x.slice(30..40).unwrap(), a.slice(30..40).unwrap()).unwrap();
            launch(&mut exec);
            exec.node(&input).set_enabled(true).unwrap();
            exec.node(&fill).set_clear(x).unwrap();
            // A fill of a row loses the order around it when it is disabled.
            assert!(exec.node(&fill).set_enabled(false).is_err());
            exec.node(&rectangle).set_enabled(false).unwrap();
            launch(&mut exec);
            // Rectangles keep their shape.
            assert!(exec.node(&rectangle).set_2d(words, 4, [2, 2], 0).is_err());
            // Copies keep their direction.
            assert!(exec.node(&input).set(y, x).is_err());
            assert!(exec.node(&input).set(y, a).is_err());
            launch(&mut exec);
            seen
        });
    });
}

#[test]
fn parameters_reach_the_kernels() {
    let context = setup();
    no_leaks(|| {
        outcomes(&context, |options, memories, stream| {
            let ([x, y], [a, b]) = (&memories.device, &memories.host);
            let graph = context.graph().unwrap();
            let target = graph.param(x.slice(3..20).unwrap()).unwrap();
            let (value, on) = (graph.param(7_u8).unwrap(), graph.param(true).unwrap());
            let fill = graph.root().fill(&target, &value).unwrap();
            fill.enabled_by(&on).unwrap();
            let fixed = fill.then().fill(x.slice(60..).unwrap(), 1).unwrap();
            fixed.enabled_by(&on).unwrap();
            let (source, room) = (graph.param(a.slice(1..30).unwrap()).unwrap(), y.slice(5..).unwrap());
            let input = fixed.then().copy(&source, room.slice(..29).unwrap()).unwrap();
            input.enabled_by(&on).unwrap();
            input.then().copy(y, b).unwrap();
            let mut exec = graph.instantiate_with(options).unwrap();
            assert_by_kernels(&exec);
            let mut seen = Vec::new();
            let mut look = || seen.push(memories.read(stream));
            exec.launch(stream).unwrap();
            look();
            exec.launch_with(stream, ((&target, y.slice(32..).unwrap()), (&value, 9))).unwrap();
            look();
            // The copy is as long as the parameter.
            exec.launch_with(stream, ((&source, b.slice(40..47).unwrap()), (&value, 11))).unwrap();
            look();
            exec.launch_with(stream, ((&on, false), (&value, 13))).unwrap();
            look();
            exec.launch_with(stream, ((&target, x.slice(1..2).unwrap()),)).unwrap();
            look();
            exec.launch_with(stream, ((&on, true), (&target, x.slice(..0).unwrap()))).unwrap();
            look();
            exec.launch_with(stream, ((&target, x.slice(..50).unwrap()),)).unwrap();
            look();
            seen
        });
    });
}

#[test]
fn whole_updates_reach_the_kernels() {
    let context = setup();
    no_leaks(|| {
        outcomes(&context, |options, memories, stream| {
            let ([x, y], [a, b]) = (&memories.device, &memories.host);
            let graph = context.graph().unwrap();
            let fill = graph.root().fill(x.slice(3..20).unwrap(), 7).unwrap();
            let copy = fill.then().copy(a.slice(1..11).unwrap(), y.slice(5..15).unwrap()).unwrap();
            let mut exec = graph.instantiate_with(options).unwrap();
            assert_by_kernels(&exec);
            exec.launch(stream).unwrap();
            let mut seen = vec![memories.read(stream)];
            exec.node(&fill).set(y, 1).unwrap();
            fill.set_value(8_u8).unwrap();
            copy.set(b.slice(3..33).unwrap(), y.slice(30..60).unwrap()).unwrap();
            assert!(exec.update(&graph).unwrap().is_updated());
            assert_by_kernels(&exec);
            exec.launch(stream).unwrap();
            seen.push(memories.read(stream));
            exec.node(&fill).set(x.slice(33..64).unwrap(), 9).unwrap();
            exec.launch(stream).unwrap();
            seen.push(memories.read(stream));
            seen
        });
    });
}

/// Refuses an update in words, before the driver is asked.
#[track_caller]
fn assert_refused(update: impl FnOnce() -> Result<()>, words: &str) {
    let (refused, cost) = count(update);
    let refused = refused.unwrap_err();
    assert!(matches!(refused, Error::Update(UpdateError::NotPossible { .. })), "{refused}");
    assert!(refused.to_string().contains(words), "{refused}");
    let calls = ["cuGraphExecNodeSetParams", "cuGraphNodeSetEnabled", "cuGraphLaunch"];
    assert_eq!(calls.map(|call| cost.calls(call)), [0; 3], "{cost}");
}

#[test]
fn memory_that_a_kernel_may_not_reach_is_refused_and_nothing_changes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (context.alloc_blocking::<u8>(N).unwrap(), context.alloc_blocking::<u8>(N).unwrap());
        let managed = context.managed_zeros::<u8>(N).unwrap().share();
        let registered = context.register(vec![0_u8; N]).unwrap().share();
        let pinned = context.pinned_zeros::<u8>(N).unwrap().share();
        for options in by_kernels() {
            stream.clear(&x).unwrap();
            stream.clear(&pinned).unwrap();
            let graph = context.graph().unwrap();
            let fill = graph.root().fill(&x, 7).unwrap();
            let (target, from) = (graph.param(y.as_slice()).unwrap(), graph.param(x.as_slice()).unwrap());
            let bound = fill.then().fill(&target, 8).unwrap();
            let copy = bound.then().copy(&x, &pinned).unwrap();
            copy.then().copy(&from, &pinned).unwrap();
            let mut exec = graph.instantiate_with(options).unwrap();
            assert_by_kernels(&exec);
            let (fills, copies) = ("fills_by_kernels(false)", "copies_by_kernels(false)");
            assert_refused(|| exec.node(&fill).set(&managed, 3), fills);
            assert_refused(|| exec.node(&fill).set(&registered, 3), fills);
            assert_refused(|| exec.node(&copy).set(&x, &registered), copies);
            assert_refused(|| exec.node(&copy).set(&managed, &pinned), copies);
            assert_refused(|| exec.launch_with(&stream, ((&target, managed.as_slice()),)), fills);
            assert_refused(|| exec.launch(&stream), fills);
            assert_refused(
                || exec.launch_with(&stream, ((&target, &y), (&from, managed.as_slice()))),
                copies,
            );
            exec.launch_with(&stream, ((&from, &x),)).unwrap();
            let all = [x.read_blocking(&stream), y.read_blocking(&stream), pinned.read_blocking(&stream)];
            assert_eq!(all.map(|read| read.unwrap()[N - 1]), [7, 8, 7]);
            fill.set(&managed, 5).unwrap();
            let refused = exec.update(&graph).unwrap();
            let refusal = refused.refusal().unwrap();
            assert!(refusal.reason == RefusalReason::Shaped && refusal.why.contains(fills), "{refusal}");
            exec.launch(&stream).unwrap();
            assert_eq!(managed.read_blocking(&stream).unwrap(), [0; N]);
            assert!(exec.update_or_rebuild(&graph).unwrap().is_some());
            assert_eq!(exec.shape_report().unwrap().after().unwrap().host_submitted, 1);
            exec.launch(&stream).unwrap();
            assert_eq!(managed.read_blocking(&stream).unwrap(), [5; N]);
            stream.clear(&managed).unwrap();
        }
        // Without kernels, a fill takes any memory.
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&x, 7).unwrap();
        let options = InstantiateOptions::new().shape(Shape::Auto).fills_by_kernels(false);
        let mut exec = graph.instantiate_with(options).unwrap();
        exec.node(&fill).set(&managed, 3).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(managed.read_blocking(&stream).unwrap(), [3; N]);
    });
}

#[test]
fn an_update_that_fails_half_way_is_repaired_by_the_next_launch() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for options in by_kernels() {
            let (x, y) = (stream.zeros::<u8>(N).unwrap(), stream.zeros::<u8>(N).unwrap());
            let graph = context.graph().unwrap();
            let value = graph.param(1_u8).unwrap();
            graph.root().fill(&x, &value).unwrap().then().fill(&y, &value).unwrap();
            let mut exec = graph.instantiate_with(options).unwrap();
            let failure = fail(Call::cuGraphExecNodeSetParams, 2, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            assert!(exec.launch_with(&stream, ((&value, 2),)).is_err());
            assert!(failure.hit());
            drop(failure);
            assert_eq!(x.read_blocking(&stream).unwrap(), [0; N]);
            exec.launch_with(&stream, ((&value, 1),)).unwrap();
            assert_eq!([&x, &y].map(|filled| filled.read_blocking(&stream).unwrap()[0]), [1, 1]);
        }
    });
}
