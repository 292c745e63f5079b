//! Kernels behind programmatic edges begin early, and one that does not wait is told.

use cuda_graph::EdgeKind::{Full, LaunchOrder, Programmatic};
use cuda_graph::{ContextExt, EdgeKind, Frontier, Graph, KernelNode, Test};
use cuda_handles::{Buffer, Context, Image, Kernel, Library, Stream};
use cuda_launch::{LaunchConfig, OwnedParams, params};
use cuda_soft::control::last_fault;
use cuda_tests::{SMALL, alone, setup, skip};

/// Kernels of 64 threads that read `from`, write `to`, and wait at different times.
const KERNELS: &str = ".version 8.0
.target sm_90
.address_size 64
.visible .entry late(.param .u64 table, .param .u64 from, .param .u64 to)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d1, %r1, 4;
    ld.param.u64 %d2, [table];
    ld.param.u64 %d3, [from];
    ld.param.u64 %d4, [to];
    add.s64 %d2, %d2, %d1;
    add.s64 %d3, %d3, %d1;
    add.s64 %d4, %d4, %d1;
    ld.global.u32 %r2, [%d2];
    griddepcontrol.wait;
    ld.global.u32 %r3, [%d3];
    add.u32 %r3, %r3, %r2;
    st.global.u32 [%d4], %r3;
    griddepcontrol.launch_dependents;
    ret;
}
// The first thread waits, and the others wait for it.
.visible .entry one(.param .u64 table, .param .u64 from, .param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 griddepcontrol.wait;
    bar.sync 0;
    mul.wide.u32 %d1, %r1, 4;
    ld.param.u64 %d3, [from];
    ld.param.u64 %d4, [to];
    add.s64 %d3, %d3, %d1;
    add.s64 %d4, %d4, %d1;
    ld.global.u32 %r3, [%d3];
    st.global.u32 [%d4], %r3;
    ret;
}
// All threads but the last wait.
.visible .entry most(.param .u64 table, .param .u64 from, .param .u64 to)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 63;
    @%p1 griddepcontrol.wait;
    mul.wide.u32 %d1, %r1, 4;
    ld.param.u64 %d3, [from];
    ld.param.u64 %d4, [to];
    add.s64 %d3, %d3, %d1;
    add.s64 %d4, %d4, %d1;
    ld.global.u32 %r3, [%d3];
    st.global.u32 [%d4], %r3;
    ret;
}
";

struct Lab {
    context: Context,
    stream: Stream,
    late: Kernel,
    one: Kernel,
    most: Kernel,
    /// Of `SMALL`: it waits nowhere.
    copy: Kernel,
    /// The same, which waits at its entry.
    waiting: Kernel,
    increment: Kernel,
    stamp: Kernel,
    stamp_waiting: Kernel,
    buffers: [Buffer<u32>; 4],
}

const BLOCKS: u32 = 3;
const N: u32 = 64;

