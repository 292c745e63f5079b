//! Which changes an update takes, and which it refuses, as drivers decide it. Where an update is
//! refused, the comparison of the graphs says so, too, and where it is taken, it finds nothing.

use core::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{ContextExt, EdgeKind, Frontier, Graph, Node, RefusalReason, Result};
use cuda_handles::{Batch, Buffer, Context, Copy2d, Kernel, PoolOptions, SharedHostBuffer, Slice, Stream};
use cuda_launch::{LaunchConfig, params, per};
use cuda_tests::{kernel, needs, no_leaks, setup};

use super::whole::refused;
use crate::capture::{N, add_to};

/// What the graphs use.
struct Things {
    context: Context,
    stream: Stream,
    add: add_to,
    increment: Kernel,
    one: Buffer<u32>,
    other: Buffer<u32>,
    plain: Buffer<u32>,
    pinned: SharedHostBuffer<u32>,
}

impl Things {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        Self {
            context: context.clone(),
            add: add_to::load(context).unwrap(),
            increment: kernel(context, "increment"),
            one: stream.zeros(N).unwrap(),
            other: stream.zeros(N).unwrap(),
            plain: context.alloc_blocking(N).unwrap(),
            pinned: context.pinned_zeros(N).unwrap().share(),
            stream,
        }
    }

    /// A graph with a node `first`, and the node of interest behind it.
    fn graph(&self, build: impl FnOnce(&Self, &Frontier<'_>) -> Result<Node>) -> Graph {
        let graph = self.context.graph().unwrap();
        let first = graph.root().empty().unwrap().named("first");
        let _node = build(self, &first.then()).unwrap().named("node");
        graph
    }

    /// The outcome of an update from one graph to another, with the node that is the reason. The
    /// comparison agrees.
    #[track_caller]
    fn outcome(&self, old: &Graph, new: &Graph) -> Option<(RefusalReason, Option<String>)> {
        let mut exec = old.instantiate().unwrap();
        let found = old.check_update(new).unwrap();
        assert_eq!(exec.check_update(new).unwrap(), found);
        let update = exec.update(new).unwrap();
        if update.is_updated() {
            assert_eq!(found, []);
            exec.launch(&self.stream).unwrap();
            self.stream.synchronize_blocking().unwrap();
            return None;
        }
        let refusal = refused(update);
        assert!(found.contains(&refusal), "{refusal}\n{found:?}");
        // It still does what it did.
        exec.launch(&self.stream).unwrap();
        self.stream.synchronize_blocking().unwrap();
        assert!(exec.update(old).unwrap().is_updated());
        Some((refusal.reason, refusal.node.map(|node| node.into_string())))
    }

    /// An update that changes one node is taken, in both directions.
    #[track_caller]
    fn taken(
        &self,
        old: impl FnOnce(&Self, &Frontier<'_>) -> Result<Node>,
        new: impl FnOnce(&Self, &Frontier<'_>) -> Result<Node>,
    ) {
        let (old, new) = (self.graph(old), self.graph(new));
        assert_eq!([self.outcome(&old, &new), self.outcome(&new, &old)], [None, None]);
    }

    /// An update that changes one node is refused, in both directions.
    #[track_caller]
    fn refused(
        &self,
        reason: RefusalReason,
        old: impl FnOnce(&Self, &Frontier<'_>) -> Result<Node>,
        new: impl FnOnce(&Self, &Frontier<'_>) -> Result<Node>,
    ) {
        let (old, new) = (self.graph(old), self.graph(new));
        let expected = || Some((reason, Some("node".to_owned())));
        assert_eq!([self.outcome(&old, &new), self.outcome(&new, &old)], [expected(), expected()]);
    }

    fn adds(&self, at: &Frontier<'_>, config: LaunchConfig) -> Result<Node> {
        at.launch(&self.add, config, (1, &self.one)).map(Node::from)
    }
}

#[test]
fn kernels_change_but_for_cooperation() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let plain = |things: &Things, at: &Frontier<'_>| things.adds(at, per(1, 1));
        // Another kernel, with other parameters.
        things.taken(plain, |things, at| {
            let params = params![&things.one, N as u32];
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { at.launch_untyped(&things.increment, per(N, 32), params) }.map(Node::from)
        });
        // Grid, block, shared memory and attributes.
        things.taken(plain, |things, at| things.adds(at, LaunchConfig::new(3, 2).shared_bytes(64)));
        things.taken(plain, |things, at| things.adds(at, per(1, 1).priority(-1)));
        let cooperative = |things: &Things, at: &Frontier<'_>| things.adds(at, per(1, 1).cooperative());
        things.refused(RefusalReason::Attributes, plain, cooperative);
        things.taken(cooperative, |things, at| things.adds(at, LaunchConfig::new(2, 1).cooperative()));
    });
}

#[test]
fn clusters_and_domains_change() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let things = Things::new(&context);
        let plain = |things: &Things, at: &Frontier<'_>| things.adds(at, LaunchConfig::new(4, 1));
        things.taken(plain, |things, at| things.adds(at, LaunchConfig::new(4, 1).cluster(2)));
        let domain = |things: &Things, at: &Frontier<'_>| {
            things.adds(at, LaunchConfig::new(4, 1).cluster(4).memory_sync_domain_map(1, 0))
        };
        things.taken(plain, domain);
    });
}

