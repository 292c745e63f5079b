//! One parameter of a node is replaced, and the others stay.

use cuda_graph::{
    ByValue, ContextExt, Error, Graph, GraphExec, KernelNode, MemcpyNode, MemoryError, MemsetNode, NodeError,
    ParamError, StreamExt,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Batch, Buffer, Context, Copy2d, Element, Error as HandleError, Image, Stream};
use cuda_launch::{LaunchConfig, kernel, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Need, count, fail, needs, no_leaks, raw, settle, setup, sweep, used_stream};

use crate::capture::{count_down, increment_all};
use crate::common::gone::{allocations, flag, soon};
use crate::update::params::scale;
use crate::update::params_rules::{Digit, Pair, put_pair};

const BOTH: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .entry plus(.param .u32 n, .param .u32 amount, .param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [amount];
    ld.param.u64 %rd1, [to];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 ret;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r6, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r7, [%rd4];
    add.u32 %r7, %r7, %r2;
    st.global.u32 [%rd4], %r7;
    ret;
}
.visible .entry times(.param .u32 n, .param .u32 amount, .param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [amount];
    ld.param.u64 %rd1, [to];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 ret;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r6, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r7, [%rd4];
    mul.lo.u32 %r7, %r7, %r2;
    st.global.u32 [%rd4], %r7;
    ret;
}";

kernel! {
    // SAFETY: both kernels have these parameters, and touch the elements below `n`.
    unsafe in Image::Ptx(BOTH);

    fn plus(n: u32, amount: u32, to: InOut<u32>) where to.len() >= n, grid.x * block.x >= n;
    fn times(n: u32, amount: u32, to: InOut<u32>) where to.len() >= n, amount <= 100;
}

mod as_unsafe {
    cuda_launch::kernel! {
        // SAFETY: as above.
        unsafe in cuda_handles::Image::Ptx(super::BOTH);

        /// # Safety
        /// The amount is even.
        pub(super) unsafe fn plus(n: u32, amount: u32, to: InOut<u32>) where to.len() >= n;
    }
}

const N: usize = 8;

/// A graph that multiplies `x` into `y`.
struct Scaled {
    stream: Stream,
    scale: scale,
    x: Buffer<u32>,
    y: Buffer<u32>,
    graph: Graph,
    node: KernelNode,
}

impl Scaled {
    fn new(context: &Context) -> Self {
        let stream = used_stream(context);
        let scale = scale::load(context).unwrap();
        let (x, y) = (stream.upload(&[3_u32; N]).unwrap(), zeros(&stream, N));
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&scale, per(N, 4), (N as u32, 2, &x, &y)).unwrap().named("scales");
        Self { stream, scale, x, y, graph, node }
    }

    /// What a new executable computes.
    fn runs(&self, out: &Buffer<u32>) -> Vec<u32> {
        run(&mut self.graph.instantiate().unwrap(), out, &self.stream)
    }
}

fn zeros<T: Element>(stream: &Stream, len: usize) -> Buffer<T> {
    stream.zeros::<T>(len).unwrap()
}

fn run(exec: &mut GraphExec, out: &Buffer<u32>, stream: &Stream) -> Vec<u32> {
    exec.launch(stream).unwrap();
    out.read_blocking(stream).unwrap()
}

const CHANGE: [(&str, u64); 2] = [("cuGraphKernelNodeGetParams", 1), ("cuGraphNodeSetParams", 1)];

