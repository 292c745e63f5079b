//! Ready-made loops and branches on memory that is a parameter.

use cuda_graph::{
    ContextExt, Error, Fallback, Graph, GraphParam, HostLoopExec, InstantiateOptions, LoopError, ParamError,
    Result, Test,
};
use cuda_handles::{Buffer, Stream};
use cuda_launch::per;
use cuda_tests::{count, needs, no_leaks, setup};

use crate::capture::Bench;

fn first(stream: &Stream, memory: &Buffer<u32>) -> u32 {
    memory.read_blocking(stream).unwrap()[0]
}

fn word(stream: &Stream, value: u32) -> Buffer<u32> {
    stream.upload(&[value]).unwrap()
}

/// A loop that counts down to 0, and adds 1 for each round to a total.
fn counting(
    bench: &Bench,
    graph: &Graph,
    counter: &GraphParam<[u32]>,
    total: &GraphParam<[u32]>,
) -> Result<()> {
    graph.root().while_loop(Test::nonzero(counter), |body| {
        let down = body.root().launch(&bench.add, per(1, 1), (u32::MAX, counter))?;
        down.then().launch(&bench.add, per(1, 1), (1, total))
    })?;
    Ok(())
}

#[test]
fn one_loop_serves_many_counters() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let graph = context.graph().unwrap();
        let counters: Vec<_> = (0..20).map(|rounds| word(stream, rounds)).collect();
        let totals: Vec<_> = (0..20).map(|_| word(stream, 100)).collect();
        let counter = graph.param(&counters[0]).unwrap();
        let total = graph.param(&totals[0]).unwrap();
        counting(&bench, &graph, &counter, &total).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for at in 0..20 {
            exec.launch_with(stream, ((&counter, &counters[at]), (&total, &totals[at]))).unwrap();
        }
        for (rounds, (counter, total)) in (0..).zip(counters.iter().zip(&totals)) {
            assert_eq!((first(stream, counter), first(stream, total)), (0, 100 + rounds));
        }
        // Two kernels of the library decide, and one kernel counts.
        let other = word(stream, 3);
        let ((), calls) = count(|| exec.launch_with(stream, ((&counter, &other),)).unwrap());
        calls.assert_calls(&[("cuGraphExecNodeSetParams", 3), ("cuGraphLaunch", 1)]);
        assert_eq!((first(stream, &other), first(stream, &totals[19])), (0, 122));
    });
}

#[test]
fn loops_that_run_once_and_branches_test_what_was_set() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let graph = context.graph().unwrap();
        let (left, level, result) = (word(stream, 2), word(stream, 5), word(stream, 0));
        let (counter, tested) = (graph.param(&left).unwrap(), graph.param(&level).unwrap());
        let repeated = graph
            .root()
            .do_while_loop(Test::nonzero(&counter).limit(10), |body| {
                let down = body.root().launch(&bench.add, per(1, 1), (u32::MAX, &counter))?;
                down.then().launch(&bench.add, per(1, 1), (1, &result))
            })
            .unwrap();
        repeated
            .then()
            .if_then(Test::at_least(&tested, 5_u32), |body| {
                body.root().launch(&bench.add, per(1, 1), (1_000, &result))
            })
            .unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!((first(stream, &left), first(stream, &result)), (0, 1_002));
        let (more, low) = (word(stream, 4), word(stream, 4));
        exec.launch_with(stream, ((&counter, &more), (&tested, &low))).unwrap();
        assert_eq!((first(stream, &more), first(stream, &result)), (0, 1_006));
        assert_eq!(repeated.rounds_done_blocking(stream).unwrap(), 4);
        let (endless, high) = (word(stream, 400), word(stream, 6));
        exec.launch_with(stream, ((&counter, &endless), (&tested, &high))).unwrap();
        assert_eq!((first(stream, &endless), first(stream, &result)), (390, 2_016));
    });
}

#[test]
fn memory_without_a_number_and_parameters_of_others_are_refused() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (graph, other) = (context.graph().unwrap(), context.graph().unwrap());
        let (counters, totals) = (word(stream, 2), word(stream, 0));
        let (counter, total) = (graph.param(&counters).unwrap(), graph.param(&totals).unwrap());
        let foreign = other.param(&counters).unwrap();
        let refused = graph.root().while_loop(Test::nonzero(&foreign), |_| Ok::<_, Error>(())).unwrap_err();
        assert_eq!(refused, Error::Param(ParamError::Foreign));
        assert_eq!(graph.len().unwrap(), 0);
        counting(&bench, &graph, &counter, &total).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let nothing = exec.launch_with(stream, ((&counter, counters.slice(..0).unwrap()),)).unwrap_err();
        assert_eq!(nothing, Error::Loop(LoopError::NothingToTest));
        exec.launch_with(stream, ((&counter, &counters),)).unwrap();
        assert_eq!((first(stream, &counters), first(stream, &totals)), (0, 2));
    });
}

fn on_host(graph: &Graph, fallback: Fallback) -> HostLoopExec {
    graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap()
}

#[test]
fn the_host_decides_by_what_was_set() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let graph = context.graph().unwrap();
        let counters: Vec<_> = (0..5).map(|rounds| word(stream, rounds)).collect();
        let totals: Vec<_> = (0..5).map(|_| word(stream, 100)).collect();
        let (counter, total) = (graph.param(&counters[2]).unwrap(), graph.param(&totals[2]).unwrap());
        counting(&bench, &graph, &counter, &total).unwrap();
        for fallback in [Fallback::HostLoopAlways, Fallback::HostLoop] {
            let mut exec = on_host(&graph, fallback);
            for at in 0..5 {
                stream.write(&counters[at], &[at as u32]).unwrap();
                let values = ((&counter, &counters[at]), (&total, &totals[at]));
                exec.run_blocking_with(stream, values).unwrap();
            }
            let empty = counters[0].slice(..0).unwrap();
            let nothing = exec.run_blocking_with(stream, ((&counter, empty),)).unwrap_err();
            assert_eq!(nothing, Error::Loop(LoopError::NothingToTest));
            exec.set(&counter, &counters[0]).unwrap();
            exec.run_blocking(stream).unwrap();
        }
        for (rounds, (counter, total)) in (0..).zip(counters.iter().zip(&totals)) {
            assert_eq!((first(stream, counter), first(stream, total)), (0, 100 + 2 * rounds));
        }
    });
}
