//! Operations on captured graphs before anybody has asked for their nodes.

use cuda_graph::{
    CacheOptions, CachePath, ContextExt, Error, Fallback, Graph, GraphCache, GraphExec, InstantiateOptions,
    KernelNode, Order, Shape, StreamExt,
};
use cuda_handles::capture::{CaptureMode, CaptureOptions, Scratch};
use cuda_handles::{Owner, reaper};
use cuda_launch::per;
use cuda_tests::{Gate, SOON, in_callback, no_leaks, setup, until};

use super::unread::{configured, kernels, three, with_its_own};
use super::{Bench, Capture};
use crate::common::gone::{flag, soon};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

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
        let (first, second) = (three(&bench, [1, 2]), three(&bench, [10, 20]));
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
        let third = three(&bench, [100, 200]);
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
        let graph = three(&bench, [1, 2]);
        let mut exec = graph.instantiate().unwrap();
        let node = kernels(&graph).remove(0);
        node.set(&bench.add, per(1, 1), (50, &bench.numbers)).unwrap();
        set(&mut exec, &node, per(1, 1), 10).unwrap();
        assert_eq!(adds(&bench, &mut exec), 12);
        // After an update, too.
        let new = three(&bench, [3, 4]);
        assert!(exec.update(&new).unwrap().is_updated());
        let node = kernels(&new).remove(0);
        node.set(&bench.add, per(1, 1), (50, &bench.numbers)).unwrap();
        set(&mut exec, &node, per(1, 1), 20).unwrap();
        assert_eq!(adds(&bench, &mut exec), 24);
        // Where there were some, they are not known any more.
        let graph = configured(&bench, per(1, 1).priority(-1), [1, 2]);
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
        let graph = three(&bench, [1, 2]);
        let (param, cost) = cuda_tests::count(|| graph.param(5_u32).unwrap());
        cost.assert_calls(&[]);
        let (raw, cost) = cuda_tests::count(|| graph.as_raw().unwrap());
        cost.assert_calls(&[]);
        let mut exec = graph.instantiate().unwrap();
        // SAFETY: the graph is the library's own.
        let found = unsafe { Graph::from_raw(&context, raw) }.unwrap();
        assert_eq!((&found, found.nodes().unwrap().len()), (&graph, 3));
        // Not what the captured nodes write: nothing comes before this fill.
        let filled = bench.stream.zeros::<u32>(4).unwrap();
        graph.root().fill(&filled, &param).unwrap();
        assert_eq!(adds(&bench, &mut exec), 3);
        exec.launch_with(&bench.stream, ((&param, 6),)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch_with(&bench.stream, ((&param, 8),)).unwrap();
        assert_eq!(filled.read_blocking(&bench.stream).unwrap()[0], 8);
        // Of a capture, used by no call.
        let capture = bench.begin();
        let unused = capture.param(3_u32).unwrap();
        bench.add(&capture, 4).unwrap();
        let graph = capture.end().unwrap().into_graph();
        let mut exec = graph.instantiate().unwrap();
        exec.set(&unused, 9).unwrap();
        assert_eq!(adds(&bench, &mut exec), 4);
        assert!(exec.update(&graph).unwrap().is_updated());
        let other = three(&bench, [1, 2]);
        let unused = other.param(1_u32).unwrap();
        let mut of_other = other.instantiate().unwrap();
        of_other.launch_with(&bench.stream, ((&unused, 2),)).unwrap();
        assert_eq!(adds(&bench, &mut of_other), 3);
        assert!(!exec.update(&other).unwrap().is_updated());
        let param = {
            let same = three(&bench, [8, 16]);
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
        let graph = three(&bench, [1, 2]);
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
fn an_executable_keeps_what_its_graph_lets_go_of_later() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (owner, is_gone) = flag();
        let mut exec = {
            let graph = with_its_own(&context, &bench, owner);
            let exec = graph.instantiate().unwrap();
            graph.nodes().unwrap().iter().for_each(|node| node.remove().unwrap());
            exec
        };
        reaper::drain();
        exec.launch(&bench.stream).unwrap();
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], 5);
        assert!(!is_gone());
        drop(exec);
        assert!(soon(&is_gone));
    });
}

