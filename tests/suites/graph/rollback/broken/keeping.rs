//! Things that changes use, and how long a graph keeps them.

use std::sync::{Arc, Weak};

use cuda_graph::{ContextExt, Graph};
use cuda_handles::{Batch, Buffer, Context, Event, Kernel, Owner, SharedHostBuffer, Stream};
use cuda_launch::kernel;
use cuda_tests::{Need, SOON, kernel, settle, until, used_stream};

kernel! {
    // SAFETY: one thread counts in the element; the condition is set, and nothing else is touched.
    unsafe in "../../../../kernels/conditions.ptx";

    pub(super) fn count_down(counter: InOut<u32>, handle: ConditionalHandle)
    where counter.len() >= 1, grid.product() * block.product() == 1;
}

/// What nodes use, made before anything fails.
pub(super) struct Things {
    pub(super) stream: Stream,
    /// One that takes nothing, and one that takes memory and its length.
    pub(super) kernels: [Kernel; 2],
    pub(super) event: Event,
    pub(super) batch: Batch,
    pub(super) host: SharedHostBuffer<u32>,
    pub(super) count_down: Option<count_down>,
}

impl Things {
    pub(super) fn new(context: &Context) -> Self {
        let stream = used_stream(context);
        let mut batch = Batch::new();
        let plain = context.alloc_blocking::<u32>(1).unwrap();
        batch.write(&plain, 0, 1).unwrap();
        Self {
            kernels: ["empty", "increment"].map(|name| kernel(context, name)),
            event: context.event().unwrap(),
            batch,
            host: context.pinned_zeros::<u32>(1024).unwrap().share(),
            count_down: Need::Conditionals.is_met().then(|| count_down::load(context).unwrap()),
            stream,
        }
    }

    pub(super) fn context(&self) -> &Context {
        self.stream.context()
    }
}

/// What one change uses, of which nobody else has a handle.
pub(super) struct Used {
    pub(super) buffer: Buffer<u32>,
    pub(super) held: Arc<()>,
    /// Has `held`.
    pub(super) source: Graph,
}

impl Used {
    pub(super) fn new(things: &Things) -> Self {
        let (held, source) = (Arc::new(()), things.context().graph().unwrap());
        source.root().empty().unwrap();
        source.keep(Owner::shared(Arc::clone(&held)));
        let buffer = things.stream.zeros::<u32>(1024).unwrap();
        things.stream.synchronize_blocking().unwrap();
        Self { buffer, held, source }
    }
}

/// Which of that the node uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    Nothing,
    Buffer,
    Held,
}

/// What a change that broke the graph used is there as long as the graph, and not longer.
pub(super) fn stays_until_the_graph_goes<G>(keeps: Keeps, used: Used, held: &Weak<()>, what: &str, graph: G) {
    let memory = Arc::downgrade(used.buffer.allocation());
    drop(used);
    settle();
    let is_there = || match keeps {
        Keeps::Nothing => true,
        Keeps::Buffer => memory.strong_count() > 0,
        Keeps::Held => held.strong_count() > 0,
    };
    assert!(is_there(), "{what}: dropped before the graph");
    drop(graph);
    let is_gone = || memory.strong_count() == 0 && held.strong_count() == 0;
    let gone = until(SOON, || {
        settle();
        is_gone()
    });
    assert!(gone, "{what}: kept after the graph");
}

/// A change that failed keeps nothing.
pub(super) fn goes(used: Used, held: &Weak<()>, what: &str) {
    let memory = Arc::downgrade(used.buffer.allocation());
    drop(used);
    let is_gone = || memory.strong_count() == 0 && held.strong_count() == 0;
    assert!(until(SOON, is_gone), "{what}: kept by a graph that is as it was");
}
