//! Memcpy nodes: every kind of memory, shape and direction, by owner and by address.

use std::sync::Arc;

use cuda_graph::{ContextExt, Error, MemcpyNode, MemoryError, NodeError, RawCopy, RawMemory};
use cuda_handles::{
    Buffer, Context, Copy2d, Copy3d, CopyLayout, Error as HandleError, MemorySpace, Owner, Stream,
};
use cuda_sys::{CUDA_MEMCPY3D_v2, CUmemorytype, CUresult, Call};
use cuda_tests::{
    Gate, Kind, SOON, alone, count, fail, live, needs, no_leaks, other_device, raw, settle, setup, until,
};
use proptest::prelude::*;

use crate::common::driver_view::Drawn;
use crate::common::same_as_stream::{Pair, launched};

const N: usize = 64;

/// Memory of each kind there is, with where it lies.
fn every_kind(context: &Context, stream: &Stream) -> Vec<(MemorySpace, Buffer<u32>)> {
    let plain = context.alloc_blocking::<u32>(N).unwrap();
    // SAFETY: the owner keeps the memory, which nobody else uses.
    let foreign = unsafe { Buffer::from_foreign(context, plain.address(), N, plain.clone()) }.unwrap();
    vec![
        (MemorySpace::Device, stream.zeros(N).unwrap()),
        (MemorySpace::Device, context.alloc_blocking(N).unwrap()),
        (MemorySpace::Pinned, context.pinned_zeros(N).unwrap().share().as_buffer().clone()),
        (MemorySpace::Managed, context.managed_zeros(N).unwrap().share().as_buffer().clone()),
        (MemorySpace::Found, foreign),
    ]
}

fn numbers(from: u32) -> Vec<u32> {
    (from..from + N as u32).collect()
}

/// The driver's parameters of a node are those of the handle.
#[track_caller]
fn agree(layout: &CopyLayout, seen: &CUDA_MEMCPY3D_v2) {
    assert_eq!((seen.WidthInBytes, seen.Height, seen.Depth), (layout.width, layout.height, layout.depth));
    let address = |kind,
                   host: *const core::ffi::c_void,
                   device: u64,
                   [x, y, z]: [usize; 3],
                   [pitch, rows]: [usize; 2]| {
        let start = if kind == CUmemorytype::CU_MEMORYTYPE_HOST { host.addr() as u64 } else { device };
        start + ((z * rows + y) * pitch + x) as u64
    };
    let from = [seen.srcXInBytes, seen.srcY, seen.srcZ];
    let to = [seen.dstXInBytes, seen.dstY, seen.dstZ];
    let source =
        address(seen.srcMemoryType, seen.srcHost, seen.srcDevice, from, [seen.srcPitch, seen.srcHeight]);
    let target =
        address(seen.dstMemoryType, seen.dstHost, seen.dstDevice, to, [seen.dstPitch, seen.dstHeight]);
    assert_eq!((source, target), (layout.source.address, layout.destination.address));
    let kinds = (layout.source.space.memory_type(), layout.destination.space.memory_type());
    assert_eq!((seen.srcMemoryType, seen.dstMemoryType), kinds);
    if layout.height > 1 || layout.depth > 1 {
        assert_eq!((seen.srcPitch, seen.dstPitch), (layout.source.pitch, layout.destination.pitch));
    }
    if layout.depth > 1 {
        assert_eq!((seen.srcHeight, seen.dstHeight), (layout.source.rows, layout.destination.rows));
    }
}

#[test]
fn memory_of_each_kind_is_copied_to_memory_of_each_kind() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (sources, targets) = (every_kind(&context, &stream), every_kind(&context, &stream));
        for (index, (from, source)) in sources.iter().enumerate() {
            let values = numbers(1000 * index as u32);
            source.write_blocking(&stream, &values).unwrap();
            for (to, target) in &targets {
                target.write_blocking(&stream, &[0; N]).unwrap();
                let graph = Drawn::new(&context);
                let (node, cost) = count(|| graph.root().copy(source, target).unwrap());
                assert_eq!(cost.total(), 1, "{cost}");
                let layout = node.layout().unwrap();
                assert_eq!((layout.source.space, layout.destination.space), (*from, *to));
                assert_eq!((layout.bytes(), node.bytes().unwrap()), (4 * N, 4 * N));
                assert_eq!(node.describe().unwrap(), format!("copy {} B {from} -> {to}", 4 * N));
                agree(&layout, &raw::memcpy(raw::nodes(graph.raw)[0]));
                assert_eq!(launched(&graph, &stream, target).unwrap(), values, "{from} to {to}");
            }
        }
    });
}

