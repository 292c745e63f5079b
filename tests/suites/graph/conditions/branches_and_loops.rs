//! Branches and loops on the device.

use cuda_graph::{
    Condition, ConditionError, ContextExt, EmbedError, Error, ExecError, Frontier, Graph, IfElseNode,
    KernelNode, NodeError, NodeKind, RawCopy, RawMemory, SwitchNode,
};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{TypedKernel, kernel, params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Need, alone, count, fail, needs, no_leaks, raw, setup};

use crate::rollback::broken::assert_broken;

kernel! {
    // SAFETY: the kernels in the file have these parameters, and each touches the first element
    // alone.
    unsafe in "../../../kernels/conditions.ptx";

    pub(crate) fn set_to(value: u32, handle: ConditionalHandle);
    pub(crate) fn set_from(value: In<u32>, handle: ConditionalHandle)
    where value.len() >= 1;
    pub(crate) fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
    pub(crate) fn count_up(counter: InOut<u32>, limit: u32, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

kernel! {
    // SAFETY: as above.
    unsafe in "../../../kernels/increment.ptx";

    pub(crate) fn increment_by(amount: u32, value: InOut<u32>)
    where value.len() >= 1;
}

/// What the tests launch, and numbers that they count in.
pub(crate) struct Kernels {
    pub(crate) stream: Stream,
    set_to: set_to,
    set_from: set_from,
    count_down: count_down,
    count_up: count_up,
    increment_by: increment_by,
    pub(crate) runs: Buffer<u32>,
}

impl Kernels {
    pub(crate) fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        Self {
            set_to: set_to::load(context).unwrap(),
            set_from: set_from::load(context).unwrap(),
            count_down: count_down::load(context).unwrap(),
            count_up: count_up::load(context).unwrap(),
            increment_by: increment_by::load(context).unwrap(),
            runs: stream.zeros(1).unwrap(),
            stream,
        }
    }

    /// Adds a node that counts its runs, each as `amount`.
    pub(crate) fn count(&self, at: &Frontier<'_>, amount: u32) -> KernelNode {
        at.launch(&self.increment_by, per(1, 1), (amount, &self.runs)).unwrap()
    }

    /// Adds a node that counts down and sets the condition to what is left.
    pub(crate) fn decide(
        &self,
        at: &Frontier<'_>,
        counter: &Buffer<u32>,
        condition: &Condition,
    ) -> Result<KernelNode, Error> {
        at.launch(&self.count_down, per(1, 1), (counter, condition))
    }

    /// Gives such a node its launch anew.
    pub(crate) fn redecide(
        &self,
        node: &KernelNode,
        counter: &Buffer<u32>,
        condition: &Condition,
    ) -> Result<(), Error> {
        node.set(&self.count_down, per(1, 1), (counter, condition))
    }

    /// What was counted since the last look.
    #[track_caller]
    pub(crate) fn counted(&self) -> u32 {
        let runs = self.runs.read_blocking(&self.stream).unwrap();
        self.stream.fill(&self.runs, 0).unwrap();
        runs[0]
    }

    pub(crate) fn run(&self, graph: &Graph, times: usize) -> u32 {
        let mut exec = graph.instantiate().unwrap();
        (0..times).for_each(|_| exec.launch(&self.stream).unwrap());
        self.counted()
    }
}

/// How many nodes a body has from the start.
pub(crate) fn filler() -> u64 {
    u64::from(!Need::EmptyBodies.is_met())
}

#[test]
fn a_loop_runs_until_its_condition_is_0() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let counter = kernels.stream.zeros::<u32>(1).unwrap();
        let start = graph.root().fill(&counter, 7).unwrap();
        let go_on = graph.condition_with_default(1).unwrap();
        let (rounds, cost) = count(|| start.then().while_node(&go_on).unwrap().named("rounds"));
        cost.assert_calls(&[("cuGraphAddNode", 1 + filler())]);
        let body = rounds.body().unwrap();
        let step = kernels.count(&body.root(), 1);
        step.then().launch(&kernels.count_down, per(1, 1), (&counter, &go_on)).unwrap();
        assert_eq!(
            (rounds.kind(), rounds.name(), body.len().unwrap()),
            (NodeKind::While, "rounds".into(), 2 + filler() as usize)
        );
        assert_eq!(body.parent().unwrap().unwrap(), (*rounds).clone());
        assert_eq!(go_on.node().unwrap().unwrap(), (*rounds).clone());
        assert_eq!(graph.len().unwrap(), 2);
        assert_eq!(kernels.run(&graph, 10), 70, "ten launches in a row");
        let listed = graph.nodes().unwrap();
        let again = cuda_graph::WhileNode::try_from(listed[1].clone()).unwrap();
        assert_eq!((again == rounds, again.body().unwrap() == body), (true, true));
    });
}

