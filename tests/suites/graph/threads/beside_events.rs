//! Captures beside a thread that makes and drops events, whose handles are given again.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_tests::{is_soft, no_leaks, setup};

use crate::capture::Bench;

#[test]
fn no_join_of_a_capture_is_lost() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(context.event().unwrap());
                }
            });
            let rounds = if is_soft() { 3_000 } else { 500 };
            let outcomes = (0..rounds).map(|_| {
                let capture = bench.begin();
                let [fork] = capture.split()?;
                bench.add(&fork, 1)?;
                capture.join([fork])?;
                capture.end().map(drop)
            });
            let outcome = outcomes.collect::<Result<Vec<()>, _>>();
            is_over.store(true, Ordering::Relaxed);
            outcome.unwrap();
        });
        bench.works_again();
    });
}