#[test]
fn one_argument_changes_and_earlier_executables_keep_theirs() {
    let context = setup();
    no_leaks(|| {
        let Scaled { stream, scale, x, y, graph, node } = Scaled::new(&context);
        let before = allocations();
        let mut first = graph.instantiate().unwrap();
        let ((), cost) = count(|| node.set_argument(&scale, "factor", 5_u32).unwrap());
        cost.assert_calls(&CHANGE);
        let (z, w) = (stream.upload(&[7_u32; N]).unwrap(), zeros(&stream, N));
        stream.synchronize_blocking().unwrap();
        let ((), cost) = count(|| node.set_argument(&scale, "from", &z).unwrap());
        cost.assert_calls(&CHANGE);
        let mut second = graph.instantiate().unwrap();
        // A part of other memory, then a whole one, and another count.
        node.set_argument(&scale, "n", 4_u32).unwrap();
        let half = w.slice(4..).unwrap();
        node.set_argument(&scale, "to", half).unwrap();
        let mut third = graph.instantiate().unwrap();
        assert_eq!(run(&mut first, &y, &stream), [6; N]);
        assert_eq!(run(&mut second, &y, &stream), [35; N]);
        assert_eq!(run(&mut third, &w, &stream), [0, 0, 0, 0, 35, 35, 35, 35]);
        // The node has let go of `x` and `y`, and the executables have not.
        drop((x, y, z, w));
        settle();
        assert_eq!(allocations(), before + 2);
        drop(first);
        let is_gone = || (settle(), allocations() == before + 1).1;
        assert!(soon(&is_gone), "{}", allocations() - before);
        drop(second);
        let is_gone = || (settle(), allocations() == before).1;
        assert!(soon(&is_gone), "{}", allocations() - before);
        drop((third, graph, node));
    });
}

#[test]
fn arguments_of_every_kind_are_replaced() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let put = put_pair::load(&context).unwrap();
        let (x, y) = (zeros::<u32>(&stream, 2), zeros::<u32>(&stream, 4));
        let graph = context.graph().unwrap();
        let pair = Pair { first: Digit::One, second: 10 };
        let node = graph.root().launch(&put, per(1, 1), (pair, &x)).unwrap();
        // The struct stays when the memory changes, and the memory when the struct does.
        node.set_argument(&put, "to", &y).unwrap();
        assert_eq!(run(&mut graph.instantiate().unwrap(), &y, &stream)[..2], [1, 10]);
        node.set_argument(&put, "pair", ByValue(Pair { first: Digit::Two, second: 20 })).unwrap();
        assert_eq!(run(&mut graph.instantiate().unwrap(), &y, &stream)[..2], [2, 20]);
        assert_eq!(x.read_blocking(&stream).unwrap(), [0; 2]);
        // Memory of the graph's own, pinned memory.
        let pinned = context.pinned_zeros::<u32>(2).unwrap().share();
        node.set_argument(&put, "to", &pinned).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        node.set_argument(&put, "to", &x).unwrap();
        let pinned = pinned.try_unique().expect("the node has let go of it");
        assert_eq!(pinned[..], [2, 20]);
        let (alloc, own) = graph.root().alloc::<u32>(2).unwrap();
        graph.add_edge(&alloc, &node).unwrap();
        node.set_argument(&put, "to", &own).unwrap();
        let copy = node.then().copy(&own, &x).unwrap();
        copy.then().free(&own).unwrap();
        assert_eq!(run(&mut graph.instantiate().unwrap(), &x, &stream), [2, 20]);
        let other = context.graph().unwrap();
        let foreign = other.root().launch(&put, per(1, 1), (pair, &x)).unwrap();
        let refused = foreign.set_argument(&put, "to", &own).unwrap_err();
        assert!(matches!(refused, Error::Memory(MemoryError::ForeignMemory { .. })), "{refused}");
        assert_eq!(run(&mut other.instantiate().unwrap(), &x, &stream), [1, 10]);
    });
}

#[test]
fn slices_of_different_lengths_are_remembered() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let (x, y) = (stream.upload(&[3_u32; 16]).unwrap(), zeros::<u32>(&stream, 16));
        let graph = context.graph().unwrap();
        let arguments = (4, 2, x.slice(2..8).unwrap(), y.slice(1..5).unwrap());
        let node = graph.root().launch(&scale, per(16, 16), arguments).unwrap();
        for (n, fits) in [(5_u32, false), (4, true), (3, true)] {
            let outcome = node.set_argument(&scale, "n", n);
            assert_eq!(outcome.is_ok(), fits, "{n}: {outcome:?}");
        }
        node.set_argument(&scale, "to", y.slice(10..16).unwrap()).unwrap();
        node.set_argument(&scale, "n", 6_u32).unwrap();
        let refused = node.set_argument(&scale, "n", 7_u32).unwrap_err();
        assert!(matches!(refused, Error::Launch(_)), "{refused}");
        node.set_argument(&scale, "from", &x).unwrap();
        let found = run(&mut graph.instantiate().unwrap(), &y, &stream);
        assert_eq!(found, [[0; 10].as_slice(), &[6; 6]].concat());
    });
}

