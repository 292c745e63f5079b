//! Memset nodes: every kind of memory, element size and shape, by owner and by address.

use cuda_graph::{ContextExt, Error, MemsetNode, NodeError, RawFill, RawMemory};
use cuda_handles::{Buffer, Error as HandleError, FillLayout, MemorySpace};
use cuda_sys::{CUDA_MEMSET_NODE_PARAMS_v1, CUresult, Call};
use cuda_tests::{Kind, SOON, count, fail, live, no_leaks, raw, settle, setup, until};
use proptest::prelude::*;

use crate::common::driver_view::Drawn;
use crate::common::same_as_stream::{Pair, launched};

const N: usize = 64;

/// The driver's parameters of a node are those of the handle.
#[track_caller]
fn agree(layout: &FillLayout, seen: &CUDA_MEMSET_NODE_PARAMS_v1) {
    assert_eq!((seen.dst, seen.value), (layout.address, layout.value));
    assert_eq!((seen.width, seen.height), (layout.width, layout.height));
    assert_eq!(seen.elementSize, u32::from(layout.element));
    if layout.height > 1 {
        assert_eq!(seen.pitch, layout.pitch);
    }
}

#[test]
fn memory_of_each_kind_is_filled() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let plain = context.alloc_blocking::<u32>(N).unwrap();
        // SAFETY: the owner keeps the memory, which nobody else uses.
        let foreign = unsafe { Buffer::from_foreign(&context, plain.address(), N, plain.clone()) }.unwrap();
        let kinds: [(MemorySpace, Buffer<u32>); 5] = [
            (MemorySpace::Device, stream.zeros(N).unwrap()),
            (MemorySpace::Device, plain),
            (MemorySpace::Pinned, context.pinned_zeros(N).unwrap().share().as_buffer().clone()),
            (MemorySpace::Managed, context.managed_zeros(N).unwrap().share().as_buffer().clone()),
            (MemorySpace::Found, foreign),
        ];
        for (space, memory) in kinds {
            stream.fill(&memory, 0).unwrap();
            let graph = Drawn::new(&context);
            let (node, cost) = count(|| graph.root().fill(memory.slice(8..40).unwrap(), 7).unwrap());
            assert_eq!(cost.total(), 1, "{cost}");
            let layout = node.layout().unwrap();
            assert_eq!((layout.space, layout.bytes(), node.count().unwrap()), (space, 128, 32));
            agree(&layout, &raw::memset(raw::nodes(graph.raw)[0]));
            graph.instantiate().unwrap().launch(&stream).unwrap();
            let expected: Vec<u32> = (0..N).map(|at| if (8..40).contains(&at) { 7 } else { 0 }).collect();
            assert_eq!(memory.read_blocking(&stream).unwrap(), expected, "{space}");
            // The same by address.
            let expected_space = if space == MemorySpace::Found { MemorySpace::Device } else { space };
            let fill = RawFill::new(RawMemory::at(memory.address()).keep(&memory), 2, 0xFFFF_0003, 8);
            // SAFETY: the owner keeps the memory.
            unsafe { node.set_raw(fill) }.unwrap();
            let layout = node.layout().unwrap();
            assert_eq!((layout.space, layout.element, layout.value), (expected_space, 2, 3));
            agree(&layout, &raw::memset(raw::nodes(graph.raw)[0]));
            assert_eq!(
                launched(&graph, &stream, &memory).unwrap()[..6],
                [0x3_0003, 0x3_0003, 0x3_0003, 0x3_0003, 0, 0]
            );
        }
    });
}

