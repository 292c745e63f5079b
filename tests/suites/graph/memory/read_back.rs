//! Parameters of memory nodes, of this library and of other code, and their pictures.

use cuda_graph::{AllocNode, AllocOptions, AllocPlace, ContextExt, FreeNode, Graph, Node, NodeKind};
use cuda_handles::{Device, PoolAccess};
use cuda_tests::{alone, settle};

use super::{N, traceless};
use crate::common::other;

#[test]
fn nodes_and_pictures_tell_of_memory() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let free = graph.free(&memory).unwrap().named("gone");
        assert_eq!(
            (alloc.name(), alloc.kind(), free.kind()),
            ("alloc#0".into(), NodeKind::Alloc, NodeKind::Free)
        );
        assert_eq!(alloc.describe().unwrap(), "allocate 256 B, device");
        assert_eq!(free.describe().unwrap(), format!("free {:#x}", memory.address()));
        assert_eq!(alloc.options().unwrap(), AllocOptions::new());
        assert_eq!(free.address().unwrap(), alloc.address().unwrap());
        let dot = graph.to_dot().unwrap();
        assert!(dot.contains("allocate 256 B, device") && dot.contains("gone"), "{dot}");
        let svg = graph.to_svg().unwrap();
        assert!(svg.contains("ALLOC") && svg.contains("free × 1"), "{svg}");
        // A driver's own dump has them by their names in the driver.
        assert_eq!(graph.nodes().unwrap(), [(*alloc).clone(), (*free).clone()]);
    });
}

#[test]
fn memory_nodes_of_other_code_are_known_and_used() {
    traceless(|context, stream| {
        let out = stream.zeros::<u32>(N).unwrap();
        let foreign = other::graph();
        let (first, address) = other::alloc(foreign, &[], 4 * N);
        let freed = other::free(foreign, &[first], address);
        let (second, again) = other::alloc(foreign, &[freed], 4 * N);
        assert_eq!(address, again);
        let (mine, raws) = {
            // SAFETY: it lives as long as the handles.
            let graph = unsafe { Graph::from_raw(context, foreign) }.unwrap();
            let nodes = graph.nodes().unwrap();
            let alloc = |place: usize| AllocNode::try_from(nodes[place].clone()).unwrap();
            let free = FreeNode::try_from(nodes[1].clone()).unwrap();
            assert_eq!(
                (alloc(0).freed_by().unwrap(), alloc(2).freed_by().unwrap()),
                (Some(free.clone()), None)
            );
            assert_eq!(free.allocation().unwrap(), Some(alloc(0)));
            assert_eq!((alloc(2).bytes().unwrap(), alloc(2).address().unwrap()), (4 * N, again));
            assert_eq!(alloc(0).options().unwrap(), AllocOptions::new());
            let memory = alloc(2).memory::<u32>().unwrap();
            let fill = alloc(2).then().fill(&memory, 5).unwrap();
            fill.then().copy(&memory, &out).unwrap();
            assert!(graph.clone_graph().is_err());
            let mut exec = graph.instantiate().unwrap();
            for _ in 0..2 {
                let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
                assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
            }
            drop(exec);
            let (own, _) = graph.root().alloc::<u32>(N).unwrap();
            (own.address().unwrap(), graph.nodes().unwrap().len())
        };
        settle();
        // Other code's free of this library's memory.
        other::free(foreign, &[second], mine);
        {
            // SAFETY: as above.
            let graph = unsafe { Graph::from_raw(context, foreign) }.unwrap();
            let nodes = graph.nodes().unwrap();
            assert_eq!(nodes.len(), raws + 1);
            let own = AllocNode::try_from(nodes[raws - 1].clone()).unwrap();
            assert_eq!(own.address(), Ok(mine));
            assert!(own.freed_by().unwrap().is_some());
            assert!(matches!(
                graph.instantiate(),
                Err(cuda_graph::Error::Memory(cuda_graph::MemoryError::MemoryOrder { .. }))
            ));
        }
        other::destroy(foreign);
    });
}

#[test]
fn memory_for_another_device_is_granted_and_read_back() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    traceless(|context, stream| {
        let here = context.device();
        let Some(other) = Device::all().unwrap().into_iter().find(|device| *device != here) else {
            cuda_tests::skip!("there is one device");
        };
        if !other.can_access(here).unwrap() || !here.can_access(other).unwrap() {
            cuda_tests::skip!("the devices do not reach each other's memory");
        }
        let graph = context.graph().unwrap();
        let access = AllocOptions::new()
            .accessible_from(other, PoolAccess::Read)
            .accessible_from(other, PoolAccess::ReadWrite)
            .accessible_from(here, PoolAccess::ReadWrite);
        let (near, memory) = graph.root().alloc_with::<u32>(N, access.clone()).unwrap();
        assert_eq!(near.options().unwrap(), access);
        let far = AllocOptions::new().on(AllocPlace::Device(other));
        let (far, there) = near.then().alloc_with::<u32>(N, far).unwrap();
        assert_eq!(far.describe().unwrap(), format!("allocate 256 B, device {}", other.ordinal()));
        let fill = far.then().fill(&memory, 5).unwrap();
        let copy = fill.then().copy(&memory, &there).unwrap();
        let back: Node = copy.then().fill(memory.slice(..1).unwrap(), 6).unwrap().into();
        back.then().free(&memory).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        let output = exec.launch_with_outputs(stream).unwrap().take(&there).unwrap();
        assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
    });
}
