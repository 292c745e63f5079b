//! A change that fails and cannot be taken back breaks the graph: each later use says so with both
//! causes, executables made before go on, and everything that the change used stays alive as long
//! as the graph.

use std::sync::{Arc, Mutex, Weak, mpsc};

use cuda_graph::EdgeKind::{Full, Programmatic};
use cuda_graph::{
    Condition, ContextExt, EdgeError, EmptyNode, Error, Fallback, Frontier, Graph, InstantiateOptions,
    KernelNode, LoopError, Node, Test,
};
use cuda_handles::{Batch, Buffer, Context, Event, Kernel, Owner, SharedHostBuffer, Stream};
use cuda_launch::{LaunchConfig, kernel, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{
    Injection, Need, SOON, alone, count, fail, fail_any, kernel, needs, no_leaks, raw, settle, setup, until,
    used_stream,
};

use crate::common::chains::moves;
use crate::common::driver_view::{Drawn, View};
use crate::common::gone::soon;
use crate::common::other;
use crate::edges::changes::kernels;
use crate::nodes::kernels::all;
use crate::rollback::all_or_nothing::{CHANGES, Change};

kernel! {
    // SAFETY: one thread counts in the element; the condition is set, and nothing else is touched.
    unsafe in "../../../kernels/conditions.ptx";

    fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

const CODE: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

/// What can be asked of a graph that takes the driver's graph.
fn uses(graph: &Graph) -> Vec<(&'static str, Result<(), Error>)> {
    let other = || graph.context().graph().unwrap();
    let options = InstantiateOptions::new;
    let mut uses = vec![
        ("len", graph.len().map(drop)),
        ("nodes", graph.nodes().map(drop)),
        ("edges", graph.edges().map(drop)),
        ("children", graph.children().map(drop)),
        ("to_dot", graph.to_dot().map(drop)),
        ("to_svg", graph.to_svg().map(drop)),
        ("check", graph.check().map(drop)),
        ("add", graph.root().empty().map(drop)),
        ("as_raw", graph.as_raw().map(drop)),
        ("lend", graph.lend().map(drop)),
        ("clone", graph.clone_graph().map(drop)),
        ("embed", other().root().child(graph).map(drop)),
        ("embed in it", graph.root().child(&other()).map(drop)),
    ];
    if Need::Conditionals.is_met() {
        uses.push(("condition", graph.condition().map(drop)));
    }
    if moves() {
        uses.push(("move", other().root().child_moved(graph.clone()).map(drop)));
        uses.push(("move into it", graph.root().child_moved(other()).map(drop)));
    }
    // What an embedded graph is refused anyway.
    if graph.parent().is_ok_and(|parent| parent.is_none()) {
        uses.push(("instantiate", graph.instantiate().map(drop)));
        uses.push(("into_exec", graph.clone().instantiate().map(drop)));
        for fallback in [Fallback::HostLoop, Fallback::HostLoopAlways] {
            uses.push(("fallback", graph.instantiate_with_fallback(fallback, options()).map(drop)));
        }
    }
    uses
}

/// What can be asked of its nodes.
fn uses_of(node: &Node, other: &Node) -> Vec<(&'static str, Result<(), Error>)> {
    let graph = node.graph();
    vec![
        ("as_raw", node.as_raw().map(drop)),
        ("then", node.then().empty().map(drop)),
        ("predecessors", node.predecessors().map(drop)),
        ("out_edges", node.out_edges().map(drop)),
        ("set_in_edges", node.set_in_edges(&[(other, Full)])),
        ("set_out_edges", node.set_out_edges(&[(other, Full)])),
        ("add_edge", graph.add_edge(node, other)),
        ("remove_edges", graph.remove_edges(&[(node, other)])),
        ("edge_kind", graph.edge_kind(node, other).map(drop)),
        ("before", graph.root().before([node]).and_then(|at| at.empty().map(drop))),
        ("remove_bridging", node.remove_bridging()),
        ("remove", node.remove()),
        ("remove_nodes", graph.remove_nodes(&[node, other])),
    ]
}

/// Every use of the graph is answered with the error, without a call on the graph.
#[track_caller]
pub(crate) fn assert_broken(graph: &Graph, error: &Error) {
    let Error::Broken(broken) = error else { panic!("not broken: {error}") };
    let text = error.to_string();
    for cause in [&broken.cause, &broken.undo] {
        assert!(!matches!(cause, Error::Broken(_)), "{text}");
        assert!(text.contains(&cause.to_string()), "{text}");
    }
    for (what, outcome) in uses(graph) {
        assert_eq!(outcome.as_ref().unwrap_err(), error, "{what}");
    }
    // What is known without the driver is told.
    assert!(graph.parent().is_ok());
}

/// The same for two of its nodes; what was known of them is.
#[track_caller]
fn assert_nodes_broken([node, other]: [&Node; 2], error: &Error) {
    let known = (node.name(), node.describe());
    assert!(known.1.is_ok(), "{known:?}");
    let (outcomes, cost) = count(|| uses_of(node, other));
    for (what, outcome) in outcomes {
        assert_eq!(outcome.as_ref().unwrap_err(), error, "{what}");
    }
    let called = ["cuGraphAddNode", "cuGraphDestroyNode", "cuGraphGetEdges", "cuGraphAddDependencies"];
    assert!(called.iter().all(|call| cost.calls(call) == 0), "{cost}");
    assert!(!node.is_removed() && node.graph().parent().is_ok());
    assert_eq!((node.name(), node.describe()), known);
    // A name and an owner are no changes of the driver's graph.
    let (held, named) = (Arc::new(()), node.clone().named("of a broken graph"));
    node.keep(Owner::shared(Arc::clone(&held))).unwrap();
    assert!(Arc::strong_count(&held) == 2 && node.name() == "of a broken graph");
    named.named(known.0);
}

/// What nodes use, made before anything fails.
struct Things {
    stream: Stream,
    /// One that takes nothing, and one that takes memory and its length.
    kernels: [Kernel; 2],
    event: Event,
    batch: Batch,
    host: SharedHostBuffer<u32>,
    count_down: Option<count_down>,
}

impl Things {
    fn new(context: &Context) -> Self {
        let stream = used_stream(context);
        let mut batch = Batch::new();
        let plain = context.alloc_blocking::<u32>(1).unwrap();
        batch.write(&plain, 0, 1).unwrap();
        Self {
            kernels: ["empty", "increment"].map(|name| kernel(context, name)),
            event: context.event().unwrap(),
            batch,
            host: context.pinned_zeros::<u32>(1024).unwrap().share(),
            count_down: Need::Conditionals.is_met().then(|| count_down::load(context).unwrap()),
            stream,
        }
    }

    fn context(&self) -> &Context {
        self.stream.context()
    }
}

/// What one change uses, of which nobody else has a handle.
struct Used {
    buffer: Buffer<u32>,
    held: Arc<()>,
    /// Has `held`.
    source: Graph,
}

impl Used {
    fn new(things: &Things) -> Self {
        let (held, source) = (Arc::new(()), things.context().graph().unwrap());
        source.root().empty().unwrap();
        source.keep(Owner::shared(Arc::clone(&held)));
        let buffer = things.stream.zeros::<u32>(1024).unwrap();
        things.stream.synchronize_blocking().unwrap();
        Self { buffer, held, source }
    }
}

/// Which of that the node uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Nothing,
    Buffer,
    Held,
}

/// A way to add a node at a frontier.
type Add = fn(&Things, &Used, &Frontier<'_>) -> Result<(), Error>;

fn launch(things: &Things, used: &Used, at: &Frontier<'_>, config: LaunchConfig) -> Result<(), Error> {
    // SAFETY: the kernel takes an address; nothing of this is run.
    unsafe { at.launch_untyped(&things.kernels[1], config, params![&used.buffer, 1024_u32]) }.map(drop)
}

const ADDS: [(&str, Keeps, Add); 10] = [
    ("empty", Keeps::Nothing, |_, _, at| at.empty().map(drop)),
    ("launch", Keeps::Buffer, |things, used, at| launch(things, used, at, per(1, 32))),
    ("launch with attributes", Keeps::Buffer, |things, used, at| {
        launch(things, used, at, per(1, 32).priority(-1).cooperative())
    }),
    ("fill", Keeps::Buffer, |_, used, at| at.fill(&used.buffer, 1).map(drop)),
    ("copy", Keeps::Buffer, |things, used, at| at.copy(&used.buffer, &things.host).map(drop)),
    ("host function", Keeps::Held, |_, used, at| {
        let held = Arc::clone(&used.held);
        at.host(move || drop(Arc::clone(&held))).map(drop)
    }),
    ("record", Keeps::Nothing, |things, _, at| at.record(&things.event).map(drop)),
    ("wait", Keeps::Nothing, |things, _, at| at.wait(&things.event).map(drop)),
    ("batch", Keeps::Nothing, |things, _, at| at.batch(&things.batch).map(drop)),
    ("child graph", Keeps::Held, |_, used, at| at.child(&used.source).map(drop)),
];

/// Those that are only where the driver has conditional nodes.
const CONDITIONALS: [(&str, Keeps, Add); 4] = [
    ("if with default", Keeps::Nothing, |_, _, at| {
        let condition = root_of(at).condition_with_default(1)?;
        at.if_node(&condition).map(drop)
    }),
    ("while", Keeps::Nothing, |_, _, at| {
        let condition = root_of(at).condition()?;
        at.while_node(&condition).map(drop)
    }),
    ("loop", Keeps::Buffer, |_, used, at| {
        at.while_loop(Test::nonzero(&used.buffer), |body| body.root().empty()).map(drop)
    }),
    ("branch whose closure fails", Keeps::Buffer, |_, used, at| {
        let outcome = at.if_then(Test::nonzero(&used.buffer), |body| {
            body.root().empty()?;
            Err::<(), _>(Error::Loop(LoopError::NothingToTest))
        });
        match outcome {
            // As it is meant to.
            Err(Error::Loop(LoopError::NothingToTest)) => Ok(()),
            outcome => outcome.map(drop),
        }
    }),
];

/// Conditions are of any graph of the hierarchy.
fn root_of(at: &Frontier<'_>) -> Graph {
    at.graph().clone()
}

/// Where a node is added among `a` to `b` and `b` to `c`.
type Place = for<'g> fn(&'g Graph, [&Node; 3]) -> Result<Frontier<'g>, Error>;

const PLACES: [(&str, Place); 4] = [
    ("between", |graph, [a, b, _]| graph.between(a, b)),
    ("between, and before another", |graph, [a, b, c]| graph.between(a, b)?.before([c])),
    ("before two", |graph, [_, b, c]| graph.root().before([b, c])),
    ("after", |graph, [_, b, _]| graph.after([b])),
];

/// A graph, and the root that it lies in.
type Make = fn(&Things) -> (Graph, Drawn);

fn root(things: &Things) -> (Graph, Drawn) {
    let drawn = Drawn::new(things.context());
    (drawn.graph.clone(), drawn)
}

fn body(things: &Things) -> (Graph, Drawn) {
    let graph = things.context().graph().unwrap();
    let condition = graph.condition_with_default(1).unwrap();
    let body = graph.root().if_node(&condition).unwrap().body().unwrap();
    let raw = body.as_raw().unwrap();
    (graph, Drawn { graph: body, raw })
}

/// Everything that can be seen of a graph, by the library and by the driver.
fn state(graph: &Drawn) -> (Vec<Node>, Vec<cuda_graph::Edge>, View) {
    let mut edges = graph.edges().unwrap();
    edges.sort_by_key(|edge| (edge.from.name(), edge.to.name()));
    let mut view = graph.view();
    view.edges.sort_unstable();
    (graph.nodes().unwrap(), edges, view)
}

/// The order of the nodes is what the edges say.
fn assert_ordered(graph: &Graph) {
    for edge in graph.edges().unwrap() {
        let closed = graph.add_edge(&edge.to, &edge.from);
        assert!(matches!(closed, Err(Error::Edge(EdgeError::Cycle { .. }))), "{closed:?}");
    }
}

/// Lets every two driver calls of an attempt fail. The attempt says whether the one and the other
/// came.
fn every_two(mut attempt: impl FnMut([u64; 2]) -> [bool; 2]) {
    for first in 1.. {
        let mut came = false;
        for second in first.. {
            let hits = attempt([first, second]);
            came |= hits[0];
            if !hits[1] {
                break;
            }
        }
        if !came {
            break;
        }
    }
}

/// Makes a change while two driver calls, by their numbers, fail.
fn failing<R>([first, second]: [u64; 2], change: impl FnOnce() -> R) -> (R, [bool; 2]) {
    let (one, two) = (fail_any(first, CODE), fail_any(second, CODE));
    let outcome = change();
    (outcome, [one.hit(), two.hit()])
}

/// Lets every two driver calls of an addition fail; gives how often that broke the graph.
fn break_additions(
    things: &Things,
    make: Make,
    place: Place,
    (name, keeps, add): (&str, Keeps, Add),
) -> usize {
    let mut broken = 0;
    every_two(|calls| {
        let (root, graph) = make(things);
        let nodes = ["a", "b", "c"].map(|name| Node::from(graph.root().empty().unwrap()).named(name));
        let [a, b, c] = &nodes;
        graph.add_edge(a, b).unwrap();
        graph.add_edge(b, c).unwrap();
        let mut exec = root.instantiate().unwrap();
        let used = Used::new(things);
        let held = Arc::downgrade(&used.held);
        let before = state(&graph);
        let (outcome, hits) =
            failing(calls, || place(&graph, [a, b, c]).and_then(|at| add(things, &used, &at)));
        let what = format!("{name}, calls {calls:?}: {outcome:?}");
        match &outcome {
            Ok(()) => {}
            Err(error @ Error::Broken(_)) => {
                broken += 1;
                assert_broken(&graph, error);
                assert_broken(&root, error);
                assert_nodes_broken([b, c], error);
                exec.launch(&things.stream).unwrap();
                things.stream.synchronize_blocking().unwrap();
                drop(exec);
                stays_until_the_graph_goes(keeps, used, &held, &what, (before, root, graph, nodes));
            }
            Err(_) => {
                assert_eq!(state(&graph), before, "{what}");
                assert_ordered(&graph);
                goes(used, &held, &what);
                // It is added all the same once nothing fails.
                let again = Used::new(things);
                place(&graph, [a, b, c]).and_then(|at| add(things, &again, &at)).unwrap();
            }
        }
        hits
    });
    broken
}

/// What a change that broke the graph used is there as long as the graph, and not longer.
fn stays_until_the_graph_goes<G>(keeps: Keeps, used: Used, held: &Weak<()>, what: &str, graph: G) {
    let memory = Arc::downgrade(used.buffer.allocation());
    drop(used);
    settle();
    let is_there = || match keeps {
        Keeps::Nothing => true,
        Keeps::Buffer => memory.strong_count() > 0,
        Keeps::Held => held.strong_count() > 0,
    };
    assert!(is_there(), "{what}: dropped before the graph");
    drop(graph);
    let is_gone = || memory.strong_count() == 0 && held.strong_count() == 0;
    let gone = until(SOON, || {
        settle();
        is_gone()
    });
    assert!(gone, "{what}: kept after the graph");
}

/// A change that failed keeps nothing.
fn goes(used: Used, held: &Weak<()>, what: &str) {
    let memory = Arc::downgrade(used.buffer.allocation());
    drop(used);
    let is_gone = || memory.strong_count() == 0 && held.strong_count() == 0;
    assert!(until(SOON, is_gone), "{what}: kept by a graph that is as it was");
}

#[test]
fn whichever_two_calls_fail_an_addition_is_made_or_not_or_breaks_the_graph() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let things = Things::new(&context);
        for (name, place) in PLACES {
            for add in ADDS {
                let broken = break_additions(&things, root, place, add);
                // Behind others nothing is left to be undone but what comes after the add.
                let undoes = name != "after" || matches!(add.0, "launch with attributes" | "child graph");
                assert_eq!(broken > 0, undoes, "{name}: {}", add.0);
            }
        }
    });
}