#[test]
fn configuration_and_kernel_change_alone() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (plus, times) = (plus::load(&context).unwrap(), times::load(&context).unwrap());
        let x = stream.upload(&[3_u32; N]).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&plus, per(N, 4), (N as u32, 2, &x)).unwrap();
        let mut first = graph.instantiate().unwrap();
        let ((), cost) = count(|| node.set_config(&plus, per(N, 8)).unwrap());
        cost.assert_calls(&CHANGE);
        assert_eq!(node.config().unwrap(), per(N, 8));
        assert_eq!(run(&mut graph.instantiate().unwrap(), &x, &stream), [5; N]);
        // Too few threads, and a block that no device has.
        for config in [LaunchConfig::new(1, 4), LaunchConfig::new(1, 5_000)] {
            let refused = node.set_config(&plus, config).unwrap_err();
            assert!(matches!(refused, Error::Launch(_)), "{refused}");
        }
        assert_eq!(node.config().unwrap(), per(N, 8));
        let ((), cost) = count(|| node.set_kernel(&times).unwrap());
        cost.assert_calls(&CHANGE);
        assert_eq!(node.kernel().unwrap().name(), "times");
        assert_eq!(run(&mut graph.instantiate().unwrap(), &x, &stream), [10; N]);
        assert_eq!(run(&mut first, &x, &stream), [12; N]);
        // The conditions of the other kernel count, and those of this one.
        node.set_kernel(&plus).unwrap();
        node.set_argument(&plus, "amount", 1000_u32).unwrap();
        let refused = node.set_kernel(&times).unwrap_err();
        assert!(refused.to_string().contains("`amount <= 100`"), "{refused}");
        assert_eq!(node.kernel().unwrap().name(), "plus");
        if Need::LaunchAttributes.is_met() {
            node.set_config(&plus, per(N, 8).priority(-1)).unwrap();
            node.set_argument(&plus, "amount", 1_u32).unwrap();
            assert_eq!(node.config().unwrap(), per(N, 8).priority(-1));
            node.set_config(&plus, per(N, 8)).unwrap();
        }
        node.set_argument(&plus, "amount", 1_u32).unwrap();
        assert_eq!(run(&mut graph.instantiate().unwrap(), &x, &stream), [13; N]);
    });
}

#[test]
fn a_kernel_declared_unsafe_changes_in_unsafe_code() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let plus = as_unsafe::plus::load(&context).unwrap();
        let x = stream.upload(&[3_u32; N]).unwrap();
        let graph = context.graph().unwrap();
        // SAFETY: the amounts are even.
        unsafe {
            let node = graph.root().launch_unchecked(&plus, per(N, 4), (N as u32, 2, &x)).unwrap();
            node.set_argument_unchecked(&plus, "amount", 10_u32).unwrap();
            node.set_config_unchecked(&plus, per(N, 8)).unwrap();
            node.set_kernel_unchecked(&plus).unwrap();
            assert!(node.set_argument_unchecked(&plus, "n", 9_u32).is_err());
        }
        assert_eq!(run(&mut graph.instantiate().unwrap(), &x, &stream), [13; N]);
    });
}

