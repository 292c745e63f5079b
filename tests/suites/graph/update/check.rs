//! Executables that say why they would not be updated, and are not changed by it.

use cuda_graph::{ContextExt, EmbedError, Error, InstantiateOptions, Refusal, RefusalReason};
use cuda_launch::per;
use cuda_tests::{count, needs, no_leaks, setup};

use super::adding::first;
use super::whole::refused;
use crate::capture::{Bench, N};

fn reasons(found: &[Refusal]) -> Vec<RefusalReason> {
    found.iter().map(|refusal| refusal.reason).collect()
}

#[test]
fn what_an_update_would_say_is_said_without_one() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (stream, numbers) = (&bench.stream, &bench.numbers);
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(numbers, 1).unwrap();
        let node = fill.then().launch(&bench.add, per(1, 1), (1, numbers)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&node).set(&bench.add, per(1, 1), (5, numbers)).unwrap();
        let new = context.graph().unwrap();
        let start = new.root().fill(numbers, 1).unwrap();
        start.then().copy(&bench.others, numbers).unwrap().named("copies");
        let (found, cost) = count(|| exec.check_update(&new).unwrap());
        assert_eq!(cost.calls("cuGraphExecUpdate"), 0, "{cost}");
        // What a node update has set is still there.
        exec.launch(stream).unwrap();
        assert_eq!(first(numbers, stream), 6);
        assert_eq!(found, [refused(exec.update(&new).unwrap())]);
        assert_eq!(reasons(&found), [RefusalReason::NodeKind]);
        assert_eq!(exec.check_update(&graph).unwrap(), []);
        // It compares with the graph of the last update.
        let alike = context.graph().unwrap();
        let start = alike.root().fill(numbers, 10).unwrap();
        start.then().launch(&bench.add, per(1, 1), (10, numbers)).unwrap();
        assert_eq!(exec.check_update(&alike).unwrap(), []);
        assert!(exec.update(&alike).unwrap().is_updated());
        assert_eq!(exec.check_update(&new).unwrap(), found);
        // Once that is another one, there is nothing to compare with.
        alike.root().empty().unwrap();
        assert_eq!(exec.check_update(&new).unwrap(), []);
        assert_eq!(refused(exec.update(&new).unwrap()).reason, RefusalReason::NodeKind);
        exec.launch(stream).unwrap();
        assert_eq!(first(numbers, stream), 20);
    });
}

#[test]
fn graphs_that_no_driver_is_asked_about() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        graph.root().launch(&bench.add, per(1, 1), (1, &bench.numbers)).unwrap();
        let exec = graph.instantiate().unwrap();
        let memory = context.graph().unwrap();
        let (node, own) = memory.root().alloc::<u32>(N).unwrap();
        memory.after([&node.then().fill(&own, 1).unwrap()]).unwrap().free(&own).unwrap();
        assert_eq!(exec.check_update(&memory).unwrap()[0].reason, RefusalReason::MemoryNodes);
        let by_kernels = graph.instantiate_with(InstantiateOptions::new().device_launch()).unwrap();
        assert_eq!(reasons(&by_kernels.check_update(&graph).unwrap()), [RefusalReason::DeviceLaunch]);
        let child = context.graph().unwrap().root().child(&graph).unwrap().embedded().unwrap();
        let embedded = exec.check_update(&child).unwrap_err();
        assert!(matches!(embedded, Error::Embed(EmbedError::Embedded { .. })), "{embedded}");
        // Parameters of nodes that have no counterparts.
        let with_params = context.graph().unwrap();
        let amount = with_params.param(2_u32).unwrap();
        let node = with_params.root().launch(&bench.add, per(1, 1), (&amount, &bench.numbers)).unwrap();
        node.then().empty().unwrap();
        let found = exec.check_update(&with_params).unwrap();
        assert_eq!(reasons(&found), [RefusalReason::Unpaired, RefusalReason::Topology]);
        assert!(!found[1].why.is_empty());
    });
}

#[test]
fn disabled_nodes_that_the_graph_would_decide_by_are_named() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = |decides: bool| {
            let graph = context.graph().unwrap();
            let going = graph.condition_with_default(1).unwrap();
            let node = match decides {
                true => graph.root().launch(&bench.set_to, per(1, 1), (0, &going)).unwrap(),
                false => graph.root().launch(&bench.add, per(1, 1), (1, &bench.numbers)).unwrap(),
            };
            let branch = node.then().if_node(&going).unwrap();
            branch.body().unwrap().root().launch(&bench.add, per(1, 1), (1, &bench.numbers)).unwrap();
            (graph, node.named("decides"))
        };
        let ((plain, node), (deciding, _)) = (graph(false), graph(true));
        let mut exec = plain.instantiate().unwrap();
        assert_eq!(exec.check_update(&deciding).unwrap(), []);
        exec.node(&node).set_enabled(false).unwrap();
        let found = exec.check_update(&deciding).unwrap();
        assert_eq!(found, [refused(exec.update(&deciding).unwrap())]);
        assert_eq!(found[0].reason, RefusalReason::Disabled);
        exec.node(&node).set_enabled(true).unwrap();
        assert!(exec.update(&deciding).unwrap().is_updated());
    });
}
