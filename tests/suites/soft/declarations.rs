//! Typed kernels keep to the memory that they declare: on streams, in captures and as nodes.

use cuda_graph::{
    ContextExt, EdgeKind, Error, GraphExec, InstantiateOptions, KernelNode, Result, Shape, StreamExt, Test,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Image, Slice, Stream};
use cuda_launch::{LaunchConfig, TypedKernel, kernel, params};
use cuda_soft::control::last_fault;
use cuda_sys::{CUDA_KERNEL_NODE_PARAMS_v2, CUresult, Call};
use cuda_tests::{Setup, alone, fail, needs, raw, setup};

/// A kernel of one thread, whose declarations are wrong.
const STRAY: &str = ".version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 count;
// to[at] = from[0]
.visible .entry put(.param .u64 from, .param .u64 to, .param .u32 at)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    ld.param.u32 %r1, [at];
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d2, %d2, %d3;
    ld.global.u32 %r2, [%d1];
    st.global.u32 [%d2], %r2;
    mov.u64 %d4, count;
    red.global.add.u32 [%d4], 1;
    ret;
}
";

kernel! {
    // SAFETY: not at all: the second declaration is wrong, and the first one has no condition for
    // `at`. The driver finds the accesses that break them.
    unsafe in Image::Ptx(STRAY);

    fn put(from: In<u32>, to: InOut<u32>, at: u32);
    fn put_back(from: InOut<u32>, to: In<u32>, at: u32) named "put";
}

fn one() -> LaunchConfig {
    LaunchConfig::new(1, 1)
}

/// The last place of `to`, and the one behind.
const LAST: u32 = 3;
const BEHIND: u32 = 4;

const NEAREST: &str =
    "outside of what the kernel declares for its parameters; the nearest one is `to`, 16 bytes at";

/// Compares typed launches with their declarations; skips where another driver runs.
macro_rules! declared {
    () => {
        alone!("CUDA_TEST_DECLARATIONS" = "1", "CUDA_TEST_DRIVER" = "soft");
    };
}

/// The kernel, and memory of twelve numbers: `from` is the first third, `to` the second.
struct Bench {
    context: Setup,
    stream: Stream,
    data: Buffer<u32>,
    put: put,
}

impl Bench {
    fn new() -> Self {
        let context = setup();
        let stream = context.stream().unwrap();
        let (data, put) = (stream.zeros(12).unwrap(), put::load(&context).unwrap());
        Self { context, stream, data, put }
    }

    fn part(&self, third: usize) -> Slice<'_, u32> {
        self.data.slice(third * 4..third * 4 + 4).unwrap()
    }

    fn arguments(&self, at: u32) -> (Slice<'_, u32>, Slice<'_, u32>, u32) {
        (self.part(0), self.part(1), at)
    }

    fn graph_of(&self, at: u32) -> Result<(cuda_graph::Graph, KernelNode)> {
        let graph = self.context.graph()?;
        let node = graph.root().launch(&self.put, one(), self.arguments(at))?;
        Ok((graph, node))
    }

    fn run(&self, graph: &cuda_graph::Graph) -> Result<()> {
        graph.instantiate()?.launch(&self.stream)
    }

    /// The driver's sentence about what was launched, if it is not right.
    fn fault(&self) -> Option<String> {
        match self.stream.synchronize_blocking() {
            Ok(()) => None,
            Err(_) => Some(last_fault().expect("a fault has a sentence")),
        }
    }
}

/// Asserts that a launch passes which writes within `to`, and that one behind is caught.
#[track_caller]
fn is_checked(launch: impl Fn(&Bench, u32) -> Result<()>) {
    let bench = Bench::new();
    for at in [0, LAST] {
        launch(&bench, at).unwrap();
        assert_eq!(bench.fault(), None);
    }
    launch(&bench, BEHIND).unwrap();
    let text = bench.fault().expect("the kernel writes behind `to`");
    assert!(text.contains("illegal address in kernel `put`") && text.contains(NEAREST), "{text}");
}

#[test]
fn launches_on_streams_are_checked() {
    declared!();
    is_checked(|bench, at| Ok(bench.put.launch(&bench.stream, one(), bench.arguments(at))?));
}

#[test]
fn a_write_to_what_is_only_read_names_the_parameter() {
    declared!();
    let bench = Bench::new();
    put_back::load(&bench.context).unwrap().launch(&bench.stream, one(), bench.arguments(0)).unwrap();
    let text = bench.fault().unwrap();
    assert!(text.contains("the kernel declares only to read its parameter `to`"), "{text}");
}

