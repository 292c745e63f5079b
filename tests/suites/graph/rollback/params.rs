//! Graph parameters: each driver call of these scenarios fails in turn.

use cuda_graph::{ContextExt, Error, Fallback, InstantiateOptions, StreamExt, Test};
use cuda_launch::{kernel, per};
use cuda_sys::CUresult;
use cuda_tests::{SMALL, alone, fail_any, needs, no_leaks, settle, setup, sweep, used_stream};

use crate::common::gone::allocations;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in cuda_handles::Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

#[test]
fn values_that_are_set_and_launched() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let increment = increment::load(&context).unwrap();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("parameters", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (x, y) = (home.zeros::<u32>(8)?, home.zeros::<u32>(8)?);
        let (memory, value, on) = (graph.param(&x)?, graph.param(1_u32)?, graph.param(true)?);
        let fill = graph.root().fill(&memory, &value)?;
        let launch = fill.then().launch(&increment, per(memory.len(), 8), (&memory, memory.len()))?;
        launch.enabled_by(&on)?;
        launch.then().copy(&memory, &y)?;
        let mut exec = graph.instantiate()?;
        exec.launch(&other)?;
        let z = home.zeros::<u32>(8)?;
        exec.launch_with(&other, ((&memory, &z), (&value, 5)))?;
        assert_eq!(y.read_blocking(&other)?, [6; 8]);
        exec.launch_bound(&other, ((&memory, z.slice(..4)?), (&value, 7), (&on, false)))?;
        exec.launch_with(&home, ((&memory, z.slice(..0)?),))?;
        exec.launch_with(&home, ((&memory, &z), (&on, true)))?;
        exec.release();
        assert_eq!(y.read_blocking(&home)?, [8; 8]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn values_in_the_body_of_a_loop() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    needs!(Conditionals);
    let increment = increment::load(&context).unwrap();
    let home = used_stream(&context);
    let cases = sweep("parameters in a body", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (x, z) = (home.zeros::<u32>(8)?, home.zeros::<u32>(8)?);
        let memory = graph.param(&x)?;
        let condition = graph.condition_with_default(1)?;
        let branch = graph.root().if_node(&condition)?;
        branch.body()?.root().launch(&increment, per(memory.len(), 8), (&memory, memory.len()))?;
        let mut exec = graph.instantiate()?;
        exec.launch(&home)?;
        exec.launch_with(&home, ((&memory, &z),))?;
        assert_eq!(z.read_blocking(&home)?, [1; 8]);
        Ok(())
    });
    assert!(cases >= 30, "{cases}");
}

