//! Kernel nodes that are not what was asked for, by two failing driver calls or by other code: the
//! table says what the driver has.

use core::ptr;

use cuda_graph::{ContextExt, Error, Finding, Graph, KernelNode};
use cuda_handles::{Buffer, Context, Image, Kernel, Stream};
use cuda_launch::{LaunchConfig, kernel, params, per};
use cuda_sys::{CUDA_KERNEL_NODE_PARAMS_v2, CUgraph, CUgraphNode, CUresult, Call};
use cuda_tests::{SMALL, fail, fail_any, kernel, needs, no_leaks, raw, setup};

use crate::common::other;
use crate::nodes::kernels::all;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n, cluster.x == 2;
}

const CODE: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

/// Kernels with many parameters, with one, and with none, and memory for them.
struct Launches {
    kernels: [Kernel; 3],
    buffer: Buffer<u32>,
    stream: Stream,
}

/// A kernel by number, and how it is launched.
type Launch = (usize, LaunchConfig);

impl Launches {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        stream.synchronize_blocking().unwrap();
        Self { kernels: ["many16", "neighbour", "empty"].map(|name| kernel(context, name)), buffer, stream }
    }

    fn set(&self, node: &KernelNode, (which, config): Launch) -> Result<(), Error> {
        let (kernel, at) = (&self.kernels[which], &self.buffer);
        // SAFETY: the arguments are those of the kernels, and nothing of this is run.
        unsafe {
            match which {
                0 => node.set_untyped(
                    kernel,
                    config,
                    params![
                        at, 1_u8, 2_u16, 3_u32, 4_u64, 5_u8, 6_u16, 7_u32, 8_u64, 9_u8, 10_u16, 11_u32,
                        12_u64, 13_u8, 14_u16, 15_u32
                    ],
                ),
                1 => node.set_untyped(kernel, config, params![at]),
                _ => node.set_untyped(kernel, config, params![]),
            }
        }
    }

    /// A node with a launch.
    fn add(&self, graph: &Graph, launch: Launch) -> KernelNode {
        // SAFETY: the kernel has no parameters and does nothing.
        let node = unsafe { graph.root().launch_untyped(&self.kernels[2], per(1, 1), params![]) }.unwrap();
        self.set(&node, launch).unwrap();
        node
    }

    /// Complains if a node's row is not what the driver has.
    fn agrees(&self, node: &KernelNode, what: &str) {
        let (seen, config) = (raw::kernel(node.as_raw().unwrap()), node.config().unwrap());
        assert!(node.kernel().unwrap().as_raw() == seen.kern, "{what}: the kernel");
        assert_eq!(config.grid(), (seen.gridDimX, seen.gridDimY, seen.gridDimZ).into(), "{what}");
        assert_eq!(config.block(), (seen.blockDimX, seen.blockDimY, seen.blockDimZ).into(), "{what}");
        // A new node with this configuration has the attributes that this one has.
        let graph = node.graph().context().graph().unwrap();
        let plain = LaunchConfig::new(config.grid(), config.block());
        let other = self.add(&graph, (2, plain.attributes_of(&config)));
        assert_eq!(all(node), all(&other), "{what}: {config}");
    }
}

/// What the driver says of a kernel node.
fn seen(node: &KernelNode) -> String {
    let params = raw::kernel(node.as_raw().unwrap());
    format!("{:?} {} {} {:?}", params.kern, params.gridDimX, params.blockDimX, all(node))
}

#[test]
fn after_two_failures_of_a_set_the_row_is_what_the_driver_has() {
    let context = setup();
    needs!(LaunchAttributes, ParameterLayouts, Carveouts);
    no_leaks(|| {
        let launches = Launches::new(&context);
        let changes: [(Launch, Launch); 6] = [
            ((0, per(1, 32).priority(-1)), (1, per(1, 32).priority(-2))),
            ((1, per(1, 32).priority(-1)), (0, LaunchConfig::new(2, 64).cluster(2).shared_carveout(50))),
            ((2, LaunchConfig::new(8, 32).cluster(4).priority(-1)), (2, LaunchConfig::new(9, 32).cluster(3))),
            ((2, LaunchConfig::new(8, 32).cluster(4).cooperative()), (1, LaunchConfig::new(7, 16))),
            (
                (1, LaunchConfig::new(8, 32)),
                (0, LaunchConfig::new(6, 32).cooperative().cluster(2).priority(-3)),
            ),
            (
                (0, per(1, 32).memory_sync_domain_map(0, 1)),
                (2, LaunchConfig::new(4, 8).cluster(2).priority(-1)),
            ),
        ];
        let mut half_done = 0;
        for (case, (old, new)) in changes.into_iter().enumerate() {
            for first in 1.. {
                let mut hit = false;
                for second in first.. {
                    let what = format!("change {case}, calls {first} and {second}");
                    let graph = context.graph().unwrap();
                    let node = launches.add(&graph, old);
                    let before = (seen(&node), node.config().unwrap());
                    let (one, two) = (fail_any(first, CODE), fail_any(second, CODE));
                    let outcome = launches.set(&node, new);
                    let hits = (one.hit(), two.hit());
                    drop((one, two));
                    hit |= hits.0;
                    launches.agrees(&node, &what);
                    match &outcome {
                        Ok(()) => assert_eq!(node.config().unwrap(), new.1, "{what}"),
                        Err(Error::HalfDone(half)) => {
                            half_done += 1;
                            assert_ne!(seen(&node), before.0, "{what}: {half}");
                        }
                        Err(_) => assert_eq!((seen(&node), node.config().unwrap()), before, "{what}"),
                    }
                    if outcome.is_err() {
                        // It can be set as any other, forth and back, by any number of calls.
                        launches.set(&node, new).unwrap();
                        launches.agrees(&node, &what);
                        graph.instantiate().unwrap();
                        launches.set(&node, old).unwrap();
                        launches.agrees(&node, &what);
                    }
                    if !hits.1 {
                        break;
                    }
                }
                if !hit {
                    break;
                }
            }
        }
        assert!(half_done >= 20, "{half_done}");
        launches.stream.synchronize_blocking().unwrap();
    });
}