#[test]
fn nodes_are_checked() {
    declared!();
    is_checked(|bench, at| bench.run(&bench.graph_of(at)?.0));
}

#[test]
fn a_node_that_writes_what_is_only_read_is_named() {
    declared!();
    let bench = Bench::new();
    let (graph, put_back) = (bench.context.graph().unwrap(), put_back::load(&bench.context).unwrap());
    graph.root().launch(&put_back, one(), bench.arguments(0)).unwrap();
    bench.run(&graph).unwrap();
    let text = bench.fault().unwrap();
    assert!(text.contains("the kernel declares only to read its parameter `to`"), "{text}");
    assert!(text.contains("in the graph node"), "{text}");
}

#[test]
fn nodes_with_attributes_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let graph = bench.context.graph()?;
        graph.root().launch(&bench.put, one().priority(-1), bench.arguments(at))?;
        bench.run(&graph)
    });
}

#[test]
fn nodes_behind_programmatic_edges_are_checked() {
    declared!();
    drop(setup());
    needs!(EdgeKinds);
    is_checked(|bench, at| {
        let graph = bench.context.graph()?;
        let first = graph.root().launch(&bench.put, one(), (bench.part(0), bench.part(2), LAST))?;
        first.then_with(EdgeKind::Programmatic).launch(&bench.put, one(), bench.arguments(at))?;
        bench.run(&graph)
    });
}

#[test]
fn nodes_of_clones_and_child_graphs_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let (graph, _) = bench.graph_of(at)?;
        let outer = bench.context.graph()?;
        outer.root().child(&graph.clone_graph()?)?;
        drop(graph);
        bench.run(&outer)
    });
}

#[test]
fn nodes_in_bodies_of_loops_are_checked() {
    declared!();
    drop(setup());
    needs!(Conditionals);
    is_checked(|bench, at| {
        let graph = bench.context.graph()?;
        let rounds = Test::nonzero(bench.part(0)).limit(3);
        graph.root().fill(bench.part(0), 1)?.then().while_loop(rounds, |body| {
            body.root().launch(&bench.put, one(), bench.arguments(at)).map(drop)
        })?;
        bench.run(&graph)
    });
}

#[test]
fn nodes_of_shaped_executables_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let (graph, _) = bench.graph_of(at)?;
        let options = InstantiateOptions::new().shape(Shape::Reduced);
        graph.instantiate_with(options)?.launch(&bench.stream)
    });
}

#[test]
fn launches_captured_by_a_stream_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let graph = bench.stream.capture(CaptureMode::ThreadLocal, |capture| {
            Ok(bench.put.launch(capture.stream(), one(), bench.arguments(at))?)
        })?;
        bench.run(&graph)
    });
}

#[test]
fn launches_captured_by_a_builder_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let graph = bench.stream.capture(CaptureMode::ThreadLocal, |capture| {
            capture.launch(&bench.put, one(), bench.arguments(at))
        })?;
        bench.run(&graph)
    });
}

#[test]
fn launches_captured_into_a_graph_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let (graph, node) = bench.graph_of(0)?;
        node.then().capture(&bench.stream, CaptureMode::ThreadLocal, |capture| {
            capture.launch(&bench.put, one(), bench.arguments(at))
        })?;
        bench.run(&graph)
    });
}

#[test]
fn changed_nodes_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let (graph, node) = bench.graph_of(BEHIND)?;
        node.set(&bench.put, one(), bench.arguments(at))?;
        bench.run(&graph)
    });
}

#[test]
fn changed_arguments_of_nodes_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let (graph, node) = bench.graph_of(BEHIND)?;
        node.set_argument(&bench.put, "at", 0_u32)?;
        node.set_argument(&bench.put, "to", bench.part(2))?;
        node.set_argument(&bench.put, "to", bench.part(1))?;
        node.set_argument(&bench.put, "at", at)?;
        bench.run(&graph)
    });
}

#[test]
fn nodes_with_new_attributes_keep_their_declaration() {
    declared!();
    is_checked(|bench, at| {
        let (graph, node) = bench.graph_of(at)?;
        node.set_config(&bench.put, one().priority(-1))?;
        bench.run(&graph)
    });
}

#[test]
fn changed_nodes_of_executables_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let (graph, node) = bench.graph_of(BEHIND)?;
        let mut exec = graph.instantiate()?;
        exec.node(&node).set(&bench.put, one(), bench.arguments(at))?;
        exec.launch(&bench.stream)
    });
}

