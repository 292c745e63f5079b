//! Graph parameters: each driver call of these scenarios fails in turn.

use cuda_graph::{ContextExt, Error};
use cuda_launch::{kernel, per};
use cuda_tests::{SMALL, needs, setup, sweep, used_stream};

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in cuda_handles::Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

#[test]
fn values_that_are_set_and_launched() {
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
