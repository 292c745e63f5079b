//! Operations on captured graphs before anybody has asked for their nodes.

use cuda_graph::{Error, Fallback, Graph, InstantiateOptions, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_launch::{LaunchConfig, per};
use cuda_tests::{no_leaks, setup};

use super::{Bench, Capture};
use crate::common::gone::flag;

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

/// A launch with a configuration, a fill, and a launch.
fn three(bench: &Bench, config: LaunchConfig, amounts: [u32; 2]) -> Graph {
    let work = |capture: &Capture| {
        capture.launch(&bench.add, config, (amounts[0], &bench.numbers))?;
        capture.fill(&bench.others, 7)?;
        bench.add(capture, amounts[1])
    };
    bench.stream.capture(LOCAL, work).unwrap()
}

fn plain(bench: &Bench, amounts: [u32; 2]) -> Graph {
    three(bench, per(1, 1), amounts)
}

#[test]
fn the_host_runs_all_of_a_graph() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (first, second) = (plain(&bench, [1, 2]), plain(&bench, [10, 20]));
        let options = InstantiateOptions::new();
        let mut exec = first.instantiate_with_fallback(Fallback::HostLoopAlways, options.clone()).unwrap();
        let run = |exec: &mut cuda_graph::HostLoopExec| {
            bench.stream.fill(&bench.numbers, 0).unwrap();
            exec.run_blocking(&bench.stream).unwrap();
            bench.numbers.read_blocking(&bench.stream).unwrap()[0]
        };
        assert_eq!((exec.is_on_host(), run(&mut exec)), (true, 3));
        assert!(exec.update_or_rebuild(&second).unwrap().is_some());
        assert_eq!(run(&mut exec), 30);
        let third = plain(&bench, [100, 200]);
        let mut exec = third.instantiate_with_fallback(Fallback::HostLoop, options).unwrap();
        assert_eq!((exec.is_on_host(), run(&mut exec)), (false, 300));
    });
}

#[test]
fn whatever_fails_at_first_works_at_last() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let bench = Bench::new(&context);
    let cases = cuda_tests::sweep("captured graphs in use", || -> Result<(), Error> {
        let (owner, is_gone) = flag();
        let build = |amount: u32| {
            let owner = owner.clone();
            let work = |capture: &Capture| {
                bench.add(capture, amount)?;
                capture.callback(move || drop(owner.clone()))
            };
            bench.stream.capture(LOCAL, work)
        };
        let (graph, new) = (build(1)?, build(2)?);
        let uploaded = graph.instantiate_with(InstantiateOptions::new().upload_on(&bench.stream));
        let mut exec = graph.instantiate()?;
        let updated = exec.update(&new);
        let asked = new.nodes();
        let by_host = graph.instantiate_with_fallback(Fallback::HostLoopAlways, InstantiateOptions::new());
        drop((graph, new, owner));
        assert!(!is_gone());
        exec.launch(&bench.stream)?;
        bench.stream.synchronize_blocking()?;
        uploaded.map(drop).and(updated.map(drop)).and(asked.map(drop)).and(by_host.map(drop))
    });
    bench.stream.synchronize_blocking().unwrap();
    assert!(cases >= 40, "{cases}");
}