#[test]
fn host_memory_is_the_hosts_again_once_nothing_can_write_it() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut host = context.pinned_zeros::<u32>(N).unwrap();
        host.copy_from_slice(&numbers(7));
        let (source, target) = (host.share(), context.pinned_zeros::<u32>(N).unwrap().share());
        let buffer = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().copy(&source, &buffer).unwrap().then().copy(&buffer, &target).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        let target = target.try_unique().unwrap_err();
        drop(graph);
        let mut target = Some(target.try_unique().unwrap_err());
        drop(exec);
        let mut host = None;
        assert!(until(SOON, || match target.take().unwrap().try_unique() {
            Ok(unique) => {
                host = Some(unique);
                true
            }
            Err(shared) => {
                target = Some(shared);
                false
            }
        }));
        assert_eq!(host.unwrap()[..], numbers(7));
    });
}

#[test]
fn host_memory_is_read_at_each_launch() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let source = context.pinned_zeros::<u32>(N).unwrap().share();
        let buffer = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().copy(&source, &buffer).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for round in 0..3 {
            source.write_blocking(&stream, &numbers(round)).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(buffer.read_blocking(&stream).unwrap(), numbers(round));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// A node copies what the stream's copy of the same description does, and is refused where that
    /// is.
    #[test]
    fn boxes_are_copied_as_a_stream_copies_them(
        extent in prop::array::uniform3(0_usize..5),
        pitches in prop::array::uniform2(0_usize..8),
        rows in prop::array::uniform2(0_usize..7),
        starts in prop::array::uniform2(0_usize..20),
        flat in any::<bool>(),
        pinned in prop::array::uniform2(any::<bool>()),
    ) {
        let context = setup();
        no_leaks(|| -> Result<(), TestCaseError> {
        let stream = context.stream().unwrap();
        let memory = |pinned, first: u32| -> Buffer<u32> {
            let memory = match pinned {
                true => context.pinned_zeros(160).unwrap().share().as_buffer().clone(),
                false => stream.zeros(160).unwrap(),
            };
            memory.write_blocking(&stream, &(first..first + 160).collect::<Vec<_>>()).unwrap();
            memory
        };
        let source = memory(pinned[0], 0);
        let (by_node, by_stream) = (memory(pinned[1], 1000), memory(pinned[1], 1000));
        let [width, height, depth] = extent;
        fn describe<'a>(
            [source, target]: [&'a Buffer<u32>; 2], starts: [usize; 2], pitches: [usize; 2], [width, height]: [usize; 2],
        ) -> Copy2d<'a, u32> {
            Copy2d {
                source: source.slice(starts[0]..).unwrap(),
                source_pitch: pitches[0],
                destination: target.slice(starts[1]..).unwrap(),
                destination_pitch: pitches[1],
                width,
                height,
            }
        }
        let of = |target| describe([&source, target], starts, pitches, [width, height]);
        let box_of = |target| Copy3d { source_rows: rows[0], destination_rows: rows[1], depth, ..of(target).layer() };
        let graph = Drawn::new(&context);
        let (added, copied) = match flat {
            true => (graph.root().copy_2d(of(&by_node)), stream.copy_2d(of(&by_stream))),
            false => (graph.root().copy_3d(box_of(&by_node)), stream.copy_3d(box_of(&by_stream))),
        };
        let pair = Pair { by_node: &by_node, by_stream: &by_stream, is_empty: extent.contains(&0) };
        if let Some(node) = pair.agrees(&graph, &stream, added, copied)? {
            let layout = node.layout().unwrap();
            agree(&layout, &raw::memcpy(raw::nodes(graph.raw)[0]));
            prop_assert_eq!(layout.bytes(), 4 * width * height * if flat { 1 } else { depth });
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
        let (a, b) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let host = context.pinned_zeros::<u32>(N).unwrap().share();
        let graph = Drawn::new(&context);
        let root = graph.root();
        let flat = Copy2d {
            source: a.as_slice(),
            source_pitch: 8,
            destination: b.as_slice(),
            destination_pitch: 8,
            width: 4,
            height: 4,
        };
        let (refused, cost) = count(|| {
            [
                root.copy(a.slice(..8).unwrap(), b.slice(..9).unwrap()),
                root.copy(a.slice(..0).unwrap(), b.slice(..0).unwrap()),
                root.copy(a.slice(..8).unwrap(), a.slice(7..15).unwrap()),
                root.copy(a.slice(..8).unwrap(), &host),
                root.copy(&host, a.slice(..8).unwrap()),
                root.copy_2d(Copy2d { width: 0, ..flat }),
                root.copy_2d(Copy2d { height: 0, ..flat }),
                root.copy_2d(Copy2d { width: 9, ..flat }),
                root.copy_2d(Copy2d { height: 9, ..flat }),
                root.copy_2d(Copy2d { destination: a.slice(2..).unwrap(), ..flat }),
                root.copy_3d(Copy3d { depth: 0, ..flat.layer() }),
                root.copy_3d(Copy3d { depth: 9, ..flat.layer() }),
                root.copy_3d(Copy3d { source_rows: 3, ..flat.layer() }),
            ]
        });
        cost.assert_calls(&[]);
        for (index, refused) in refused.into_iter().enumerate() {
            let text = refused.expect_err(&format!("{index}")).to_string();
            assert!(!text.contains("CUDA_ERROR"), "{index}: {text}");
        }
        let node = root.copy(&a, &b).unwrap();
        let (refused, cost) =
            count(|| [node.set(a.slice(..8).unwrap(), b.slice(..9).unwrap()), node.set(&a, &a)]);
        cost.assert_calls(&[]);
        assert!(refused.iter().all(Result::is_err));
        assert_eq!(node.destination().unwrap(), b.address());
        assert_eq!(graph.view().nodes.len(), 1);
    });
}

#[test]
fn a_node_can_be_set_to_another_direction_and_shape_and_lets_go_of_what_it_used() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(N).unwrap();
        let (first, second) = (stream.upload(&numbers(10)).unwrap(), stream.upload(&numbers(500)).unwrap());
        let host = context.pinned_zeros::<u32>(N).unwrap().share();
        host.write_blocking(&stream, &numbers(900)).unwrap();
        let before = live().of(Kind::Allocation);
        let graph = Drawn::new(&context);
        let node = graph.root().copy(&first, &out).unwrap();
        let mut old = graph.instantiate().unwrap();
        drop(first);
        let (set, cost) = count(|| node.set(&second, &out));
        set.unwrap();
        cost.assert_calls(&[("cuGraphNodeSetParams", 1)]);
        assert_eq!(cost.heap_allocations(), 0, "{cost}");
        agree(&node.layout().unwrap(), &raw::memcpy(raw::nodes(graph.raw)[0]));
        drop(second);
        settle();
        assert_eq!(live().of(Kind::Allocation), before, "the executable has the first, the graph the second");
        let mut new = graph.instantiate().unwrap();
        old.launch(&stream).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), numbers(10));
        new.launch(&stream).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), numbers(500));
        drop(old);
        assert!(until(SOON, || live().of(Kind::Allocation) == before - 1));

        // From the host, in the other direction, and as a rectangle.
        node.set(&host, &out).unwrap();
        assert_eq!(node.describe().unwrap(), "copy 256 B pinned -> device");
        agree(&node.layout().unwrap(), &raw::memcpy(raw::nodes(graph.raw)[0]));
        drop(new);
        assert!(until(SOON, || live().of(Kind::Allocation) == before - 2));
        assert_eq!(launched(&graph, &stream, &out).unwrap(), numbers(900));
        stream.fill(&out, 3).unwrap();
        node.set(&out, &host).unwrap();
        assert_eq!(launched(&graph, &stream, &host).unwrap(), [3; N]);
        let flat = Copy2d {
            source: out.as_slice(),
            source_pitch: 8,
            destination: host.as_slice(),
            destination_pitch: 16,
            width: 2,
            height: 4,
        };
        stream.fill(&out, 4).unwrap();
        node.set_2d(flat).unwrap();
        assert_eq!(node.describe().unwrap(), "copy 8 x 4 B device -> pinned");
        agree(&node.layout().unwrap(), &raw::memcpy(raw::nodes(graph.raw)[0]));
        graph.instantiate().unwrap().launch(&stream).unwrap();
        let expected: Vec<u32> = (0..N).map(|at| if at % 16 < 2 { 4 } else { 3 }).collect();
        assert_eq!(host.read_blocking(&stream).unwrap(), expected);
        let cuboid = Copy3d { depth: 2, source_rows: 4, destination_rows: 2, height: 2, ..flat.layer() };
        node.set_3d(cuboid).unwrap();
        agree(&node.layout().unwrap(), &raw::memcpy(raw::nodes(graph.raw)[0]));
        graph.instantiate().unwrap().launch(&stream).unwrap();
    });
}

