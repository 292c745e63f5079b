//! Updates of whole executables from a graph: what later launches do, and what is refused.

use cuda_graph::{
    ContextExt, EmbedError, Error, Fallback, Graph, GraphExec, InstantiateOptions, NodeError, ParamError,
    Refusal, RefusalReason, Update, UpdateError,
};
use cuda_launch::per;
use cuda_tests::{count, needs, no_leaks, setup};

use super::adding::{Adding, adding, first, run};
use crate::capture::{N, add_to};
use crate::conditions::branches_and_loops::Kernels;

/// The refusal of an update.
#[track_caller]
pub(super) fn refused(update: Update) -> Refusal {
    match update {
        Update::Refused(refusal) => refusal,
        Update::Updated => panic!("updated"),
    }
}

#[track_caller]
pub(super) fn update(exec: &mut GraphExec, graph: &Graph) {
    let outcome = exec.update(graph).unwrap();
    assert!(outcome.is_updated(), "{outcome:?}");
}

#[test]
fn later_launches_do_what_the_graph_does() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let (one, other) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let graph = adding(&context, &add, 1, &one);
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let new = adding(&context, &add, 10, &other);
        stream.synchronize_blocking().unwrap();
        let (updated, cost) = count(|| exec.update(&new));
        assert!(updated.unwrap().is_updated());
        // One call, and some for what the executable owned before. Nothing is asked node by node.
        cost.assert_calls(&[
            ("cuGraphExecUpdate", 1),
            ("cuStreamQuery", 1),
            ("cuCtxGetCurrent", 1),
            ("cuThreadExchangeStreamCaptureMode", 2),
        ]);
        drop(new);
        exec.launch(&stream).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!((first(&one, &stream), first(&other, &stream)), (1, 20));
        assert_eq!(exec.graph(), Some(graph));
    });
}

#[test]
fn an_executable_is_updated_from_its_own_changed_graph() {
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &numbers)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        node.set(&add, per(1, 1), (10, &numbers)).unwrap();
        exec.launch(&stream).unwrap();
        exec.node(&node).set(&add, per(1, 1), (100, &numbers)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 101);
        // What the node update has set is gone.
        update(&mut exec, &graph);
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 111);
        exec.node(&node).set(&add, per(1, 1), (1000, &numbers)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 1111);
    });
}

#[test]
fn nodes_of_both_graphs_stand_for_those_of_the_executable() {
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        // The second graph adds its nodes in another order.
        let graph = context.graph().unwrap();
        let launch = |at: &cuda_graph::Frontier<'_>, amount: u32| {
            at.launch(&add, per(1, 1), (amount, &numbers)).unwrap()
        };
        let fill = graph.root().fill(&numbers, 0).unwrap();
        let last = launch(&fill.then(), 1);
        let new = context.graph().unwrap();
        let new_last = launch(&new.root(), 10);
        let new_fill = new.root().fill(&numbers, 5).unwrap();
        new.add_edge(&new_fill, &new_last).unwrap();
        let mut exec = graph.instantiate().unwrap();
        update(&mut exec, &new);
        let run = |exec: &mut GraphExec| run(exec, &numbers, &stream);
        assert_eq!(run(&mut exec), 15);
        exec.node(&last).set(&add, per(1, 1), (20, &numbers)).unwrap();
        assert_eq!(run(&mut exec), 25);
        exec.node(&new_fill).set(&numbers, 6).unwrap();
        assert_eq!(run(&mut exec), 26);
        exec.node(&fill).set(&numbers, 7).unwrap();
        exec.node(&new_last).set(&add, per(1, 1), (30, &numbers)).unwrap();
        assert_eq!(run(&mut exec), 37);
        // Disabled by one, enabled by the other.
        exec.node(&last).set_enabled(false).unwrap();
        assert!(!exec.node(&new_last).is_enabled().unwrap());
        assert_eq!(run(&mut exec), 7);
        // It stays disabled, whatever graph comes.
        update(&mut exec, &graph);
        assert!(!exec.node(&last).is_enabled().unwrap());
        assert_eq!(run(&mut exec), 0);
        exec.node(&last).set_enabled(true).unwrap();
        assert_eq!(run(&mut exec), 1);
        // The second graph's nodes no longer stand for the executable's.
        let refused = exec.node(&new_last).set_enabled(false).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotInExecutable { .. })), "{refused}");
        // They do once more, also after the graph's handle is gone.
        update(&mut exec, &new);
        drop((new, new_fill));
        exec.node(&new_last).set_enabled(false).unwrap();
        assert_eq!(run(&mut exec), 5);
    });
}

