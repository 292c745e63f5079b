//! The fault sweep over the crate: each driver call of these scenarios fails in turn.

use cuda_graph::{ContextExt, Error};
use cuda_launch::{params, per};
use cuda_tests::{kernel, setup, sweep, used_stream};

#[test]
fn drawing_running_and_dropping() {
    let context = setup();
    let increment = kernel(&context, "increment");
    let (home, other) = (used_stream(&context), used_stream(&context));
    let cases = sweep("drawing, running and dropping", || -> Result<(), Error> {
        let graph = context.graph()?;
        let (from, to) = (home.zeros::<u32>(8)?, home.zeros::<u32>(8)?);
        let fill = graph.root().fill(&from, 1)?;
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let launch = unsafe { fill.then().launch_untyped(&increment, per(8, 8), params![&from, 8_u32]) }?;
        let copy = launch.then().copy(&from, &to)?;
        let loose = graph.root().empty()?;
        graph.add_edge(&loose, &copy)?;
        graph.remove_edge(&loose, &copy)?;
        loose.remove()?;
        let mut exec = graph.instantiate()?;
        exec.upload(&home)?;
        exec.launch(&other)?;
        drop(graph);
        assert_eq!(to.read_blocking(&other)?, [2; 8]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}