#[test]
fn whichever_two_calls_fail_a_conditional_node_or_loop_is_made_or_not_or_breaks_the_graph() {
    let context = setup();
    needs!(EdgeKinds, Conditionals);
    let things = Things::new(&context);
    for (name, place) in PLACES {
        for add in CONDITIONALS {
            for (make, is_body) in [(root as Make, false), (body, true)] {
                let broken = break_additions(&things, make, place, add);
                let undoes =
                    name != "after" || is_body && add.0 == "if with default" || add.1 == Keeps::Buffer;
                assert!(broken > 0 || !undoes, "{name}: {}", add.0);
            }
        }
    }
}

/// There each body gets a node, which may fail as well.
#[test]
fn whichever_two_calls_fail_on_the_first_drivers_with_conditional_nodes() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let things = Things::new(&context);
    for (_, place) in PLACES {
        for make in [root as Make, body] {
            assert!(break_additions(&things, make, place, CONDITIONALS[0]) > 0);
        }
    }
}

#[test]
fn whichever_two_calls_fail_a_change_of_edges_is_made_or_not_or_breaks_the_graph() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let broken: usize =
            CHANGES.into_iter().map(|(name, change)| break_change(&stream, name, change)).sum();
        assert!(broken >= 20, "{broken}");
        stream.synchronize_blocking().unwrap();
    });
}

