//! Nodes and edges of other code in graphs decided by the host.

use cuda_graph::{EdgeError, EdgeKind, Error, Fallback, Graph, InstantiateOptions, NodeAttributeKind, Test};
use cuda_launch::{LaunchConfig, MemorySyncDomain, per};
use cuda_sys::CUDA_KERNEL_NODE_PARAMS_v2;
use cuda_tests::{SMALL, needs, no_leaks, raw, setup};

use super::{By, Steps};
use crate::common::other;

const N: u32 = 8;

#[test]
fn nodes_of_other_code_run_before_and_after_a_loop() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let (number, values) = (steps.number(3), steps.stream.zeros::<u32>(N as usize).unwrap());
        let event = context.event().unwrap();
        steps.stream.synchronize_blocking().unwrap();
        let (foreign, driver) = (other::graph(), raw::driver());
        let mut module = core::ptr::null_mut();
        context
            .with_current(|| {
                let text = std::ffi::CString::new(SMALL).unwrap();
                let mut function = core::ptr::null_mut();
                let (mut address, mut count) = (values.address(), N);
                let mut arguments = [(&raw mut address).cast(), (&raw mut count).cast()];
                // SAFETY: the text and the name are C strings, the out pointers valid, and the
                // arguments are the kernel's.
                unsafe {
                    raw::ok(driver.cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
                    raw::ok(driver.cuModuleGetFunction(&raw mut function, module, c"increment".as_ptr()));
                    let params = CUDA_KERNEL_NODE_PARAMS_v2 {
                        func: function,
                        gridDimX: 1,
                        gridDimY: 1,
                        gridDimZ: 1,
                        blockDimX: N,
                        blockDimY: 1,
                        blockDimZ: 1,
                        kernelParams: arguments.as_mut_ptr(),
                        ..Default::default()
                    };
                    let (mut node, none) = (core::ptr::null_mut(), core::ptr::null());
                    raw::ok(driver.cuGraphAddKernelNode(&raw mut node, foreign, none, 0, &raw const params));
                    other::connect(foreign, node, other::host(foreign));
                    other::connect(foreign, node, other::record(foreign, &event));
                }
            })
            .unwrap();
        // SAFETY: the graph lives longer than the handles.
        let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
        let all = graph.nodes().unwrap();
        let rounds = graph.after_all(&all).unwrap();
        let rounds = rounds
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap();
        rounds.then().copy(values.slice(..1).unwrap(), &steps.runs).unwrap();
        let mut exec = steps.exec(&graph);
        exec.run_blocking(&steps.stream).unwrap();
        assert_eq!((values.read_blocking(&steps.stream).unwrap(), steps.counted()), (vec![1; N as usize], 1));
        assert_eq!(rounds.rounds_done_blocking(&steps.stream).unwrap(), 3);
        assert!(event.query().unwrap());
        drop((exec, rounds, all, graph));
        other::destroy(foreign);
        // SAFETY: nothing uses it any more.
        context.with_current(|| raw::ok(unsafe { driver.cuModuleUnload(module) })).unwrap();
    });
}

#[test]
fn edges_of_every_kind_are_those_of_the_graph() {
    let context = setup();
    needs!(EdgeKinds, Branches);
    no_leaks(|| {
        for by in [By::Device, By::Host] {
            let steps = Steps::new(&context, by);
            let (graph, number, tens) = (steps.graph(), steps.number(4), steps.number(0));
            let draw = |graph: &Graph| -> Result<(), Error> {
                let first = steps.count(&graph.root(), 1)?;
                let add = |at: cuda_graph::Frontier<'_>, to| at.launch(&steps.add, per(1, 1), (ONE_LESS, to));
                let second = add(first.then_with(cuda_graph::EdgeKind::Programmatic), number.as_slice())?;
                let after =
                    graph.after_all([(&*second, EdgeKind::Full), (&*first, EdgeKind::LaunchOrder)])?;
                // Not what the first one writes: its end is not waited for.
                after.launch(&steps.add, per(1, 1), (10, &tens)).map(drop)
            };
            let rounds = graph.root().while_loop(Test::nonzero(&number), |body| draw(body)).unwrap();
            let child = rounds.then().child(&steps.graph()).unwrap().embedded().unwrap();
            draw(&child).unwrap();
            assert_eq!(steps.run(&graph), 5);
            assert_eq!((steps.read(&number), steps.read(&tens)), (ONE_LESS, 50));
        }
    });
}

const ONE_LESS: u32 = super::ONE_LESS;

#[test]
fn a_cycle_that_other_code_made_is_told_by_its_nodes() {
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let graph = steps.graph();
        let before = steps.count(&graph.root(), 1).unwrap();
        let first = steps.count(&before.then(), 1).unwrap().named("first");
        let second = steps.count(&first.then(), 1).unwrap().named("second");
        let third = steps.count(&second.then(), 1).unwrap().named("third");
        steps.count(&third.then(), 1).unwrap();
        other::connect(graph.lend().unwrap(), third.as_raw().unwrap(), first.as_raw().unwrap());
        let options = InstantiateOptions::new();
        let error = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap_err();
        let Error::Edge(EdgeError::Cycle { path }) = &error else { panic!("{error}") };
        let begin = path.iter().position(|node| node == "first").unwrap();
        let names: Vec<&str> = path[begin..].iter().chain(&path[..begin]).map(String::as_str).collect();
        assert_eq!(names, ["first", "second", "third"], "{error}");
    });
}

#[test]
fn attributes_of_kernels_stay_with_them() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let (graph, number) = (steps.graph(), steps.number(1));
        let config = LaunchConfig::new(1, 1).priority(-1).memory_sync_domain(MemorySyncDomain::Remote);
        let kernel = graph.root().launch(&steps.add, config, (1, &steps.runs)).unwrap();
        kernel
            .then()
            .if_then(cuda_graph::Test::nonzero(&number), |body| steps.count(&body.root(), 10))
            .unwrap();
        let attributes = || {
            [NodeAttributeKind::Priority, NodeAttributeKind::MemorySyncDomain]
                .map(|kind| kernel.attribute(kind).unwrap())
        };
        let before = attributes();
        let options = InstantiateOptions::new().node_priorities();
        let mut exec = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap();
        assert_eq!(attributes(), before);
        exec.run_blocking(&steps.stream).unwrap();
        assert_eq!(steps.counted(), 11);
    });
}