impl Lab {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let own = Library::load(context, Image::Ptx(KERNELS)).unwrap();
        let plain = Library::load(context, Image::Ptx(SMALL)).unwrap();
        let waiting = Library::load_waiting(context, Image::Ptx(SMALL)).unwrap().library;
        let buffers = [1, 2, 3, 4].map(|value| stream.upload(&[value; N as usize]).unwrap());
        Self {
            context: context.clone(),
            late: own.kernel("late").unwrap(),
            one: own.kernel("one").unwrap(),
            most: own.kernel("most").unwrap(),
            copy: plain.kernel("offset_copy").unwrap(),
            waiting: waiting.kernel("offset_copy").unwrap(),
            increment: waiting.kernel("increment").unwrap(),
            stamp: plain.kernel("stamp").unwrap(),
            stamp_waiting: waiting.kernel("stamp").unwrap(),
            buffers,
            stream,
        }
    }

    fn add(at: &Frontier<'_>, kernel: &Kernel, blocks: u32, params: OwnedParams) -> KernelNode {
        // SAFETY: the arguments are the kernel's, and the buffers hold what it accesses.
        unsafe { at.launch_untyped(kernel, LaunchConfig::new(blocks, N), params) }.unwrap()
    }

    /// `to[i] = from[i] + add`, by `SMALL`'s kernel or the waiting one.
    fn copies(&self, at: &Frontier<'_>, kernel: &Kernel, from: usize, to: usize) -> KernelNode {
        let (from, to) = (&self.buffers[from], &self.buffers[to]);
        Self::add(at, kernel, BLOCKS, params![from, to, 10_u32, N].into_owned())
    }

    /// `to[i] = from[i]`, for `late` plus `buffers[0][i]`, by a kernel of [`KERNELS`].
    fn moves(&self, at: &Frontier<'_>, kernel: &Kernel, from: usize, to: usize) -> KernelNode {
        let (table, from, to) = (&self.buffers[0], &self.buffers[from], &self.buffers[to]);
        Self::add(at, kernel, 1, params![table, from, to].into_owned())
    }

    fn runs(&self, graph: &Graph) {
        graph.instantiate().unwrap().launch(&self.stream).unwrap();
        self.stream.synchronize_blocking().unwrap_or_else(|error| panic!("{error}: {:?}", last_fault()));
    }

    fn values(&self) -> [u32; 4] {
        [0, 1, 2, 3].map(|index| {
            let all = self.buffers[index].read_blocking(&self.stream).unwrap();
            assert!(all.iter().all(|value| *value == all[0]), "{all:?}");
            all[0]
        })
    }

    /// The driver's sentence about a graph that loses the context.
    fn told(&self, graph: &Graph) -> String {
        graph.instantiate().unwrap().launch(&self.stream).unwrap();
        self.stream.synchronize_blocking().unwrap_err();
        last_fault().unwrap()
    }
}

/// A lab in a process of its own, with these environment variables.
macro_rules! lab {
    ($($name:literal = $value:expr),*) => {{
        alone!($($name = $value),*);
        let context = setup();
        if !cuda_tests::is_soft() {
            skip!("about the software driver");
        }
        cuda_tests::needs!(EdgeKinds, Branches, LaunchAttributes);
        Lab::new(&context)
    }};
}

/// Asserts that a sentence names both kernels and says that one has not waited.
fn names(text: &str, kernels: [&str; 2]) {
    for kernel in kernels {
        assert!(text.contains(&format!("kernel `{kernel}`")), "{kernel}: {text}");
    }
    assert!(text.contains("has not waited (griddepcontrol.wait)"), "{text}");
    assert!(text.contains("graph node 0x"), "{text}");
}

#[test]
fn a_reader_that_does_not_wait_is_told() {
    let lab = lab!();
    let graph = lab.context.graph().unwrap();
    let writer = lab.moves(&graph.root(), &lab.late, 1, 2);
    lab.copies(&writer.then_with(Programmatic), &lab.copy, 2, 3);
    let text = lab.told(&graph);
    names(&text, ["late", "offset_copy"]);
    assert!(text.contains("write of 4 bytes") && text.contains("has read these bytes already"), "{text}");
}

#[test]
fn a_writer_that_does_not_wait_is_told_of_what_is_read_in_front_of_it() {
    let lab = lab!();
    let graph = lab.context.graph().unwrap();
    let reader = lab.moves(&graph.root(), &lab.late, 1, 2);
    lab.copies(&reader.then_with(Programmatic), &lab.copy, 3, 1);
    let text = lab.told(&graph);
    names(&text, ["late", "offset_copy"]);
    assert!(text.contains("read of 4 bytes") && text.contains("has written these bytes already"), "{text}");
}

#[test]
fn one_thread_that_does_not_wait_is_told() {
    let lab = lab!();
    let graph = lab.context.graph().unwrap();
    let writer = lab.moves(&graph.root(), &lab.late, 1, 2);
    lab.moves(&writer.then_with(Programmatic), &lab.most, 2, 3);
    names(&lab.told(&graph), ["late", "most"]);
}