#[test]
fn graphs_changed_before_the_first_node_update_leave_the_nodes_unpaired() {
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let build = || {
            let graph = context.graph().unwrap();
            let node = graph.root().launch(&add, per(1, 1), (1, &numbers)).unwrap();
            (graph, node)
        };
        let unpaired = |exec: &mut GraphExec, node: &cuda_graph::KernelNode| {
            let refused = exec.node(node).set_enabled(false).unwrap_err();
            assert!(matches!(refused, Error::Update(UpdateError::Unpaired { .. })), "{refused}");
            // Launches and whole updates go on.
            exec.launch(&stream).unwrap();
        };
        // The graph of the update.
        let ((graph, node), (new, new_node)) = (build(), build());
        let mut exec = graph.instantiate().unwrap();
        update(&mut exec, &new);
        new.root().empty().unwrap();
        unpaired(&mut exec, &new_node);
        unpaired(&mut exec, &node);
        // An update pairs anew.
        let (new, new_node) = build();
        update(&mut exec, &new);
        exec.node(&node).set_enabled(false).unwrap();
        // Changes after the pairs were found do no harm.
        let late = new.root().empty().unwrap();
        graph.root().empty().unwrap().remove().unwrap();
        exec.node(&new_node).set_enabled(true).unwrap();
        let late = new.root().launch(&add, per(1, 1), (1, &numbers)).inspect(|_| late.remove().unwrap());
        let refused = exec.node(&late.unwrap()).set_enabled(true).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotInExecutable { .. })), "{refused}");
        // The graph of the keys: another node with the same work, in the place of the first.
        let (graph, node) = build();
        let mut exec = graph.instantiate().unwrap();
        node.remove().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &numbers)).unwrap();
        update(&mut exec, &graph);
        unpaired(&mut exec, &node);
        let (new, new_node) = build();
        update(&mut exec, &new);
        unpaired(&mut exec, &new_node);
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn an_update_starts_from_the_parameters_that_the_executable_has() {
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let build = |config| {
            let graph = context.graph().unwrap();
            let node = graph.root().launch(&add, config, (1, &numbers)).unwrap();
            (graph, node)
        };
        let ((graph, node), (new, new_node)) = (build(per(1, 1)), build(per(1, 1).priority(-1)));
        let mut exec = graph.instantiate().unwrap();
        update(&mut exec, &new);
        // The executable has the priority, and its first graph has not.
        let config = per(1, 1).priority(-1);
        exec.node(&node).set(&add, config, (2, &numbers)).unwrap();
        assert!(exec.node(&node).set(&add, per(1, 1), (2, &numbers)).is_err());
        // A change of the graph's node is no change of the executable.
        update(&mut exec, &new);
        new_node.set(&add, per(1, 1), (3, &numbers)).unwrap();
        assert!(exec.node(&node).set(&add, config, (2, &numbers)).is_err());
        update(&mut exec, &new);
        exec.node(&new_node).set(&add, per(1, 1), (4, &numbers)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 4);
    });
}

#[test]
fn a_large_graph_is_read_once_and_not_before_a_node_update() {
    cuda_tests::as_drawn!("it counts calls");
    const NODES: usize = 5_000;
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let build = || {
            let graph = context.graph().unwrap();
            let first = graph.root().fill(&numbers, 1).unwrap();
            let mut last = first.then().empty().unwrap();
            for _ in 2..NODES {
                last = last.then().empty().unwrap();
            }
            (graph, first)
        };
        let ((graph, fill), (new, new_fill)) = (build(), build());
        let mut exec = graph.instantiate().unwrap();
        let ((), cost) = count(|| update(&mut exec, &new));
        assert!(cost.total() <= 12, "{cost}");
        let (set, cost) = count(|| exec.node(&fill).set(&numbers, 2));
        set.unwrap();
        let calls = ["cuGraphGetNodes", "cuGraphNodeGetDependencies", "cuGraphExecNodeSetParams"];
        assert_eq!(calls.map(|call| cost.calls(call)), [4, 2 * NODES as u64, 1], "{cost}");
        for node in [&fill, &new_fill] {
            let (set, cost) = count(|| exec.node(node).set(&numbers, 3));
            set.unwrap();
            cost.assert_calls(&[("cuGraphExecNodeSetParams", 1)]);
        }
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 3);
    });
}