#[test]
fn every_place_of_a_parameter_is_added_and_cleared() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let increment = increment::load(&context).unwrap();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("places of parameters", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (x, y, event) = (home.zeros::<u32>(8)?, home.zeros::<u32>(8)?, context.event()?);
        let (memory, target) = (graph.param(&x)?, graph.param(&y)?);
        let (config, recorded) = (graph.param(per(8, 8))?, graph.param(&event)?);
        let clear = graph.root().clear(&memory)?;
        let launch = clear.then().launch(&increment, &config, (&memory, memory.len()))?;
        let copy = launch.then().copy(&memory, &target)?;
        copy.then().record(&recorded)?.then().wait(&recorded)?;
        let mut exec = graph.instantiate()?;
        exec.launch(&other)?;
        let (long, again) = (home.zeros::<u32>(16)?, context.event()?);
        let values = ((&memory, &long), (&target, &long), (&recorded, &again), (&config, per(8, 4)));
        assert!(exec.launch_with(&other, values).is_err(), "a copy onto itself");
        let wide = home.zeros::<u32>(16)?;
        exec.launch_with(&other, ((&target, &wide),))?;
        exec.launch_with(&other, ((&memory, long.slice(..0)?), (&target, wide.slice(..0)?)))?;
        exec.launch_with(&other, ((&memory, &long), (&target, &wide)))?;
        exec.release();
        assert_eq!(wide.read_blocking(&other)?[..9], [1, 1, 1, 1, 1, 1, 1, 1, 0]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn values_of_captured_calls() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let increment = increment::load(&context).unwrap();
    let (stream, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("captured parameters", || -> Result<(), Error> {
        let (x, y, z) = (other.zeros::<u32>(8)?, other.zeros::<u32>(8)?, other.zeros::<u32>(8)?);
        other.synchronize_blocking()?;
        let capture = stream.graph_builder().begin()?;
        let (memory, value) = (capture.param(&x)?, capture.param(3_u32)?);
        let own = capture.stream().alloc::<u32>(8)?;
        capture.clear(&memory)?;
        capture.fill(&own, &value)?;
        capture.launch(&increment, per(memory.len(), 8), (&own, memory.len()))?;
        drop(own);
        capture.launch(&increment, per(memory.len(), 8), (&memory, memory.len()))?;
        capture.copy(&memory, &y)?;
        let mut exec = capture.end()?.instantiate()?;
        exec.launch(&other)?;
        exec.launch_with(&other, ((&memory, &z), (&value, 4)))?;
        exec.release();
        assert_eq!((y.read_blocking(&other)?, z.read_blocking(&other)?), (vec![1; 8], vec![1; 8]));
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

/// A branch and a fill of parameters, with other values, and other executables in place of the one.
fn hosted(fallback: Fallback) -> u64 {
    let context = setup();
    let home = used_stream(&context);
    sweep("parameters where the host decides", || -> Result<(), Error> {
        let (zero, target) = (home.zeros::<u32>(1)?, home.zeros::<u32>(8)?);
        let (one, other) = (home.upload(&[1_u32])?, home.zeros::<u32>(8)?);
        let graph = context.graph()?;
        let (tested, filled) = (graph.param(&zero)?, graph.param(&target)?);
        let (value, on) = (graph.param(5_u32)?, graph.param(true)?);
        let fill = graph.root().fill(&filled, &value)?;
        fill.enabled_by(&on)?;
        fill.then().if_then(Test::nonzero(&tested), |body| body.root().clear(&filled))?;
        let mut exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new())?;
        exec.run_blocking(&home)?;
        assert_eq!(target.read_blocking(&home)?, [5; 8]);
        exec.run_blocking_with(&home, ((&filled, &other), (&value, 6)))?;
        exec.set(&tested, &one)?;
        exec.set(&filled, &target)?;
        exec.run_blocking_with(&home, ((&on, false),))?;
        assert_eq!((target.read_blocking(&home)?, other.read_blocking(&home)?), (vec![0; 8], vec![6; 8]));
        exec.update_or_rebuild(&graph)?;
        exec.run_blocking(&home)?;
        assert_eq!(target.read_blocking(&home)?, [5; 8]);
        Ok(())
    })
}

#[test]
fn values_where_the_host_decides() {
    // The object that a failing call was to end stays, and other tests of the process would see it.
    alone!();
    let cases = hosted(Fallback::HostLoopAlways);
    assert!(cases >= 100, "{cases}");
}

#[test]
fn values_where_the_host_may_decide() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    alone!();
    drop(setup());
    needs!(Conditionals);
    let cases = hosted(Fallback::HostLoop);
    assert!(cases >= 60, "{cases}");
}

#[test]
fn after_each_failure_the_values_stay_set_and_the_next_launch_has_them() {
    let context = setup();
    no_leaks(|| {
        let increment = increment::load(&context).unwrap();
        let (stream, home) = (used_stream(&context), used_stream(&context));
        let (x, y) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = context.graph().unwrap();
        let (memory, target) = (graph.param(&x).unwrap(), graph.param(&y).unwrap());
        let (value, on) = (graph.param(0_u32).unwrap(), graph.param(true).unwrap());
        let fill = graph.root().fill(&memory, &value).unwrap();
        let launch = fill.then().launch(&increment, per(8, 8), (&memory, 8)).unwrap();
        launch.enabled_by(&on).unwrap();
        launch.then().copy(&memory, &target).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let fallback = Fallback::HostLoopAlways;
        let mut hosted = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
        for nth in 1.. {
            let before = allocations();
            let (with, is_on) = (nth as u32, nth % 2 == 0);
            let mut was_hit = false;
            for by_host in [false, true] {
                let scratch = home.zeros::<u32>(8).unwrap();
                stream.clear(&y).unwrap();
                stream.synchronize_blocking().unwrap();
                let values = ((&memory, &scratch), (&value, with), (&on, is_on));
                let injected = fail_any(nth, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
                let outcome = match by_host {
                    false => exec.launch_with(&stream, values),
                    true => hosted.run_blocking_with(&stream, values),
                };
                was_hit |= injected.hit();
                // A failure in a drop of a value is no failure of the call.
                assert!(outcome.is_ok() || injected.hit(), "failure {nth}: {outcome:?}");
                drop(injected);
                // The values are those that were set, and the nodes that were not updated are now.
                match by_host {
                    false => exec.launch(&stream).unwrap(),
                    true => hosted.run_blocking(&stream).unwrap(),
                }
                let expected = with + u32::from(is_on);
                assert_eq!(y.read_blocking(&stream).unwrap(), [expected; 8], "failure {nth}: {outcome:?}");
                match by_host {
                    false => exec.launch_with(&stream, ((&memory, &x),)).unwrap(),
                    true => hosted.run_blocking_with(&stream, ((&memory, &x),)).unwrap(),
                }
            }
            exec.release();
            stream.synchronize_blocking().unwrap();
            settle();
            assert_eq!(allocations(), before, "failure {nth}");
            if !was_hit {
                break;
            }
        }
    });
}