#[test]
fn refusals_name_the_argument_and_the_types() {
    let context = setup();
    no_leaks(|| {
        let all = Scaled::new(&context);
        let Scaled { stream, scale, x, y, graph, node } = &all;
        let says = |outcome: Result<(), Error>, text: &str| {
            let error = outcome.unwrap_err();
            assert_eq!(error.to_string(), text);
            error
        };
        let says_none = |outcome: Result<(), Error>, text: &str| {
            let error = outcome.unwrap_err();
            let Error::Node(NodeError::NotInPart { .. }) = &error else { panic!("{error}") };
            let message = error.to_string();
            assert!(message.contains(text) && message.contains("KernelNode::set"), "{message}");
        };
        let floats = zeros::<f32>(stream, N);
        let error = says(
            node.set_argument(scale, "factor", 2_i32),
            "argument `factor` is declared as `u32`, and a value of the type `i32` was given",
        );
        assert!(matches!(error, Error::Node(NodeError::ArgumentType { .. })));
        says(
            node.set_argument(scale, "to", &floats),
            "argument `to` is declared as `Out<u32>`, and memory of the type `[f32]` was given",
        );
        says(
            node.set_argument(scale, "to", 1_u64),
            "argument `to` is declared as `Out<u32>`, and a value of the type `u64` was given",
        );
        says(
            node.set_argument(scale, "factor", y),
            "argument `factor` is declared as `u32`, and memory of the type `[u32]` was given",
        );
        says(
            node.set_argument(scale, "factr", 2_u32),
            "kernel `scale` is declared without a parameter `factr`; it has `n`, `factor`, `from`, `to`",
        );
        // Conditions and overlap.
        let refused = node.set_argument(scale, "n", 9_u32).unwrap_err();
        assert!(refused.to_string().contains("`from.len() >= n` does not hold"), "{refused}");
        let refused = node.set_argument(scale, "to", x).unwrap_err();
        assert!(refused.to_string().contains("overlap"), "{refused}");
        // Other kernels and declarations.
        let increment = increment_all::load(&context).unwrap();
        says_none(node.set_argument(&increment, "n", 1_u32), "it launches kernel `scale`, and not `");
        says_none(node.set_config(&increment, per(1, 1)), "it launches kernel `scale`");
        says_none(node.set_kernel(&increment), "declared with other parameter types than `");
        // An untyped launch, also of the same kernel.
        let arguments = params![N as u32, 2_u32, x, y];
        // SAFETY: the arguments are the kernel's, and there are as many elements.
        let untyped =
            unsafe { graph.root().launch_untyped(&node.kernel().unwrap(), per(N, 4), arguments) }.unwrap();
        says_none(untyped.set_argument(scale, "factor", 3_u32), "without a declaration");
        says_none(untyped.set_config(scale, per(N, 8)), "without a declaration");
        untyped.set(scale, per(N, 4), (N as u32, 2, x, y)).unwrap();
        untyped.set_argument(scale, "factor", 3_u32).unwrap();
        untyped.remove().unwrap();
        let removed = untyped.set_argument(scale, "factor", 3_u32).unwrap_err();
        assert!(matches!(removed, Error::Node(NodeError::Removed { .. })), "{removed}");
        assert_eq!(all.runs(y), [6; N], "nothing has changed");
    });
}

#[test]
fn nodes_with_graph_parameters_are_set_by_these() {
    let context = setup();
    no_leaks(|| {
        let Scaled { stream, scale, x, y, graph, .. } = Scaled::new(&context);
        let (factor, memory) = (graph.param(2_u32).unwrap(), graph.param(&x).unwrap());
        let node = graph.root().launch(&scale, per(N, 4), (N as u32, &factor, &x, &y)).unwrap();
        let copy = graph.root().copy(&memory, &y).unwrap();
        let fill = graph.root().fill(&memory, 1).unwrap();
        let is_bound = |outcome: Result<(), Error>| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Param(ParamError::Bound { .. })), "{error}");
        };
        is_bound(node.set_argument(&scale, "n", 1_u32));
        is_bound(node.set_config(&scale, per(N, 8)));
        is_bound(node.set_kernel(&scale));
        is_bound(copy.set_destination(&zeros::<u32>(&stream, N)));
        is_bound(fill.set_value(2_u32));
    });
}

