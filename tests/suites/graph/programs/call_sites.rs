//! One loop called from three places.

#[path = "../../../../crates/graph/examples/call_sites/program.rs"]
mod program;
#[path = "../../../../crates/graph/examples/call_sites/reference.rs"]
mod reference;

use cuda_tests::{host_decides, no_leaks, setup};

use self::program::{CallSites, Site};

const SITES: [Site; 3] = [
    Site { name: "one", n: 1, factor: 3, most_rounds: 3 },
    Site { name: "many", n: 300, factor: 5, most_rounds: 1 },
    Site { name: "some", n: 129, factor: 7, most_rounds: 2 },
];

fn expected(calls: u32) -> Vec<Vec<u32>> {
    SITES.iter().map(|site| reference::run(site, calls)).collect()
}

#[test]
fn one_build_serves_all_places_whoever_decides() {
    let context = setup();
    no_leaks(|| {
        let mut program = CallSites::new(&context).unwrap();
        assert!(SITES.iter().all(|site| !site.name.is_empty()));
        if program.device_decides() && !host_decides() {
            assert_eq!(program.call_all(&SITES, 12).unwrap(), expected(12));
            let statistics = program.statistics();
            assert_eq!((statistics.builds, statistics.hits), (1, 35));
        }
        assert_eq!(program.call_all_by_host(&SITES, 4).unwrap(), expected(4));
        assert_eq!(program.host_statistics().builds, 1);
        assert!(program.graph().unwrap().to_dot().unwrap().contains("scale"));
    });
}