/// Lets every two driver calls of a change fail; gives how often that broke the graph.
fn break_change(stream: &Stream, name: &str, change: Change) -> usize {
    let context = stream.context();
    let mut broken = 0;
    every_two(|calls| {
        let graph = Drawn::new(context);
        let nodes: [KernelNode; 6] = kernels(context, &graph);
        let [a, b, c, d, ..] = &nodes;
        graph.add_edges(&[(a, b, Full), (b, c, Programmatic), (c, d, Full)]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let seen = || (graph.view(), raw::edges_with_data(graph.raw));
        let before = seen();
        let (outcome, hits) = failing(calls, || change(&graph, &nodes));
        let what = format!("{name}, calls {calls:?}: {outcome:?}");
        match &outcome {
            Ok(()) => assert_ne!(seen(), before, "{what}"),
            Err(error @ Error::Broken(_)) => {
                broken += 1;
                assert_broken(&graph, error);
                assert_nodes_broken([a, d], error);
                assert!(!nodes.iter().any(|node| node.is_removed()), "{what}");
                exec.launch(stream).unwrap();
                stream.synchronize_blocking().unwrap();
            }
            Err(_) => {
                assert_eq!(seen(), before, "{what}");
                assert_ordered(&graph);
            }
        }
        hits
    });
    broken
}

/// A kernel by its number of arguments, and how it is launched.
type Launch = (usize, LaunchConfig);

fn set(things: &Things, node: &KernelNode, used: &Used, (which, config): Launch) -> Result<(), Error> {
    let (kernel, at) = (&things.kernels[which], &used.buffer);
    // SAFETY: the arguments are those of the kernels, and nothing of this is run.
    unsafe {
        match which {
            0 => node.set_untyped(kernel, config, params![]),
            _ => node.set_untyped(kernel, config, params![at, 1024_u32]),
        }
    }
}

/// What the driver says of a kernel node.
fn seen(node: &KernelNode) -> String {
    let params = raw::kernel(node.as_raw().unwrap());
    format!("{:?} {} {} {:?}", params.kern, params.gridDimX, params.blockDimX, all(node))
}

#[test]
fn whichever_two_calls_fail_a_launch_is_set_or_not_or_breaks_the_graph() {
    let context = setup();
    needs!(LaunchAttributes, ParameterLayouts, Carveouts);
    no_leaks(|| {
        let things = Things::new(&context);
        let plain = LaunchConfig::new(8, 32);
        let changes: [(Launch, Launch); 5] = [
            ((1, per(1, 32).priority(-1)), (1, LaunchConfig::new(2, 64).cluster(2).shared_carveout(50))),
            ((0, plain.cluster(4).priority(-1)), (0, LaunchConfig::new(9, 32).cluster(3))),
            ((0, plain.cluster(4).cooperative()), (1, LaunchConfig::new(7, 16))),
            ((1, plain), (0, LaunchConfig::new(6, 32).cooperative().cluster(2).priority(-3))),
            (
                (1, per(1, 32).memory_sync_domain_map(0, 1)),
                (1, LaunchConfig::new(4, 8).cluster(2).priority(-1)),
            ),
        ];
        let mut broken = 0;
        for (case, (old, new)) in changes.into_iter().enumerate() {
            every_two(|calls| {
                let graph = context.graph().unwrap();
                let (used, next) = (Used::new(&things), Used::new(&things));
                let held = Arc::downgrade(&next.held);
                launch(&things, &used, &graph.root(), per(1, 32)).unwrap();
                let node = KernelNode::try_from(graph.nodes().unwrap().remove(0)).unwrap();
                let beside = graph.root().empty().unwrap();
                set(&things, &node, &used, old).unwrap();
                let mut exec = graph.instantiate().unwrap();
                let before = (seen(&node), node.config().unwrap());
                let (outcome, hits) = failing(calls, || set(&things, &node, &next, new));
                let what = format!("change {case}, calls {calls:?}: {outcome:?}");
                match &outcome {
                    Ok(()) => assert_eq!(node.config().unwrap(), new.1, "{what}"),
                    Err(error @ Error::Broken(_)) => {
                        broken += 1;
                        assert_broken(&graph, error);
                        assert_nodes_broken([&node, &beside], error);
                        assert_eq!(node.config().unwrap(), before.1);
                        exec.launch(&things.stream).unwrap();
                        things.stream.synchronize_blocking().unwrap();
                        drop(exec);
                        let keeps = |which| if which == 0 { Keeps::Nothing } else { Keeps::Buffer };
                        let old_memory = Arc::downgrade(used.buffer.allocation());
                        drop(used);
                        assert!(old.0 == 0 || old_memory.strong_count() > 0, "{what}");
                        stays_until_the_graph_goes(keeps(new.0), next, &held, &what, (graph, node, beside));
                    }
                    Err(_) => {
                        assert_eq!((seen(&node), node.config().unwrap()), before, "{what}");
                        goes(next, &held, &what);
                        graph.instantiate().unwrap();
                    }
                }
                hits
            });
        }
        assert!(broken >= 20, "{broken}");
    });
}

/// A kernel in a body that has the first of two conditions.
struct Deciding {
    root: Graph,
    counter: Buffer<u32>,
    conditions: [Condition; 2],
    body: Graph,
    node: KernelNode,
    /// The nodes that go by the conditions, if they are there.
    branches: Vec<cuda_graph::IfNode>,
}

impl Deciding {
    fn new(things: &Things, are_there: bool) -> Self {
        let (root, kernel) = (things.context().graph().unwrap(), things.count_down.as_ref().unwrap());
        let counter = things.stream.zeros::<u32>(1).unwrap();
        let outer = root.condition_with_default(1).unwrap();
        let body = root.root().if_node(&outer).unwrap().body().unwrap();
        let conditions = [(); 2].map(|()| root.condition_with_default(1).unwrap());
        let config = per(1, 1).priority(-1);
        let node = body.root().launch(kernel, config, (&counter, &conditions[0])).unwrap();
        let mut made = Self { root, counter, conditions, body, node, branches: Vec::new() };
        if are_there {
            made.add_branches();
        }
        made
    }

    fn add_branches(&mut self) {
        if self.branches.is_empty() {
            let add = |condition| self.body.root().if_node(condition).unwrap();
            self.branches = self.conditions.iter().map(add).collect();
        }
    }

    fn set(&self, kernel: &count_down) -> Result<(), Error> {
        let config = per(1, 1).priority(-2).memory_sync_domain_map(0, 1);
        self.node.set(kernel, config, (&self.counter, &self.conditions[1]))
    }

    /// The condition that the driver's node has.
    fn has(&self) -> usize {
        let params = raw::kernel(self.node.as_raw().unwrap());
        // SAFETY: the second parameter is a handle, at a pointer that is good as long as the node
        // is not changed.
        let handle = unsafe { **params.kernelParams.add(1).cast::<*const u64>() };
        self.conditions.iter().position(|condition| condition.handle().as_raw() == handle).unwrap()
    }

    /// For which of the conditions the kernel waits until they have their defaults.
    fn waits_for(&self) -> Vec<usize> {
        let before: Vec<String> = self.node.predecessors().unwrap().iter().map(|node| node.name()).collect();
        let name = |which: &usize| format!("default of condition {}", which + 2);
        (0..2).filter(|which| before.contains(&name(which))).collect()
    }
}

#[test]
fn whichever_two_calls_fail_a_kernel_gets_another_condition_or_not_or_the_graph_is_broken() {
    let context = setup();
    needs!(Conditionals);
    let things = Things::new(&context);
    let kernel = things.count_down.as_ref().unwrap();
    let mut broken = 0;
    for are_there in [true, false] {
        every_two(|calls| {
            let mut made = Deciding::new(&things, are_there);
            assert_eq!(made.has(), 0);
            let before = made.waits_for();
            let (outcome, hits) = failing(calls, || made.set(kernel));
            let what = format!("calls {calls:?}, {are_there}: {outcome:?}");
            if let Err(error @ Error::Broken(_)) = &outcome {
                broken += 1;
                assert_broken(&made.root, error);
                assert_broken(&made.body, error);
                return hits;
            }
            let has = usize::from(outcome.is_ok());
            assert_eq!(made.has(), has, "{what}");
            if outcome.is_err() {
                assert_eq!(made.waits_for(), before, "{what}");
            }
            // It waits for the default of the condition that it has, whichever was there first.
            made.add_branches();
            assert!(made.waits_for().contains(&has), "{what}: {:?}", made.waits_for());
            hits
        });
    }
    assert!(broken > 0);
}

/// Asks its graph when it is dropped: that takes the graph's lock.
struct Asks(Graph, mpsc::Sender<Result<usize, Error>>);

impl Drop for Asks {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.len());
    }
}

