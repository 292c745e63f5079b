//! Updates of executables in which the host may decide, and others in their place.

use cuda_graph::{
    ContextExt, EmbedError, Error, ExecError, Fallback, Graph, HostLoopExec, InstantiateOptions,
    RefusalReason, Test,
};
use cuda_handles::{Buffer, Context, Stream};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, count, fail, needs, no_leaks, setup};

const LEN: usize = 4;

struct Lab {
    context: Context,
    stream: Stream,
    number: Buffer<u32>,
    result: Buffer<u32>,
}

impl Lab {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let (number, result) = (stream.zeros(1).unwrap(), stream.zeros(LEN).unwrap());
        stream.synchronize_blocking().unwrap();
        Self { context: context.clone(), stream, number, result }
    }

    /// A graph with a loop of one round, after which the result has this value, and as many empty
    /// nodes behind it.
    fn graph(&self, value: u32, more: usize) -> Graph {
        let graph = self.context.graph().unwrap();
        let start = graph.root().fill(&self.number, 1).unwrap();
        let rounds = start.then().while_loop(Test::nonzero(&self.number), |body| {
            body.root().fill(&self.number, 0)?.then().fill(&self.result, value)
        });
        let rounds = rounds.unwrap();
        (0..more).for_each(|_| drop(rounds.then().empty().unwrap()));
        graph
    }

    fn exec(&self, graph: &Graph, fallback: Fallback) -> HostLoopExec {
        graph.instantiate_with_fallback(fallback, InstantiateOptions::new().node_priorities()).unwrap()
    }

    fn run(&self, exec: &mut HostLoopExec) -> u32 {
        exec.run_blocking(&self.stream).unwrap();
        self.result.read_blocking(&self.stream).unwrap()[0]
    }
}

fn is_not_rebuilt(error: &Error) -> bool {
    matches!(error, Error::Exec(ExecError::NotRebuilt { .. }))
        && error.to_string().contains("CUDA_ERROR_OPERATING_SYSTEM")
}

#[test]
fn another_graph_takes_the_place_of_the_first() {
    let context = setup();
    no_leaks(|| {
        let lab = Lab::new(&context);
        let (first, second) = (lab.graph(1, 0), lab.graph(2, 0));
        let mut exec = lab.exec(&first, Fallback::HostLoopAlways);
        assert_eq!((lab.run(&mut exec), exec.counts().rounds), (1, 1));
        let found = exec.check_update(&second).unwrap();
        let why = exec.update_or_rebuild(&second).unwrap().unwrap();
        assert_eq!((why.reason, found), (RefusalReason::HostDecides, vec![why.clone()]));
        assert!(exec.is_on_host());
        assert_eq!((exec.counts().runs, exec.graph()), (0, Some(second)));
        assert_eq!(lab.run(&mut exec), 2);
        // The first graph can have another executable again.
        assert_eq!(lab.run(&mut lab.exec(&first, Fallback::HostLoopAlways)), 1);
    });
}

#[test]
fn the_device_updates_or_makes_another_one() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let lab = Lab::new(&context);
        let (first, alike, longer) = (lab.graph(1, 0), lab.graph(2, 0), lab.graph(3, 2));
        let mut exec = lab.exec(&first, Fallback::HostLoop);
        assert_eq!(lab.run(&mut exec), 1);
        assert_eq!(exec.check_update(&alike).unwrap(), []);
        assert_eq!(exec.update_or_rebuild(&alike).unwrap(), None);
        assert_eq!((lab.run(&mut exec), exec.graph()), (2, Some(first)));
        let found = exec.check_update(&longer).unwrap();
        let why = exec.update_or_rebuild(&longer).unwrap().unwrap();
        assert_eq!(why.reason, RefusalReason::Topology);
        assert!(found.contains(&why), "{found:?}");
        assert_eq!((lab.run(&mut exec), exec.is_on_host(), exec.graph()), (3, false, Some(longer)));
    });
}

#[test]
fn the_only_executable_of_a_graph_is_given_up_first() {
    let context = setup();
    no_leaks(|| {
        let lab = Lab::new(&context);
        let graph = lab.graph(1, 0);
        let result = graph.param(&lab.result).unwrap();
        let mut exec = lab.exec(&graph, Fallback::HostLoopAlways);
        assert_eq!(lab.run(&mut exec), 1);
        graph.root().empty().unwrap();
        let why = exec.update_or_rebuild(&graph).unwrap().unwrap();
        assert_eq!(lab.run(&mut exec), 1);
        let injection = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        exec.update_or_rebuild(&graph).unwrap_err();
        assert!(injection.hit());
        drop(injection);
        let stream = &lab.stream;
        assert!(is_not_rebuilt(&exec.run_blocking(stream).unwrap_err()));
        assert!(is_not_rebuilt(&exec.run_blocking_with(stream, ((&result, &lab.result),)).unwrap_err()));
        assert!(is_not_rebuilt(&exec.set(&result, &lab.result).unwrap_err()));
        assert!(is_not_rebuilt(&exec.update(&graph).unwrap_err()));
        assert!(is_not_rebuilt(&exec.check_update(&graph).unwrap_err()));
        assert!(!exec.is_on_host());
        // Meanwhile the graph can have another one.
        drop(lab.exec(&graph, Fallback::HostLoopAlways));
        assert_eq!(exec.update_or_rebuild(&graph).unwrap(), Some(why));
        assert!(exec.is_on_host());
        assert_eq!(lab.run(&mut exec), 1);
    });
}

#[test]
fn a_failure_leaves_the_executable_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let lab = Lab::new(&context);
        let (graph, new) = (lab.graph(1, 0), lab.graph(2, 0));
        let mut exec = lab.exec(&graph, Fallback::HostLoopAlways);
        for call in [Call::cuGraphCreate, Call::cuGraphInstantiateWithParams] {
            let injection = fail(call, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
            exec.update_or_rebuild(&new).unwrap_err();
            assert!(injection.hit());
            drop(injection);
            assert_eq!((lab.run(&mut exec), exec.graph()), (1, Some(graph.clone())));
        }
        let outer = lab.context.graph().unwrap();
        let plain = lab.context.graph().unwrap();
        let child = outer.root().child(&plain).unwrap().embedded().unwrap();
        let embedded = exec.update_or_rebuild(&child).unwrap_err();
        assert!(matches!(embedded, Error::Embed(EmbedError::Embedded { .. })), "{embedded}");
        assert_eq!(lab.run(&mut exec), 1);
    });
}

#[test]
fn the_first_run_waits_for_what_a_failed_run_left() {
    let context = setup();
    no_leaks(|| {
        let lab = Lab::new(&context);
        let mut exec = lab.exec(&lab.graph(1, 0), Fallback::HostLoopAlways);
        lab.run(&mut exec);
        let gate = Gate::close(&lab.stream);
        let failing = fail(Call::cuStreamSynchronize, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        exec.run_blocking(&lab.stream).unwrap_err();
        drop(failing);
        exec.update_or_rebuild(&lab.graph(2, 0)).unwrap().unwrap();
        gate.open();
        let other = context.stream().unwrap();
        let (outcome, cost) = count(|| exec.run_blocking(&other));
        outcome.unwrap();
        assert_eq!(cost.calls("cuStreamWaitEvent"), 1, "{cost}");
        assert_eq!(lab.result.read_blocking(&other).unwrap(), [2; LEN]);
    });
}