#[test]
fn a_loop_with_the_default_0_runs_no_round() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let never = graph.condition_with_default(0).unwrap();
        let rounds = graph.root().while_node(&never).unwrap();
        kernels.count(&rounds.body().unwrap().root(), 1);
        let after = graph.condition().unwrap();
        let branch = rounds.then().if_node(&after).unwrap();
        kernels.count(&branch.body().unwrap().root(), 100);
        assert_eq!(kernels.run(&graph, 3), 0);
    });
}

/// A graph that sets a condition from a number, and what is added to the count for each number.
fn outcomes(
    kernels: &Kernels,
    graph: &Graph,
    set: &KernelNode,
    value: &Buffer<u32>,
    values: &[u32],
) -> Vec<u32> {
    assert_eq!(set.kind(), NodeKind::Kernel);
    let mut exec = graph.instantiate().unwrap();
    let run = |number: &u32| {
        kernels.stream.fill(value, *number).unwrap();
        exec.launch(&kernels.stream).unwrap();
        kernels.counted()
    };
    values.iter().map(run).collect()
}

#[test]
fn branches_go_by_the_number_that_a_kernel_sets() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let value = kernels.stream.zeros::<u32>(1).unwrap();
        let build = |add: &dyn Fn(&Frontier<'_>, &Condition)| {
            let graph = context.graph().unwrap();
            let condition = graph.condition().unwrap();
            let set = graph.root().launch(&kernels.set_from, per(1, 1), (&value, &condition)).unwrap();
            add(&set.then(), &condition);
            outcomes(&kernels, &graph, &set, &value, &[0, 1, 2, 3, 4, u32::MAX])
        };
        let found = build(&|at, condition| {
            kernels.count(&at.if_node(condition).unwrap().body().unwrap().root(), 1);
        });
        assert_eq!(found, [0, 1, 1, 1, 1, 1]);
        let found = build(&|at, condition| {
            let node: IfElseNode = at.if_else_node(condition).unwrap();
            kernels.count(&node.then_body().unwrap().root(), 1);
            kernels.count(&node.else_body().unwrap().root(), 2);
        });
        assert_eq!(found, [2, 1, 1, 1, 1, 1]);
        let found = build(&|at, condition| {
            let node: SwitchNode = at.switch_node(condition, 4).unwrap();
            for (branch, body) in node.bodies().unwrap().iter().enumerate() {
                kernels.count(&body.root(), 10 + branch as u32);
            }
        });
        assert_eq!(found, [10, 11, 12, 13, 0, 0], "beyond the last branch nothing runs");
    });
}

/// A loop of `levels` levels that each go round `rounds` times; the innermost counts.
fn nest(kernels: &Kernels, at: &Frontier<'_>, graph: &Graph, rounds: &[u32]) {
    let Some((&own, inner)) = rounds.split_first() else {
        kernels.count(at, 1);
        return;
    };
    let counter = kernels.stream.zeros::<u32>(1).unwrap();
    let start = at.fill(&counter, own).unwrap();
    let go_on = graph.condition_with_default(1).unwrap();
    let node = start.then().while_node(&go_on).unwrap();
    let body = node.body().unwrap();
    nest(kernels, &body.root(), graph, inner);
    let all = body.nodes().unwrap();
    let last = body.after_all(&all).unwrap();
    last.launch(&kernels.count_down, per(1, 1), (&counter, &go_on)).unwrap();
}

#[test]
fn loops_in_loops_begin_anew_in_each_round() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        nest(&kernels, &graph.root(), &graph, &[2, 3, 4]);
        assert_eq!(kernels.run(&graph, 10), 240);
    });
}