/// Its own wait would be for the kernel in the middle alone.
#[test]
fn a_reader_behind_one_that_does_not_wait_is_told() {
    let lab = lab!();
    let graph = lab.context.graph().unwrap();
    let writer = lab.copies(&graph.root(), &lab.waiting, 1, 2);
    let middle = lab.copies(&writer.then_with(Programmatic), &lab.copy, 0, 0);
    lab.moves(&middle.then_with(Programmatic), &lab.late, 2, 3);
    names(&lab.told(&graph), ["offset_copy", "late"]);
}

#[test]
fn a_reader_behind_a_full_edge_of_one_that_does_not_wait_is_told() {
    let lab = lab!();
    let graph = lab.context.graph().unwrap();
    let writer = lab.copies(&graph.root(), &lab.waiting, 1, 2);
    let middle = lab.copies(&writer.then_with(Programmatic), &lab.copy, 0, 0);
    lab.moves(&middle.then_with(Full), &lab.late, 2, 3);
    names(&lab.told(&graph), ["offset_copy", "late"]);
}

#[test]
fn launch_order_is_not_waited_for() {
    let lab = lab!();
    let graph = lab.context.graph().unwrap();
    let writer = lab.copies(&graph.root(), &lab.waiting, 1, 2);
    lab.moves(&writer.then_with(LaunchOrder), &lab.late, 2, 3);
    names(&lab.told(&graph), ["offset_copy", "late"]);
}

#[test]
fn kernels_that_wait_in_any_way_see_what_is_in_front_of_them() {
    let lab = lab!();
    let graph = lab.context.graph().unwrap();
    let first = lab.copies(&graph.root(), &lab.waiting, 1, 2);
    let second = lab.moves(&first.then_with(Programmatic), &lab.late, 2, 3);
    let third = lab.moves(&second.then_with(Programmatic), &lab.one, 3, 1);
    lab.copies(&third.then_with(Programmatic), &lab.waiting, 1, 2);
    lab.runs(&graph);
    assert_eq!(lab.values(), [1, 13, 23, 13]);
}

#[test]
fn kernels_in_children_and_loops_begin_early() {
    let lab = lab!();
    let inner = lab.context.graph().unwrap();
    let first = lab.copies(&inner.root(), &lab.waiting, 1, 2);
    lab.copies(&first.then_with(Programmatic), &lab.waiting, 2, 1);
    let graph = lab.context.graph().unwrap();
    let child = graph.root().child(&inner).unwrap();
    child.then().child(&inner).unwrap();
    lab.runs(&graph);
    assert_eq!(lab.values(), [1, 42, 32, 4]);
    // The number counts up to 0.
    let number = lab.stream.upload(&[u32::MAX - 2]).unwrap();
    let graph = lab.context.graph().unwrap();
    let body = |body: &cuda_graph::LoopBody| {
        let first = lab.copies(&body.root(), &lab.waiting, 1, 2);
        let second = lab.copies(&first.then_with(Programmatic), &lab.waiting, 2, 1);
        Lab::add(&second.then_with(Programmatic), &lab.increment, 1, params![&number, 1_u32].into_owned());
        Ok::<_, cuda_graph::Error>(())
    };
    graph.root().while_loop(Test::nonzero(&number), body).unwrap();
    lab.runs(&graph);
    assert_eq!(lab.values(), [1, 102, 92, 4]);
    let wrong = lab.context.graph().unwrap();
    let first = lab.copies(&wrong.root(), &lab.waiting, 1, 2);
    lab.moves(&first.then_with(Programmatic), &lab.most, 2, 3);
    let around = lab.context.graph().unwrap();
    around.root().child(&wrong).unwrap();
    names(&lab.told(&around), ["offset_copy", "most"]);
}

/// The launches of `stamp` in their order: each takes a number from one counter, atomically.
fn stamps(lab: &Lab, kernels: &[&Kernel], edges: &[(usize, usize, EdgeKind)]) -> Vec<u32> {
    let (counter, places) =
        (lab.stream.zeros::<u32>(1).unwrap(), lab.stream.zeros::<u32>(kernels.len()).unwrap());
    let graph = lab.context.graph().unwrap();
    let add = |(index, kernel): (usize, &&Kernel)| {
        let place = places.slice(index..=index).unwrap();
        let params = params![&counter, place].into_owned();
        // SAFETY: the arguments are the kernel's.
        unsafe { graph.root().launch_untyped(kernel, LaunchConfig::new(1, 1), params) }.unwrap()
    };
    let nodes: Vec<_> = kernels.iter().enumerate().map(add).collect();
    let edges: Vec<_> = edges.iter().map(|(from, to, kind)| (&*nodes[*from], &*nodes[*to], *kind)).collect();
    graph.add_edges(&edges).unwrap();
    lab.runs(&graph);
    places.read_blocking(&lab.stream).unwrap()
}