#[test]
fn fills_of_rows_change_and_those_of_rectangles_keep_their_shape() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let row = |things: &Things, at: &Frontier<'_>| at.fill(&things.one, 1).map(Node::from);
        things.taken(row, |things, at| at.fill(things.other.slice(..4)?, 2).map(Node::from));
        things.taken(row, |things, at| at.clear(things.plain.slice(..3)?).map(Node::from));
        things.taken(row, |things, at| at.fill(&things.pinned, 3).map(Node::from));
        things.taken(row, |things, at| at.fill(things.one.cast::<u8>()?.as_slice(), 4).map(Node::from));
        let rectangle = |value, extent: [usize; 2]| {
            move |things: &Things, at: &Frontier<'_>| {
                at.fill_2d(&things.one, 4, extent, value).map(Node::from)
            }
        };
        things.taken(rectangle(1, [2, 4]), rectangle(2, [2, 4]));
        things.refused(RefusalReason::Parameters, rectangle(1, [2, 4]), rectangle(1, [2, 3]));
        things.refused(RefusalReason::Parameters, row, rectangle(1, [2, 4]));
    });
}

#[test]
fn copies_keep_direction_and_dimension() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let row = |things: &Things, at: &Frontier<'_>| at.copy(&things.one, &things.other).map(Node::from);
        things.taken(row, |things, at| {
            at.copy(things.other.slice(..4)?, things.one.slice(..4)?).map(Node::from)
        });
        let to_host =
            |things: &Things, at: &Frontier<'_>| at.copy(&things.one, &things.pinned).map(Node::from);
        let from_host =
            |things: &Things, at: &Frontier<'_>| at.copy(&things.pinned, &things.other).map(Node::from);
        things.taken(to_host, |things, at| {
            at.copy(things.other.slice(1..4)?, things.pinned.slice(2..5)?).map(Node::from)
        });
        things.refused(RefusalReason::Parameters, row, to_host);
        things.refused(RefusalReason::Parameters, row, from_host);
        things.refused(RefusalReason::Parameters, to_host, from_host);
        let rectangle = |width: usize, height: usize, pitch: usize| {
            move |things: &Things, at: &Frontier<'_>| {
                at.copy_2d(Copy2d {
                    source: things.one.as_slice(),
                    source_pitch: 4,
                    destination: things.other.as_slice(),
                    destination_pitch: pitch,
                    width,
                    height,
                })
                .map(Node::from)
            }
        };
        things.refused(RefusalReason::Parameters, row, rectangle(2, 4, 4));
        things.refused(RefusalReason::Parameters, rectangle(2, 4, 4), rectangle(2, 3, 4));
        things.refused(RefusalReason::Parameters, rectangle(2, 4, 4), rectangle(2, 4, 3));
    });
}