#[test]
fn elements_have_one_two_or_four_bytes() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (bytes, halves) = (stream.zeros::<u8>(N).unwrap(), stream.zeros::<i16>(N).unwrap());
        let (words, quads) = (stream.zeros::<f32>(N).unwrap(), stream.zeros::<[u8; 4]>(N).unwrap());
        let graph = context.graph().unwrap();
        let root = graph.root();
        let nodes: [MemsetNode; 4] = [
            root.fill(bytes.slice(3..10).unwrap(), 0xAB).unwrap(),
            root.fill(halves.slice(1..).unwrap(), -2).unwrap(),
            root.fill(&words, 1.5).unwrap(),
            root.fill(&quads, [1, 2, 3, 4]).unwrap(),
        ];
        let read = nodes.each_ref().map(|node| (node.element_width().unwrap(), node.value().unwrap()));
        let quad = u32::from_ne_bytes([1, 2, 3, 4]);
        assert_eq!(read, [(1, 0xAB), (2, 0xFFFE), (4, 1.5_f32.to_bits()), (4, quad)]);
        assert_eq!(nodes[2].describe().unwrap(), "fill 64 x 4 B = 0x3fc00000");
        graph.instantiate().unwrap().launch(&stream).unwrap();
        let bytes = bytes.read_blocking(&stream).unwrap();
        assert!(
            bytes.iter().enumerate().all(|(at, &byte)| byte == if (3..10).contains(&at) { 0xAB } else { 0 })
        );
        assert_eq!(halves.read_blocking(&stream).unwrap()[..3], [0, -2, -2]);
        assert_eq!(words.read_blocking(&stream).unwrap(), [1.5; N]);
        assert_eq!(quads.read_blocking(&stream).unwrap(), [[1, 2, 3, 4]; N]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// A node fills what the stream's fill of the same description does, and is refused where that
    /// is.
    #[test]
    fn rectangles_are_filled_as_a_stream_fills_them(
        extent in prop::array::uniform2(0_usize..9),
        pitch in 0_usize..14,
        start in 0_usize..20,
        value in any::<u16>(),
    ) {
        let context = setup();
        no_leaks(|| -> Result<(), TestCaseError> {
        let stream = context.stream().unwrap();
        let (by_node, by_stream) = (stream.zeros::<u16>(100).unwrap(), stream.zeros::<u16>(100).unwrap());
        let graph = Drawn::new(&context);
        let added = graph.root().fill_2d(by_node.slice(start..).unwrap(), pitch, extent, value);
        let called = stream.fill_2d(by_stream.slice(start..).unwrap(), pitch, extent, value);
        let pair = Pair { by_node: &by_node, by_stream: &by_stream, is_empty: extent.contains(&0) };
        if let Some(node) = pair.agrees(&graph, &stream, added, called)? {
            let layout = node.layout().unwrap();
            agree(&layout, &raw::memset(raw::nodes(graph.raw)[0]));
            prop_assert_eq!(node.count().unwrap(), extent[0] * extent[1]);
            // The same in the same place, by the setter.
            node.set_2d(by_node.slice(start..).unwrap(), pitch, extent, value).unwrap();
            prop_assert_eq!(node.layout().unwrap(), layout);
        }
        Ok(())
        })?;
    }
}

#[test]
fn what_the_driver_would_refuse_is_refused_before_in_words() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let words = stream.zeros::<u32>(N).unwrap();
        let odd = words.bytes().sub_buffer(1..9).unwrap().cast::<[u8; 4]>().unwrap();
        let graph = Drawn::new(&context);
        let root = graph.root();
        let (refused, cost) = count(|| {
            [
                root.fill(words.slice(..0).unwrap(), 1),
                root.fill(&odd, [1; 4]),
                root.fill_2d(&words, 8, [0, 4], 1),
                root.fill_2d(&words, 8, [4, 0], 1),
                root.fill_2d(&words, 3, [4, 2], 1),
                root.fill_2d(&words, 8, [4, 9], 1),
                root.fill_2d(&odd, 1, [1, 2], [1; 4]),
            ]
        });
        cost.assert_calls(&[]);
        for (index, refused) in refused.into_iter().enumerate() {
            let text = refused.expect_err(&format!("{index}")).to_string();
            assert!(!text.contains("CUDA_ERROR"), "{index}: {text}");
        }
        assert!(graph.view().nodes.is_empty());
    });
}