/// Other code adds a kernel node as another one is.
fn add_like(graph: CUgraph, params: CUDA_KERNEL_NODE_PARAMS_v2) -> CUgraphNode {
    let params = CUDA_KERNEL_NODE_PARAMS_v2 { func: ptr::null_mut(), ..params };
    let mut node = ptr::null_mut();
    // SAFETY: the graph is live, the parameters are those of a live node, and the out pointer is
    // valid.
    raw::ok(unsafe {
        raw::driver().cuGraphAddKernelNode(&raw mut node, graph, ptr::null(), 0, &raw const params)
    });
    node
}

/// Other code gives its node another kernel.
fn set_like(node: CUgraphNode, params: CUDA_KERNEL_NODE_PARAMS_v2) {
    let params = CUDA_KERNEL_NODE_PARAMS_v2 { func: ptr::null_mut(), ..params };
    // SAFETY: the node is live, and the parameters are those of a live node.
    raw::ok(unsafe { raw::driver().cuGraphKernelNodeSetParams(node, &raw const params) });
}

#[test]
fn a_node_with_another_kernel_than_was_seen_is_read_as_what_it_is() {
    let context = setup();
    no_leaks(|| {
        let launches = Launches::new(&context);
        let maker = context.graph().unwrap();
        let many = raw::kernel(launches.add(&maker, (0, per(1, 32))).as_raw().unwrap());
        let one = raw::kernel(launches.add(&maker, (1, per(1, 32))).as_raw().unwrap());
        let with_attributes = (1, per(1, 32).priority(-2));
        for is_replaced in [false, true] {
            for is_refreshed in [false, true] {
                let foreign = other::graph();
                let theirs = add_like(foreign, many);
                // SAFETY: it is destroyed after every handle, and its kernels live as long.
                let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
                let node = KernelNode::try_from(graph.nodes().unwrap().remove(0)).unwrap();
                if is_replaced {
                    other::remove(theirs);
                    add_like(foreign, one);
                } else {
                    set_like(theirs, one);
                }
                if is_refreshed {
                    graph.refresh().unwrap();
                    assert!(node.is_removed());
                    let node = KernelNode::try_from(graph.nodes().unwrap().remove(0)).unwrap();
                    launches.agrees(&node, "refreshed");
                    launches.set(&node, with_attributes).unwrap();
                    graph.refresh().unwrap();
                    assert!(!node.is_removed());
                } else if raw::nodes(foreign) == [theirs] {
                    // No more arguments are read than there are.
                    launches.set(&node, with_attributes).unwrap();
                    launches.agrees(&node, "not refreshed");
                }
                drop((node, graph));
                other::destroy(foreign);
            }
        }
        launches.stream.synchronize_blocking().unwrap();
    });
}

/// The ways by which a graph's nodes come to run, or into other graphs.
fn refused(graph: &Graph) -> Vec<Error> {
    let report = graph.check().unwrap();
    assert!(matches!(report.findings(), [Finding::Incomplete { .. }]), "{report}");
    let other = graph.context().graph().unwrap();
    vec![
        graph.instantiate().map(drop).unwrap_err(),
        graph.clone_graph().map(drop).unwrap_err(),
        other.root().child(graph).map(drop).unwrap_err(),
    ]
}

#[test]
fn a_launch_without_what_its_kernel_relies_on_is_not_run() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(64).unwrap();
        let increment = increment::load(&context).unwrap();
        let right = LaunchConfig::new(2, 32).cluster(2);
        for is_removed in [false, true] {
            // A node that is new.
            let graph = context.graph().unwrap();
            let fails =
                (fail(Call::cuGraphKernelNodeSetAttribute, 1, CODE), fail(Call::cuGraphDestroyNode, 1, CODE));
            let error = graph.root().launch(&increment, right, (&buffer, 64)).unwrap_err();
            drop(fails);
            assert!(matches!(error, Error::HalfDone(_)), "{error}");
            let node = KernelNode::try_from(graph.nodes().unwrap().remove(0)).unwrap().named("lonely");
            for error in refused(&graph) {
                assert!(matches!(error, Error::Incomplete { .. }), "{error:?}");
                assert!(error.to_string().contains("`lonely`"), "{error}");
            }
            match is_removed {
                true => node.remove().unwrap(),
                false => node.set(&increment, right, (&buffer, 64)).unwrap(),
            }
            graph.instantiate().unwrap();
            graph.clone_graph().unwrap();
            // A node that had a launch.
            let graph = context.graph().unwrap();
            let node = graph.root().launch(&increment, right, (&buffer, 64)).unwrap();
            let fails = (
                fail(Call::cuGraphNodeSetParams, 1, CODE),
                // The first takes the cluster away, the second would give it back.
                fail(Call::cuGraphKernelNodeSetAttribute, 2, CODE),
            );
            let error = node.set(&increment, right.priority(-1), (&buffer, 64)).unwrap_err();
            drop(fails);
            assert!(matches!(error, Error::HalfDone(_)), "{error}");
            for error in refused(&graph) {
                assert!(matches!(error, Error::Incomplete { .. }), "{error:?}");
            }
            match is_removed {
                true => node.remove().unwrap(),
                false => node.set(&increment, right, (&buffer, 64)).unwrap(),
            }
            graph.instantiate().unwrap();
        }
        stream.synchronize_blocking().unwrap();
    });
}