#[test]
fn copies_keep_memory_of_pools_and_other_memory() {
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let pool = context.pool(PoolOptions::default()).unwrap();
        let of_pool = things.stream.zeros_from::<u32>(&pool, N).unwrap();
        let managed = [(); 2].map(|()| context.managed_zeros::<u32>(N).unwrap().share());
        let plain = context.alloc_blocking::<u32>(N).unwrap();
        let from = |memory: Slice<'_, u32>| graph_of_copy(&context, memory, things.other.as_slice());
        let to = |memory: Slice<'_, u32>| graph_of_copy(&context, things.other.as_slice(), memory);
        let (pooled, plain, managed) = (
            [things.one.as_slice(), of_pool.as_slice()],
            [things.plain.as_slice(), plain.as_slice()],
            managed.each_ref().map(|memory| memory.as_slice()),
        );
        // Each side for itself, in both directions.
        for [old, new] in [pooled, plain, managed] {
            for (old, new) in [(from(old), from(new)), (to(old), to(new))] {
                assert_eq!([things.outcome(&old, &new), things.outcome(&new, &old)], [None, None]);
            }
        }
        let expected = || Some((RefusalReason::Parameters, Some("node".to_owned())));
        for (one, other) in [(pooled[0], plain[0]), (pooled[1], plain[1]), (pooled[0], managed[0])] {
            for (old, new, side) in
                [(from(one), from(other), "its source is"), (to(one), to(other), "its destination is")]
            {
                assert_eq!(
                    [things.outcome(&old, &new), things.outcome(&new, &old)],
                    [expected(), expected()]
                );
                let found = old.check_update(&new).unwrap();
                assert!(found[0].why.starts_with(side), "{found:?}");
            }
        }
        things.stream.synchronize_blocking().unwrap();
    });
}

fn graph_of_copy(context: &Context, from: Slice<'_, u32>, to: Slice<'_, u32>) -> Graph {
    let graph = context.graph().unwrap();
    let _node = graph.root().copy(from, to).unwrap().named("node");
    graph
}

#[test]
fn host_functions_events_and_batches() {
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let calls = Arc::new(AtomicU32::new(0));
        let adding = |amount| {
            let calls = Arc::clone(&calls);
            move |_: &Things, at: &Frontier<'_>| {
                let count = move || {
                    calls.fetch_add(amount, Ordering::Relaxed);
                };
                at.host(count).map(Node::from)
            }
        };
        things.taken(adding(1), adding(10));
        // Each direction launches what it was updated to.
        assert_eq!(calls.load(Ordering::Relaxed), 11);
        let (one, other) = (context.event().unwrap(), context.event().unwrap());
        things.taken(|_, at| at.record(&one).map(Node::from), |_, at| at.record(&other).map(Node::from));
        things.taken(|_, at| at.wait(&one).map(Node::from), |_, at| at.wait(&other).map(Node::from));
        let plain = context.alloc_blocking::<u32>(N).unwrap();
        let write = |buffer: &Buffer<u32>, values: &[u32]| {
            let mut batch = Batch::new();
            for (place, value) in values.iter().enumerate() {
                batch.write(buffer, place, *value).unwrap();
            }
            move |_: &Things, at: &Frontier<'_>| at.batch(&batch).map(Node::from)
        };
        things.taken(write(&things.plain, &[1, 2]), write(&plain, &[3, 4]));
        things.refused(RefusalReason::Parameters, write(&plain, &[1, 2]), write(&plain, &[1]));
    });
}

#[test]
fn other_nodes_and_edges_are_refused() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let adds = |things: &Things, at: &Frontier<'_>| things.adds(at, per(1, 1));
        let old = things.graph(adds);
        // A node more, and a node fewer: no node is the reason.
        let new = things.graph(|things, at| things.adds(&things.adds(at, per(1, 1))?.then(), per(1, 1)));
        assert_eq!(things.outcome(&old, &new), Some((RefusalReason::Topology, None)));
        assert_eq!(things.outcome(&new, &old), Some((RefusalReason::Topology, None)));
        // An edge fewer.
        let new = context.graph().unwrap();
        new.root().empty().unwrap();
        things.adds(&new.root(), per(1, 1)).unwrap();
        assert_eq!(things.outcome(&old, &new).map(|(reason, _)| reason), Some(RefusalReason::Topology));
        assert_eq!(things.outcome(&new, &old).map(|(reason, _)| reason), Some(RefusalReason::Topology));
        // Another kind of node.
        things.refused(RefusalReason::NodeKind, adds, |things, at| at.fill(&things.one, 1).map(Node::from));
        // The same in a child graph.
        let child = |inner: Graph| move |_: &Things, at: &Frontier<'_>| at.child(&inner).map(Node::from);
        things.taken(child(things.graph(adds)), child(things.graph(|things, at| things.adds(at, per(2, 1)))));
        let (old, new) = (
            things.graph(child(things.graph(adds))),
            things.graph(child(things.graph(|things, at| at.fill(&things.one, 1).map(Node::from)))),
        );
        assert_eq!(things.outcome(&old, &new), Some((RefusalReason::NodeKind, Some("node".to_owned()))));
        let new = things.graph(child(things.context.graph().unwrap()));
        assert_eq!(things.outcome(&old, &new).map(|(reason, _)| reason), Some(RefusalReason::Topology));
        // Nothing in nothing.
        let (old, new) = (context.graph().unwrap(), context.graph().unwrap());
        assert_eq!(things.outcome(&old, &new), None);
    });
}