#[test]
fn in_a_body_kernels_decide_after_the_default_whatever_was_added_first() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        for branch_first in [false, true] {
            let graph = context.graph().unwrap();
            let counter = kernels.stream.zeros::<u32>(1).unwrap();
            let start = graph.root().fill(&counter, 0).unwrap();
            let go_on = graph.condition_with_default(1).unwrap();
            let body = start.then().while_node(&go_on).unwrap().body().unwrap();
            let inner = graph.condition_with_default(1).unwrap();
            let decide = |at: Frontier<'_>| at.launch(&kernels.set_to, per(1, 1), (0, &inner)).unwrap();
            let branch = match branch_first {
                true => {
                    let branch = body.root().if_node(&inner).unwrap();
                    decide(body.root().before([&branch]).unwrap());
                    branch
                }
                false => decide(body.root()).then().if_node(&inner).unwrap(),
            };
            kernels.count(&branch.body().unwrap().root(), 1);
            branch.then().launch(&kernels.count_up, per(1, 1), (&counter, 3, &go_on)).unwrap();
            let names: Vec<String> = body.nodes().unwrap().iter().map(|node| node.name()).collect();
            assert!(names.contains(&"default of condition 2".to_owned()), "{names:?}");
            assert_eq!(kernels.run(&graph, 2), 0, "the kernel's 0 comes after the default");
            // The same kernel with another value, set later.
            let mut exec = {
                let node =
                    body.nodes().unwrap().into_iter().find(|node| node.name().ends_with("set_to")).unwrap();
                let node = KernelNode::try_from(node).unwrap();
                node.set(&kernels.set_to, per(1, 1), (1, &inner)).unwrap();
                graph.instantiate().unwrap()
            };
            exec.launch(&kernels.stream).unwrap();
            assert_eq!(kernels.counted(), 3);
        }
    });
}

#[test]
fn a_default_goes_with_its_node_when_both_are_removed() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        for default_first in [false, true] {
            let graph = context.graph().unwrap();
            let go_on = graph.condition_with_default(1).unwrap();
            let body = graph.root().while_node(&go_on).unwrap().body().unwrap();
            let inner = graph.condition_with_default(1).unwrap();
            body.root().if_node(&inner).unwrap();
            let mut nodes = body.nodes().unwrap();
            assert!(nodes.len() == 2 && nodes[0].name().starts_with("default of condition"));
            if !default_first {
                nodes.reverse();
            }
            body.remove_nodes(&[&nodes[0], &nodes[1]]).unwrap();
            assert!(body.is_empty().unwrap() && nodes.iter().all(|node| node.is_removed()));
        }
    });
}

#[test]
fn a_kernel_gets_a_condition_later_and_waits_for_its_default() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let once = graph.condition_with_default(1).unwrap();
        let body = graph.root().if_node(&once).unwrap().body().unwrap();
        let inner = graph.condition_with_default(1).unwrap();
        let step = kernels.count(&body.root(), 100);
        let branch = step.then().if_node(&inner).unwrap();
        kernels.count(&branch.body().unwrap().root(), 1);
        assert_eq!(kernels.run(&graph, 1), 101);
        step.set(&kernels.set_to, per(1, 1), (0, &inner)).unwrap();
        let predecessors = step.predecessors().unwrap();
        assert_eq!(predecessors.len(), 1, "{predecessors:?}");
        assert_eq!(kernels.run(&graph, 1), 0);
        step.set(&kernels.increment_by, per(1, 1), (10, &kernels.runs)).unwrap();
        assert_eq!(kernels.run(&graph, 1), 11);
    });
}

#[test]
fn conditions_are_of_one_graph_and_one_node() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let (graph, other) = (context.graph().unwrap(), context.graph().unwrap());
        let (own, foreign) = (graph.condition().unwrap(), other.condition().unwrap());
        let node = graph.root().if_node(&own).unwrap().named("branch");
        let before = graph.len().unwrap();
        let ((), cost) = count(|| {
            let outcome = graph.root().launch(&kernels.set_to, per(1, 1), (1, &foreign));
            assert!(matches!(
                outcome.unwrap_err(),
                Error::Condition(ConditionError::ForeignCondition { .. })
            ));
            // SAFETY: the arguments are the kernel's.
            let outcome = unsafe {
                graph.root().launch_untyped(kernels.set_to.kernel(), per(1, 1), params![1_u32, &foreign])
            };
            assert!(matches!(
                outcome.unwrap_err(),
                Error::Condition(ConditionError::ForeignCondition { .. })
            ));
            assert!(matches!(
                graph.root().while_node(&foreign).unwrap_err(),
                Error::Condition(ConditionError::ForeignCondition { .. })
            ));
            let error = graph.root().while_node(&own).unwrap_err();
            assert!(
                matches!(error, Error::Condition(ConditionError::ConditionInUse { .. }))
                    && error.to_string().contains("branch"),
                "{error}"
            );
            assert_eq!(
                graph.root().switch_node(&own, 0).unwrap_err(),
                Error::Condition(ConditionError::Branches { branches: 0 })
            );
            assert_eq!(
                graph.root().switch_node(&own, 1001).unwrap_err(),
                Error::Condition(ConditionError::Branches { branches: 1001 })
            );
        });
        cost.assert_calls(&[]);
        let step = kernels.count(&graph.root(), 1);
        assert!(step.set(&kernels.set_to, per(1, 1), (1, &foreign)).is_err());
        assert_eq!(graph.len().unwrap(), before + 1);
        assert_eq!(kernels.run(&graph, 1), 1, "what was refused changed nothing");
        drop((node, other));
    });
}

