//! Operations on captured graphs before anybody has asked for their nodes.

use cuda_graph::{Error, Fallback, Graph, GraphExec, InstantiateOptions, KernelNode, StreamExt};
use cuda_handles::Owner;
use cuda_handles::capture::CaptureMode;
use cuda_launch::{LaunchConfig, per};
use cuda_tests::{in_callback, no_leaks, setup};

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

fn kernels(graph: &Graph) -> Vec<KernelNode> {
    graph.nodes().unwrap().into_iter().filter_map(|node| KernelNode::try_from(node).ok()).collect()
}

/// What a launch adds to the first number.
#[track_caller]
fn adds(bench: &Bench, exec: &mut GraphExec) -> u32 {
    bench.stream.fill(&bench.numbers, 0).unwrap();
    exec.launch(&bench.stream).unwrap();
    bench.numbers.read_blocking(&bench.stream).unwrap()[0]
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
fn attributes_of_nodes_that_were_changed_since_are_known_to_be_none() {
    cuda_tests::as_drawn!("updates of shaped executables have rules of their own");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let set = |exec: &mut GraphExec, node: &KernelNode, config, amount: u32| {
            exec.node(node).set(&bench.add, config, (amount, &bench.numbers))
        };
        let graph = plain(&bench, [1, 2]);
        let mut exec = graph.instantiate().unwrap();
        let node = kernels(&graph).remove(0);
        node.set(&bench.add, per(1, 1), (50, &bench.numbers)).unwrap();
        set(&mut exec, &node, per(1, 1), 10).unwrap();
        assert_eq!(adds(&bench, &mut exec), 12);
        // After an update, too.
        let new = plain(&bench, [3, 4]);
        assert!(exec.update(&new).unwrap().is_updated());
        let node = kernels(&new).remove(0);
        node.set(&bench.add, per(1, 1), (50, &bench.numbers)).unwrap();
        set(&mut exec, &node, per(1, 1), 20).unwrap();
        assert_eq!(adds(&bench, &mut exec), 24);
        // Where there were some, they are not known any more.
        let graph = three(&bench, per(1, 1).priority(-1), [1, 2]);
        let mut exec = graph.instantiate().unwrap();
        let node = kernels(&graph).remove(0);
        node.set(&bench.add, per(1, 1), (50, &bench.numbers)).unwrap();
        for config in [per(1, 1), per(1, 1).priority(-1)] {
            let refused = set(&mut exec, &node, config, 10).unwrap_err();
            assert!(refused.to_string().contains("are not known"), "{refused}");
        }
        assert_eq!(adds(&bench, &mut exec), 3);
    });
}

#[test]
fn parameters_and_raw_values_need_no_node_and_no_driver_call() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = plain(&bench, [1, 2]);
        let (param, cost) = cuda_tests::count(|| graph.param(5_u32).unwrap());
        cost.assert_calls(&[]);
        let (raw, cost) = cuda_tests::count(|| graph.as_raw().unwrap());
        cost.assert_calls(&[]);
        let mut exec = graph.instantiate().unwrap();
        // SAFETY: the graph is the library's own.
        let found = unsafe { Graph::from_raw(&context, raw) }.unwrap();
        assert_eq!((&found, found.nodes().unwrap().len()), (&graph, 3));
        graph.root().fill(&bench.others, &param).unwrap();
        assert_eq!(adds(&bench, &mut exec), 3);
        exec.launch_with(&bench.stream, ((&param, 6),)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch_with(&bench.stream, ((&param, 8),)).unwrap();
        assert_eq!(bench.others.read_blocking(&bench.stream).unwrap()[0], 8);
        // Of a capture, used by no call.
        let capture = bench.begin();
        let unused = capture.param(3_u32).unwrap();
        bench.add(&capture, 4).unwrap();
        let graph = capture.end().unwrap().into_graph();
        let mut exec = graph.instantiate().unwrap();
        exec.set(&unused, 9).unwrap();
        assert_eq!(adds(&bench, &mut exec), 4);
        assert!(exec.update(&graph).unwrap().is_updated());
        let other = plain(&bench, [1, 2]);
        let unused = other.param(1_u32).unwrap();
        let mut of_other = other.instantiate().unwrap();
        of_other.launch_with(&bench.stream, ((&unused, 2),)).unwrap();
        assert_eq!(adds(&bench, &mut of_other), 3);
        assert!(!exec.update(&other).unwrap().is_updated());
        let param = {
            let same = plain(&bench, [8, 16]);
            let param = same.param(1_u32).unwrap();
            assert!(of_other.update(&same).unwrap().is_updated());
            param
        };
        of_other.set(&param, 3).unwrap();
        assert_eq!(adds(&bench, &mut of_other), 24);
    });
}

#[test]
fn inside_a_host_function_a_first_read_is_refused_and_made_later() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = plain(&bench, [1, 2]);
        let (ours, sent) = (graph.clone(), std::sync::Arc::new(std::sync::OnceLock::new()));
        let result = std::sync::Arc::clone(&sent);
        in_callback(&bench.stream, move || {
            let asked = (ours.nodes().is_err(), ours.param(1_u32).is_ok(), ours.as_raw().is_ok());
            ours.keep(Owner::other(3));
            let _ = result.set(asked);
        });
        bench.stream.synchronize_blocking().unwrap();
        assert_eq!(sent.get(), Some(&(true, true, true)));
        assert_eq!(graph.nodes().unwrap().len(), 3);
        assert_eq!(bench.run(&graph), 3);
    });
}

#[test]
fn a_dataflow_knows_the_nodes_that_were_captured() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = plain(&bench, [1, 2]);
        let flow = graph.dataflow().unwrap();
        let copy = flow.copy(&bench.others, &bench.numbers).unwrap();
        let [_, fill, last, _] = &graph.nodes().unwrap()[..] else { panic!("four nodes") };
        let before = copy.predecessors().unwrap();
        assert!(before.contains(last) || before.contains(fill), "{before:?}");
        drop(flow);
        assert_eq!(bench.run(&graph), 7);
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
