//! The nodes of a captured graph are read when they are first needed, and nobody sees that.

use cuda_graph::{ContextExt, Error, Graph, KernelNode, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Context, Owner, reaper};
use cuda_launch::{LaunchConfig, TypedKernel, per};
use cuda_tests::{Need, no_leaks, raw, setup, sweep};

use super::{Bench, Capture, add_to};
use crate::common::gone::{flag, soon};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

/// A launch with a configuration, a fill, and a launch.
pub(super) fn configured(bench: &Bench, config: LaunchConfig, amounts: [u32; 2]) -> Graph {
    let work = |capture: &Capture| {
        capture.launch(&bench.add, config, (amounts[0], &bench.numbers))?;
        capture.fill(&bench.others, 7)?;
        bench.add(capture, amounts[1])
    };
    bench.stream.capture(LOCAL, work).unwrap()
}

/// A launch, a fill and a launch.
pub(super) fn three(bench: &Bench, amounts: [u32; 2]) -> Graph {
    configured(bench, per(1, 1), amounts)
}

/// Adds 5 to a number and copies it to the first one, with a kernel and memory that nothing else
/// has, and a host function that has the owner.
pub(super) fn with_its_own(context: &Context, bench: &Bench, owner: Owner) -> Graph {
    let add = add_to::load(context).unwrap();
    let used = bench.stream.zeros::<u32>(4).unwrap();
    bench.stream.synchronize_blocking().unwrap();
    let work = |capture: &Capture| {
        capture.launch(&add, per(1, 1), (5, &used))?;
        capture.callback(move || drop(owner.clone()))?;
        capture.copy(&used, bench.numbers.slice(..4)?)
    };
    bench.stream.capture(LOCAL, work).unwrap()
}

pub(super) fn kernels(graph: &Graph) -> Vec<KernelNode> {
    graph.nodes().unwrap().into_iter().filter_map(|node| KernelNode::try_from(node).ok()).collect()
}

#[test]
fn an_executable_keeps_what_was_captured_though_no_node_was_asked_for() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (owner, is_gone) = flag();
        let mut exec = with_its_own(&context, &bench, owner).instantiate().unwrap();
        for round in 1..=2 {
            exec.launch(&bench.stream).unwrap();
            assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], 5 * round);
        }
        assert!(!is_gone());
        drop(exec);
        assert!(soon(&is_gone));
    });
}

#[test]
fn nodes_that_are_asked_for_later_stand_for_those_of_executables() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = three(&bench, [1, 2]);
        let mut exec = graph.instantiate().unwrap();
        let [first, _] = &kernels(&graph)[..] else { panic!("two kernels") };
        exec.node(first).set(&bench.add, per(1, 1), (10, &bench.numbers)).unwrap();
        exec.launch(&bench.stream).unwrap();
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], 12);
        // Of a graph that the executable was updated from, too.
        let new = three(&bench, [3, 4]);
        assert!(exec.update(&new).unwrap().is_updated());
        let [_, last] = &kernels(&new)[..] else { panic!("two kernels") };
        exec.node(last).set(&bench.add, per(1, 1), (40, &bench.numbers)).unwrap();
        exec.node(first).set(&bench.add, per(1, 1), (30, &bench.numbers)).unwrap();
        exec.launch(&bench.stream).unwrap();
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], 82);
        // A node that was added later is in no executable.
        let added = graph.root().fill(&bench.others, 1).unwrap();
        assert!(exec.node(&added).set_enabled(false).is_err());
    });
}

#[test]
fn a_node_gives_up_what_it_uses_also_if_it_was_read_late() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let [(called, call_is_gone), (kept, kept_is_gone), (given, given_is_gone)] = [flag(), flag(), flag()];
        let work = |capture: &Capture| {
            bench.add(capture, 1)?;
            capture.callback(move || drop(called.clone()))?;
            capture.keep(kept)
        };
        let graph = bench.stream.capture(LOCAL, work).unwrap();
        graph.keep(given);
        let host = graph.nodes().unwrap().swap_remove(1);
        assert!(!call_is_gone());
        host.remove().unwrap();
        assert!(soon(&call_is_gone));
        assert_eq!(bench.run(&graph), 1);
        assert!(!kept_is_gone() && !given_is_gone(), "the graph as a whole has them");
        drop((graph, host));
        assert!(soon(&kept_is_gone) && soon(&given_is_gone));
    });
}

#[test]
fn graphs_go_into_others_before_their_nodes_were_asked_for() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let whole = context.graph().unwrap();
        let (embedded, cloned) = (three(&bench, [1, 2]), three(&bench, [4, 8]));
        let child = whole.root().child(&embedded).unwrap();
        assert_eq!(child.embedded().unwrap().len().unwrap(), 3);
        let clone = cloned.clone_graph().unwrap();
        let counterpart = clone.find_clone_of(&kernels(&cloned)[0]).unwrap();
        assert_eq!(clone.nodes().unwrap()[0], counterpart);
        drop((embedded, cloned));
        assert_eq!((bench.run(&whole), bench.run(&clone)), (3, 12));
        if Need::MovedGraphs.is_met() {
            whole.root().child_moved(three(&bench, [16, 32])).unwrap();
            assert_eq!(bench.run(&whole), 51);
        }
    });
}

#[test]
fn what_other_code_captures_of_this_library_is_kept() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (used, graph);
        {
            let add = add_to::load(&context).unwrap();
            used = bench.stream.zeros::<u32>(4).unwrap();
            bench.stream.synchronize_blocking().unwrap();
            let (kernel, stream) = (add.kernel().as_raw(), bench.stream.as_raw());
            let work = |capture: &Capture| {
                bench.add(capture, 1)?;
                let (mut amount, mut address) = (2_u32, used.address());
                let mut arguments = [(&raw mut amount).cast(), (&raw mut address).cast()];
                // SAFETY: the kernel has these two parameters; the stream and the memory outlive
                // the runs of the graph.
                raw::ok(unsafe {
                    raw::driver().cuLaunchKernel(
                        kernel.cast(),
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        0,
                        stream,
                        arguments.as_mut_ptr(),
                        core::ptr::null_mut(),
                    )
                });
                Ok(())
            };
            graph = bench.stream.capture(LOCAL, work).unwrap();
        }
        reaper::drain();
        assert_eq!(bench.run(&graph), 1);
        assert_eq!(used.read_blocking(&bench.stream).unwrap()[0], 2);
    });
}

#[test]
fn first_reads_come_from_many_threads() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = three(&bench, [1, 2]);
        let nodes = std::thread::scope(|scope| {
            let ask = || (graph.nodes().unwrap(), graph.instantiate().unwrap());
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().0).collect::<Vec<_>>()
        });
        assert!(nodes.iter().all(|some| some.len() == 3 && *some == nodes[0]));
    });
}

#[test]
fn a_read_that_fails_is_made_again() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let bench = Bench::new(&context);
    let cases = sweep("nodes of a capture, asked for again", || -> Result<(), Error> {
        let (owner, is_gone) = flag();
        let work = |capture: &Capture| {
            bench.add(capture, 1)?;
            capture.callback(move || drop(owner.clone()))
        };
        let graph = bench.stream.capture(LOCAL, work)?;
        let asked = graph.nodes();
        let first = asked.as_ref().map_or_else(|_| graph.nodes(), |nodes| Ok(nodes.clone()))?;
        assert_eq!(first.len(), 2);
        assert!(!is_gone());
        first[1].remove()?;
        assert!(soon(&is_gone), "the node had it");
        asked.map(drop)
    });
    assert!(cases >= 20, "{cases}");
}