#[test]
fn a_node_that_the_driver_will_not_set_is_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (a, b) = (stream.upload(&numbers(1)).unwrap(), stream.zeros::<u32>(N).unwrap());
        let graph = Drawn::new(&context);
        let node = graph.root().copy(&a, &b).unwrap();
        let layout = node.layout().unwrap();
        let before = live().of(Kind::Allocation);
        let other = stream.zeros::<u32>(N).unwrap();
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        let error = node.set(&other, &b).unwrap_err().to_string();
        drop(injected);
        assert!(error.contains("cuGraphNodeSetParams"), "{error}");
        assert_eq!(node.layout().unwrap(), layout);
        agree(&layout, &raw::memcpy(raw::nodes(graph.raw)[0]));
        drop((other, a));
        settle();
        assert_eq!(live().of(Kind::Allocation), before, "the node keeps the old one, and not the new one");
        assert_eq!(launched(&graph, &stream, &b).unwrap(), numbers(1));
        node.remove().unwrap();
        assert!(matches!(node.set(&b, &b.clone()), Err(Error::Handles(HandleError::Overlap { .. }))));
        let error = node.set(b.slice(..8).unwrap(), b.slice(8..16).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Node(NodeError::Removed { .. })), "{error:?}");
        assert!(matches!(node.describe(), Err(Error::Node(NodeError::Removed { .. }))));
    });
}