#[test]
fn a_refusal_changes_nothing_and_says_why() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&numbers, 1).unwrap().named("clears");
        let node = fill.then().launch(&add, per(1, 1), (1, &numbers)).unwrap().named("adds");
        let mut exec = graph.instantiate().unwrap();
        exec.node(&node).set(&add, per(1, 1), (2, &numbers)).unwrap();
        let new = context.graph().unwrap();
        let copied = new.root().copy(numbers.slice(..4).unwrap(), numbers.slice(4..8).unwrap()).unwrap();
        let copied = copied.named("copies");
        let _last = copied.then().launch(&add, per(1, 1), (5, &numbers)).unwrap();
        let refusal = refused(exec.update(&new).unwrap());
        assert_eq!((refusal.reason, refusal.node.as_deref()), (RefusalReason::NodeKind, Some("copies")));
        assert_eq!(
            refusal.to_string(),
            "the executable cannot be updated from the graph because of node `copies`: it is a memcpy, and its \
             counterpart `clears` is a memset"
        );
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 3);
        exec.node(&node).set(&add, per(1, 1), (4, &numbers)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 5);
        // The comparison says the same, and more than the driver.
        assert_eq!(graph.check_update(&new).unwrap(), [refusal]);
        assert_eq!(graph.check_update(&graph).unwrap(), []);
        let _more = copied.then().fill(&numbers, 3).unwrap();
        let refusal = refused(exec.update(&new).unwrap());
        assert_eq!((refusal.reason, refusal.node.as_deref()), (RefusalReason::Topology, None));
        let why = "the graph has 3 nodes, and the executable's graph has 2 (1 memcpy node more)";
        assert_eq!(refusal.why, why);
    });
}

#[test]
fn graphs_that_no_driver_is_asked_about() {
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let graph = adding(&context, &add, 1, &numbers);
        let mut exec = graph.instantiate().unwrap();
        let refuse = |exec: &mut GraphExec, graph: &Graph, reason| {
            let (update, cost) = count(|| exec.update(graph));
            let refusal = refused(update.unwrap());
            assert_eq!((refusal.reason, cost.calls("cuGraphExecUpdate")), (reason, 0), "{refusal}");
        };
        // Memory of the graph's own.
        let memory = context.graph().unwrap();
        let (node, own) = memory.root().alloc::<u32>(N).unwrap();
        let free = memory.after([&node.then().fill(&own, 1).unwrap()]).unwrap().free(&own).unwrap();
        refuse(&mut exec, &memory, RefusalReason::MemoryNodes);
        let mut with_memory = memory.instantiate().unwrap();
        refuse(&mut with_memory, &memory, RefusalReason::MemoryNodes);
        assert_eq!(graph.check_update(&memory).unwrap()[0].reason, RefusalReason::MemoryNodes);
        drop((with_memory, free));
        // Launched by kernels.
        let mut by_kernels = graph.instantiate_with(InstantiateOptions::new().device_launch()).unwrap();
        refuse(&mut by_kernels, &graph, RefusalReason::DeviceLaunch);
        // Embedded graphs are no graphs of executables.
        let outer = context.graph().unwrap();
        let child = outer.root().child(&graph).unwrap().embedded().unwrap();
        let embedded = exec.update(&child).unwrap_err();
        assert!(matches!(embedded, Error::Embed(EmbedError::Embedded { .. })), "{embedded}");
        assert!(graph.check_update(&child).is_err());
        // The driver's answer is heard about an executable that is lent, and its nodes are not.
        let _raw = exec.as_raw();
        update(&mut exec, &graph);
        exec.launch(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 1);
    });
}

