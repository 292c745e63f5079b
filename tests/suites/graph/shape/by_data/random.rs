//! Random programs compute the same as one after the other.

use cuda_graph::{ContextExt, Node, Shape};
use cuda_tests::{is_soft, no_leaks, setup};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::in_shape;
use crate::common::sequences::{Machine, Operation, any_operation};
use crate::shape::shapes;

fn cases() -> ProptestConfig {
    let cases = if is_soft() { 80 } else { 250 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn a_chain_computes_the_same_by_its_data_alone() {
    let context = setup();
    no_leaks(|| {
        let machine = Machine::new(&context);
        let mut runner = TestRunner::new(cases());
        let checked = runner.run(&prop::collection::vec(any_operation(), 1..24), |operations| {
            let graph = machine.chain(&operations);
            for shape in shapes().into_iter().chain([Shape::AsBuilt]) {
                let mut expected = machine.read();
                let mut exec = in_shape(&graph, shape);
                for _ in 0..2 {
                    exec.launch(&machine.stream).unwrap();
                    operations.iter().for_each(|operation| operation.run(&mut expected));
                }
                prop_assert_eq!(machine.read(), expected, "{:?}: {}", shape, exec.shape_report().unwrap());
            }
            Ok(())
        });
        checked.unwrap();
    });
}

/// An operation, and which of those before it wait for each other without need: each third one
/// stands behind an empty node.
type Step = (Operation, Vec<prop::sample::Index>, bool);

#[test]
fn a_graph_with_joins_computes_the_same_by_its_data_alone() {
    let context = setup();
    no_leaks(|| {
        let machine = Machine::new(&context);
        let step =
            (any_operation(), prop::collection::vec(any::<prop::sample::Index>(), 0..3), any::<bool>());
        let mut runner = TestRunner::new(cases());
        let checked = runner.run(&prop::collection::vec(step, 1..20), |steps: Vec<Step>| {
            let graph = machine.context.graph().unwrap();
            let mut nodes: Vec<Node> = Vec::new();
            for (operation, more, is_joined) in &steps {
                // All edges lead forwards, and the last node before is always among them: so the
                // order of the steps is the only one.
                let mut before: Vec<&Node> = nodes.last().into_iter().collect();
                before.extend(more.iter().filter(|_| !nodes.is_empty()).map(|index| index.get(&nodes)));
                let at = graph.after_all(before).unwrap();
                let join = is_joined.then(|| at.empty().unwrap());
                let at = join.as_ref().map_or(at, |join| join.then());
                nodes.push(machine.add(&at, *operation));
            }
            let mut expected = machine.read();
            let mut exec = in_shape(&graph, Shape::Reduced);
            exec.launch(&machine.stream).unwrap();
            steps.iter().for_each(|step| step.0.run(&mut expected));
            prop_assert_eq!(machine.read(), expected, "{}", exec.shape_report().unwrap());
            Ok(())
        });
        checked.unwrap();
    });
}
