//! Heat on a plate until it has settled.

#[path = "../../../../crates/graph/examples/heat_loop/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/heat_loop/reference.rs"]
mod reference;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cuda_handles::Context;
use cuda_tests::{count, needs, no_leaks, setup};

use self::program::{HeatLoop, Outcome, Task};
use super::assert_drawn;

const TASK: Task = Task { width: 19, height: 14, tolerance: 4e-3, most_rounds: 40 };

pub(super) fn program(context: &Context) -> HeatLoop {
    HeatLoop::new(context, TASK, |_| {}).unwrap()
}

#[test]
fn plates_settle_as_on_the_host() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        let mut program =
            HeatLoop::new(&context, TASK, move |launch| hears.lock().unwrap().push(launch)).unwrap();
        let mut rounds = Vec::new();
        for launch in 0..10 {
            // From hotter and hotter to cold; the last ones have settled before the loop is
            // entered.
            let heat = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 100.0, 0.01, 0.001, 0.0][launch];
            let plate = reference::hot_edge(TASK, heat);
            let found = program.run(&plate).unwrap();
            assert_eq!(found, reference::run(TASK, &plate), "an edge of {heat}");
            rounds.push(found.rounds);
        }
        assert!(rounds.is_sorted_by(|a, b| a <= b || *b <= 1), "{rounds:?}");
        assert_eq!((rounds[6], &rounds[8..]), (TASK.most_rounds, &[0, 0][..]), "{rounds:?}");
        assert!(rounds[..3].iter().all(|rounds| (1..TASK.most_rounds).contains(rounds)), "{rounds:?}");
        assert_eq!(*heard.lock().unwrap(), (1..=10).collect::<Vec<_>>());
    });
}

#[test]
fn a_loop_of_no_rounds_leaves_the_plate() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let mut program = HeatLoop::new(&context, Task { most_rounds: 0, ..TASK }, |_| {}).unwrap();
        let plate = reference::hot_edge(TASK, 1.0);
        let Outcome { plate: found, residual, rounds } = program.run(&plate).unwrap();
        assert_eq!((found, rounds), (plate, 0));
        assert!(residual > TASK.tolerance, "{residual}");
    });
}

#[test]
fn ten_launches_in_a_row_wait_for_each_other() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let launches = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&launches);
        let report = move |launch| counter.store(launch, Ordering::Relaxed);
        let mut program = HeatLoop::new(&context, TASK, report).unwrap();
        let plate = reference::hot_edge(TASK, 0.5);
        program.load(&plate).unwrap();
        program.launch().unwrap();
        let ((), cost) = count(|| (1..10).for_each(|_| program.launch().unwrap()));
        cost.assert_calls(&[("cuGraphLaunch", 9)]);
        assert_eq!(program.outcome().unwrap(), reference::run(TASK, &plate));
        assert_eq!(launches.load(Ordering::Relaxed), 10);
        assert!(!program.duration().unwrap().is_zero());
        // The next plate waits for the launches that are under way.
        program.launch().unwrap();
        let plate = reference::hot_edge(TASK, 0.25);
        assert_eq!(program.run(&plate).unwrap(), reference::run(TASK, &plate));
    });
    context.trim_graph_memory().unwrap();
    let usage = context.graph_memory_usage().unwrap();
    assert_eq!((usage.used, usage.reserved), (0, 0), "{usage:?}");
}

#[test]
fn its_picture_tells_of_it() {
    let context = setup();
    needs!(Conditionals);
    let program = program(&context);
    // Of the free node, too, whose memory it is.
    assert_drawn(program.graph(), &["allocate 8 B", "frees scratch"]);
    assert_drawn(
        program.graph(),
        &["settling", "two steps", "forth", "back", "report", "decides about settling"],
    );
}