#[test]
fn an_updated_executable_gives_up_what_it_had_and_keeps_the_new() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let build = |owner: Owner, amount: u32| {
            let work = |capture: &Capture| {
                bench.add(capture, amount)?;
                capture.callback(move || drop(owner.clone()))
            };
            bench.stream.capture(LOCAL, work).unwrap()
        };
        let [(first, first_is_gone), (second, second_is_gone)] = [flag(), flag()];
        let mut exec = build(first, 1).instantiate().unwrap();
        assert_eq!(adds(&bench, &mut exec), 1);
        let new = build(second, 2);
        assert!(exec.update(&new).unwrap().is_updated());
        assert_eq!(adds(&bench, &mut exec), 2);
        // The executable keeps the first graph alive, which keeps what its nodes use.
        assert!(!first_is_gone());
        new.nodes().unwrap().iter().for_each(|node| node.remove().unwrap());
        drop(new);
        reaper::drain();
        assert_eq!(adds(&bench, &mut exec), 2);
        assert!(!second_is_gone());
        drop(exec);
        assert!(soon(&first_is_gone) && soon(&second_is_gone));
    });
}

#[test]
fn a_long_line_of_captured_graphs_that_keep_each_other_is_dropped_on_a_small_stack() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let len = if cuda_tests::is_soft() { 5000 } else { 500 };
        for read in [false, true] {
            let mut last = three(&bench, [1, 2]);
            for _ in 0..len {
                let work = |capture: &Capture| {
                    let kept = last.clone();
                    capture.keep(Owner::other(last))?;
                    capture.callback(move || drop(kept.clone()))
                };
                last = bench.stream.capture(LOCAL, work).unwrap();
                if read {
                    assert_eq!(last.nodes().unwrap().len(), 1);
                }
            }
            let small = std::thread::Builder::new().stack_size(256 << 10);
            small.spawn(move || drop(last)).unwrap().join().unwrap();
        }
    });
}

#[test]
fn nodes_are_read_while_streams_capture() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let work = |capture: &Capture| {
            bench.add(capture, 1)?;
            capture.copy(&bench.others, &bench.numbers)
        };
        let read = |graph: &Graph| graph.nodes().map(|nodes| nodes.len());
        for mode in super::MODES {
            let [here, there] = [(); 2].map(|()| bench.stream.capture(LOCAL, work).unwrap());
            let other = context.stream().unwrap();
            let capture = other.begin_capture(mode).unwrap();
            assert_eq!(read(&here), Ok(2));
            std::thread::scope(|scope| assert_eq!(scope.spawn(|| read(&there)).join().unwrap(), Ok(2)));
            let captured = capture.end().unwrap();
            assert!(captured.records.is_empty());
        }
        // By the capture itself, whose calls are added to such a graph.
        let (into, embedded) = (three(&bench, [1, 2]), three(&bench, [4, 8]));
        let whole = bench.stream.capture(CaptureMode::Global, |capture: &Capture| {
            bench.add(capture, 16)?;
            capture.embed(&embedded).map(drop)
        });
        assert_eq!(bench.run(&whole.unwrap()), 28);
        into.root().capture(&bench.stream, CaptureMode::Global, |at| bench.add(at, 32)).unwrap();
        assert_eq!((bench.run(&into), into.nodes().unwrap().len()), (35, 4));
    });
}

#[test]
fn a_cache_of_captured_graphs_updates_verifies_and_counts() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
        for verify in [false, true] {
            cache.verify(verify);
            let stamps = if verify { [1, 1, 2] } else { [0, 0, 1] };
            let paths = stamps.map(|stamp: u64| {
                let build = || Ok((three(&bench, [stamp as u32, 2]), ()));
                let mut cached = cache.get(&bench.stream, 1, stamp, build).unwrap();
                bench.stream.fill(&bench.numbers, 0).unwrap();
                cached.parts().0.launch(&bench.stream).unwrap();
                let path = cached.path();
                drop(cached);
                assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], stamp as u32 + 2);
                let [entry] = &cache.entries()[..] else { panic!("one entry") };
                assert_eq!((entry.nodes, entry.memory_bytes), (3, 2 * 4 * super::N));
                path
            });
            let first = if verify { CachePath::Hit } else { CachePath::Built };
            assert_eq!(paths, [first, CachePath::Hit, CachePath::Updated]);
        }
    });
}

#[test]
fn graphs_with_scratch_memory_are_one_line_before_and_after_a_read() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let scratch = Scratch::new(&context);
        let build = || {
            let work = |capture: &Capture| {
                let temporary = capture.stream().upload(&[5_u32; 4])?;
                capture.launch(&bench.add, per(1, 1), (1, &temporary))?;
                capture.copy(&temporary, bench.numbers.slice(..4)?)
            };
            bench.stream.capture(CaptureOptions::new().scratch(&scratch), work).unwrap()
        };
        let (first, second) = (build(), build());
        let mut execs = [first.instantiate().unwrap(), second.instantiate().unwrap()];
        assert_eq!(first.nodes().unwrap().len(), second.nodes().unwrap().len());
        assert!(execs[0].update(&second).unwrap().is_updated());
        let options = InstantiateOptions::new().device_launch();
        assert!(matches!(build().instantiate_with(options), Err(Error::Exec(_))));
        let other = context.stream().unwrap();
        let gate = Gate::close(&bench.stream);
        let [one, two] = &mut execs;
        one.launch(&bench.stream).unwrap();
        two.launch(&other).unwrap();
        assert!(!until(std::time::Duration::from_millis(20), || other.query().unwrap()));
        gate.open();
        assert!(until(SOON, || other.query().unwrap()));
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], 6);
    });
}