#[test]
fn executables_updated_from_a_graph_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let mut exec = bench.graph_of(BEHIND)?.0.instantiate()?;
        assert!(exec.update(&bench.graph_of(at)?.0)?.is_updated());
        exec.launch(&bench.stream)
    });
}

#[test]
fn values_of_graph_parameters_are_checked() {
    declared!();
    is_checked(|bench, at| {
        let graph = bench.context.graph()?;
        let (to, place) = (graph.param(bench.part(2))?, graph.param(0_u32)?);
        graph.root().launch(&bench.put, one(), (bench.part(0), &to, &place))?;
        let mut exec: GraphExec = graph.instantiate()?;
        exec.launch(&bench.stream)?;
        exec.launch_with(&bench.stream, ((&to, bench.part(1)), (&place, at)))
    });
}

/// Launches with other arguments declare nothing, even if they are like declared ones.
#[test]
fn untyped_changes_drop_the_declaration() {
    declared!();
    let bench = Bench::new();
    let (graph, node) = bench.graph_of(BEHIND).unwrap();
    let mut exec = graph.instantiate().unwrap();
    let (from, to) = (bench.part(0), bench.part(1));
    // SAFETY: the kernel stays within the buffer.
    unsafe { exec.node(&node).set_untyped(bench.put.kernel(), one(), params![from, to, BEHIND]) }.unwrap();
    exec.launch(&bench.stream).unwrap();
    assert_eq!(bench.fault(), None);
    // SAFETY: as above.
    unsafe { node.set_untyped(bench.put.kernel(), one(), params![from, to, BEHIND]) }.unwrap();
    bench.run(&graph).unwrap();
    assert_eq!(bench.fault(), None);
    node.set(&bench.put, one(), bench.arguments(BEHIND)).unwrap();
    bench.run(&graph).unwrap();
    assert!(bench.fault().unwrap().contains(NEAREST));
}

/// Other code reads the parameters of a node, and sets it with others.
#[test]
fn changes_by_other_code_drop_the_declaration() {
    declared!();
    let bench = Bench::new();
    let (graph, node) = bench.graph_of(BEHIND).unwrap();
    let raw_node = node.as_raw().unwrap();
    let mut params = CUDA_KERNEL_NODE_PARAMS_v2::default();
    // SAFETY: a kernel node, and a valid pointer.
    raw::ok(unsafe { raw::driver().cuGraphKernelNodeGetParams(raw_node, &raw mut params) });
    // The kernel is named, since no context is current.
    (params.func, params.gridDimX) = (core::ptr::null_mut(), 2);
    // SAFETY: the kernel stays within the buffer.
    raw::ok(unsafe { raw::driver().cuGraphKernelNodeSetParams(raw_node, &raw const params) });
    bench.run(&graph).unwrap();
    assert_eq!(bench.fault(), None);
}

#[test]
fn a_refused_launch_declares_nothing_for_later_ones() {
    declared!();
    let bench = Bench::new();
    let graph = bench.context.graph().unwrap();
    let wide = LaunchConfig::new(1, 1 << 20);
    let refused = graph.root().launch(&bench.put, wide, bench.arguments(0)).unwrap_err();
    assert!(matches!(refused, Error::Launch(_)), "{refused}");
    let arguments = params![bench.part(0), bench.part(1), BEHIND];
    // SAFETY: the kernel stays within the buffer.
    unsafe { graph.root().launch_untyped(bench.put.kernel(), one(), arguments) }.unwrap();
    bench.run(&graph).unwrap();
    assert_eq!(bench.fault(), None);
}

/// The launch that a node has again after a failed change may use what the refused one does not
/// declare.
#[test]
fn a_launch_that_is_restored_is_not_held_to_the_refused_one() {
    declared!();
    let bench = Bench::new();
    needs!(ParameterLayouts);
    let graph = bench.context.graph().unwrap();
    let old = (bench.part(0), bench.part(2), 0);
    let node = graph.root().launch(&bench.put, one().priority(-1), old).unwrap();
    // The last attribute, so that the node has the new arguments by then.
    let injected = fail(Call::cuGraphKernelNodeSetAttribute, 2, CUresult::CUDA_ERROR_INVALID_VALUE);
    node.set(&bench.put, one().cooperative(), bench.arguments(0)).unwrap_err();
    assert!(injected.hit(), "the call that fails was made");
    drop(injected);
    bench.run(&graph).unwrap();
    assert_eq!(bench.fault(), None);
}