#[test]
fn each_copy_is_one_call_and_what_it_costs_beyond_is_the_table() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (a, b) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let host = context.pinned_zeros::<u32>(N).unwrap().share();
        let flat = Copy2d {
            source: a.as_slice(),
            source_pitch: 8,
            destination: b.as_slice(),
            destination_pitch: 8,
            width: 4,
            height: 4,
        };
        let graph = context.graph().unwrap();
        // Room for the rows of these nodes.
        let first = graph.root().empty().unwrap();
        let adds: [(&str, &dyn Fn() -> MemcpyNode); 5] = [
            ("copy", &|| first.then().copy(&a, &b).unwrap()),
            ("copy to the host", &|| first.then().copy(&a, &host).unwrap()),
            ("copy from the host", &|| first.then().copy(&host, &a).unwrap()),
            ("copy_2d", &|| first.then().copy_2d(flat).unwrap()),
            ("copy_3d", &|| first.then().copy_3d(flat.layer()).unwrap()),
        ];
        for (name, add) in adds {
            let most =
                (0..8).map(|_| count(add).1).inspect(|cost| assert_eq!(cost.total(), 1, "{name}: {cost}"));
            let least = most.map(|cost| cost.heap_allocations()).min();
            assert_eq!(least, Some(0), "{name}");
        }
    });
}

/// Pageable memory of the host that ends where the test says.
fn pageable(values: &[u32]) -> Arc<Vec<u32>> {
    Arc::new(values.to_vec())
}

#[test]
fn addresses_are_classified_by_asking_the_driver() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for (index, (space, memory)) in every_kind(&context, &stream).into_iter().enumerate() {
            // The driver knows that the memory of another owner is device memory.
            let expected = if space == MemorySpace::Found { MemorySpace::Device } else { space };
            let values = numbers(100 * index as u32);
            memory.write_blocking(&stream, &values).unwrap();
            let out = stream.zeros::<u32>(N).unwrap();
            let graph = Drawn::new(&context);
            let kept = Arc::downgrade(memory.allocation());
            let (address, end) = (memory.address(), memory.address() + 4 * N as u64);
            let from = RawMemory::at(address).keep(&memory);
            drop(memory);
            // SAFETY: the owners keep the memory.
            let node = unsafe {
                let to = RawMemory::at(out.address()).keep(&out);
                graph.root().copy_raw(RawCopy::new(from, to, 4 * N)).unwrap()
            };
            let layout = node.layout().unwrap();
            assert_eq!((layout.source.space, layout.destination.space), (expected, MemorySpace::Device));
            agree(&layout, &raw::memcpy(raw::nodes(graph.raw)[0]));
            assert_eq!(kept.strong_count(), 1, "the node keeps it");
            assert_eq!(launched(&graph, &stream, &out).unwrap(), values, "{space}");
            // SAFETY: refused.
            let error = unsafe {
                let copy = RawCopy::new(RawMemory::at(end - 8), RawMemory::at(out.address()), 1 << 40);
                node.set_raw(copy).unwrap_err()
            };
            // The driver may know of more than was asked for: pinned memory comes in larger blocks.
            let Error::Node(NodeError::PastEnd { need, room, .. }) = error else {
                panic!("{space}: {error:?}")
            };
            assert!(need == 1 << 40 && (8..need).contains(&room), "{space}: {room}");
        }
    });
}