#[test]
fn graph_parameters_are_the_new_graphs_with_their_initial_values() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let build = |amount: u32| {
            let graph = context.graph().unwrap();
            let param = graph.param(amount).unwrap();
            let fill = graph.root().fill(&numbers, 0).unwrap();
            let node = fill.then().launch(&add, per(1, 1), (&param, &numbers)).unwrap();
            let wanted = graph.param(true).unwrap();
            node.enabled_by(&wanted).unwrap();
            (graph, param, wanted, node)
        };
        let run = |exec: &mut GraphExec| run(exec, &numbers, &stream);
        let (graph, param, wanted, node) = build(1);
        let mut exec = graph.instantiate().unwrap();
        exec.set(&param, 2).unwrap();
        assert_eq!(run(&mut exec), 2);
        // A value that no launch has taken is gone, too.
        exec.set(&param, 3).unwrap();
        update(&mut exec, &graph);
        assert_eq!(run(&mut exec), 1);
        exec.set(&param, 4).unwrap();
        exec.set(&wanted, false).unwrap();
        assert_eq!(run(&mut exec), 0);
        // The parameters of another graph. Its node is wanted, and disabled in the executable.
        let (new, new_param, new_wanted, new_node) = build(10);
        update(&mut exec, &new);
        assert_eq!(run(&mut exec), 10);
        assert_eq!(exec.set(&param, 5), Err(Error::Param(ParamError::Foreign)));
        exec.launch_with(&stream, ((&new_param, 20), (&new_wanted, true))).unwrap();
        assert_eq!(first(&numbers, &stream), 20);
        exec.set(&new_wanted, false).unwrap();
        assert_eq!(run(&mut exec), 0);
        exec.set(&new_wanted, true).unwrap();
        assert_eq!(run(&mut exec), 20);
        // Nodes that take parameters are not set by hand, whichever graph names them.
        for node in [&node, &new_node] {
            let bound = exec.node(node).set(&add, per(1, 1), (1, &numbers)).unwrap_err();
            assert!(matches!(bound, Error::Param(ParamError::Bound { .. })), "{bound}");
        }
        // Without parameters again.
        let plain = context.graph().unwrap();
        let fill = plain.root().fill(&numbers, 0).unwrap();
        fill.then().launch(&add, per(1, 1), (7, &numbers)).unwrap();
        update(&mut exec, &plain);
        assert_eq!(run(&mut exec), 7);
        assert_eq!(exec.set(&new_param, 5), Err(Error::Param(ParamError::Foreign)));
        exec.node(&node).set(&add, per(1, 1), (8, &numbers)).unwrap();
        assert_eq!(run(&mut exec), 8);
        // Where the nodes of the parameters cannot be found, the update is refused.
        graph.root().empty().unwrap().remove().unwrap();
        let refusal = refused(exec.update(&new).unwrap());
        assert_eq!(refusal.reason, RefusalReason::Unpaired);
        assert_eq!(run(&mut exec), 8);
        assert!(exec.update_or_rebuild(&new).unwrap().is_some());
        exec.set(&new_param, 30).unwrap();
        assert_eq!(run(&mut exec), 30);
    });
}

#[test]
fn parameters_of_another_graph_need_the_nodes_of_the_executables_own_one() {
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let build = || {
            let graph = context.graph().unwrap();
            let amount = graph.param(1_u32).unwrap();
            let fill = graph.root().fill(&numbers, 0).unwrap();
            let node = fill.then().launch(&add, per(1, 1), (&amount, &numbers)).unwrap().named("adds");
            (graph, node, amount)
        };
        for case in ["removed", "moved", "dropped"] {
            if case == "moved" && !crate::common::chains::moves() {
                continue;
            }
            let ((graph, node, _), (new, new_node, amount)) = (build(), build());
            let mut exec = graph.instantiate().unwrap();
            update(&mut exec, &new);
            // The new graph's node is not needed.
            new_node.remove().unwrap();
            exec.set(&amount, 2).unwrap();
            assert_eq!(run(&mut exec, &numbers, &stream), 2);
            let parent = context.graph().unwrap();
            let expected = match case {
                "removed" => {
                    let error = NodeError::Removed { node: node.name().into() };
                    node.remove().unwrap();
                    Err(error)
                }
                "moved" => {
                    parent.root().child_moved(graph).unwrap();
                    Err(NodeError::GraphMoved)
                }
                _ => {
                    // The executable keeps the graph.
                    drop((graph, node));
                    Ok(())
                }
            };
            exec.set(&amount, 3).unwrap();
            assert_eq!(exec.launch(&stream), expected.map_err(Error::Node), "{case}");
            // The former value is possible in each case.
            exec.set(&amount, 2).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(first(&numbers, &stream), 2, "{case}");
        }
    });
}

