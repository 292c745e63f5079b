//! Launches and questions of a stream under every interleaving:
//! `RUSTFLAGS="--cfg loom" cargo test -p cuda-handles --release --test loom_launch_gate`.
#![cfg(loom)]

#[path = "../src/access/launch_gate.rs"]
#[allow(unreachable_pub)]
mod launch_gate;

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}

use launch_gate::LaunchGate;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// The calls that the driver is in: launches, and questions.
#[derive(Default)]
struct Driver {
    launches: AtomicU32,
    questions: AtomicU32,
}

#[test]
fn no_question_is_asked_beside_a_launch() {
    loom::model(|| {
        let world = Arc::new((LaunchGate::new(), Driver::default()));
        let launch = |world: Arc<(LaunchGate, Driver)>| {
            let (gate, driver) = &*world;
            let launching = gate.launch();
            driver.launches.fetch_add(1, Ordering::Relaxed);
            assert_eq!(driver.questions.load(Ordering::Relaxed), 0);
            driver.launches.fetch_sub(1, Ordering::Relaxed);
            drop(launching);
        };
        let ask = |world: Arc<(LaunchGate, Driver)>| {
            let (gate, driver) = &*world;
            let Some(asking) = gate.ask() else { return };
            driver.questions.fetch_add(1, Ordering::Relaxed);
            assert_eq!(driver.launches.load(Ordering::Relaxed), 0);
            driver.questions.fetch_sub(1, Ordering::Relaxed);
            drop(asking);
        };
        let (one, other) = (Arc::clone(&world), Arc::clone(&world));
        let threads = [thread::spawn(move || launch(one)), thread::spawn(move || ask(other))];
        ask(Arc::clone(&world));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(world.0.ask().is_some(), "nothing is left");
    });
}
