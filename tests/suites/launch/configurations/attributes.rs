//! Launches with attributes.

use cuda_graph::ContextExt;
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Context, EventOptions, Kernel, Stream};
use cuda_launch::{
    Error, Launch, LaunchConfig, MemorySyncDomain, StreamConfig, Swizzle, Tiled, Trigger, params, per,
};
use cuda_sys::{CUgraphNode, CUlaunchAttributeID as Id, CUlaunchAttributeValue, Version};
use cuda_tests::{alone, count, is_soft, kernel, needs, no_leaks, raw, setup};

/// Configurations with every attribute that nodes have, for a grid of 8 blocks.
fn configs() -> Vec<LaunchConfig> {
    let plain = LaunchConfig::new(8, 32);
    let mut configs = vec![
        plain.cluster(1),
        plain.cluster((4, 1, 1)),
        plain.cooperative(),
        plain.priority(-99),
        plain.priority(0).cluster(8),
        plain.memory_sync_domain(MemorySyncDomain::Default),
        plain.memory_sync_domain(MemorySyncDomain::Remote),
        plain.memory_sync_domain_map(0, 1).memory_sync_domain(MemorySyncDomain::Remote),
    ];
    if raw::driver().version() >= Version::new(12, 5) {
        configs.push(plain.shared_carveout(50).cluster(2).cooperative().priority(0));
    }
    configs
}

fn launch<'e>(kernel: &Kernel, stream: &Stream, config: impl Into<StreamConfig<'e>>) -> Result<(), Error> {
    // SAFETY: the kernel does nothing.
    unsafe { kernel.launch(stream, config, params![]) }
}

/// Launches and expects a refusal without a driver call; returns its text.
fn refused<'e>(context: &Context, config: impl Into<StreamConfig<'e>>) -> String {
    let (empty, stream) = (kernel(context, "empty"), context.stream().unwrap());
    let (outcome, cost) = count(|| launch(&empty, &stream, config));
    assert_eq!(cost.calls("cuLaunchKernel") + cost.calls("cuLaunchKernelEx"), 0, "{cost}");
    let text = outcome.unwrap_err().to_string();
    stream.synchronize_blocking().unwrap();
    text
}

#[test]
fn every_attribute_is_one_extended_launch() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (increment, stream) = (kernel(&context, "increment"), context.stream().unwrap());
        let buffer = stream.zeros::<u32>(256).unwrap();
        let configs = configs();
        for &config in &configs {
            let (launched, cost) = count(|| {
                // SAFETY: the arguments are the kernel's, and the count is the buffer's.
                unsafe { increment.launch(&stream, config, params![&buffer, 256_u32]) }
            });
            launched.unwrap_or_else(|error| panic!("{config}: {error}"));
            assert_eq!((cost.calls("cuLaunchKernelEx"), cost.calls("cuLaunchKernel")), (1, 0), "{cost}");
            assert_eq!(cost.heap_allocations(), 0);
        }
        assert_eq!(buffer.read_blocking(&stream).unwrap(), vec![configs.len() as u32; 256]);
    });
}

fn node_attribute(node: CUgraphNode, id: Id) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue::default();
    // SAFETY: the node lives and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuGraphKernelNodeGetAttribute(node, id, &raw mut value) });
    value
}

fn only_node(graph: cuda_sys::CUgraph) -> CUgraphNode {
    let (mut node, mut count) = (core::ptr::null_mut(), 1);
    // SAFETY: the graph lives; there is room for one node.
    raw::ok(unsafe { raw::driver().cuGraphGetNodes(graph, &raw mut node, &raw mut count) });
    assert_eq!(count, 1);
    node
}