#[test]
fn a_child_graph_is_set_by_the_nodes_of_both_graphs() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let Adding { stream, add, numbers } = Adding::new(&context);
        let build = |amount: u32| {
            let graph = context.graph().unwrap();
            let fill = graph.root().fill(&numbers, 0).unwrap();
            let child = fill.then().child(&adding(&context, &add, amount, &numbers)).unwrap();
            (graph, child)
        };
        let ((graph, child), (new, new_child)) = (build(1), build(10));
        let mut exec = graph.instantiate().unwrap();
        update(&mut exec, &new);
        let run = |exec: &mut GraphExec| run(exec, &numbers, &stream);
        assert_eq!(run(&mut exec), 10);
        exec.node(&child).set_graph(&adding(&context, &add, 2, &numbers)).unwrap();
        assert_eq!(run(&mut exec), 2);
        exec.node(&new_child).set_graph(&adding(&context, &add, 3, &numbers)).unwrap();
        assert_eq!(run(&mut exec), 3);
        // A whole update gives the graph's own child graph back, and its nodes are known again.
        update(&mut exec, &new);
        assert_eq!(run(&mut exec), 10);
        let inner = new_child.embedded().unwrap().nodes().unwrap().remove(0);
        let inner = cuda_graph::KernelNode::try_from(inner).unwrap();
        exec.node(&inner).set(&add, per(1, 1), (4, &numbers)).unwrap();
        assert_eq!(run(&mut exec), 4);
        drop((child, graph));
    });
}

#[test]
fn executables_that_the_host_decides_in_are_refused() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 1).unwrap();
        let options = InstantiateOptions::new;
        let mut exec = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options()).unwrap();
        let refusal = refused(exec.update(&graph).unwrap());
        assert_eq!(refusal.reason, RefusalReason::HostDecides);
        let mut exec = graph.instantiate_with_fallback(Fallback::HostLoop, options()).unwrap();
        assert!(exec.update(&graph).unwrap().is_updated());
        exec.run_blocking(&stream).unwrap();
        assert_eq!(first(&numbers, &stream), 1);
    });
}

#[test]
fn a_loop_is_updated_from_its_own_graph_and_from_another() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let build = |rounds: u32, amount| {
            let counter = kernels.stream.upload(&[rounds]).unwrap();
            let graph = context.graph().unwrap();
            let going = graph.condition_with_default(1).unwrap();
            let node = graph.root().while_node(&going).unwrap();
            let body = node.body().unwrap();
            let counted = kernels.count(&body.root(), amount);
            let decides = kernels.decide(&counted.then(), &counter, &going).unwrap();
            (graph, counted, decides, counter)
        };
        let (graph, counted, decides, counter) = build(5, 1);
        let mut exec = graph.instantiate().unwrap();
        let run = |exec: &mut GraphExec| {
            exec.launch(&kernels.stream).unwrap();
            kernels.counted()
        };
        assert_eq!(run(&mut exec), 5);
        let (new, _, new_decides, _) = build(7, 10);
        update(&mut exec, &new);
        assert_eq!(run(&mut exec), 70);
        // Nodes of bodies have counterparts. The one that decides stays as it is.
        exec.node(&counted).set_enabled(false).unwrap();
        for node in [&decides, &new_decides] {
            assert!(exec.node(node).set_enabled(false).is_err());
        }
        let (new, ..) = build(3, 10);
        update(&mut exec, &new);
        assert_eq!(run(&mut exec), 0);
        exec.node(&counted).set_enabled(true).unwrap();
        // Its own graph, of which it is the only executable.
        kernels.stream.fill(&counter, 6).unwrap();
        update(&mut exec, &graph);
        assert_eq!(run(&mut exec), 6);
        let condition = graph.condition_with_default(1).unwrap();
        let unused = exec.update(&graph).unwrap_err();
        assert!(matches!(unused, Error::Condition(_)), "{unused}");
        drop(condition);
    });
}