#[test]
fn nodes_of_other_code_are_refused_and_captured_ones_are_not() {
    let context = setup();
    no_leaks(|| {
        let Scaled { stream, scale, x, y, graph, node } = Scaled::new(&context);
        let z = zeros::<u32>(&stream, N);
        stream.synchronize_blocking().unwrap();
        // Captured: a launch with whole memory, and one with slices.
        let captured = stream
            .capture(CaptureMode::ThreadLocal, |capture| {
                scale.launch(capture, per(N, 4), (N as u32, 2, &x, &y))?;
                scale.launch(capture, per(N, 4), (2, 5, x.slice(..3)?, z.slice(2..4)?))?;
                capture.copy(&x, &z)?;
                capture.fill(&z, 9)
            })
            .unwrap();
        let nodes = captured.nodes().unwrap();
        let [one, two] = [0, 1].map(|at| KernelNode::try_from(nodes[at].clone()).unwrap());
        let copy = MemcpyNode::try_from(nodes[2].clone()).unwrap();
        let fill = MemsetNode::try_from(nodes[3].clone()).unwrap();
        let before = allocations();
        let mut earlier = captured.instantiate().unwrap();
        let out = zeros::<u32>(&stream, N);
        one.set_argument(&scale, "to", &out).unwrap();
        one.set_argument(&scale, "factor", 4_u32).unwrap();
        two.set_argument(&scale, "to", out.slice(6..).unwrap()).unwrap();
        assert!(two.set_argument(&scale, "n", 3_u32).is_err(), "one slice has two elements");
        let last = zeros::<u32>(&stream, N);
        copy.set_source(&out).unwrap();
        copy.set_destination(&last).unwrap();
        fill.set_target(&y).unwrap();
        fill.set_value(8_u32).unwrap();
        let mut exec = captured.instantiate().unwrap();
        assert_eq!(run(&mut exec, &last, &stream), [12, 12, 12, 12, 12, 12, 15, 15]);
        assert_eq!([y.read_blocking(&stream).unwrap()[0], z.read_blocking(&stream).unwrap()[0]], [8, 0]);
        assert_eq!(run(&mut earlier, &z, &stream), [9; N]);
        drop((earlier, exec, z));
        let is_gone = || (settle(), allocations() == before + 1).1;
        assert!(soon(&is_gone), "{}", allocations() - before);
        // A clone has the owners, too.
        let copied = graph.clone_graph().unwrap();
        let clone = KernelNode::try_from(copied.find_clone_of(&node).unwrap()).unwrap();
        clone.set_argument(&scale, "factor", 10_u32).unwrap();
        assert_eq!(run(&mut copied.instantiate().unwrap(), &y, &stream), [30; N]);
        // The same graph, as other code hands it over.
        let mut foreign = core::ptr::null_mut();
        // SAFETY: the out pointer is valid, and the graph lives.
        raw::ok(unsafe { raw::driver().cuGraphClone(&raw mut foreign, graph.as_raw().unwrap()) });
        // SAFETY: nobody else has the clone, and what its nodes use outlives it.
        let adopted = unsafe { Graph::from_raw_owned(&context, foreign) }.unwrap();
        let theirs = KernelNode::try_from(adopted.nodes().unwrap().remove(0)).unwrap();
        let refused = theirs.set_argument(&scale, "factor", 3_u32).unwrap_err();
        assert!(refused.to_string().contains("by other code"), "{refused}");
        theirs.set(&scale, per(N, 4), (N as u32, 2, &x, &y)).unwrap();
        theirs.set_argument(&scale, "factor", 3_u32).unwrap();
        assert_eq!(run(&mut adopted.instantiate().unwrap(), &y, &stream), [9; N]);
    });
}

