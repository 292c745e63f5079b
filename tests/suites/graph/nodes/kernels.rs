//! Kernel nodes: their whole launch, read, set and copied.

use cuda_graph::{
    AccessPolicyWindow, CacheUse, ClusterScheduling, Error, KernelNode, NodeAttribute, NodeAttributeKind,
    NodeError,
};
use cuda_handles::{Buffer, Context, Image};
use cuda_launch::{Dim, LaunchConfig, MemorySyncDomain, kernel, params, per};
use cuda_sys::{CUdevice_attribute, CUresult, Call};
use cuda_tests::{
    Kind, SMALL, SOON, alone, count, fail, kernel, live, needs, no_leaks, raw, settle, setup, until,
};

use crate::common::driver_view::Drawn;
use crate::common::same_as_stream::launched;
use crate::rollback::broken::assert_broken;

const N: u32 = 256;

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n, cluster.x <= 2;
}

fn add(graph: &Drawn, config: LaunchConfig, buffer: &Buffer<u32>) -> KernelNode {
    let increment = kernel(graph.context(), "increment");
    // SAFETY: the arguments are the kernel's, and the count is the buffer's.
    unsafe { graph.root().launch_untyped(&increment, config, params![buffer, N]) }.unwrap()
}

fn set(node: &KernelNode, config: LaunchConfig, buffer: &Buffer<u32>) -> Result<(), Error> {
    let increment = kernel(node.graph().context(), "increment");
    // SAFETY: as above.
    unsafe { node.set_untyped(&increment, config, params![buffer, N]) }
}

/// All attributes as the driver has them.
pub(crate) fn all(node: &KernelNode) -> Vec<NodeAttribute> {
    use NodeAttributeKind as Of;
    [
        Of::Cluster,
        Of::Cooperative,
        Of::Priority,
        Of::MemorySyncDomain,
        Of::MemorySyncDomainMap,
        Of::SharedCarveout,
        Of::AccessPolicyWindow,
        Of::ClusterScheduling,
    ]
    .into_iter()
    .map(|kind| node.attribute(kind).unwrap())
    .inspect(|attribute| assert!(all_kinds_agree(attribute)))
    .collect()
}

fn most_window(context: &Context) -> usize {
    let most = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
    context.device().attribute(most).unwrap().try_into().unwrap()
}

fn all_kinds_agree(attribute: &NodeAttribute) -> bool {
    format!("{attribute:?}").starts_with(&format!("{:?}", attribute.kind()))
}

fn plain() -> LaunchConfig {
    LaunchConfig::new(8, 32)
}

/// A graph with a node of the plain launch, and the buffer that it counts in.
struct Added {
    buffer: Buffer<u32>,
    graph: Drawn,
    node: KernelNode,
}

impl Added {
    fn new(context: &Context) -> Self {
        let buffer = context.stream().unwrap().zeros::<u32>(N as usize).unwrap();
        let graph = Drawn::new(context);
        let node = add(&graph, plain(), &buffer);
        Self { buffer, graph, node }
    }
}

fn runs(context: &Context, graph: &Drawn, buffer: &Buffer<u32>) {
    let stream = context.stream().unwrap();
    stream.fill(buffer, 0).unwrap();
    assert_eq!(launched(graph, &stream, buffer).unwrap(), [1; N as usize]);
}

#[test]
fn a_node_without_attributes_is_set_by_one_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (first, second) = (stream.zeros::<u32>(256).unwrap(), stream.zeros::<u32>(256).unwrap());
        let graph = Drawn::new(&context);
        let before = live().of(Kind::Allocation);
        let node = add(&graph, plain(), &first);
        let mut old = graph.instantiate().unwrap();
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        set(&node, per(256, 64), &second).unwrap_err();
        drop(injected);
        assert_eq!(node.config().unwrap(), plain());
        let loaded = kernel(&context, "increment");
        let (done, cost) = count(|| {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { node.set_untyped(&loaded, per(256, 64), params![&second, N]) }
        });
        done.unwrap();
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        assert_eq!(cost.heap_allocations(), 0, "{cost}");
        assert_eq!(node.config().unwrap(), per(256, 64));
        let seen = raw::kernel(raw::nodes(graph.raw)[0]);
        assert_eq!((seen.gridDimX, seen.blockDimX), (4, 64));
        runs(&context, &graph, &second);
        assert_eq!(first.read_blocking(&stream).unwrap(), [0; 256]);
        old.launch(&stream).unwrap();
        assert_eq!(first.read_blocking(&stream).unwrap(), [1; 256]);
        drop((first, old));
        assert!(until(SOON, || {
            settle();
            live().of(Kind::Allocation) == before - 1
        }));
    });
}