#[test]
fn addresses_that_cannot_be_filled_are_refused_in_words() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let words = stream.zeros::<u32>(N).unwrap();
        let graph = Drawn::new(&context);
        let at = |offset: u64| RawMemory::at(words.address() + offset);
        let fill = |fill: RawFill| {
            // SAFETY: refused.
            unsafe { graph.root().fill_raw(fill) }.unwrap_err()
        };
        assert!(matches!(fill(RawFill::new(at(0), 4, 1, 0)), Error::Node(NodeError::NoElements { .. })));
        let error = fill(RawFill::new(at(0), 3, 1, 4));
        assert!(matches!(error, Error::Handles(HandleError::FillSize { bytes: 3 })), "{error:?}");
        let error = fill(RawFill::new(at(2), 4, 1, 4));
        assert!(matches!(error, Error::Handles(HandleError::Unaligned { align: 4, .. })), "{error:?}");
        let error = fill(RawFill::new(at(0).steps(18, 0), 4, 1, 0).extent(4, 2));
        assert!(matches!(error, Error::Handles(HandleError::Unaligned { align: 4, .. })), "{error:?}");
        let error = fill(RawFill::new(at(0).steps(12, 0), 4, 1, 0).extent(4, 2));
        assert!(matches!(error, Error::Handles(HandleError::Pitch { need: 16, found: 12, .. })), "{error:?}");
        let error = fill(RawFill::new(at(0), 4, 1, 1 << 40));
        assert!(matches!(error, Error::Node(NodeError::PastEnd { .. })), "{error:?}");
        let error = fill(RawFill::new(at(0), 4, 1, usize::MAX));
        assert!(matches!(error, Error::Node(NodeError::PastEnd { need: usize::MAX, .. })), "{error:?}");
        let host = [0_u32; 4];
        let error = fill(RawFill::new(RawMemory::at_host(host.as_ptr()).pageable(), 4, 1, 4));
        assert!(error.to_string().contains("pin it"), "{error}");
        assert!(graph.view().nodes.is_empty());
    });
}

#[test]
fn a_node_can_be_set_and_lets_go_of_what_it_used() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (first, second) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u8>(N).unwrap());
        let graph = Drawn::new(&context);
        let node = graph.root().fill(&first, 5).unwrap();
        let before = live().of(Kind::Allocation);
        drop(first);
        settle();
        assert_eq!(live().of(Kind::Allocation), before);
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        node.set(&second, 9).unwrap_err();
        drop(injected);
        assert_eq!((node.value().unwrap(), node.element_width().unwrap()), (5, 4));
        settle();
        assert_eq!(live().of(Kind::Allocation), before);
        let (set, cost) = count(|| node.set(&second, 9));
        set.unwrap();
        assert_eq!(cost.calls("cuGraphNodeSetParams"), 1, "{cost}");
        assert_eq!(cost.heap_allocations(), 0, "{cost}");
        assert!(until(SOON, || live().of(Kind::Allocation) == before - 1));
        agree(&node.layout().unwrap(), &raw::memset(raw::nodes(graph.raw)[0]));
        assert_eq!(launched(&graph, &stream, &second).unwrap(), [9; N]);
        node.set_2d(&second, 16, [2, 4], 1).unwrap();
        assert_eq!(node.describe().unwrap(), "fill 2 x 4 x 1 B = 0x1");
        agree(&node.layout().unwrap(), &raw::memset(raw::nodes(graph.raw)[0]));
        graph.instantiate().unwrap().launch(&stream).unwrap();
        let expected: Vec<u8> = (0..N).map(|at| if at % 16 < 2 { 1 } else { 9 }).collect();
        assert_eq!(second.read_blocking(&stream).unwrap(), expected);
        node.remove().unwrap();
        assert!(matches!(node.set(&second, 9), Err(Error::Node(NodeError::Removed { .. }))));
    });
}

#[test]
fn each_fill_is_one_call_and_what_it_costs_beyond_is_the_table() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let words = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().empty().unwrap();
        let adds: [(&str, &dyn Fn() -> MemsetNode); 2] = [
            ("fill", &|| first.then().fill(&words, 1).unwrap()),
            ("fill_2d", &|| first.then().fill_2d(&words, 8, [4, 8], 1).unwrap()),
        ];
        for (name, add) in adds {
            let costs =
                (0..8).map(|_| count(add).1).inspect(|cost| assert_eq!(cost.total(), 1, "{name}: {cost}"));
            assert_eq!(costs.map(|cost| cost.heap_allocations()).min(), Some(0), "{name}");
        }
    });
}