#[test]
fn a_node_that_would_decide_is_not_disabled() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let counter = kernels.stream.upload(&[3_u32]).unwrap();
        let build = |decides_last: bool| {
            let graph = context.graph().unwrap();
            let going = graph.condition_with_default(1).unwrap();
            let body = graph.root().while_node(&going).unwrap().body().unwrap();
            let decide = |at: &cuda_graph::Frontier<'_>| kernels.decide(at, &counter, &going).unwrap();
            let counted = match decides_last {
                true => {
                    let counted = kernels.count(&body.root(), 1);
                    let _decides = decide(&counted.then()).named("decides");
                    counted
                }
                false => kernels.count(&decide(&body.root()).named("decides").then(), 1),
            };
            (graph, counted)
        };
        let ((graph, counted), (new, new_counted)) = (build(true), build(false));
        let mut exec = graph.instantiate().unwrap();
        exec.node(&counted).set_enabled(false).unwrap();
        let refusal = refused(exec.update(&new).unwrap());
        assert_eq!((refusal.reason, refusal.node.as_deref()), (RefusalReason::Disabled, Some("decides")));
        exec.node(&counted).set_enabled(true).unwrap();
        update(&mut exec, &new);
        exec.launch(&kernels.stream).unwrap();
        assert_eq!(kernels.counted(), 3);
        // The counterpart of the first counting node decides now, and the other way round.
        assert!(exec.node(&counted).set_enabled(false).is_err());
        exec.node(&new_counted).set_enabled(false).unwrap();
        assert_eq!(refused(exec.update(&graph).unwrap()).reason, RefusalReason::Disabled);
        // Where the nodes are not known, none may be disabled.
        let late = graph.root().empty().unwrap();
        late.remove().unwrap();
        assert_eq!(refused(exec.update(&build(false).0).unwrap()).reason, RefusalReason::Disabled);
    });
}

#[test]
fn a_loop_with_other_conditions_is_refused() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let kernels = Kernels::new(&context);
        let build = |before: u32, if_else: bool| {
            let graph = context.graph().unwrap();
            for _ in 0..before {
                let other = graph.condition_with_default(0).unwrap();
                graph.root().if_node(&other).unwrap();
            }
            let condition = graph.condition_with_default(1).unwrap();
            // Each graph has two nodes.
            match if_else {
                true => drop(graph.root().if_else_node(&condition).unwrap().named("decides")),
                false => drop(graph.root().if_node(&condition).unwrap().named("decides")),
            }
            for _ in before..1 {
                let other = graph.condition_with_default(0).unwrap();
                graph.root().if_node(&other).unwrap();
            }
            graph
        };
        let graph = build(1, false);
        let mut exec = graph.instantiate().unwrap();
        update(&mut exec, &build(1, false));
        let other_kind = build(1, true);
        let refusal = refused(exec.update(&other_kind).unwrap());
        assert_eq!((refusal.reason, refusal.node.as_deref()), (RefusalReason::Conditional, Some("decides")));
        // The conditions in the other order. Drivers name the last node that differs.
        let swapped = context.graph().unwrap();
        let (one, two) =
            (swapped.condition_with_default(0).unwrap(), swapped.condition_with_default(1).unwrap());
        let _first = swapped.root().if_node(&two).unwrap().named("first");
        let _second = swapped.root().if_node(&one).unwrap().named("second");
        let refusal = refused(exec.update(&swapped).unwrap());
        assert_eq!((refusal.reason, refusal.node.as_deref()), (RefusalReason::Conditional, Some("second")));
        assert!(refusal.why.starts_with("its condition is number 1 of its graph"), "{refusal}");
        // The comparison tells of both.
        let found = graph.check_update(&swapped).unwrap();
        let nodes: Vec<_> = found.iter().map(|refusal| refusal.node.as_deref().unwrap()).collect();
        assert_eq!(nodes, ["first", "second"]);
        assert!(found.contains(&refusal), "{found:?}");
        exec.launch(&kernels.stream).unwrap();
        kernels.stream.synchronize_blocking().unwrap();
    });
}
