//! Heat on a plate that lies on two devices.

#[path = "../../../../crates/graph/examples/two_devices/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/two_devices/reference.rs"]
mod reference;

use cuda_tests::{alone, needs, no_leaks, other_device, setup};

use self::program::{Task, TwoDevices};
use super::assert_drawn;

const TASK: Task = Task { width: 19, height: 12, rounds: 3 };

#[test]
fn halves_on_two_devices_are_as_one_plate() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let here = setup();
    needs!(TwoDevices);
    let there = other_device().context().unwrap();
    let section = || {
        let mut program = TwoDevices::new([&here, &there], TASK).unwrap();
        let report = program.graph().check().unwrap();
        assert!(report.is_clean() && report.opaque().is_empty(), "{report}");
        assert_drawn(program.graph(), &["upper", "lower", "on device 0", "on device 1"]);
        let mut expected = reference::hot_corner(TASK, 8.0);
        program.load(&expected).unwrap();
        for launch in 0..9 {
            program.launch(launch % 2).unwrap();
            expected = reference::run(TASK, expected);
        }
        assert_eq!(program.plate().unwrap(), expected);
    };
    // The reaper keeps a stream of each device from here on.
    section();
    no_leaks(section);
}