#[test]
fn nodes_get_every_attribute_that_they_can_have() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (increment, stream) = (kernel(&context, "increment"), context.stream().unwrap());
        let buffer = stream.zeros::<u32>(256).unwrap();
        for config in configs() {
            let graph = context.graph().unwrap();
            let raw_graph = cuda_tests::last_graph();
            let (added, cost) = count(|| {
                // SAFETY: the arguments are the kernel's, and the count is the buffer's.
                unsafe { graph.root().launch_untyped(&increment, config, params![&buffer, 256_u32]) }
            });
            let node = added.unwrap_or_else(|error| panic!("{config}: {error}"));
            let attributes = config.attributes();
            assert_eq!(cost.calls("cuGraphKernelNodeSetAttribute"), attributes.len() as u64, "{cost}");
            assert_eq!(node.config().unwrap(), config);
            for attribute in attributes.iter() {
                let found = node_attribute(only_node(raw_graph), attribute.id);
                // SAFETY: the attributes hold what their numbers say.
                unsafe {
                    match attribute.id {
                        Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                            assert_eq!(found.clusterDim, attribute.value.clusterDim);
                        }
                        Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => assert_eq!(found.cooperative, 1),
                        Id::CU_LAUNCH_ATTRIBUTE_PRIORITY => assert!(found.priority <= 0),
                        _ => {}
                    }
                }
            }
            graph.instantiate().unwrap().launch(&stream).unwrap();
            stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn clusters_are_checked_against_grid_and_kernel() {
    let context = setup();
    needs!(LaunchAttributes);
    let plain = LaunchConfig::new((8, 6), 32);
    let text = refused(&context, plain.cluster((3, 1)));
    assert!(
        text.contains("`empty`") && text.contains("(3, 1, 1) does not divide the grid (8, 6, 1)"),
        "{text}"
    );
    let text = refused(&context, plain.cluster((8, 2)));
    assert!(text.contains("has 16 blocks; the limit is 8"), "{text}");
    let text = refused(&context, plain.cluster((2, 0)));
    assert!(text.contains("has no blocks"), "{text}");
    let text = refused(&context, plain.cluster([u32::MAX; 3]));
    assert!(text.contains("the limit is 8"), "{text}");
}

#[test]
fn a_refused_attribute_leaves_the_graph_as_it_was() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let empty = kernel(&context, "empty");
        let graph = context.graph().unwrap();
        // One block for each thread of the device: more than can run at the same time.
        let large = LaunchConfig::new(1 << 20, 1024).cooperative();
        // SAFETY: the kernel does nothing.
        let added = unsafe { graph.root().launch_untyped(&empty, large, params![]) };
        let text = added.unwrap_err().to_string();
        assert!(text.contains("can run at once"), "{text}");
        // SAFETY: the kernel does nothing.
        unsafe { graph.root().launch_untyped(&empty, per(1, 1), params![]) }.unwrap();
        only_node(cuda_tests::last_graph());
        if raw::driver().version() >= Version::new(12, 8) {
            let preferred = LaunchConfig::new(8, 32).cluster(2).preferred_cluster(4);
            // SAFETY: the kernel does nothing.
            let added = unsafe { graph.root().launch_untyped(&empty, preferred, params![]) };
            let text = added.unwrap_err().to_string();
            assert!(text.contains("nodes of a graph cannot have one"), "{text}");
        }
    });
}

#[test]
fn other_attributes_are_checked() {
    let context = setup();
    needs!(LaunchAttributes);
    let plain = LaunchConfig::new(8, 32);
    let text = refused(&context, plain.memory_sync_domain_map(0, 200));
    assert!(text.contains("no domain 200") && text.contains("the device has 4"), "{text}");
    if raw::driver().version() >= Version::new(12, 8) {
        let text = refused(&context, plain.shared_carveout(101));
        assert!(text.contains("101 % is more than all"), "{text}");
        let text = refused(&context, plain.preferred_cluster(2));
        assert!(text.contains("a cluster to fall back on"), "{text}");
        let text = refused(&context, plain.cluster(4).preferred_cluster(6));
        assert!(text.contains("(6, 1, 1) is not a multiple of the cluster (4, 1, 1)"), "{text}");
        let (empty, stream) = (kernel(&context, "empty"), context.stream().unwrap());
        launch(&empty, &stream, plain.cluster(2).preferred_cluster(4)).unwrap();
        stream.synchronize_blocking().unwrap();
    }
}

