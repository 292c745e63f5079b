//! Random programs: a dataflow computes what they compute one after the other, and has no race.

use cuda_graph::{ContextExt, Node};
use cuda_tests::{is_soft, no_leaks, setup};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::common::sequences::{Machine, Operation, any_operation};

/// An operation, and whether it is added in another way: behind all nodes before it.
type Step = (Operation, bool);

#[test]
fn a_dataflow_computes_what_the_program_computes() {
    let context = setup();
    let cases = if is_soft() { 120 } else { 300 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    no_leaks(|| {
        let machine = Machine::new(&context);
        let mut runner = TestRunner::new(config.clone());
        let step = (any_operation(), prop::bool::weighted(0.1));
        let checked = runner.run(&prop::collection::vec(step, 1..30), |steps: Vec<Step>| {
            let graph = machine.context.graph().unwrap();
            let flow = graph.dataflow().unwrap();
            let mut nodes: Vec<Node> = Vec::new();
            for (operation, is_apart) in &steps {
                let node = match is_apart {
                    true => machine.add(&graph.after_all(&nodes).unwrap(), *operation),
                    false => machine.add(&flow, *operation),
                };
                nodes.push(node);
            }
            drop(flow);
            let report = graph.check().unwrap();
            prop_assert!(report.is_clean(), "{}", report);
            let mut exec = graph.instantiate().unwrap();
            let mut expected = machine.read();
            for _ in 0..2 {
                exec.launch(&machine.stream).unwrap();
                steps.iter().for_each(|step| step.0.run(&mut expected));
            }
            prop_assert_eq!(machine.read(), expected);
            Ok(())
        });
        checked.unwrap();
    });
}