#[test]
fn a_kernel_that_decides_keeps_its_condition() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let count_down = count_down::load(&context).unwrap();
        let (first, other) = (stream.upload(&[3_u32]).unwrap(), stream.upload(&[5_u32]).unwrap());
        let rounds = zeros::<u32>(&stream, 1);
        let plus = plus::load(&context).unwrap();
        let graph = context.graph().unwrap();
        let going = graph.condition_with_default(1).unwrap();
        let body = graph.root().while_node(&going).unwrap().body().unwrap();
        let counted = body.root().launch(&plus, per(1, 1), (1, 1, &rounds)).unwrap();
        let decides = counted.then().launch(&count_down, per(1, 1), (&first, &going)).unwrap();
        decides.set_argument(&count_down, "counter", &other).unwrap();
        let refused = decides.set_argument(&count_down, "handle", 1_u64).unwrap_err();
        let text =
            "argument `handle` is declared as `ConditionalHandle`, and a value of the type `u64` was given";
        assert_eq!(refused.to_string(), text);
        assert_eq!(run(&mut graph.instantiate().unwrap(), &rounds, &stream), [5]);
        counted.set_argument(&plus, "amount", 2_u32).unwrap();
        stream.fill(&other, 4).unwrap();
        assert_eq!(run(&mut graph.instantiate().unwrap(), &rounds, &stream), [13]);
        assert_eq!(first.read_blocking(&stream).unwrap(), [3]);
    });
}

#[test]
fn one_side_of_a_copy_changes() {
    let context = setup();
    no_leaks(|| {
        let stream = used_stream(&context);
        let (x, y) = (stream.upload(&[1_u32; N]).unwrap(), zeros::<u32>(&stream, N));
        let (z, w) = (stream.upload(&[2_u32; N]).unwrap(), zeros::<u32>(&stream, 2 * N));
        stream.synchronize_blocking().unwrap();
        let before = allocations();
        let graph = context.graph().unwrap();
        let copy = graph.root().copy(&x, &y).unwrap().named("copies");
        let mut first = graph.instantiate().unwrap();
        let ((), cost) = count(|| copy.set_source(&z).unwrap());
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        assert_eq!(run(&mut graph.instantiate().unwrap(), &y, &stream), [2; N]);
        copy.set_destination(w.slice(..N).unwrap()).unwrap();
        assert_eq!(run(&mut graph.instantiate().unwrap(), &w, &stream)[..N + 1], [2, 2, 2, 2, 2, 2, 2, 2, 0]);
        assert_eq!(run(&mut first, &y, &stream), [1; N]);
        // Pinned memory, in the same direction of the definition or another.
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        copy.set_destination(&pinned).unwrap();
        copy.set_source(&pinned).map(|()| panic!("it overlaps")).unwrap_err();
        let short = copy.set_source(w.slice(1..4).unwrap()).unwrap_err();
        let text = "the source of a copy has 12 bytes, and node `copies` copies 32; replace both sides (MemcpyNode::set)";
        assert_eq!(short.to_string(), text);
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        copy.set_destination(&y).unwrap();
        assert_eq!(pinned.try_unique().expect("the node has let go of it")[..], [2; N]);
        // The same memory on both sides, in parts.
        copy.set(w.slice(..4).unwrap(), w.slice(4..8).unwrap()).unwrap();
        copy.set_source(z.slice(..4).unwrap()).unwrap();
        copy.set_source(w.slice(8..12).unwrap()).unwrap();
        copy.set_destination(w.slice(..4).unwrap()).unwrap();
        assert_eq!(run(&mut graph.instantiate().unwrap(), &w, &stream)[..5], [0, 0, 0, 0, 2]);
        drop((first, x, y, z));
        let is_gone = || (settle(), allocations() == before - 3).1;
        assert!(soon(&is_gone), "{}", allocations() - before);
    });
}