#[test]
fn another_kernel_with_other_arguments_is_set() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(256).unwrap();
        let (x, y) = (stream.upload(&[2.0_f32; 8]).unwrap(), stream.zeros::<f32>(8).unwrap());
        let graph = Drawn::new(&context);
        let node = add(&graph, plain(), &buffer);
        let saxpy = kernel(&context, "saxpy");
        // SAFETY: the arguments are the kernel's, and both buffers have 8 elements.
        unsafe { node.set_untyped(&saxpy, per(8, 32), params![8_u32, 2.0_f32, &x, &y]) }.unwrap();
        assert_eq!(node.kernel().unwrap(), saxpy);
        assert!(node.name().ends_with("saxpy"), "{}", node.name());
        assert!(node.describe().unwrap().starts_with("saxpy, grid"), "{}", node.describe().unwrap());
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap(), [4.0; 8]);
        // What the kernel does not take is refused without a call, and changes nothing.
        if saxpy.parameters().is_some() {
            let (refused, cost) = count(|| {
                // SAFETY: refused.
                unsafe { node.set_untyped(&saxpy, per(8, 32), params![8_u32]) }
            });
            assert!(matches!(refused, Err(Error::Launch(_))), "{refused:?}");
            cost.assert_calls(&[]);
        }
        node.remove().unwrap();
        assert!(matches!(set(&node, plain(), &buffer), Err(Error::Node(NodeError::Removed { .. }))));
    });
}

#[test]
fn typed_kernels_are_set_by_their_conditions() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let typed = increment::load(&context).unwrap();
        let (buffer, small) = (stream.zeros::<u32>(256).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = Drawn::new(&context);
        let node = graph.root().launch(&typed, plain(), (&buffer, N)).unwrap();
        node.set(&typed, plain().cluster(2), (&buffer, N)).unwrap();
        for refused in [
            node.set(&typed, plain().cluster(4), (&buffer, N)),
            node.set(&typed, plain().cluster(2), (&small, N)),
        ] {
            assert!(matches!(refused, Err(Error::Launch(_))), "{refused:?}");
        }
        // By itself, a cluster could be one that the kernel does not allow.
        for attribute in [NodeAttribute::Cluster(Some(Dim::from(4))), NodeAttribute::Cooperative(true)] {
            let (refused, cost) = count(|| node.set_attribute(attribute));
            assert!(matches!(refused, Err(Error::Node(NodeError::FixedAttribute { .. }))), "{refused:?}");
            cost.assert_calls(&[]);
        }
        assert_eq!(node.config().unwrap(), plain().cluster(2));
        runs(&context, &graph, &buffer);
    });
}

#[test]
fn attributes_are_those_of_the_last_launch_set() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let Added { buffer, graph, node } = Added::new(&context);
        let default = all(&node);
        let configs = [
            plain().cluster(4).priority(-1),
            // The cluster before does not divide this grid, nor this one the grid before.
            LaunchConfig::new(9, 32).cluster(3).memory_sync_domain(MemorySyncDomain::Remote),
            plain().cooperative(),
            LaunchConfig::new(12, 32).cluster((2, 1, 1)).cooperative().memory_sync_domain_map(1, 0),
            plain(),
        ];
        for config in configs {
            set(&node, config, &buffer).unwrap_or_else(|error| panic!("{config}: {error}"));
            assert_eq!(node.config().unwrap(), config);
            // The same as a node made so.
            let other = Drawn::new(&context);
            assert_eq!(all(&node), all(&add(&other, config, &buffer)), "{config}");
            runs(&context, &graph, &buffer);
        }
        assert_eq!(all(&node), default);
    });
}