#[test]
fn pageable_memory_goes_by_address_where_it_is_meant() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(N).unwrap();
        let host = pageable(&numbers(40));
        let graph = Drawn::new(&context);
        let there = || RawMemory::at(buffer.address()).keep(&buffer);
        let here = || RawMemory::at_host(host.as_ptr()).keep(Owner::shared(host.clone()));
        // SAFETY: refused.
        let error = unsafe { graph.root().copy_raw(RawCopy::new(here(), there(), 4 * N)) }.unwrap_err();
        assert!(
            matches!(error, Error::Node(NodeError::UnknownMemory { what: "the source of a copy", .. })),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(text.contains("pageable") && text.contains("arrays"), "{text}");
        assert_eq!(graph.len().unwrap(), 0);
        // SAFETY: the owners keep the memory, of which the host's is only read.
        let node = unsafe { graph.root().copy_raw(RawCopy::new(here().pageable(), there(), 4 * N)) }.unwrap();
        assert_eq!(node.describe().unwrap(), "copy 256 B pageable -> device");
        let mut exec = graph.instantiate().unwrap();
        node.remove().unwrap();
        assert_eq!(Arc::strong_count(&host), 2, "the executable keeps it");
        exec.launch(&stream).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), numbers(40));
        drop(exec);
        assert!(until(SOON, || Arc::strong_count(&host) == 1));
    });
}

#[test]
fn addresses_that_cannot_be_copied_between_are_refused_in_words() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(N).unwrap();
        let graph = Drawn::new(&context);
        let at = |offset: u64| RawMemory::at(buffer.address() + offset);
        let copy = |copy: RawCopy| {
            // SAFETY: refused.
            unsafe { graph.root().copy_raw(copy) }.unwrap_err()
        };
        assert!(matches!(copy(RawCopy::new(at(0), at(128), 0)), Error::Node(NodeError::NoElements { .. })));
        assert!(matches!(
            copy(RawCopy::new(at(0), at(128), 9).extent(8, 0, 1)),
            Error::Node(NodeError::NoElements { .. })
        ));
        let error = copy(RawCopy::new(at(0), at(8), 16));
        assert!(matches!(error, Error::Handles(HandleError::Overlap { bytes: 8 })), "{error:?}");
        let error = copy(RawCopy::new(at(0).steps(4, 2), at(128), 0).extent(8, 2, 1));
        assert!(matches!(error, Error::Handles(HandleError::Pitch { need: 8, found: 4, .. })), "{error:?}");
        let error = copy(RawCopy::new(at(0).steps(16, 1), at(128), 0).extent(8, 2, 2));
        assert!(matches!(error, Error::Handles(HandleError::Pitch { need: 2, found: 1, .. })), "{error:?}");
        let error = copy(RawCopy::new(at(0), at(250), 16));
        assert!(matches!(error, Error::Node(NodeError::PastEnd { need: 16, room: 6, .. })), "{error:?}");
        let error = copy(RawCopy::new(at(0), RawMemory::at(0).pageable(), 16));
        assert!(matches!(error, Error::Node(NodeError::UnknownMemory { address: 0, .. })), "{error:?}");
        let vast = copy(RawCopy::new(at(0).steps(usize::MAX / 2, 4), at(0), 0).extent(8, 4, 4));
        assert!(matches!(vast, Error::Node(NodeError::PastEnd { need: usize::MAX, .. })), "{vast:?}");
        let error = copy(RawCopy::new(RawMemory::at(0x1000), at(0), 16));
        assert!(matches!(error, Error::Node(NodeError::UnknownMemory { address: 0x1000, .. })), "{error:?}");
        assert_eq!(graph.len().unwrap(), 0);
    });
}