#[test]
fn the_first_launch_waits_for_the_homes_of_memory() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let home = context.stream().unwrap();
        for read in [false, true] {
            let gate = Gate::close(&home);
            let late = home.zeros::<u32>(4).unwrap();
            let work = |capture: &Capture| capture.launch(&bench.add, per(1, 1), (1, &late));
            let graph = bench.stream.capture(LOCAL, work).unwrap();
            let mut exec = plain_exec(&graph);
            if read {
                assert_eq!(graph.nodes().unwrap().len(), 1);
                exec = plain_exec(&graph);
            }
            exec.launch(&bench.stream).unwrap();
            assert!(!bench.stream.query().unwrap());
            gate.open();
            assert_eq!(late.read_blocking(&bench.stream).unwrap()[0], 1);
        }
    });
}

fn plain_exec(graph: &Graph) -> GraphExec {
    graph.instantiate().unwrap()
}

#[test]
fn executables_are_made_by_all_options() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let options = InstantiateOptions::new;
        let all = [
            options().upload_on(&bench.stream),
            options().device_launch(),
            options().device_launch().upload_on(&bench.stream),
            options().shape(Shape::Auto),
            options().order(Order::ByData).upload_on(&bench.stream),
            options().node_priorities(),
            options().auto_free(),
        ];
        for options in all {
            let graph = three(&bench, [1, 2]);
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            assert_eq!(adds(&bench, &mut exec), 3, "{options:?}");
            let new = three(&bench, [3, 4]);
            let refusal = exec.update_or_rebuild(&new).unwrap();
            assert_eq!(refusal.is_some(), options.is_for_device_launch(), "{options:?} {refusal:?}");
            assert_eq!(adds(&bench, &mut exec), 7, "{options:?}");
        }
    });
}

#[test]
fn a_child_graph_is_set_to_one_and_a_refusal_names_its_nodes() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let whole = context.graph().unwrap();
        let child = whole.root().child(&three(&bench, [1, 2])).unwrap();
        let mut exec = whole.instantiate().unwrap();
        exec.node(&child).set_graph(&three(&bench, [3, 4])).unwrap();
        assert_eq!(adds(&bench, &mut exec), 7);
        let mut exec = three(&bench, [1, 2]).instantiate().unwrap();
        let work = |capture: &Capture| {
            bench.add(capture, 1)?;
            bench.add(capture, 2)?;
            bench.add(capture, 3)
        };
        let other = bench.stream.capture(LOCAL, work).unwrap();
        let found = exec.check_update(&other).unwrap();
        let update = exec.update(&other).unwrap();
        let refusal = update.refusal().unwrap();
        assert!(found.contains(refusal) && refusal.node.is_some(), "{found:?} {refusal:?}");
    });
}

#[test]
fn a_dataflow_knows_the_nodes_that_were_captured() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = three(&bench, [1, 2]);
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

#[test]
fn nodes_and_edges_that_change_after_an_update_leave_the_nodes_unpaired() {
    cuda_tests::as_drawn!("shaped executables pair nodes at once");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (graph, new) = (three(&bench, [1, 2]), three(&bench, [3, 4]));
        let mut exec = graph.instantiate().unwrap();
        assert!(exec.update(&new).unwrap().is_updated());
        let node = kernels(&graph).remove(0);
        new.root().empty().unwrap();
        let refused = exec.node(&node).set(&bench.add, per(1, 1), (9, &bench.numbers)).unwrap_err();
        assert!(matches!(refused, Error::Update(cuda_graph::UpdateError::Unpaired { .. })), "{refused:?}");
        assert_eq!(adds(&bench, &mut exec), 7);
        assert!(!exec.update(&new).unwrap().is_updated());
        // Its own graph, changed after the executable was made.
        let mut exec = graph.instantiate().unwrap();
        let graph = three(&bench, [1, 2]);
        let mut other = graph.instantiate().unwrap();
        graph.root().empty().unwrap();
        assert!(!other.update(&graph).unwrap().is_updated());
        exec.node(&node).set(&bench.add, per(1, 1), (9, &bench.numbers)).unwrap();
        assert_eq!(adds(&bench, &mut exec), 11);
    });
}