#[test]
fn attributes_are_set_one_by_one_and_copied() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let Added { buffer, graph, node } = Added::new(&context);
        let mut attributes = vec![
            NodeAttribute::Priority(-1),
            NodeAttribute::MemorySyncDomain(MemorySyncDomain::Remote),
            NodeAttribute::MemorySyncDomainMap { default: 1, remote: 0 },
            NodeAttribute::ClusterScheduling(ClusterScheduling::Spread),
        ];
        if raw::driver().version() >= cuda_sys::Version::new(12, 5) {
            attributes.push(NodeAttribute::SharedCarveout(Some(50)));
        }
        let window = AccessPolicyWindow::of(&buffer, CacheUse::Streaming);
        if most_window(&context) >= window.bytes {
            attributes.push(NodeAttribute::AccessPolicyWindow(window));
        }
        for &attribute in &attributes {
            let before = node.attribute(attribute.kind()).unwrap();
            let injected = fail(Call::cuGraphKernelNodeSetAttribute, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
            let config = node.config().unwrap();
            node.set_attribute(attribute).unwrap_err();
            drop(injected);
            assert_eq!((node.attribute(attribute.kind()).unwrap(), node.config().unwrap()), (before, config));
            let (set, cost) = count(|| node.set_attribute(attribute));
            set.unwrap();
            assert_eq!(cost.calls("cuGraphKernelNodeSetAttribute"), 1, "{cost}");
            assert_eq!(node.attribute(attribute.kind()).unwrap(), attribute);
        }
        let config = node.config().unwrap();
        assert!(config.to_string().contains("priority -1"), "{config}");
        runs(&context, &graph, &buffer);

        // To a node of another graph, with other sizes.
        let elsewhere = Drawn::new(&context);
        let other = add(&elsewhere, per(256, 64), &buffer);
        let injected = fail(Call::cuGraphKernelNodeCopyAttributes, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        // SAFETY: the kernel has no clusters.
        unsafe { other.copy_attributes_from(&node) }.unwrap_err();
        drop(injected);
        assert_eq!(other.config().unwrap(), per(256, 64));
        // SAFETY: as above.
        let (copied, cost) = count(|| unsafe { other.copy_attributes_from(&node) });
        copied.unwrap();
        assert_eq!(cost.calls("cuGraphKernelNodeCopyAttributes"), 1, "{cost}");
        assert_eq!(all(&other), all(&node));
        assert_eq!(other.config().unwrap(), per(256, 64).attributes_of(&config));
        runs(&context, &elsewhere, &buffer);
        // In the same graph, from one that has none: they are gone.
        let bare = add(&graph, plain(), &buffer);
        // SAFETY: as above.
        unsafe { node.copy_attributes_from(&bare) }.unwrap();
        assert_eq!((all(&node), node.config().unwrap()), (all(&bare), plain()));
        // A cluster that does not divide the grid.
        let clustered = add(&elsewhere, LaunchConfig::new(9, 32).cluster(3), &buffer);
        // SAFETY: refused.
        let (refused, cost) = count(|| unsafe { bare.copy_attributes_from(&clustered) });
        assert!(matches!(refused, Err(Error::Launch(_))), "{refused:?}");
        cost.assert_calls(&[]);
        clustered.remove().unwrap();
        // SAFETY: refused.
        let refused = unsafe { bare.copy_attributes_from(&clustered) };
        assert!(matches!(refused, Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(
            clustered.attribute(NodeAttributeKind::Priority),
            Err(Error::Node(NodeError::Removed { .. }))
        ));
    });
}

#[test]
fn an_older_device_is_named_where_it_has_no_windows() {
    alone!("CUDA_SOFT_CAPABILITY" = "7.5", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let Added { buffer, node, graph: _graph } = Added::new(&context);
        let set = |window| node.set_attribute(NodeAttribute::AccessPolicyWindow(window));
        let text = set(AccessPolicyWindow::of(&buffer, CacheUse::Streaming)).unwrap_err().to_string();
        assert!(text.contains("compute capability 8.0 or higher; the device has 7.5"), "{text}");
        set(AccessPolicyWindow::default()).unwrap();
    });
}