#[test]
fn a_rectangle_stays_one() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.upload(&(0..16).collect::<Vec<u32>>()).unwrap(), zeros::<u32>(&stream, 16));
        let graph = context.graph().unwrap();
        let from = Copy2d {
            source: x.as_slice(),
            source_pitch: 4,
            destination: y.as_slice(),
            destination_pitch: 8,
            width: 2,
            height: 2,
        };
        let copy = graph.root().copy_2d(from).unwrap();
        let other = stream.upload(&[7_u32; 6]).unwrap();
        copy.set_source(&other).unwrap();
        let found = run(&mut graph.instantiate().unwrap(), &y, &stream);
        assert_eq!((found[..3].to_vec(), found[8..11].to_vec()), (vec![7, 7, 0], vec![7, 7, 0]));
        let short = copy.set_source(other.slice(..5).unwrap()).unwrap_err();
        assert!(matches!(short, Error::Node(NodeError::PastEnd { need: 24, room: 20, .. })), "{short}");
        // A fill.
        let fill = graph.root().fill_2d(&y, 8, [3, 2], 1_u32).unwrap();
        copy.remove().unwrap();
        let z = zeros::<u32>(&stream, 11);
        fill.set_target(&z).unwrap();
        fill.set_value(5_u32).unwrap();
        let found = run(&mut graph.instantiate().unwrap(), &z, &stream);
        assert_eq!(found, [5, 5, 5, 0, 0, 0, 0, 0, 5, 5, 5]);
        let short = fill.set_target(z.slice(1..).unwrap()).unwrap_err();
        assert!(matches!(short, Error::Node(NodeError::PastEnd { need: 44, room: 40, .. })), "{short}");
    });
}

#[test]
fn memory_and_value_of_a_fill_change() {
    let context = setup();
    no_leaks(|| {
        let stream = used_stream(&context);
        let (x, y) = (zeros::<u32>(&stream, N), zeros::<u32>(&stream, 2 * N));
        let bytes = zeros::<u8>(&stream, 5);
        stream.synchronize_blocking().unwrap();
        let before = allocations();
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&x, 1).unwrap().named("fills");
        let mut first = graph.instantiate().unwrap();
        let ((), cost) = count(|| fill.set_value(2_u32).unwrap());
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        assert_eq!(run(&mut graph.instantiate().unwrap(), &x, &stream), [2; N]);
        let ((), cost) = count(|| fill.set_target(&y).unwrap());
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        assert_eq!(run(&mut graph.instantiate().unwrap(), &y, &stream), [2; 2 * N]);
        assert_eq!(run(&mut first, &x, &stream), [1; N]);
        let wrong = fill.set_value(2_u8).unwrap_err();
        let text = "node `fills` fills elements of 4 bytes, and the value has elements of 1; replace both (MemsetNode::set)";
        assert_eq!(wrong.to_string(), text);
        let wrong = fill.set_target(&bytes).unwrap_err();
        assert!(matches!(wrong, Error::Node(NodeError::FillElement { size: 4, given: 1, .. })), "{wrong}");
        let none = fill.set_target(y.slice(..0).unwrap()).unwrap_err();
        assert!(matches!(none, Error::Node(NodeError::NoElements { .. })), "{none}");
        // Zeros go anywhere.
        fill.set_value(0_u32).unwrap();
        fill.set_target(&bytes).unwrap();
        stream.fill(&bytes, 1).unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(bytes.read_blocking(&stream).unwrap(), [0; 5]);
        drop((first, x, y));
        let is_gone = || (settle(), allocations() == before - 2).1;
        assert!(soon(&is_gone), "{}", allocations() - before);
    });
}

#[test]
fn one_operation_of_a_batch_changes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [one, two, three] = [(); 3].map(|()| context.pinned_zeros::<u32>(2).unwrap().share());
        let mut batch = Batch::new();
        batch.write(&one, 0, 1).unwrap().write(&two, 0, 2).unwrap().write(&one, 1, 3).unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().batch(&batch).unwrap().named("writes");
        drop(batch);
        let ((), cost) = count(|| node.set_operation(1, Batch::new().write(&three, 1, 9).unwrap()).unwrap());
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        let two = two.try_unique().expect("no operation uses it any more");
        node.set_operation(0, Batch::new().write(&three, 0, 8).unwrap()).unwrap();
        let one = one.try_unique().expect_err("an operation is left that uses it");
        graph.instantiate().unwrap().launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        let none = node.set_operation(3, Batch::new().write(&three, 0, 8).unwrap()).unwrap_err();
        assert_eq!(none.to_string(), "node `writes` has 3 operations, and none with the index 3");
        let mut several = Batch::new();
        several.write(&three, 0, 1).unwrap().write(&three, 1, 2).unwrap();
        let refused = node.set_operation(0, &several).unwrap_err();
        let text = "one operation of node `writes` is replaced by one, and a batch of 2 was given";
        assert_eq!(refused.to_string(), text);
        drop((graph, node, several));
        let [one, three] = [one, three].map(|memory| {
            settle();
            memory.try_unique().expect("the graph is gone")
        });
        assert_eq!((&one[..], &two[..], &three[..]), (&[0, 3][..], &[0, 0][..], &[8, 9][..]));
    });
}

