//! Launches beside threads that ask whether the stream is idle.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_graph::ContextExt;
use cuda_launch::{kernel, per};
use cuda_tests::{is_soft, no_leaks, setup};

kernel! {
    // SAFETY: the kernel in the image has these parameters, and adds to the first element.
    unsafe in "../../../kernels/increment.ptx";

    fn increment_by(amount: u32, value: InOut<u32>) where value.len() >= 1;
}

#[test]
fn every_launch_beside_queries_is_enqueued_once() {
    let context = setup();
    no_leaks(|| {
        let launches: u32 = if is_soft() { 2_000 } else { 50_000 };
        let stream = context.stream().unwrap();
        let increment_by = increment_by::load(&context).unwrap();
        let counter = stream.zeros::<u32>(1).unwrap();
        let graph = context.graph().unwrap();
        let amount = graph.param(1_u32).unwrap();
        graph.root().launch(&increment_by, per(1, 1), (&amount, &counter)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let is_over = AtomicBool::new(false);
        let mut sum = 0_u32;
        std::thread::scope(|threads| {
            let asks = || {
                let mut idle = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    idle += u64::from(stream.query().unwrap());
                }
                idle
            };
            let asking = threads.spawn(asks);
            for launch in 0..launches {
                let launched = exec.launch_with(&stream, ((&amount, launch % 3),));
                if launch % 10 == 9 {
                    stream.synchronize_blocking().unwrap();
                }
                if launched.is_err() {
                    is_over.store(true, Ordering::Relaxed);
                }
                launched.unwrap();
                sum += launch % 3;
            }
            is_over.store(true, Ordering::Relaxed);
            asking.join().unwrap();
        });
        assert_eq!(counter.read_blocking(&stream).unwrap(), [sum]);
    });
}
