//! Properties of nodes, compared with the driver's.

use cuda_graph::{Error, KernelNode, MemcpyNode, MemsetNode, NodeError, NodeKind};
use cuda_launch::{LaunchConfig, params};
use cuda_tests::{count, kernel, no_leaks, raw, setup};

use crate::common::driver_view::Drawn;

#[test]
fn a_kernel_node_reads_back() {
    let context = setup();
    no_leaks(|| {
        let saxpy = kernel(&context, "saxpy");
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<f32>(64).unwrap(), stream.zeros::<f32>(64).unwrap());
        let config = LaunchConfig::new((2, 3, 4), (8, 4, 2)).shared_bytes(128);
        let graph = Drawn::new(&context);
        // SAFETY: the graph is never launched.
        let node =
            unsafe { graph.root().launch_untyped(&saxpy, config, params![64_u32, 2.5_f32, &x, &y]) }.unwrap();
        let ((kernel, read), cost) = count(|| (node.kernel().unwrap(), node.config().unwrap()));
        cost.assert_calls(&[]);
        assert_eq!((kernel, read), (saxpy.clone(), config));
        let seen = raw::kernel(raw::nodes(graph.raw)[0]);
        assert_eq!([seen.gridDimX, seen.gridDimY, seen.gridDimZ], [2, 3, 4]);
        assert_eq!([seen.blockDimX, seen.blockDimY, seen.blockDimZ], [8, 4, 2]);
        assert_eq!(seen.sharedMemBytes, 128);
        assert!(seen.kern == saxpy.as_raw() || seen.func == saxpy.function());
        // SAFETY: the driver keeps a copy of each of the four arguments, of the sizes that the
        // kernel has.
        let values = unsafe {
            let pointers = core::slice::from_raw_parts(seen.kernelParams, 4);
            (
                pointers[0].cast::<u32>().read(),
                pointers[1].cast::<f32>().read(),
                pointers[2].cast::<u64>().read(),
                pointers[3].cast::<u64>().read(),
            )
        };
        assert_eq!(values, (64, 2.5, x.address(), y.address()));
    });
}

#[test]
fn a_memset_node_reads_back() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = Drawn::new(&context);
        let words = stream.zeros::<f32>(64).unwrap();
        let halves = stream.zeros::<i16>(64).unwrap();
        let bytes = stream.zeros::<u8>(64).unwrap();
        let nodes: [MemsetNode; 3] = [
            graph.root().fill(words.slice(4..20).unwrap(), -1.5).unwrap(),
            graph.root().fill(&halves, -2).unwrap(),
            graph.root().fill(bytes.slice(1..8).unwrap(), 0xAB).unwrap(),
        ];
        let expected = [
            (words.address() + 16, (-1.5_f32).to_bits(), 4, 16),
            (halves.address(), 0xFFFE, 2, 64),
            (bytes.address() + 1, 0xAB, 1, 7),
        ];
        for ((node, expected), raw_node) in nodes.iter().zip(expected).zip(raw::nodes(graph.raw)) {
            let (address, value, width, count) = (
                node.address().unwrap(),
                node.value().unwrap(),
                node.element_width().unwrap(),
                node.count().unwrap(),
            );
            assert_eq!((address, value, width, count), expected);
            let seen = raw::memset(raw_node);
            assert_eq!(
                (seen.dst, seen.value, seen.elementSize as usize, seen.width, seen.height),
                (address, value, width, count, 1)
            );
        }
    });
}

#[test]
fn a_memcpy_node_reads_back() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (from, to) = (stream.zeros::<u16>(64).unwrap(), stream.zeros::<u16>(64).unwrap());
        let graph = Drawn::new(&context);
        let node: MemcpyNode =
            graph.root().copy(from.slice(3..13).unwrap(), to.slice(50..60).unwrap()).unwrap();
        let read = (node.source().unwrap(), node.destination().unwrap(), node.bytes().unwrap());
        assert_eq!(read, (from.address() + 6, to.address() + 100, 20));
        let seen = raw::memcpy(raw::nodes(graph.raw)[0]);
        let offsets = (seen.srcXInBytes as u64, seen.dstXInBytes as u64);
        assert_eq!((seen.srcDevice + offsets.0, seen.dstDevice + offsets.1), (read.0, read.1));
        assert_eq!((seen.WidthInBytes, seen.Height, seen.Depth), (20, 1, 1));
    });
}

#[test]
fn a_node_of_any_type_can_be_taken_as_its_own_type_and_no_other() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = Drawn::new(&context);
        let fill = graph.root().fill(&buffer, 9).unwrap();
        let node = graph.nodes().unwrap().remove(0);
        assert_eq!(node.kind(), NodeKind::Memset);
        assert_eq!(MemsetNode::try_from(node.clone()).unwrap(), fill);
        assert!(KernelNode::try_from(node.clone()).is_err());
        assert!(MemcpyNode::try_from(node).is_err());
    });
}

#[test]
fn properties_of_a_removed_node_are_an_error() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = Drawn::new(&context);
        let fill = graph.root().fill(buffer.slice(..4).unwrap(), 9).unwrap();
        let copy = graph.root().copy(buffer.slice(..4).unwrap(), buffer.slice(4..).unwrap()).unwrap();
        // SAFETY: the kernel does nothing.
        let launch = unsafe {
            graph.root().launch_untyped(&kernel(&context, "empty"), LaunchConfig::new(1, 1), params![])
        }
        .unwrap();
        fill.remove().unwrap();
        copy.remove().unwrap();
        launch.remove().unwrap();
        assert!(matches!(fill.value(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(copy.bytes(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(launch.config(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(launch.kernel(), Err(Error::Node(NodeError::Removed { .. }))));
    });
}
