//! The fault sweep over updates: each driver call fails in turn, and the executable, its owners and
//! its counts stay as they were.

use cuda_graph::{ContextExt, Error};
use cuda_handles::{Batch, reaper};
use cuda_launch::per;
use cuda_sys::CUresult;
use cuda_tests::{fail_any, no_leaks, settle, setup, sweep, used_stream};

use crate::capture::{N, add_to};
use crate::common::gone::allocations;

#[test]
fn updates_of_every_kind() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let add = add_to::load(&context).unwrap();
    let (home, other) = (used_stream(&context), used_stream(&context));
    let flags = context.pinned_zeros::<u32>(4).unwrap().share();
    let cases = sweep("updates of every kind", || -> Result<(), Error> {
        let (x, y) = (home.zeros::<u32>(N)?, home.zeros::<u32>(N)?);
        let inner = context.graph()?;
        inner.root().launch(&add, per(1, 1), (1, &x))?;
        let graph = context.graph()?;
        let mut batch = Batch::new();
        batch.write(&flags, 0, 1)?;
        let fill = graph.root().fill(&x, 1)?;
        let kernel = fill.then().launch(&add, per(1, 1), (1, &x))?;
        let copy = kernel.then().copy(&x, &y)?;
        let host = copy.then().host(|| ())?;
        let event = context.event()?;
        let record = host.then().record(&event)?;
        let wait = record.then().wait(&event)?;
        let writes = wait.then().batch(&batch)?;
        let child = writes.then().child(&inner)?;
        let mut exec = graph.instantiate()?;
        for _ in 0..2 {
            exec.launch(&other)?;
            let z = home.zeros::<u32>(N)?;
            exec.node(&fill).set(&z, 5)?;
            exec.node(&kernel).set(&add, per(1, 1), (10, &z))?;
            exec.node(&copy).set(&z, &y)?;
            exec.node(&host).set(|| ())?;
            exec.node(&record).set_event(&event)?;
            exec.node(&wait).set_event(&event)?;
            exec.node(&writes).set(&batch)?;
            exec.node(&child).set_graph(&inner)?;
            exec.node(&kernel).set_enabled(false)?;
            exec.node(&kernel).set_enabled(true)?;
        }
        exec.launch(&other)?;
        exec.release();
        assert_eq!(y.read_blocking(&other)?[0], 15);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn after_each_failure_the_executable_is_as_before() {
    let context = setup();
    no_leaks(|| {
        let add = add_to::load(&context).unwrap();
        let (stream, home) = (used_stream(&context), used_stream(&context));
        let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&x, 1).unwrap();
        let kernel = fill.then().launch(&add, per(1, 1), (1, &x)).unwrap();
        let copy = kernel.then().copy(&x, &y).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let mut expected = 2;
        for nth in 1.. {
            let before = allocations();
            let injected = fail_any(nth, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
            // Each call that may fail, on the way to a replay with other parameters.
            let mut done = 0;
            let mut change = || -> Result<(), Error> {
                exec.node(&kernel).set(&add, per(1, 1), (nth as u32, &x))?;
                done += 1;
                exec.node(&fill).set(&x, 100)?;
                done += 1;
                exec.node(&copy).set_enabled(true)?;
                done += 1;
                let passing = home.zeros::<u32>(N)?;
                exec.node(&copy).set(&x, &passing)?;
                done += 1;
                exec.launch(&stream)?;
                done += 1;
                Ok(())
            };
            let outcome = change();
            let is_over = injected.hit_call().is_none();
            drop(injected);
            if is_over {
                outcome.unwrap();
                break;
            }
            // Everything up to the failure holds, and nothing of what failed.
            let (amount, value) = (if done >= 1 { nth as u32 } else { 1 }, if done >= 2 { 100 } else { 1 });
            exec.node(&copy).set(&x, &y).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(y.read_blocking(&stream).unwrap()[0], value + amount, "failure {nth}: {outcome:?}");
            exec.release();
            settle();
            assert_eq!(allocations(), before, "failure {nth}: {outcome:?}");
            exec.node(&kernel).set(&add, per(1, 1), (1, &x)).unwrap();
            exec.node(&fill).set(&x, 1).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(y.read_blocking(&stream).unwrap()[0], expected);
            expected = 2;
        }
        reaper::drain();
    });
}