#[test]
fn rows_of_addresses_are_copied() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (a, b) = (stream.upload(&numbers(0)).unwrap(), stream.zeros::<u32>(N).unwrap());
        let graph = Drawn::new(&context);
        // Two layers of two rows of two numbers.
        let copy = RawCopy::new(
            RawMemory::at(a.address()).steps(16, 8).keep(&a),
            RawMemory::at(b.address()).keep(&b),
            0,
        );
        // SAFETY: the owners keep the memory.
        let node = unsafe { graph.root().copy_raw(copy.extent(8, 2, 2)) }.unwrap();
        agree(&node.layout().unwrap(), &raw::memcpy(raw::nodes(graph.raw)[0]));
        assert_eq!(launched(&graph, &stream, &b).unwrap()[..9], [0, 1, 4, 5, 32, 33, 36, 37, 0]);
    });
}

#[test]
fn memory_of_two_devices_is_copied() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let other = other_device().context().unwrap();
    // The reaper gets its stream there, which it keeps.
    drop(other.alloc_blocking::<u32>(1).unwrap());
    no_leaks(|| {
        let (stream, far) = (context.stream().unwrap(), other.stream().unwrap());
        let (here, there) = (stream.zeros::<u32>(N).unwrap(), far.upload(&numbers(60)).unwrap());
        let graph = Drawn::new(&context);
        let error = graph.root().copy(&there, &here).unwrap_err();
        assert!(matches!(error, Error::Handles(HandleError::WrongContext { .. })), "{error:?}");
        let error = graph.root().copy_peer(&there, &far.zeros::<u32>(N).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Handles(HandleError::WrongContext { .. })), "{error:?}");
        let [own, of] = [context.device(), other.device()].map(|device| device.ordinal());
        let refused = Error::Memory(MemoryError::PoolOutOfReach { own, of });
        assert_eq!(graph.root().copy_peer(&there, &here).unwrap_err(), refused);
        assert_eq!(graph.root().copy_peer(&here, &there).unwrap_err(), refused);
        let plain = other.alloc_blocking::<u32>(N).unwrap();
        graph.root().copy_peer(&plain, &here).unwrap().remove().unwrap();
        drop(plain);
        other.default_pool().unwrap().grant_access(context.device()).unwrap();
        let (node, cost) = count(|| graph.root().copy_peer(&there, &here).unwrap());
        assert_eq!(cost.total(), 1, "{cost}");
        assert_eq!(node.describe().unwrap(), "copy 256 B peer device -> device");
        agree(&node.layout().unwrap(), &raw::memcpy(raw::nodes(graph.raw)[0]));
        let back = node.then().copy_peer(&here, &there).unwrap();
        back.set_peer(here.slice(..8).unwrap(), there.slice(8..16).unwrap()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(here.read_blocking(&stream).unwrap(), numbers(60));
        far.wait_for(&stream).unwrap();
        assert_eq!(there.read_blocking(&far).unwrap()[..16], [&numbers(60)[..8], &numbers(60)[..8]].concat());
        // SAFETY: the owners keep the memory.
        let raw_node = unsafe {
            let copy = RawCopy::new(
                RawMemory::at(there.address()).keep(&there),
                RawMemory::at(here.address()).keep(&here),
                4 * N,
            );
            graph.root().copy_raw(copy).unwrap()
        };
        assert_eq!(raw_node.describe().unwrap(), "copy 256 B peer device -> device");
        // Within one context it is an ordinary copy.
        let plain = graph.root().copy_peer(here.slice(..8).unwrap(), here.slice(8..16).unwrap()).unwrap();
        assert_eq!(plain.describe().unwrap(), "copy 32 B device -> device");
    });
}

#[test]
fn a_copy_in_flight_keeps_its_memory_whatever_the_node_is_set_to() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(N).unwrap();
        let first = stream.upload(&numbers(10)).unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().copy(&first, &out).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let before = live().of(Kind::Allocation);
        let gate = Gate::close(&stream);
        exec.launch(&stream).unwrap();
        drop(first);
        let second = stream.zeros::<u32>(N).unwrap();
        node.set(&second, &out).unwrap();
        drop((exec, node, graph, second));
        assert!(live().of(Kind::Allocation) >= before, "the first is in use");
        gate.open();
        assert_eq!(out.read_blocking(&stream).unwrap(), numbers(10));
        assert!(until(SOON, || live().of(Kind::Allocation) == before - 1));
    });
}