#[test]
fn a_kernel_begins_before_the_one_in_front_has_ended() {
    let lab = lab!();
    let edges = [(0, 1, Programmatic)];
    assert_eq!(stamps(&lab, &[&lab.stamp, &lab.stamp], &edges), [2, 1], "it does not wait");
    assert_eq!(stamps(&lab, &[&lab.stamp, &lab.stamp_waiting], &edges), [1, 2]);
    assert_eq!(stamps(&lab, &[&lab.stamp, &lab.stamp], &[(0, 1, LaunchOrder)]), [2, 1]);
    assert_eq!(stamps(&lab, &[&lab.stamp, &lab.stamp], &[(0, 1, Full)]), [1, 2]);
    assert_eq!(stamps(&lab, &[&lab.stamp, &lab.stamp_waiting], &[(0, 1, LaunchOrder)]), [2, 1]);
}

/// The order of eight pairs with a seed; the second of a pair waits for the first.
fn order_of_pairs(lab: &Lab) -> Vec<u32> {
    let kernels: Vec<_> = (0..16).map(|_| &lab.stamp_waiting).collect();
    let edges: Vec<_> = (0..8).map(|index| (index, index + 8, Programmatic)).collect();
    let order = stamps(lab, &kernels, &edges);
    assert!((0..8).all(|index| order[index] < order[index + 8]), "{order:?}");
    assert_eq!(stamps(lab, &kernels, &edges), order, "the same seed, the same order");
    order
}

#[test]
fn the_seed_is_0_by_default() {
    let lab = lab!();
    assert_eq!(order_of_pairs(&lab), ORDERS[0]);
}

#[test]
fn the_seed_can_be_0() {
    let lab = lab!("CUDA_SOFT_EARLY_ORDER" = "0");
    assert_eq!(order_of_pairs(&lab), ORDERS[0]);
}

#[test]
fn another_seed_draws_another_order() {
    let lab = lab!("CUDA_SOFT_EARLY_ORDER" = "1");
    assert_eq!(order_of_pairs(&lab), ORDERS[1]);
}

const ORDERS: [[u32; 16]; 2] = [
    [13, 9, 1, 15, 3, 7, 5, 11, 14, 10, 2, 16, 4, 8, 6, 12],
    [7, 9, 15, 3, 1, 11, 13, 5, 8, 10, 16, 4, 2, 12, 14, 6],
];

#[test]
fn before_compute_capability_9_such_edges_are_full() {
    // The threads of a kernel here write one place, and any of them may come last.
    alone!("CUDA_SOFT_CAPABILITY" = "8.0", "CUDA_TEST_DRIVER" = "soft", "CUDA_SOFT_CHECK" = "shared-races");
    let context = setup();
    cuda_tests::needs!(EdgeKinds);
    let stream = context.stream().unwrap();
    let stamp = cuda_tests::kernel(&context, "stamp");
    let (counter, places) = (stream.zeros::<u32>(1).unwrap(), stream.zeros::<u32>(2).unwrap());
    let graph = context.graph().unwrap();
    let place = |index: usize| params![&counter, places.slice(index..=index).unwrap()].into_owned();
    let first = Lab::add(&graph.root(), &stamp, 1, place(0));
    Lab::add(&first.then_with(Programmatic), &stamp, 1, place(1));
    graph.instantiate().unwrap().launch(&stream).unwrap();
    // The 64 threads of one come after those of the other.
    let stamps = places.read_blocking(&stream).unwrap();
    assert!(stamps[0] <= 64 && stamps[1] > 64, "{stamps:?}");
}