#[test]
fn edges_keep_their_kinds() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let things = Things::new(&context);
        let chain = |kind| {
            let graph = context.graph().unwrap();
            let first = things.adds(&graph.root(), per(1, 1)).unwrap().named("first");
            let at = graph.after_all([(&first, kind)]).unwrap();
            let _second = things.adds(&at, per(1, 1)).unwrap().named("second");
            graph
        };
        let (full, programmatic) = (chain(EdgeKind::Full), chain(EdgeKind::Programmatic));
        let mut exec = full.instantiate().unwrap();
        let refusal = refused(exec.update(&programmatic).unwrap());
        let names = (refusal.from_node.as_deref(), refusal.node.as_deref());
        assert_eq!((refusal.reason, names), (RefusalReason::Topology, (Some("first"), Some("second"))));
        assert!(refusal.why.starts_with("the edge is programmatic"), "{refusal}");
        assert_eq!(full.check_update(&programmatic).unwrap(), [refusal]);
        assert_eq!(things.outcome(&programmatic, &chain(EdgeKind::Programmatic)), None);
    });
}

#[test]
fn chains_and_lone_nodes_in_another_order_are_paired_or_refused() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        // A chain of two and a node alone: sinks go by the order in which they were added.
        let build = |chain_first: bool| {
            let graph = context.graph().unwrap();
            let alone = || drop(things.adds(&graph.root(), per(1, 1)).unwrap().named("alone"));
            let chain = || {
                let first = things.adds(&graph.root(), per(1, 1)).unwrap().named("first");
                things.adds(&first.then(), per(1, 1)).unwrap().named("second");
            };
            match chain_first {
                true => {
                    chain();
                    alone();
                }
                false => {
                    alone();
                    chain();
                }
            }
            graph
        };
        assert_eq!(things.outcome(&build(true), &build(true)), None);
        let crossed = things.outcome(&build(true), &build(false));
        assert_eq!(crossed.map(|(reason, _)| reason), Some(RefusalReason::Topology));
        // A chain that was made backwards.
        let forwards = things.graph(|things, at| things.adds(at, per(1, 1)));
        let backwards = context.graph().unwrap();
        let last = things.adds(&backwards.root(), per(1, 1)).unwrap();
        let first = backwards.root().empty().unwrap();
        backwards.add_edge(&first, &last).unwrap();
        assert_eq!(things.outcome(&forwards, &backwards), None);
    });
}

#[test]
fn graphs_of_other_code_are_compared_and_updated_from() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let things = Things::new(&context);
        let graph = things.graph(|_, at| at.empty().map(Node::from));
        let mut exec = graph.instantiate().unwrap();
        let foreign = crate::common::other::graph();
        let first = crate::common::other::empty(foreign, &[]);
        crate::common::other::empty(foreign, &[first]);
        // SAFETY: the graph lives as long as its handles.
        let adopted = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
        assert_eq!(graph.check_update(&adopted).unwrap(), []);
        assert!(exec.update(&adopted).unwrap().is_updated());
        exec.launch(&things.stream).unwrap();
        let mut of_adopted = adopted.instantiate().unwrap();
        assert!(of_adopted.update(&graph).unwrap().is_updated());
        drop(adopted);
        of_adopted.launch(&things.stream).unwrap();
        things.stream.synchronize_blocking().unwrap();
        drop((exec, of_adopted));
        crate::common::other::destroy(foreign);
        assert!(!ptr::eq(foreign, ptr::null_mut()));
    });
}
