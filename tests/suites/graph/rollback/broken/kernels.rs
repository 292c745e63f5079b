//! Changes of kernel nodes of which two driver calls fail.

use std::sync::Arc;

use cuda_graph::{Condition, ContextExt, Error, Graph, KernelNode};
use cuda_handles::Buffer;
use cuda_launch::{LaunchConfig, params, per};
use cuda_tests::{needs, no_leaks, raw, setup};

use super::additions::launch;
use super::keeping::{Keeps, Things, Used, count_down, goes, stays_until_the_graph_goes};
use super::uses::{assert_broken, assert_nodes_broken};
use super::{every_two, failing};
use crate::nodes::kernels::all;

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