#[test]
fn kernels_can_overlap_and_record_events_on_their_way() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (empty, stream) = (kernel(&context, "empty"), context.stream().unwrap());
        let untimed = EventOptions { timing: false, ..EventOptions::default() };
        let event = context.event_with(untimed).unwrap();
        let plain = per(64, 32);
        launch(&empty, &stream, plain).unwrap();
        launch(&empty, &stream, plain.programmatic_serialization()).unwrap();
        launch(
            &empty,
            &stream,
            plain.programmatic_event(&event, Trigger::BlockStart).programmatic_serialization(),
        )
        .unwrap();
        launch(&empty, &stream, plain.cluster(2).programmatic_event(&event, Trigger::Kernel)).unwrap();
        event.synchronize_blocking().unwrap();
        if raw::driver().version() >= Version::new(12, 3) {
            launch(&empty, &stream, plain.completion_event(&event)).unwrap();
            event.synchronize_blocking().unwrap();
        }
        stream.synchronize_blocking().unwrap();
        let timed = context.event().unwrap();
        let text = refused(&context, plain.programmatic_event(&timed, Trigger::Kernel));
        assert!(text.contains("`timing: false`"), "{text}");
    });
}

#[test]
fn a_launch_records_its_events_outside_of_captures() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (empty, stream) = (kernel(&context, "empty"), context.stream().unwrap());
        let untimed = EventOptions { timing: false, ..EventOptions::default() };
        let plain = per(64, 32);
        for completion in [false, true] {
            if completion && raw::driver().version() < Version::new(12, 3) {
                continue;
            }
            let event = context.event_with(untimed).unwrap();
            let capture = stream.begin_capture(CaptureMode::Relaxed).unwrap();
            stream.record(&event).unwrap();
            drop(capture);
            let config = match completion {
                true => plain.completion_event(&event),
                false => plain.programmatic_event(&event, Trigger::Kernel),
            };
            launch(&empty, &stream, config).unwrap();
            event.synchronize_blocking().unwrap();
            assert!(event.query().unwrap());
            let other = context.stream().unwrap();
            let capture = other.begin_capture(CaptureMode::Relaxed).unwrap();
            assert!(other.wait(&event).is_err(), "it was recorded elsewhere");
            capture.end().unwrap();
        }
    });
}

#[test]
fn a_captured_launch_keeps_attributes_and_arguments_but_has_no_events() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let (increment, stream) = (kernel(&context, "increment"), context.stream().unwrap());
        let event = context.event_with(EventOptions { timing: false, ..EventOptions::default() }).unwrap();
        let (buffer, empty) = (stream.zeros::<u32>(64).unwrap(), kernel(&context, "empty"));
        stream.synchronize_blocking().unwrap();
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let error =
            launch(&empty, &stream, per(1, 1).programmatic_event(&event, Trigger::Kernel)).unwrap_err();
        assert!(matches!(error, Error::Handles(cuda_handles::Error::Capturing { .. })), "{error:?}");
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { increment.launch(&capture, per(64, 32).cluster(2), params![&buffer, 64_u32]) }.unwrap();
        let captured = capture.end().unwrap();
        assert_eq!(captured.records.into_owners().len(), 2);
        let value =
            node_attribute(only_node(captured.graph.as_raw()), Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        // SAFETY: this is what the attribute holds.
        assert_eq!(unsafe { value.clusterDim.x }, 2);
    });
}

#[test]
fn an_older_device_is_named() {
    alone!("CUDA_SOFT_CAPABILITY" = "8.0", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let plain = LaunchConfig::new(8, 32);
    for text in [
        refused(&context, plain.cluster(2)),
        refused(&context, plain.memory_sync_domain(MemorySyncDomain::Remote)),
        refused(&context, plain.programmatic_serialization()),
    ] {
        assert!(text.contains("compute capability 9.0 or higher; the device has 8.0"), "{text}");
    }
}

#[test]
fn an_older_driver_is_named_with_both_versions() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_SOFT_CAPABILITY" = "9.0", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    assert!(is_soft());
    let plain = LaunchConfig::new(8, 32);
    let event = context.event_with(EventOptions { timing: false, ..EventOptions::default() }).unwrap();
    let text = refused(&context, plain.cluster(2).preferred_cluster(4));
    assert_eq!(text, "a preferred cluster needs a CUDA driver of version 12.8 or newer; this one is 12.2");
    let text = refused(&context, plain.completion_event(&event));
    assert!(text.contains("12.3") && text.contains("12.2"), "{text}");
    let text = refused(&context, plain.shared_carveout(10));
    assert!(text.contains("12.5") && text.contains("12.2"), "{text}");
}