#[test]
fn impossible_attributes_are_refused_before_the_driver() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let Added { buffer, node, graph: _graph } = Added::new(&context);
        let window = AccessPolicyWindow::of(&buffer, CacheUse::Streaming);
        let windows = [
            AccessPolicyWindow { hit_ratio: 1.5, ..window },
            AccessPolicyWindow { hit_ratio: f32::NAN, ..window },
            AccessPolicyWindow { miss: CacheUse::Persisting, ..window },
            AccessPolicyWindow { bytes: usize::MAX, ..window },
        ];
        let others = [
            NodeAttribute::SharedCarveout(Some(101)),
            NodeAttribute::MemorySyncDomainMap { default: 200, remote: 0 },
        ];
        let refused = windows.map(NodeAttribute::AccessPolicyWindow).into_iter().chain(others);
        for attribute in refused {
            let (refused, cost) = count(|| node.set_attribute(attribute));
            let error = refused.expect_err(&format!("{attribute:?}"));
            assert!(!error.to_string().contains("CUDA_ERROR"), "{error}");
            assert_eq!(cost.calls("cuGraphKernelNodeSetAttribute"), 0, "{cost}");
        }
        assert_eq!(node.config().unwrap(), plain());
    });
}

#[test]
fn a_launch_that_fails_on_its_way_changes_nothing_or_breaks_the_graph() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (buffer, other) = (stream.zeros::<u32>(256).unwrap(), stream.zeros::<u32>(256).unwrap());
        let graph = Drawn::new(&context);
        let old = plain().cluster(4).priority(-1);
        let new = LaunchConfig::new(9, 32).cluster(3).cooperative();
        let node = add(&graph, old, &buffer);
        let attributes = all(&node);
        let (_, cost) = count(|| set(&node, new, &other).unwrap());
        let sets = cost.calls("cuGraphKernelNodeSetAttribute");
        let may_undo = kernel(&context, "increment").parameters().is_some();
        let reads = u64::from(may_undo);
        assert_eq!(
            (cost.calls("cuGraphNodeSetParams"), cost.calls("cuGraphKernelNodeGetParams")),
            (1, reads)
        );
        set(&node, old, &buffer).unwrap();
        let steps = (1..=sets)
            .map(|number| (Call::cuGraphKernelNodeSetAttribute, number))
            .chain([(Call::cuGraphNodeSetParams, 1)])
            .chain((1..=reads).map(|number| (Call::cuGraphKernelNodeGetParams, number)));
        for (call, number) in steps {
            let injected = fail(call, number, CUresult::CUDA_ERROR_INVALID_VALUE);
            let error = set(&node, new, &other).unwrap_err();
            drop(injected);
            if !may_undo && matches!(error, Error::Broken(_)) {
                assert!(error.to_string().contains("does not tell"), "{error}");
                return;
            }
            assert!(matches!(error, Error::Handles(_)), "{call:?} {number}: {error}");
            assert_eq!((all(&node), node.config().unwrap()), (attributes.clone(), old), "{call:?} {number}");
            let seen = raw::kernel(raw::nodes(graph.raw)[0]);
            assert_eq!(seen.gridDimX, 8);
            runs(&context, &graph, &buffer);
            assert_eq!(other.read_blocking(&stream).unwrap(), [0; 256]);
        }
        // Neither forth nor back: the graph is broken, and keeps what both launches use.
        let before = live().of(Kind::Allocation);
        let forth = fail(Call::cuGraphKernelNodeSetAttribute, sets, CUresult::CUDA_ERROR_INVALID_VALUE);
        let back = fail(Call::cuGraphNodeSetParams, 2, CUresult::CUDA_ERROR_INVALID_VALUE);
        let error = set(&node, new, &other).unwrap_err();
        drop((forth, back));
        assert_broken(&graph, &error);
        assert_eq!(node.config().unwrap(), old);
        drop((buffer, other));
        settle();
        assert_eq!(live().of(Kind::Allocation), before);
        drop((node, graph));
        assert!(until(SOON, || {
            settle();
            live().of(Kind::Allocation) == before - 2
        }));
    });
}

