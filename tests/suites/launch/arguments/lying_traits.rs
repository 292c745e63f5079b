//! Implementations of safe traits that lie, change their answers, panic or call the library:
//! nothing breaks.

use core::cell::Cell;
use std::collections::Bound;
use std::ops::RangeBounds;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_graph::{ContextExt, Graph};
use cuda_handles::{AsStream, Buffer, Error as HandleError, GraphBuffer, NodeMemory, Slice, Stream};
use cuda_launch::{
    Argument, ArgumentsOf, ConditionalHandle, Error, FixedArgument, FixedArgumentsOf, InOut, PlainArgument,
    PlainArgumentsOf, kernel, per,
};
use cuda_tests::{Need, SMALL, alone, no_leaks, other_device, setup};

kernel! {
    // SAFETY: each thread touches the element of its own number, if that is below `n`.
    unsafe in cuda_handles::Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

/// Is another stream each time.
struct Wavering<'s> {
    streams: [&'s Stream; 2],
    asked: Cell<usize>,
}

impl AsStream for Wavering<'_> {
    fn as_stream(&self) -> &Stream {
        let asked = self.asked.replace(self.asked.get() + 1);
        self.streams[asked % 2]
    }
}

#[test]
fn a_stream_that_is_another_one_each_time_is_asked_once_for_a_launch() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let there = other_device().context().unwrap();
    let (stream, other) = (context.stream().unwrap(), there.stream().unwrap());
    let increment = increment::load(&context).unwrap();
    let memory = stream.zeros::<u32>(8).unwrap();
    for first in 0..2 {
        let wavering = Wavering { streams: [&stream, &other], asked: Cell::new(first) };
        let launched = increment.launch(&wavering, per(8, 8), (&memory, 8));
        match first {
            0 => launched.unwrap(),
            _ => assert!(matches!(launched, Err(Error::Handles(HandleError::WrongContext(_))))),
        }
    }
    assert_eq!(memory.read_blocking(&stream).unwrap(), [1; 8]);
}

/// Says that memory of a graph is that of a stream.
#[derive(Clone, Copy)]
struct Disguised<'a>(&'a GraphBuffer<u32>);

impl<'a> Argument<'a, InOut<u32>> for Disguised<'a> {
    fn value(self) -> Slice<'a, u32> {
        self.0.as_slice().as_operand()
    }
}

impl<'a> FixedArgument<'a, InOut<u32>> for Disguised<'a> {}

impl<'a> PlainArgument<'a, InOut<u32>> for Disguised<'a> {}

#[test]
fn memory_of_a_graph_in_disguise_is_refused_on_a_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let (_node, memory) = graph.root().alloc::<u32>(8).unwrap();
        let increment = increment::load(&context).unwrap();
        let launched = increment.launch(&stream, per(8, 8), (Disguised(&memory), 8));
        assert_eq!(launched, Err(Error::Handles(HandleError::MemoryOfGraph)));
    });
}

/// Arguments that say they are of a plain launch, with the handle of a condition among them.
struct Plain(ConditionalHandle);

impl ArgumentsOf<'_, (ConditionalHandle,)> for Plain {
    fn values(self) -> (ConditionalHandle,) {
        (self.0,)
    }
}

// A kernel with this signature is launched by its type's `launch` alone, which takes arguments of a
// `PlainSignature`.
impl FixedArgumentsOf<'_, (ConditionalHandle,)> for Plain {}

impl PlainArgumentsOf<'_, (ConditionalHandle,)> for Plain {}

kernel! {
    // SAFETY: the kernel is never launched.
    unsafe in cuda_handles::Image::Ptx(".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry sets(.param .u64 handle) { ret; }");

    fn sets(condition: ConditionalHandle);
}

#[test]
fn the_handle_of_a_condition_in_disguise_is_refused_on_a_stream() {
    let context = setup();
    if !Need::Conditionals.is_met() {
        cuda_tests::skip!("there are no conditions");
    }
    no_leaks(|| {
        let (stream, graph) = (context.stream().unwrap(), context.graph().unwrap());
        let condition = graph.condition().unwrap();
        let sets = sets::load(&context).unwrap();
        let launched = sets.launch(&stream, per(1, 1), Plain(condition.handle()));
        assert!(matches!(launched, Err(Error::OutsideGraph { .. })), "{launched:?}");
    });
}

/// A range that grows with each look at it.
struct Growing(Cell<usize>, usize);

impl RangeBounds<usize> for Growing {
    fn start_bound(&self) -> Bound<&usize> {
        self.0.set(self.0.get() + 1);
        Bound::Included(&self.1)
    }

    fn end_bound(&self) -> Bound<&usize> {
        self.0.set(self.0.get() + 1);
        Bound::Unbounded
    }

    fn contains<U: ?Sized + PartialOrd<usize>>(&self, _: &U) -> bool
    where
        usize: PartialOrd<U>,
    {
        true
    }
}

#[test]
fn a_range_is_looked_at_once() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let memory = stream.zeros::<u32>(8).unwrap();
        let range = Growing(Cell::new(0), 6);
        assert_eq!(memory.slice(&range).unwrap().len(), 2);
        assert_eq!(range.0.get(), 2, "the start and the end, once each");
        assert!(matches!(memory.slice(Growing(Cell::new(0), 9)), Err(HandleError::Bounds { .. })));
    });
}

impl RangeBounds<usize> for &Growing {
    fn start_bound(&self) -> Bound<&usize> {
        (**self).start_bound()
    }

    fn end_bound(&self) -> Bound<&usize> {
        (**self).end_bound()
    }
}

/// Uses the graph while it is asked for its memory, and then may panic.
struct Busy<'a> {
    graph: &'a Graph,
    memory: &'a Buffer<u32>,
    panics: bool,
}

impl<'a> NodeMemory<'a, u32> for Busy<'a> {
    fn operand(self) -> Slice<'a, u32> {
        self.graph.root().empty().unwrap();
        assert!(!self.panics, "as it was asked to");
        self.memory.as_slice()
    }
}

#[test]
fn memory_that_uses_its_graph_or_panics_leaves_it_usable() {
    let context = setup();
    no_leaks(|| {
        let (stream, graph) = (context.stream().unwrap(), context.graph().unwrap());
        let memory = stream.zeros::<u32>(8).unwrap();
        let busy = |panics| Busy { graph: &graph, memory: &memory, panics };
        graph.root().fill(busy(false), 1).unwrap();
        graph.root().copy(busy(false), &stream.zeros::<u32>(8).unwrap()).unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| graph.root().fill(busy(true), 1).map(drop)));
        assert!(caught.is_err());
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(memory.read_blocking(&stream).unwrap(), [1; 8]);
    });
}

#[test]
fn a_panic_with_a_context_current_leaves_the_thread_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let caught = catch_unwind(AssertUnwindSafe(|| context.with_current(|| panic!("as it was asked to"))));
        assert!(caught.is_err());
        let mut current = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        cuda_tests::raw::ok(unsafe { context.driver().cuCtxGetCurrent(&raw mut current) });
        assert!(current.is_null());
    });
}