#[test]
fn tensor_maps_are_checked_by_rule_and_value() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<f32>(64 * 100).unwrap();
        stream.synchronize_blocking().unwrap();
        let fits = Tiled::new([64, 100], [32, 8]);
        let (most, wide) = (Tiled::new([64, 101], [32, 8]), Tiled::new([64, 100], [64, 8]));
        for (shape, expected) in [
            (most, "the array has 25856 bytes; the slice has 25600"),
            (
                wide.swizzle(Swizzle::Bytes128),
                "a row of a tile has 256 bytes; with this swizzle there can be 128",
            ),
            (Tiled::new([64, 100], [3, 8]), "a row of a tile has 12 bytes; it must be a multiple of 16"),
            (Tiled::new([63, 100], [32, 8]), "the stride of dimension 1 is 252 bytes"),
            (Tiled::new([64, 0], [32, 8]), "the extent in dimension 1 is 0"),
            (Tiled::new([64, 100], [32, 257]), "the extent of a tile in dimension 1 is 257"),
            (fits.steps([1, 9]), "the step in dimension 1 is 9"),
            (fits.strides([4, !15]), "the stride of dimension 1 is 18446744073709551600"),
        ] {
            let (outcome, cost) = count(|| shape.encode(&buffer));
            cost.assert_calls(&[]);
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
        let text = fits.encode(buffer.slice(1..).unwrap()).unwrap_err().to_string();
        assert!(text.contains("must be a multiple of 16"), "{text}");
        let text = Tiled::new([4; 6], [4; 6]).encode(&buffer).unwrap_err().to_string();
        assert!(text.contains("6 dimensions"), "{text}");
        match fits.swizzle(Swizzle::Bytes128).encode(&buffer) {
            Ok(map) => {
                assert_eq!((map.address(), map.size_bytes(), map.len()), (buffer.address(), 25600, 6400));
                assert!(map.as_raw().opaque.iter().any(|&word| word != 0));
                drop(buffer);
                assert_eq!(params![&map].values().map(<[_]>::len).collect::<Vec<_>>(), [128]);
            }
            Err(error) if is_soft() => {
                assert!(error.to_string().contains("cuTensorMapEncodeTiled"), "{error}")
            }
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn shared_memory_beyond_the_default_is_allowed_to_a_kernel_that_asks_for_it() {
    let context = setup();
    no_leaks(|| {
        let (empty, stream) = (kernel(&context, "empty"), context.stream().unwrap());
        let most = context.limits().max_shared_bytes_opt_in;
        let config = LaunchConfig::new(1, 32).shared_bytes(most);
        if most > empty.max_dynamic_shared_bytes() {
            let text = refused(&context, config);
            assert!(text.contains("dynamic shared memory"), "{text}");
        }
        empty.set_max_dynamic_shared_bytes(most).unwrap();
        launch(&empty, &stream, config).unwrap();
        stream.synchronize_blocking().unwrap();
    });
}

/// What the driver would refuse of attributes is refused before: a capture is still there, and
/// nodes are not added.
#[test]
fn attributes_that_do_not_fit_leave_a_capture_intact() {
    let context = setup();
    needs!(LaunchAttributes, PreferredClusters);
    let (empty, stream) = (kernel(&context, "empty"), context.stream().unwrap());
    let many = LaunchConfig::new(64, 32).cluster(2);
    let configs = [
        (LaunchConfig::new(1 << 20, 1024).cooperative(), "run at once"),
        (many.preferred_cluster(64), "the limit is 8"),
        (LaunchConfig::new(4, 32).cluster(2).preferred_cluster(6), "does not divide the grid"),
    ];
    for (config, reason) in configs {
        let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let refused = launch(&empty, &stream, config);
        let told = refused.as_ref().map_err(ToString::to_string);
        assert!(matches!(&refused, Err(Error::Attribute(_))), "{config}: {told:?}");
        assert!(told.unwrap_err().contains(reason), "{config}");
        capture.end().unwrap_or_else(|error| panic!("{config}: {error}"));
    }
    let graph = context.graph().unwrap();
    // SAFETY: the kernel does nothing.
    let refused = unsafe { graph.root().launch_untyped(&empty, configs[0].0, params![]) };
    assert!(matches!(refused, Err(cuda_graph::Error::Launch(Error::Attribute(_)))), "{refused:?}");
    let fits = LaunchConfig::new(1, 32).cooperative();
    launch(&empty, &stream, fits).unwrap();
    let (again, cost) = count(|| launch(&empty, &stream, fits));
    again.unwrap();
    assert_eq!(cost.calls("cuOccupancyMaxActiveBlocksPerMultiprocessor"), 0, "{cost}");
}

/// The driver takes a preferred cluster that divides the grid and is a multiple of the cluster,
/// also one that no device has room for.
#[test]
fn the_driver_takes_preferred_clusters_that_divide_the_grid() {
    let context = setup();
    needs!(LaunchAttributes);
    let (empty, stream) = (kernel(&context, "empty"), context.stream().unwrap());
    let cases = [(8, 4, true), (4, 6, false), (64, 64, true), (6, 3, false)];
    let taken = cases.map(|(grid, preferred, _)| {
        let config = LaunchConfig::new(grid, 32).cluster(2).preferred_cluster(preferred);
        let mut attributes = config.attributes();
        let raw_config = cuda_sys::CUlaunchConfig {
            gridDimX: grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            hStream: stream.as_raw(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
            ..Default::default()
        };
        // SAFETY: the kernel has no parameters and does nothing; the configuration outlives the
        // call.
        let code = unsafe {
            raw::driver().cuLaunchKernelEx(
                &raw const raw_config,
                empty.function(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        };
        (grid, preferred, code.is_success())
    });
    assert_eq!(taken, cases, "grid, preferred cluster, whether it is taken");
}

#[test]
fn kernels_of_an_adopted_library_share_the_limit_of_shared_memory() {
    use cuda_handles::{Image, Library};
    let context = setup();
    let owned = Library::load(&context, Image::Ptx(cuda_tests::SMALL)).unwrap();
    // SAFETY: the library is loaded in this context, and outlives the handle.
    let adopted = unsafe { Library::from_raw(&context, owned.as_raw()) };
    let (first, second) = (adopted.kernel("increment").unwrap(), adopted.kernel("increment").unwrap());
    assert_eq!(first.as_raw(), second.as_raw());
    for bytes in [40 << 10, 1 << 10] {
        first.set_max_dynamic_shared_bytes(bytes).unwrap();
        assert_eq!(second.max_dynamic_shared_bytes(), bytes);
        assert_eq!(adopted.kernel("increment").unwrap().max_dynamic_shared_bytes(), bytes);
        assert_eq!(owned.kernel("increment").unwrap().max_dynamic_shared_bytes(), bytes);
    }
}

#[test]
fn tensor_maps_of_too_many_elements_are_refused() {
    let context = setup();
    let stream = context.stream().unwrap();
    let buffer = stream.zeros::<f32>(1024).unwrap();
    let shape = Tiled::new([16, 1 << 32, 1 << 32], [16, 1, 1]).strides([4, 0, 0]);
    let refused = shape.encode(&buffer).map(|map| map.len());
    assert!(matches!(refused, Err(Error::TensorMap(_))), "{refused:?}");
}

mod clustered {
    cuda_launch::kernel! {
        // SAFETY: the kernel does nothing, in clusters of whatever size.
        unsafe in cuda_handles::Image::Ptx(cuda_tests::SMALL);
        pub(crate) fn empty() where cluster.product() == 2;
    }
}

#[test]
fn conditions_on_the_cluster_hold_for_the_preferred_one_too() {
    let context = setup();
    needs!(LaunchAttributes, PreferredClusters);
    let (empty, stream) = (clustered::empty::load(&context).unwrap(), context.stream().unwrap());
    let plain = LaunchConfig::new(8, 8).cluster(2);
    empty.launch(&stream, plain, ()).unwrap();
    let refused = empty.launch(&stream, plain.preferred_cluster(8), ());
    assert!(matches!(refused, Err(Error::Condition(_))), "{refused:?}");
    empty.launch(&stream, plain.preferred_cluster(2), ()).unwrap();
}
