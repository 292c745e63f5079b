//! Nodes that parameters have disabled, after an update from a graph without parameters.

use cuda_graph::ContextExt;
use cuda_launch::{kernel, per};
use cuda_tests::{SMALL, no_leaks, setup};

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in cuda_handles::Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

#[test]
fn nodes_that_parameters_have_disabled_stay_so() {
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
        assert!(exec.update(&other).unwrap().is_updated());
        assert!(!exec.node(&launch).is_enabled().unwrap());
        exec.launch(&stream).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap(), [0; 8]);
        assert_eq!(y.read_blocking(&stream).unwrap(), [0; 8], "the fill stays disabled as the kernel does");
    });
}