#[test]
fn owners_are_dropped_outside_the_graphs_lock_however_a_change_ends() {
    let context = setup();
    no_leaks(|| {
        let (send, told) = mpsc::channel();
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let asks = || Asks(graph.clone(), send.clone());
        let host = |asks: Asks| {
            graph.root().before([&*last])?.host(move || {
                let _asks = &asks;
            })
        };
        for call in [Call::cuGraphAddNode, Call::cuGraphAddDependencies] {
            let failure = fail(call, 1, CODE);
            host(asks()).unwrap_err();
            assert!(failure.hit());
            drop(failure);
            assert_eq!(told.recv_timeout(SOON).unwrap(), Ok(1), "{}", call.name());
        }
        // The graph that a broken replacement took out of a node.
        let old = context.graph().unwrap();
        old.root().empty().unwrap().keep(Owner::other(Mutex::new(asks()))).unwrap();
        old.keep(Owner::other(Mutex::new(asks())));
        let child = graph.root().child(&old).unwrap();
        drop(old);
        let failure = fail(Call::cuGraphChildGraphNodeGetGraph, 1, CODE);
        let error = child.set_graph(&context.graph().unwrap()).unwrap_err();
        assert!(failure.hit());
        drop(failure);
        assert_broken(&graph, &error);
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(SOON).unwrap(), Err(error.clone()));
        }
        // What broke it stays.
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let (held, fails) = (
            Arc::new(()),
            [fail(Call::cuGraphAddDependencies, 1, CODE), fail(Call::cuGraphDestroyNode, 1, CODE)],
        );
        let own = Arc::clone(&held);
        let host = graph.root().before([&*last]).unwrap().host(move || drop(Arc::clone(&own)));
        assert!(matches!(host, Err(Error::Broken(_))), "{host:?}");
        drop(fails);
        assert_eq!(Arc::strong_count(&held), 2);
        drop((graph, last));
        assert!(until(SOON, || Arc::strong_count(&held) == 1));
    });
}

