//! Training on two devices, with the gradients added by NCCL and by copies.

#[path = "../../../../crates/graph/examples/data_parallel/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/data_parallel/reference.rs"]
mod reference;

use cuda_tests::{other_device, setup};

use self::program::{DataParallel, Reduction, Task};
use crate::collectives::on_ranks;
use crate::devices::leaves_nothing;

const TASK: Task = Task { inputs: 3, units: 5, samples: 8, rate: 0.02 };
const STEPS: usize = 20;

#[test]
fn gradients_of_two_devices_are_as_those_of_one() {
    let nccl = on_ranks!();
    let here = setup();
    let there = other_device().context().unwrap();
    let samples = reference::samples(TASK, 2);
    let parameters = reference::numbers(3, TASK.parameters());
    let expected = reference::train(TASK, &samples, parameters.clone(), STEPS);
    leaves_nothing(|| {
        let (one, two) = ([&*here, &*here], [&*here, &there]);
        for (contexts, is_nccl) in [(one, false), (two, false), (two, true)] {
            let reduction = match is_nccl {
                true => Reduction::nccl(&nccl, &contexts).unwrap(),
                false => Reduction::own(&contexts, TASK).unwrap(),
            };
            let mut program = DataParallel::new(&contexts, TASK, &samples, &parameters, &reduction).unwrap();
            drop(reduction);
            program.train(1).unwrap();
            let before = program.loss().unwrap();
            program.train(STEPS - 1).unwrap();
            assert_eq!(program.parameters().unwrap(), [expected.clone(), expected.clone()]);
            assert!(program.loss().unwrap() < before);
            assert!(!program.graph().is_empty().unwrap());
        }
    });
}