#[test]
fn owners_of_the_same_address_are_told_apart() {
    let context = setup();
    no_leaks(|| {
        let Scaled { stream, scale, x, y, graph, node } = Scaled::new(&context);
        let mut gone = Vec::new();
        for factor in [4_u32, 5] {
            let (owner, is_gone) = flag();
            // SAFETY: `x` outlives the node.
            let again = unsafe { Buffer::<u32>::from_foreign(&context, x.address(), N, owner) }.unwrap();
            node.set_argument(&scale, "from", &again).unwrap();
            drop(again);
            node.set_argument(&scale, "factor", factor).unwrap();
            gone.push(is_gone);
        }
        assert!(soon(&gone[0]) && !gone[1]());
        assert_eq!(run(&mut graph.instantiate().unwrap(), &y, &stream), [15; N]);
        node.set_argument(&scale, "from", &x).unwrap();
        assert!(soon(&gone[1]));
    });
}

#[test]
fn a_failing_call_changes_nothing() {
    let context = setup();
    let (scale, home) = (scale::load(&context).unwrap(), used_stream(&context));
    let flags = context.pinned_zeros::<u32>(4).unwrap().share();
    let cases = sweep("single parameters of nodes", || -> Result<(), Error> {
        let (x, y) = (home.zeros::<u32>(N)?, home.zeros::<u32>(N)?);
        let graph = context.graph()?;
        let mut batch = Batch::new();
        batch.write(&flags, 0, 1)?;
        let kernel = graph.root().launch(&scale, per(N, 4), (N as u32, 1, &x, &y))?;
        let copy = kernel.then().copy(&x, &y)?;
        let fill = copy.then().fill(&x, 1)?;
        let writes = fill.then().batch(&batch)?;
        let z = home.zeros::<u32>(N)?;
        kernel.set_argument(&scale, "factor", 2_u32)?;
        kernel.set_argument(&scale, "to", &z)?;
        kernel.set_config(&scale, per(N, 8))?;
        kernel.set_kernel(&scale)?;
        copy.set_source(&z)?;
        fill.set_target(&z)?;
        fill.set_value(3_u32)?;
        writes.set_operation(0, &batch)?;
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
    no_leaks(|| {
        let all = Scaled::new(&context);
        let Scaled { stream, scale, y, graph, node, .. } = &all;
        let fill = node.then().fill(y.slice(..2).unwrap(), 1).unwrap();
        let z = zeros::<u32>(stream, N);
        stream.synchronize_blocking().unwrap();
        let before = allocations();
        let changes: [&dyn Fn() -> Result<(), Error>; 5] = [
            &|| node.set_argument(scale, "factor", 9_u32),
            &|| node.set_argument(scale, "to", &z),
            &|| node.set_config(scale, per(N, 8)),
            &|| fill.set_value(9_u32),
            &|| fill.set_target(&z),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            for call in [Call::cuGraphKernelNodeGetParams, Call::cuGraphNodeSetParams] {
                if at >= 3 && call == Call::cuGraphKernelNodeGetParams {
                    continue;
                }
                let injected = fail(call, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
                let failed = change().unwrap_err();
                assert!(matches!(failed, Error::Handles(HandleError::Driver { .. })), "{failed}");
                drop(injected);
                settle();
                assert_eq!(allocations(), before);
                assert_eq!(all.runs(y), [1, 1, 6, 6, 6, 6, 6, 6]);
                assert_eq!(node.config().unwrap(), per(N, 4));
            }
        }
        drop(graph.clone());
    });
}