/// The hierarchy is broken as a whole, and no other one.
#[test]
fn graphs_around_and_inside_a_broken_one_are_broken_and_clones_of_it_are_not() {
    let context = setup();
    no_leaks(|| {
        let source = context.graph().unwrap();
        source.root().child(&context.graph().unwrap()).unwrap();
        let graph = context.graph().unwrap();
        let middle = graph.root().child(&source).unwrap().embedded().unwrap();
        let inner = middle.children().unwrap().remove(0).embedded().unwrap();
        let clone = graph.clone_graph().unwrap();
        let last = middle.root().empty().unwrap();
        let fails = [fail(Call::cuGraphAddDependencies, 1, CODE), fail(Call::cuGraphDestroyNode, 1, CODE)];
        let error = middle.root().before([&*last]).unwrap().empty().unwrap_err();
        assert!(fails.iter().all(Injection::hit));
        drop(fails);
        for graph in [&graph, &middle, &inner] {
            assert_broken(graph, &error);
        }
        for graph in [&clone, &source] {
            graph.root().empty().unwrap();
            graph.instantiate().unwrap();
        }
        assert!(clone.find_clone_of(&last).is_err());
    });
}

/// Other code may make executables of a graph that was lent, broken or not: it has what they use.
#[test]
fn a_lent_graph_that_breaks_keeps_what_its_nodes_use() {
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let graph = context.graph().unwrap();
        let last = graph.root().empty().unwrap();
        let lent = graph.lend().unwrap();
        let used = Used::new(&things);
        let fails = [fail(Call::cuGraphAddDependencies, 1, CODE), fail(Call::cuGraphDestroyNode, 1, CODE)];
        let error = graph.root().before([&*last]).unwrap().fill(&used.buffer, 1).unwrap_err();
        assert!(fails.iter().all(Injection::hit));
        drop(fails);
        assert_broken(&graph, &error);
        // SAFETY: the graph lives.
        assert_eq!(unsafe { Graph::from_raw(&context, lent) }.unwrap_err(), error);
        let exec = other::instantiate(&context, lent);
        let memory = Arc::downgrade(used.buffer.allocation());
        drop((used, graph, last));
        settle();
        assert!(memory.strong_count() > 0);
        other::launch(exec, &things.stream);
        things.stream.synchronize_blocking().unwrap();
        other::destroy_exec(exec);
        assert!(soon(&|| memory.strong_count() == 0));
    });
}

