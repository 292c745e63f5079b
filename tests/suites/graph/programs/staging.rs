//! A pipeline of three streams with a staging ring.

#[path = "../../../../crates/graph/examples/staging/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/staging/reference.rs"]
mod reference;

use cuda_tests::{count, no_leaks, setup};

use self::program::Pipeline;

const NUMBERS: usize = 301;

#[test]
fn rows_come_back_in_order_and_the_host_waits_for_nothing() {
    let context = setup();
    no_leaks(|| {
        let mut pipeline = Pipeline::new(&context, NUMBERS).unwrap();
        assert_eq!(pipeline.graph().unwrap().nodes().unwrap().len(), 2);
        for rows in [1, 2, 30] {
            let (sums, cost) = count(|| pipeline.run(rows).unwrap());
            let expected: Vec<u32> = (0..rows).map(|row| reference::sum(NUMBERS, row)).collect();
            assert_eq!(sums, expected);
            let waits = ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"];
            assert_eq!(waits.map(|call| cost.calls(call)), [0; 3], "{cost}");
        }
        assert!(pipeline.looks() >= 33 && pipeline.idle() < pipeline.looks());
    });
}
