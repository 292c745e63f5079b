//! Kernel nodes of kernels declared as `unsafe fn`, and variables of libraries.

use cuda_graph::{ContextExt, Error};
use cuda_handles::Image;
use cuda_launch::{kernel, per};
use cuda_tests::{Kind, SMALL, count, live, no_leaks, settle, setup};

kernel! {
    // SAFETY: `increment` touches the first `n` elements, and as many as it has threads;
    // `offset_copy` the first `n` of both.
    unsafe in Image::Ptx(SMALL);

    /// # Safety
    /// There are as many threads as elements, or fewer.
    unsafe fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
    unsafe fn offset_copy(from: In<u32>, to: Out<u32>, add: u32, n: u32) where from.len() >= n, to.len() >= n;
}

mod variables {
    cuda_launch::kernel! {
        // SAFETY: `weigh` touches the first `n` elements of its argument and the variable, and
        // trusts nothing in them.
        unsafe in "../../../kernels/variables.ptx";
        pub(crate) struct Weighing;
        pub(crate) static weights: [f32; 16];
        pub(crate) fn weigh(n: u32, values: InOut<f32>) where values.len() >= n;
    }
}

#[test]
fn a_typed_node_of_an_unsafe_kernel_computes_and_keeps_its_arguments() {
    let context = setup();
    no_leaks(|| {
        let (increment, stream) = (increment::load(&context).unwrap(), context.stream().unwrap());
        let (buffer, graph) = (stream.upload(&[1_u32; 8]).unwrap(), context.graph().unwrap());
        // SAFETY: there are as many threads as elements.
        let (node, cost) =
            count(|| unsafe { graph.root().launch_unchecked(&increment, per(8, 8), (&buffer, 8)) });
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        let node = node.unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [2; 8]);
        // Another kernel with other arguments.
        let (offset_copy, out) = (offset_copy::load(&context).unwrap(), stream.zeros::<u32>(8).unwrap());
        // SAFETY: as above.
        let (set, cost) =
            count(|| unsafe { node.set_unchecked(&offset_copy, per(8, 8), (&buffer, &out, 10, 8)) });
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        set.unwrap();
        drop((buffer, exec, increment, offset_copy));
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), [12; 8]);
    });
}

#[test]
fn its_conditions_are_checked_all_the_same() {
    let context = setup();
    no_leaks(|| {
        let (increment, stream) = (increment::load(&context).unwrap(), context.stream().unwrap());
        let (buffer, graph) = (stream.zeros::<u32>(8).unwrap(), context.graph().unwrap());
        // SAFETY: it is refused.
        let (outcome, cost) =
            count(|| unsafe { graph.root().launch_unchecked(&increment, per(9, 9), (&buffer, 9)) });
        cost.assert_calls(&[]);
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Launch(cuda_launch::Error::Condition(_))), "{error:?}");
        // SAFETY: there are as many threads as elements.
        let node = unsafe { graph.root().launch_unchecked(&increment, per(8, 8), (&buffer, 8)) }.unwrap();
        // SAFETY: it is refused.
        let error = unsafe { node.set_unchecked(&increment, per(9, 9), (&buffer, 9)) }.unwrap_err();
        assert!(error.to_string().contains("values.len() >= n"), "{error}");
        let copies = offset_copy::load(&context).unwrap();
        // SAFETY: it is refused.
        let overlap = unsafe { graph.root().launch_unchecked(&copies, per(8, 8), (&buffer, &buffer, 1, 8)) };
        assert!(matches!(overlap, Err(Error::Launch(cuda_launch::Error::Overlap(_)))), "{overlap:?}");
        assert_eq!(graph.nodes().unwrap().len(), 1);
    });
}

#[test]
fn variables_are_memory_of_nodes() {
    let context = setup();
    no_leaks(|| {
        let before = live().of(Kind::Library);
        let (kernels, stream) = (variables::Weighing::load(&context).unwrap(), context.stream().unwrap());
        let (new, values) = (stream.upload(&[3.0_f32; 16]).unwrap(), stream.upload(&[1.0_f32; 16]).unwrap());
        let graph = context.graph().unwrap();
        let copy = graph.root().copy(&new, &kernels.weights).unwrap();
        let fill = copy.then().fill(kernels.weights.slice(8..).unwrap(), 5.0).unwrap();
        let weigh = fill.then().launch(&kernels.weigh, per(16, 16), (16, &values)).unwrap();
        // As an argument, and as the source of a copy.
        let again = weigh.then().launch(&kernels.weigh, per(16, 16), (16, &kernels.weights)).unwrap();
        again.then().copy(&kernels.weights, &new).unwrap();
        let report = graph.check().unwrap();
        assert!(report.is_clean(), "{report}");
        let mut exec = graph.instantiate().unwrap();
        drop((graph, kernels));
        settle();
        assert_eq!(live().of(Kind::Library), before + 1, "the executable keeps it");
        exec.launch(&stream).unwrap();
        let halves = |low: f32, high: f32| [[low; 8], [high; 8]].concat();
        assert_eq!(values.read_blocking(&stream).unwrap(), halves(3.0, 5.0));
        assert_eq!(new.read_blocking(&stream).unwrap(), halves(9.0, 25.0));
    });
}

#[test]
fn races_over_a_variable_are_found() {
    let context = setup();
    no_leaks(|| {
        let first = variables::weights::load(&context).unwrap();
        let second = variables::weights::load(&context).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&first, 1.0).unwrap().named("first");
        graph.root().fill(&second, 2.0).unwrap().named("second");
        let report = graph.check().unwrap();
        assert!(!report.is_clean() && report.to_string().contains("`second`"), "{report}");
    });
}