#[test]
fn an_unused_condition_is_named_and_used_again() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let first = graph.condition_with_default(1).unwrap();
        let error = graph.instantiate().unwrap_err();
        assert!(
            matches!(
                &error,
                Error::Condition(ConditionError::UnusedCondition { number: 1, default: Some(1), .. })
            ),
            "{error:?}"
        );
        let setter = graph.root().launch(&kernels.set_to, per(1, 1), (1, &first)).unwrap().named("decide");
        let text = graph.instantiate().unwrap_err().to_string();
        assert!(text.contains("set by `decide`") && text.contains("default 1"), "{text}");
        // A removed node gives its condition back.
        let node = setter.then().if_node(&first).unwrap();
        let body = node.body().unwrap();
        let step = kernels.count(&body.root(), 1);
        assert_eq!(kernels.run(&graph, 1), 1);
        node.remove().unwrap();
        assert_eq!(body.len(), Err(Error::Node(NodeError::GraphRemoved)));
        assert!(step.is_removed() && first.node().unwrap().is_none() && node.body().is_err());
        assert!(matches!(graph.instantiate(), Err(Error::Condition(ConditionError::UnusedCondition { .. }))));
        let node = setter.then().while_node(&first).unwrap();
        node.remove().unwrap();
        // Once nothing has it, a new condition takes its place.
        setter.remove().unwrap();
        drop(first);
        let (second, cost) = count(|| graph.condition_with_default(1).unwrap());
        cost.assert_calls(&[]);
        let node = graph.root().if_node(&second).unwrap();
        kernels.count(&node.body().unwrap().root(), 5);
        assert_eq!(kernels.run(&graph, 2), 10);
    });
}

#[test]
fn bodies_hold_what_the_driver_runs_there_and_nothing_else() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let condition = graph.condition_with_default(1).unwrap();
        let node = graph.root().if_node(&condition).unwrap().named("branch");
        let body = node.body().unwrap();
        let (event, other) = (context.event().unwrap(), context.graph().unwrap());
        let words = kernels.stream.zeros::<u32>(4).unwrap();
        let pinned = context.pinned_zeros::<u32>(4).unwrap().share();
        // What can be there.
        body.root().empty().unwrap();
        body.root().fill(&words, 1).unwrap();
        body.root().copy(&words, &pinned).unwrap();
        let child = body.root().child(&other).unwrap().embedded().unwrap();
        let steps = body.len().unwrap();
        // What cannot: there, in a graph embedded there, and as a graph that is to be embedded.
        let refused = |outcome: Result<(), Error>, kind: NodeKind| match outcome {
            Err(Error::Condition(ConditionError::NotInBody { kind: found, conditional })) => {
                assert_eq!((found, &*conditional), (kind, "branch"));
            }
            other => panic!("{kind}: {other:?}"),
        };
        let mut word = [0_u32; 4];
        let ((), cost) = count(|| {
            for place in [&body, &child] {
                let at = place.root();
                refused(at.host(|| {}).map(drop), NodeKind::HostCallback);
                refused(at.record(&event).map(drop), NodeKind::EventRecord);
                refused(at.wait(&event).map(drop), NodeKind::EventWait);
            }
        });
        cost.assert_calls(&[]);
        let pageable = RawMemory::at(word.as_mut_ptr().expose_provenance() as u64).pageable();
        let copy = RawCopy::new(RawMemory::at(words.address()).keep(&words), pageable, 16);
        // SAFETY: it is refused.
        refused(unsafe { body.root().copy_raw(copy) }.map(drop), NodeKind::Memcpy);
        other.root().host(|| {}).unwrap();
        refused(body.root().child(&other).map(drop), NodeKind::HostCallback);
        refused(child.root().child(&other).map(drop), NodeKind::HostCallback);
        assert_eq!((body.len().unwrap(), child.len().unwrap()), (steps, 0));
        kernels.count(&child.root(), 1);
        assert_eq!(kernels.run(&graph, 2), 2);
    });
}

