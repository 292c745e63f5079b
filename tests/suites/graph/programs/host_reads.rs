//! A thermostat in a host function.

#[path = "../../../../crates/graph/examples/host_reads/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/host_reads/reference.rs"]
mod reference;

use std::sync::{Arc, Mutex};

use cuda_handles::Context;
use cuda_tests::{no_leaks, setup};

use self::program::{Task, Thermostat};
use super::assert_drawn;

const TASK: Task = Task { width: 17, height: 11, rounds: 2, goal: 9.0, hot: 50.0 };

pub(super) fn program(context: &Context) -> Thermostat {
    Thermostat::new(context, TASK, |_, _| {}).unwrap()
}

#[test]
fn what_it_reads_and_decides_is_as_on_the_host() {
    let context = setup();
    no_leaks(|| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tells = Arc::clone(&told);
        let mut program =
            Thermostat::new(&context, TASK, move |number, _| tells.lock().unwrap().push(number)).unwrap();
        let found = program.run(80).unwrap();
        assert_eq!(found, reference::run(TASK, 80));
        let switched = found.windows(2).filter(|pair| pair[0].heater != pair[1].heater).count();
        assert!(switched > 3, "{found:?}");
        assert_eq!(*told.lock().unwrap(), (1..=80).collect::<Vec<_>>());
        assert_drawn(program.graph(), &["the thermostat", "the heater's row"]);
    });
}
