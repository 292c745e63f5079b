//! The root of a monotone function.

#[path = "../../../../crates/graph/examples/bisection/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/bisection/reference.rs"]
mod reference;

use cuda_handles::Context;
use cuda_tests::{count, no_leaks};

use self::program::{Bisection, Outcome, Problem};
use super::{assert_drawn, branching};

const PROBLEM: Problem = Problem { level: 10.0, low: 0.0, high: 7.0, tolerance: 1e-9, accuracy: 1e-6 };

pub(super) fn program(context: &Context) -> Bisection {
    Bisection::new(context).unwrap()
}

#[test]
fn roots_are_found_as_on_the_host() {
    let Some(context) = branching() else { return };
    no_leaks(|| {
        let mut program = program(&context);
        let mut run = |problem: Problem| {
            let found = program.run(problem).unwrap();
            assert_eq!(found, reference::run(problem), "{problem:?}");
            let Outcome { root, rounds, steps } = found;
            let missed = reference::function(root, problem.level).abs();
            assert!(missed <= problem.accuracy || steps == 3, "{found:?} misses by {missed}");
            (rounds, steps)
        };
        let levels = [-1000.0, -30.0, -2.5, 0.0, 0.1, 1.0, 2.0, 68.0, 350.0, 1e6];
        let mut polished = Vec::new();
        for level in levels {
            let (rounds, steps) = run(Problem { level, low: -101.0, high: 102.0, ..PROBLEM });
            assert_eq!(rounds, 38);
            polished.push(steps > 0);
        }
        assert!(polished.contains(&true) && polished.contains(&false), "{polished:?}");
        for round in 1..=10 {
            let tolerance = 0.5_f64.powi(round);
            let (rounds, steps) = run(Problem { tolerance, low: 1.0, high: 3.5, ..PROBLEM });
            assert_eq!((rounds, steps), (round as u32 + 2, 3), "coarse, so it is polished");
        }
        // As narrow as numbers get.
        let (rounds, _) = run(Problem { tolerance: 0.0, ..PROBLEM });
        assert!((50..60).contains(&rounds), "{rounds}");
    });
}

#[test]
fn where_nothing_is_to_be_halved_there_is_no_round() {
    let Some(context) = branching() else { return };
    no_leaks(|| {
        let mut program = program(&context);
        let narrow = Problem { low: 2.0, high: 2.0, ..PROBLEM };
        let off = Problem { low: 1.9, high: 2.2, tolerance: 0.5, ..PROBLEM };
        let turned = Problem { low: 5.0, high: -1.0, ..PROBLEM };
        for _ in 0..10 {
            assert_eq!(program.run(narrow).unwrap(), Outcome { root: 2.0, rounds: 0, steps: 0 });
            for (problem, rounds, steps) in [(off, 0, 3), (turned, 0, 0), (PROBLEM, 33, 0)] {
                let found = program.run(problem).unwrap();
                assert_eq!((found.rounds, found.steps), (rounds, steps), "{problem:?}");
                assert_eq!(found, reference::run(problem));
            }
        }
    });
}

#[test]
fn ten_launches_in_a_row_begin_anew_each() {
    let Some(context) = branching() else { return };
    no_leaks(|| {
        let mut program = program(&context);
        program.load(PROBLEM).unwrap();
        program.launch().unwrap();
        let ((), cost) = count(|| (1..10).for_each(|_| program.launch().unwrap()));
        cost.assert_calls(&[("cuGraphLaunch", 9)]);
        assert_eq!(program.outcome().unwrap(), reference::run(PROBLEM));
    });
}

#[test]
fn its_picture_tells_of_it() {
    let Some(context) = branching() else { return };
    let program = program(&context);
    assert_drawn(program.graph(), &["halving", "which side?", "the upper half", "the lower half", "polish"]);
}