#[test]
fn a_graph_with_conditions_is_one_of_a_kind() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let (graph, other) = (context.graph().unwrap(), context.graph().unwrap());
        let condition = graph.condition_with_default(1).unwrap();
        let refused = |outcome: Result<(), Error>| {
            assert!(
                matches!(outcome, Err(Error::Condition(ConditionError::HasConditions { .. }))),
                "{outcome:?}"
            );
        };
        refused(graph.clone_graph().map(drop));
        let node = graph.root().if_node(&condition).unwrap();
        let body = node.body().unwrap();
        kernels.count(&body.root(), 1);
        let ((), cost) = count(|| {
            assert!(matches!(body.instantiate(), Err(Error::Embed(EmbedError::Embedded { .. }))));
        });
        cost.assert_calls(&[]);
        refused(graph.clone_graph().map(drop));
        refused(other.root().child(&graph).map(drop));
        if Need::MovedGraphs.is_met() {
            refused(other.root().child_moved(graph.clone()).map(drop));
        }
        let mut exec = graph.instantiate().unwrap();
        assert_eq!(
            graph.instantiate().unwrap_err(),
            Error::Exec(ExecError::OneExecutable { of: "conditional nodes" })
        );
        exec.launch(&kernels.stream).unwrap();
        assert_eq!(kernels.counted(), 1);
        drop(exec);
        // The node that an executable keys by lives as long as it.
        let mut exec = { graph }.instantiate().unwrap();
        exec.launch(&kernels.stream).unwrap();
        assert_eq!(kernels.counted(), 1);
        node.remove().unwrap();
        exec.launch(&kernels.stream).unwrap();
        assert_eq!(kernels.counted(), 1, "the executable keeps what it has");
    });
}

#[test]
fn a_graph_embedded_already_takes_conditionals() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let (graph, inner) = (context.graph().unwrap(), context.graph().unwrap());
        let child = graph.root().child(&inner).unwrap().embedded().unwrap();
        let condition = child.condition_with_default(1).unwrap();
        assert_eq!(condition.graph(), &graph);
        let node = child.root().if_node(&condition).unwrap();
        kernels.count(&node.body().unwrap().root(), 1);
        assert_eq!(kernels.run(&graph, 3), 3);
    });
}

#[test]
fn a_failing_driver_leaves_the_graph_as_it_was() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let condition = graph.condition_with_default(1).unwrap();
        let body = graph.root().if_node(&condition).unwrap().body().unwrap();
        let inner = graph.condition_with_default(1).unwrap();
        let step = kernels.count(&body.root(), 1);
        let (nodes, in_body) = (raw::nodes(graph.as_raw().unwrap()).len(), body.len().unwrap());
        // The node that sets the default, the branch, and what may be in its body.
        for call in 1..=2 + filler() {
            let failing = fail(Call::cuGraphAddNode, call, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            assert!(step.then().if_node(&inner).is_err());
            drop(failing);
            assert_eq!(
                (body.len().unwrap(), raw::nodes(graph.as_raw().unwrap()).len()),
                (in_body, nodes),
                "call {call}"
            );
        }
        let branch = step.then().if_node(&inner).unwrap();
        assert_eq!(body.len().unwrap(), in_body + 2);
        kernels.count(&branch.body().unwrap().root(), 10);
        assert_eq!(kernels.run(&graph, 1), 11);
        branch.remove().unwrap();
        assert_eq!(body.len().unwrap(), in_body, "the node that sets the default goes with it");
    });
}

#[test]
fn a_driver_without_conditional_nodes_says_so() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let text = graph.condition().unwrap_err().to_string();
        assert!(text.contains("cuGraphConditionalHandleCreate") && text.contains("12.3"), "{text}");
        assert!(graph.is_empty().unwrap());
    });
}

