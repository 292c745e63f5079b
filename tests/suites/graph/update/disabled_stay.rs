//! Nodes that parameters have disabled, and updates from graphs without parameters.

use cuda_graph::{ContextExt, RefusalReason};
use cuda_launch::{kernel, per};
use cuda_tests::{SMALL, no_leaks, setup};

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in cuda_handles::Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

#[test]
fn a_fill_that_a_parameter_has_disabled_is_not_brought_back() {
    let context = setup();
    no_leaks(|| {
        let increment = increment::load(&context).unwrap();
        let stream = context.stream().unwrap();
        let [x, y] = [(); 2].map(|()| stream.zeros::<u32>(8).unwrap());
        let make = || {
            let graph = context.graph().unwrap();
            let launch = graph.root().launch(&increment, per(8, 8), (&x, 8)).unwrap();
            let fill = launch.then().fill(&y, 5).unwrap();
            (graph, launch, fill)
        };
        let (graph, launch, fill) = make();
        let on = graph.param(false).unwrap();
        launch.enabled_by(&on).unwrap();
        fill.enabled_by(&on).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let (other, ..) = make();
        // The driver knows the fill as enabled, and would bring it back.
        let refusal = super::whole::refused(exec.update(&other).unwrap());
        assert_eq!(refusal.reason, RefusalReason::Disabled, "{refusal}");
        assert_eq!(exec.check_update(&other).unwrap(), [refusal]);
        let read = || (x.read_blocking(&stream).unwrap()[0], y.read_blocking(&stream).unwrap()[0]);
        exec.launch(&stream).unwrap();
        assert_eq!(read(), (0, 0));
        exec.launch_with(&stream, ((&on, true),)).unwrap();
        assert_eq!(read(), (1, 5));
        assert!(exec.update(&other).unwrap().is_updated());
        exec.launch(&stream).unwrap();
        assert_eq!(read(), (2, 5));
        // A graph with a parameter for each takes over which nodes are disabled.
        let (other, launch, fill) = make();
        let on = other.param(false).unwrap();
        launch.enabled_by(&on).unwrap();
        fill.enabled_by(&on).unwrap();
        stream.fill(&y, 0).unwrap();
        assert!(exec.update(&other).unwrap().is_updated());
        exec.launch(&stream).unwrap();
        assert_eq!(read(), (2, 0));
    });
}