/// The context is lost by the call that was to undo: there is nothing left to be broken.
fn lose_between(
    context: &Context,
    fails: [(Call, u64); 2],
    change: impl FnOnce(&Graph, [&EmptyNode; 3]) -> Result<(), Error>,
) {
    let graph = context.graph().unwrap();
    let nodes = [(); 3].map(|()| graph.root().empty().unwrap());
    let [a, b, c] = &nodes;
    graph.add_edges(&[(a, b, Full), (b, c, Full)]).unwrap();
    let [(cause, nth), (undo, nth_undo)] = fails;
    let failing = [fail(cause, nth, CODE), fail(undo, nth_undo, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)];
    let error = change(&graph, [a, b, c]).unwrap_err();
    assert!(failing.iter().all(Injection::hit), "{error}");
    assert!(!matches!(error, Error::Broken(_)), "{error}");
    assert!(error.to_string().contains(cause.symbol().to_str().unwrap()), "{error}");
    let lost = graph.len().unwrap_err();
    assert!(matches!(lost, Error::Handles(cuda_handles::Error::ContextLost(_))), "{lost}");
    assert_eq!(graph.root().empty().unwrap_err(), lost);
    assert!(!a.is_removed() && a.name() == "empty#0");
}

#[test]
fn a_context_lost_while_an_edge_is_put_back_is_no_broken_graph() {
    alone!();
    let fails = [(Call::cuGraphAddNode, 1), (Call::cuGraphAddDependencies, 1)];
    lose_between(&setup(), fails, |graph, [a, b, _]| graph.between(a, b)?.empty().map(drop));
}

#[test]
fn a_context_lost_while_a_node_is_taken_back_is_no_broken_graph() {
    alone!();
    let fails = [(Call::cuGraphAddDependencies, 1), (Call::cuGraphDestroyNode, 1)];
    lose_between(&setup(), fails, |graph, [_, b, _]| graph.root().before([b])?.host(|| {}).map(drop));
}

#[test]
fn a_context_lost_while_edges_are_put_right_is_no_broken_graph() {
    alone!();
    let fails = [(Call::cuGraphDestroyNode, 1), (Call::cuGraphRemoveDependencies, 2)];
    lose_between(&setup(), fails, |_, [_, b, _]| b.remove_bridging());
}

#[test]
fn a_context_lost_while_a_loop_is_taken_out_is_no_broken_graph() {
    alone!();
    let context = setup();
    needs!(Conditionals);
    let number = context.stream().unwrap().zeros::<u32>(1).unwrap();
    // The loop itself is the second node.
    let fails = [(Call::cuGraphAddNode, 2), (Call::cuGraphDestroyNode, 1)];
    lose_between(&context, fails, |graph, [.., c]| {
        let at = graph.after([c])?;
        at.while_loop(cuda_graph::Test::nonzero(&number), |body| body.root().empty()).map(drop)
    });
}