#[test]
fn a_branch_in_an_edge_whose_body_cannot_be_filled_gives_the_edge_back() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        // In a body, the node that sets the default comes first.
        for (is_body, nth) in [(false, 2), (true, 3)] {
            let root = context.graph().unwrap();
            let [condition, outer] = [(); 2].map(|()| root.condition_with_default(1).unwrap());
            let body = root.root().if_node(&outer).unwrap().body().unwrap();
            let graph = if is_body { &body } else { &root };
            let first = cuda_graph::Node::from(graph.root().empty().unwrap());
            let last = cuda_graph::Node::from(first.then().empty().unwrap());
            let state =
                || (graph.nodes().unwrap(), graph.edges().unwrap(), graph.edge_kind(&first, &last).unwrap());
            let before = state();
            let failing = fail(Call::cuGraphAddNode, nth, CUresult::CUDA_ERROR_INVALID_VALUE);
            let error = graph.between(&first, &last).unwrap().if_node(&condition).unwrap_err();
            assert!(failing.hit());
            drop(failing);
            assert!(!matches!(error, Error::Broken(_)), "{error}");
            assert_eq!(state(), before, "{error}");
            assert_eq!(condition.node(), Ok(None));
            // Without the edge the graph is broken.
            let failing = fail(Call::cuGraphAddNode, nth, CUresult::CUDA_ERROR_INVALID_VALUE);
            let again = fail(Call::cuGraphAddDependencies, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
            let error = graph.between(&first, &last).unwrap().if_node(&condition).unwrap_err();
            assert!(failing.hit() && again.hit());
            drop((failing, again));
            assert_broken(&root, &error);
            assert_broken(&body, &error);
            assert_eq!(condition.node(), Ok(None));
        }
    });
}

#[test]
fn older_drivers_have_loops_and_single_branches_and_no_empty_bodies() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let go_on = graph.condition_with_default(1).unwrap();
        let too_old = |outcome: Result<(), Error>| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::TooOld { .. }) && error.to_string().contains("12.8"), "{error}");
        };
        too_old(graph.root().if_else_node(&go_on).map(drop));
        too_old(graph.root().switch_node(&go_on, 2).map(drop));
        assert!(graph.is_empty().unwrap());
        let body = graph.root().if_node(&go_on).unwrap().body().unwrap();
        let filler = body.nodes().unwrap();
        assert_eq!((filler.len(), filler[0].kind()), (1, NodeKind::Empty), "an empty body hangs there");
        assert!(filler[0].name().contains("empty body"), "{}", filler[0].name());
        assert_eq!(kernels.run(&graph, 1), 0);
        kernels.count(&body.root(), 1);
        assert_eq!(kernels.run(&graph, 1), 1);
        // Should the empty node fail, the conditional goes again.
        let other = graph.condition_with_default(1).unwrap();
        let failing = fail(Call::cuGraphAddNode, 2, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(graph.root().while_node(&other).is_err());
        drop(failing);
        assert_eq!(graph.len().unwrap(), 1);
        graph.root().while_node(&other).unwrap().remove().unwrap();
    });
}

#[test]
fn child_graphs_in_two_bodies_are_refused_where_the_driver_mixes_them_up() {
    alone!("CUDA_SOFT_VERSION" = "12.9", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let (graph, child) = (context.graph().unwrap(), context.graph().unwrap());
        kernels.count(&child.root(), 1);
        let [first, second, third] = core::array::from_fn(|_| graph.condition_with_default(1).unwrap());
        let node = graph.root().if_else_node(&first).unwrap().named("branch");
        let refused = |outcome: Result<(), Error>| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Condition(ConditionError::ChildInTwoBodies { .. })), "{error}");
            assert!(error.to_string().contains("`branch`"), "{error}");
        };
        for body in node.all_bodies().unwrap() {
            refused(body.root().child(&child).map(drop));
            refused(body.root().child_moved(child.clone()).map(drop));
            assert!(body.is_empty().unwrap());
        }
        let inner = node.then_body().unwrap().root().if_node(&second).unwrap();
        refused(inner.body().unwrap().root().child(&child).map(drop));
        let single = node.then().if_node(&third).unwrap();
        single.body().unwrap().root().child(&child).unwrap();
        assert_eq!(kernels.run(&graph, 2), 2, "one body is no matter");
    });
}

#[test]
fn pictures_show_the_bodies_under_their_names() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let graph = context.graph().unwrap();
        let [first, second, third] = core::array::from_fn(|_| graph.condition_with_default(1).unwrap());
        let node = graph.root().if_else_node(&first).unwrap();
        kernels.count(&node.then_body().unwrap().root(), 1).named("inside");
        let rounds = node.then().while_node(&second).unwrap();
        rounds.body().unwrap().root().empty().unwrap();
        rounds.then().switch_node(&third, 2).unwrap();
        let dot = graph.to_dot().unwrap();
        for part in ["if-else", "then", "else", "while", "switch", "branch 1", "inside", "by condition 2"] {
            assert!(dot.contains(part), "{part} in {dot}");
        }
    });
}
