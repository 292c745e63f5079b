//! Updates of whole executables in which a driver call fails: executable and graph are as before.

use cuda_graph::{ContextExt, Error, Graph, GraphExec, RefusalReason};
use cuda_handles::{Buffer, Stream};
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{fail, needs, no_leaks, settle, setup, sweep, used_stream};

use crate::capture::{N, add_to};
use crate::common::gone::{flag, soon};
use crate::conditions::branches_and_loops::{count_down, increment_by};

#[test]
fn updating_rebuilding_and_comparing() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let add = add_to::load(&context).unwrap();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("whole updates", || -> Result<(), Error> {
        let (one, two) = (home.zeros::<u32>(N)?, home.zeros::<u32>(N)?);
        let graph = context.graph()?;
        let fill = graph.root().fill(&one, 1)?;
        fill.then().launch(&add, per(1, 1), (1, &one))?;
        let new = context.graph()?;
        let new_fill = new.root().fill(&two, 2)?;
        let last = new_fill.then().launch(&add, per(1, 1), (2, &two))?;
        let mut exec = graph.instantiate()?;
        exec.launch(&other)?;
        assert!(exec.update(&new)?.is_updated());
        exec.node(&fill).set(&two, 3)?;
        exec.launch(&other)?;
        assert_eq!(two.read_blocking(&other)?[..2], [5, 3]);
        assert_eq!(exec.check_update(&graph)?, []);
        last.then().empty()?;
        assert_eq!(new.check_update(&graph)?.len(), 1);
        assert!(exec.update_or_rebuild(&new)?.is_some());
        exec.launch(&other)?;
        assert_eq!(two.read_blocking(&other)?[..2], [4, 2]);
        Ok(())
    });
    assert!(cases >= 80, "{cases}");
}

#[test]
fn updating_loops() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    needs!(Conditionals);
    let (down, count) = (count_down::load(&context).unwrap(), increment_by::load(&context).unwrap());
    let home = used_stream(&context);
    let build = |runs: &Buffer<u32>, rounds: u32| -> Result<Graph, Error> {
        let counter = home.zeros::<u32>(1)?;
        let graph = context.graph()?;
        let going = graph.condition_with_default(1)?;
        let node = graph.root().fill(&counter, rounds)?.then().while_node(&going)?;
        let counted = node.body()?.root().launch(&count, per(1, 1), (1, runs))?;
        counted.then().launch(&down, per(1, 1), (&counter, &going))?;
        Ok(graph)
    };
    sweep("whole updates of loops", || -> Result<(), Error> {
        let runs = home.zeros::<u32>(1)?;
        let (graph, new) = (build(&runs, 2)?, build(&runs, 3)?);
        let mut exec = graph.instantiate()?;
        assert!(exec.update(&new)?.is_updated());
        exec.launch(&home)?;
        assert!(exec.update(&graph)?.is_updated());
        exec.launch(&home)?;
        assert_eq!(runs.read_blocking(&home)?, [5]);
        Ok(())
    });
}

/// What a run writes into the first number.
fn run(exec: &mut GraphExec, stream: &Stream, number: &Buffer<u32>) -> u32 {
    stream.fill(number, 0).unwrap();
    exec.launch(stream).unwrap();
    number.read_blocking(stream).unwrap()[0]
}

#[test]
fn a_failed_update_leaves_everything_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let build = |amount, owner| {
            let graph = context.graph().unwrap();
            let node = graph.root().launch(&add, per(1, 1), (amount, &numbers)).unwrap();
            node.keep(owner).unwrap();
            (graph, node)
        };
        for code in [CUresult::CUDA_ERROR_OUT_OF_MEMORY, CUresult::CUDA_ERROR_UNKNOWN] {
            let ((old, old_is_gone), (owner, is_gone)) = (flag(), flag());
            let ((graph, node), (new, new_node)) = (build(1, old), build(10, owner));
            let mut exec = graph.instantiate().unwrap();
            exec.node(&node).set(&add, per(1, 1), (2, &numbers)).unwrap();
            node.remove().unwrap();
            settle();
            let injection = fail(Call::cuGraphExecUpdate, 1, code);
            exec.update(&new).unwrap_err();
            assert!(injection.hit());
            drop(injection);
            assert!(!old_is_gone());
            // Neither the graph nor the executable has anything of the update.
            new_node.remove().unwrap();
            assert!(soon(&is_gone), "{code:?}");
            assert_eq!(run(&mut exec, &stream, &numbers), 2);
            drop((exec, graph, new));
            assert!(soon(&old_is_gone));
        }
    });
}

#[test]
fn the_drivers_reasons_are_told_with_or_without_a_node() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 1).unwrap();
        let mut exec = graph.instantiate().unwrap();
        // As a driver does that has a rule of its own.
        for code in [CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CUresult::CUDA_ERROR_NOT_SUPPORTED] {
            let injection = fail(Call::cuGraphExecUpdate, 1, code);
            let update = exec.update(&graph).unwrap();
            assert!(injection.hit());
            drop(injection);
            let refusal = update.refusal().unwrap();
            assert_eq!((refusal.reason, refusal.node.as_deref()), (RefusalReason::Other, None));
            assert!(refusal.why.contains("cuGraphExecUpdate answered"), "{refusal}");
        }
        assert!(exec.update(&graph).unwrap().is_updated());
    });
}