#[test]
fn threads_that_set_one_node_leave_what_one_of_them_set() {
    const ROUNDS: usize = 200;
    const SETS: usize = 50;
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let Added { buffer, graph, node } = Added::new(&context);
        let (bare, clustered) = (plain(), LaunchConfig::new(9, 32).cluster(3));
        // Whoever comes last, the node has the attributes of its configuration, and no others.
        let expected = [bare, clustered, bare.priority(-1), clustered.priority(-1)].map(|config| {
            let other = Drawn::new(&context);
            (config, all(&add(&other, config, &buffer)))
        });
        let turn = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            let setting = [bare, clustered].map(|config| {
                let (node, turn, increment, buffer) = (&node, &turn, &increment, &buffer);
                scope.spawn(move || {
                    let round = |_| {
                        turn.wait();
                        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
                        let set = || unsafe { node.set_untyped(increment, config, params![buffer, N]) };
                        let refused = (0..SETS).filter(|_| set().is_err()).count();
                        turn.wait();
                        refused
                    };
                    (0..ROUNDS).map(round).sum::<usize>()
                })
            });
            let mut wrong = 0;
            for round in 0..ROUNDS {
                turn.wait();
                let set = (round % 2 == 0).then(|| node.set_attribute(NodeAttribute::Priority(-1)));
                turn.wait();
                let config = node.config().unwrap();
                let as_made = expected.iter().any(|known| *known == (config, all(&node)));
                wrong += usize::from(!as_made || set.is_some_and(|set| set.is_err()));
            }
            let refused = setting.map(|thread| thread.join().unwrap());
            assert_eq!(
                (wrong, refused),
                (0, [0, 0]),
                "rounds of {ROUNDS}: with parts of two launches, refused"
            );
        });
        runs(&context, &graph, &buffer);
    });
}

#[test]
fn access_policy_windows_are_set_read_copied_and_taken_off() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let Added { buffer, graph, node } = Added::new(&context);
        let other = add(&graph, plain(), &buffer);
        let most = most_window(&context);
        assert!(most >= 4096, "a device of capability 9.0 has windows");
        let kind = NodeAttributeKind::AccessPolicyWindow;
        let none = node.attribute(kind).unwrap();
        let whole = AccessPolicyWindow::of(&buffer, CacheUse::Persisting);
        let windows = [
            whole,
            AccessPolicyWindow { hit_ratio: 0.5, miss: CacheUse::Streaming, ..whole },
            AccessPolicyWindow { hit_ratio: 0.0, hit: CacheUse::Streaming, ..whole },
            // Nothing is accessed, so that it may reach past the memory.
            AccessPolicyWindow { bytes: most, hit: CacheUse::Normal, ..whole },
        ];
        for window in windows.map(NodeAttribute::AccessPolicyWindow) {
            node.set_attribute(window).unwrap();
            assert_eq!(node.attribute(kind).unwrap(), window);
            // SAFETY: the kernel has no clusters.
            unsafe { other.copy_attributes_from(&node) }.unwrap();
            assert_eq!(other.attribute(kind).unwrap(), window);
            let clone = graph.clone_graph().unwrap();
            let twin = clone.find_clone_of(&node).unwrap();
            assert_eq!(KernelNode::try_from(twin).unwrap().attribute(kind).unwrap(), window);
            // A launch that says nothing of windows leaves them.
            set(&node, plain().priority(-1), &buffer).unwrap();
            assert_eq!(node.attribute(kind).unwrap(), window);
        }
        let refused = [
            AccessPolicyWindow { bytes: most + 1, ..whole },
            AccessPolicyWindow { hit_ratio: -0.1, ..whole },
            AccessPolicyWindow { miss: CacheUse::Persisting, ..whole },
        ];
        let before = node.attribute(kind).unwrap();
        for window in refused {
            let error = node.set_attribute(NodeAttribute::AccessPolicyWindow(window)).unwrap_err();
            assert!(
                matches!(error, Error::Node(NodeError::AccessPolicyWindow { .. })),
                "{window:?}: {error}"
            );
            assert_eq!(node.attribute(kind).unwrap(), before);
        }
        other.remove().unwrap();
        runs(&context, &graph, &buffer);
        node.set_attribute(NodeAttribute::AccessPolicyWindow(AccessPolicyWindow::default())).unwrap();
        assert_eq!(node.attribute(kind).unwrap(), none);
        runs(&context, &graph, &buffer);
    });
}
