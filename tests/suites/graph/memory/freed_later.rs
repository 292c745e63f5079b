//! Free nodes added after executables, copies and fills.

use cuda_graph::{
    ContextExt, Error, ExecError, Graph, GraphExec, InstantiateOptions, MemoryError, Node, NodeKind, RawFill,
    RawMemory,
};
use cuda_handles::{Context, Copy2d, Error as HandleError, GraphBuffer, Slice, Stream};
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, SOON, fail, is_soft, needs, until};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::outputs::leaving;
use super::{COUNT, N, increment, traceless};

fn too_late(memory: &str) -> Error {
    Error::Memory(MemoryError::FreedTooLate { memory: memory.into() })
}

/// A use of an executable.
type Use = fn(&mut GraphExec, &Stream);

#[test]
fn memory_that_an_executable_was_made_with_is_not_freed_by_a_node() {
    traceless(|context, stream| {
        let auto = InstantiateOptions::new().auto_free();
        let makings: [(&str, Use, InstantiateOptions); 4] = [
            ("made", |_, _| {}, InstantiateOptions::new()),
            ("uploaded", |exec, stream| exec.upload(stream).unwrap(), InstantiateOptions::new()),
            ("launched", |exec, stream| exec.launch(stream).unwrap(), InstantiateOptions::new()),
            ("frees by itself", |exec, stream| exec.launch(stream).unwrap(), auto),
        ];
        for (what, used, options) in makings {
            let (graph, memory) = leaving(context);
            let mut exec = graph.instantiate_with(options).unwrap();
            used(&mut exec, stream);
            let len = graph.len().unwrap();
            for _ in 0..2 {
                assert_eq!(graph.free(&memory).unwrap_err(), too_late("alloc#0"), "{what}");
                assert_eq!(graph.root().free(&memory).unwrap_err(), too_late("alloc#0"), "{what}");
            }
            drop(exec);
            assert_eq!(graph.free(&memory).unwrap_err(), too_late("alloc#0"), "{what}");
            assert_eq!(graph.len().unwrap(), len);
            // It is used as before, and what is allocated from now on has another life.
            let fill = graph.nodes().unwrap()[1].clone();
            let again = fill.then().fill(&memory, 6).unwrap();
            let (_, next) = again.then().alloc::<u32>(N).unwrap();
            graph.free(&next).unwrap();
            let mut exec = { graph }.instantiate().unwrap();
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            assert_eq!(output.read_blocking(stream).unwrap(), [6; N], "{what}");
        }
        let told = too_late("scratch").to_string();
        assert!(told.contains("`scratch`") && told.contains("before the first executable"), "{told}");
    });
}

#[test]
fn an_executable_that_was_not_made_does_not_count() {
    traceless(|context, stream| {
        let (graph, memory) = leaving(context);
        let early = graph.root().fill(&memory, 1).unwrap();
        assert!(matches!(graph.instantiate(), Err(Error::Memory(MemoryError::MemoryOrder { .. }))));
        graph.add_edge(&graph.nodes().unwrap()[0], &early).unwrap();
        let failing = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(matches!(graph.instantiate(), Err(Error::Exec(ExecError::Instantiate(_)))));
        drop(failing);
        let device = InstantiateOptions::new().device_launch();
        assert!(matches!(graph.instantiate_with(device), Err(Error::Exec(ExecError::DeviceLaunch { .. }))));
        graph.free(&memory).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert!(exec.launch_with_outputs(stream).unwrap().is_empty());
    });
}

#[test]
fn what_the_driver_refuses_for_other_code_is_explained() {
    use crate::common::other;
    traceless(|context, _| {
        let (graph, memory) = leaving(context);
        // The driver takes one free node for it, in whatever graph.
        let foreign = other::graph();
        other::free(foreign, &[], memory.address());
        let error = graph.free(&memory).unwrap_err();
        let (call, code) = (Call::cuGraphAddNode, CUresult::CUDA_ERROR_INVALID_VALUE);
        let cause = Box::new(HandleError::Driver { call, code });
        assert_eq!(error, Error::Memory(MemoryError::FreeRefused { memory: "alloc#0".into(), cause }));
        assert!(error.to_string().contains("frees the memory in another graph"), "{error}");
        assert_eq!(graph.len().unwrap(), 2);
        other::destroy(foreign);
        // An executable of other code counts as well.
        let (graph, memory) = leaving(context);
        other::destroy_exec(other::instantiate(context, graph.lend().unwrap()));
        match graph.free(&memory) {
            Err(Error::Memory(MemoryError::FreeRefused { .. })) => {}
            outcome => assert!(is_soft(), "{outcome:?}"),
        }
        // Another answer is told as it is.
        let (graph, memory) = leaving(context);
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let failing = fail(call, 1, code);
        assert_eq!(graph.free(&memory).unwrap_err(), Error::Handles(HandleError::Driver { call, code }));
        drop(failing);
        graph.free(&memory).unwrap();
    });
}

#[test]
fn copies_and_fills_come_before_the_free_node() {
    traceless(|context, stream| {
        let kernel = increment::load(context).unwrap();
        let own = stream.zeros::<u32>(N).unwrap();
        let host = context.pinned_zeros::<u32>(N).unwrap().share();
        let graph = context.graph().unwrap();
        let inner = graph.root().child(&context.graph().unwrap()).unwrap().embedded().unwrap();
        let condition = graph.condition_with_default(0);
        let branch = condition.and_then(|condition| graph.root().if_node(&condition));
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let filled = alloc.named("scratch").then().fill(&memory, 1).unwrap();
        let other = graph.root().fill(&own, 1).unwrap();
        let free = filled.then().free(&memory).unwrap().named("gone");
        let mut graphs = vec![graph.clone(), inner];
        graphs.extend(branch.ok().map(|branch| branch.body().unwrap()));
        let whole = memory.as_slice().as_operand();
        let layer = |source, destination| Copy2d {
            source,
            source_pitch: 8,
            destination,
            destination_pitch: 8,
            width: 4,
            height: 4,
        };
        let refused = |kind| {
            Error::Memory(MemoryError::FreedBefore { kind, memory: "scratch".into(), free: "gone".into() })
        };
        for graph in &graphs {
            let (at, before) = (graph.root(), graph.len().unwrap());
            let part = memory.slice(8..16).unwrap();
            let copies = [
                at.copy(&memory, &own),
                at.copy(&own, &memory),
                at.copy(part, own.slice(..8).unwrap()),
                at.copy(memory.slice(..8).unwrap(), part),
                at.copy(&memory, &host),
                at.copy(&host, &memory),
                at.copy_2d(layer(whole, own.as_slice())),
                at.copy_2d(layer(own.as_slice(), whole)),
                at.copy_3d(layer(own.as_slice(), whole).layer()),
                at.copy_peer(&memory, &own),
            ];
            for (place, copy) in copies.into_iter().enumerate() {
                assert_eq!(copy.unwrap_err(), refused(NodeKind::Memcpy), "{place}");
            }
            for fill in [at.fill(&memory, 1), at.fill(part, 1), at.fill_2d(&memory, 8, [4, 4], 1)] {
                assert_eq!(fill.unwrap_err(), refused(NodeKind::Memset));
            }
            assert_eq!(graph.len().unwrap(), before);
        }
        let told = refused(NodeKind::Memset).to_string();
        assert!(told.contains("first and the free node last"), "{told}");
        // Before the free node in order, too, but a kernel can.
        let last = filled.then().before([&free]).unwrap();
        assert_eq!(last.fill(&memory, 2).unwrap_err(), refused(NodeKind::Memset));
        last.launch(&kernel, per(N, 32), (&memory, COUNT)).unwrap();
        // And so can nodes that are there.
        filled.set(&memory, 2).unwrap();
        filled.set_2d(&memory, 8, [8, 8], 3).unwrap();
        // An owner says nothing of the address that it is kept with.
        // SAFETY: the graph is not launched after this.
        let kept = unsafe {
            let target = RawMemory::at(own.address()).keep(memory.allocation());
            last.fill_raw(RawFill::new(target, 4, 3, N)).unwrap()
        };
        graph.add_edge(&other, &kept).unwrap();
        // The next allocation has the address and no free node.
        let (next, again) = free.then().alloc::<u32>(N).unwrap();
        next.then().fill(&again, 4).unwrap();
    });
}

#[test]
fn memory_that_a_moved_graph_frees_is_copied_nowhere() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        let own = stream.zeros::<u32>(N).unwrap();
        let (source, memory) = leaving(context);
        source.nodes().unwrap()[0].clone().named("scratch");
        source.free(&memory).unwrap().named("gone");
        let graph = context.graph().unwrap();
        let child = graph.root().child_moved(source).unwrap();
        let beside = graph.root().child(&context.graph().unwrap()).unwrap();
        let refused = |kind| {
            Error::Memory(MemoryError::FreedBefore { kind, memory: "scratch".into(), free: "gone".into() })
        };
        for graph in [graph, child.embedded().unwrap(), beside.embedded().unwrap()] {
            assert_eq!(graph.root().fill(&memory, 1).unwrap_err(), refused(NodeKind::Memset));
            assert_eq!(graph.root().copy(&memory, &own).unwrap_err(), refused(NodeKind::Memcpy));
        }
    });
}

/// A graph around one that leaves memory with 5 in it.
fn around(context: &Context) -> (Graph, GraphBuffer<u32>) {
    let (source, memory) = leaving(context);
    let graph = context.graph().unwrap();
    graph.root().child_moved(source).unwrap();
    (graph, memory)
}

#[test]
fn memory_of_a_moved_graph_is_freed_around_it_at_any_time() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        for before in [false, true] {
            let out = stream.zeros::<u32>(N).unwrap();
            let (source, memory) = leaving(context);
            if before {
                source.instantiate().unwrap().launch(stream).unwrap();
                assert_eq!(source.free(&memory).unwrap_err(), too_late("alloc#0"));
            }
            let graph = context.graph().unwrap();
            let child = graph.root().child_moved(source).unwrap();
            let (own, mine) = graph.root().alloc::<u32>(N).unwrap();
            let copy = child.then().copy(&memory, &out).unwrap();
            graph.instantiate().unwrap().launch(stream).unwrap();
            let free = graph.free(&memory).unwrap();
            assert_eq!(free.predecessors().unwrap(), [(*child).clone(), (*copy).clone()]);
            assert_eq!(graph.free(&mine).unwrap_err(), too_late(&own.name()));
            let mut exec = { graph }.instantiate().unwrap();
            assert_eq!(exec.launch_with_outputs(stream).unwrap().len(), 1);
            assert_eq!(out.read_blocking(stream).unwrap(), [5; N]);
        }
    });
}

#[test]
fn an_executable_that_frees_memory_is_not_launched_over_what_is_left_of_it() {
    for options in [InstantiateOptions::new().auto_free(), InstantiateOptions::new()] {
        traceless(|context, stream| {
            needs!(MovedGraphs);
            let (graph, memory) = around(context);
            let other = context.graph().unwrap();
            let mut exec = graph.instantiate().unwrap();
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            let out = stream.zeros::<u32>(N).unwrap();
            let copy = other.root().copy(&output, &out).unwrap();
            let mut others = other.instantiate().unwrap();
            drop(output);
            drop(exec);
            let free = graph.free(&memory).unwrap();
            let mut exec = graph.instantiate_with(options.clone()).unwrap();
            let error = exec.launch(stream).unwrap_err();
            assert!(matches!(error, Error::Memory(MemoryError::OutputInUse { .. })), "{error}");
            assert!(exec.launch_with_outputs(stream).is_err());
            others.launch(stream).unwrap();
            drop(others);
            assert_eq!(out.read_blocking(stream).unwrap(), [5; N]);
            copy.remove().unwrap();
            // The executable of the other graph goes once the driver has let go of it.
            assert!(until(SOON, || exec.launch(stream).is_ok()));
            assert!(exec.launch_with_outputs(stream).unwrap().is_empty());
            drop(free);
        });
    }
}

#[test]
fn an_executable_that_frees_memory_waits_for_what_was_left_of_it() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        let (graph, memory) = around(context);
        let mut exec = graph.instantiate().unwrap();
        let gate = Gate::close(stream);
        // Freed behind the gate.
        exec.launch(stream).unwrap();
        drop(exec);
        graph.free(&memory).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let next = context.stream().unwrap();
        exec.launch(&next).unwrap();
        assert!(!next.query().unwrap());
        gate.open();
        next.synchronize_blocking().unwrap();
        // It has waited once and for all.
        let (launched, cost) = cuda_tests::count(|| exec.launch(&next));
        launched.unwrap();
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
    });
}

/// An operation on a graph whose nodes form a chain.
#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc,
    Free(usize),
    Fill(usize, Place),
    CopyTo(usize, Place),
    CopyFrom(usize, Place),
    Instantiate,
    /// One that fails.
    Fail,
}

/// In which graph.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root,
    Child,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || prop_oneof![Just(Place::Root), Just(Place::Child)];
    let memory = 0..6_usize;
    let step = prop_oneof![
        4 => Just(Step::Alloc),
        4 => memory.clone().prop_map(Step::Free),
        2 => (memory.clone(), place()).prop_map(|(memory, place)| Step::Fill(memory, place)),
        2 => (memory.clone(), place()).prop_map(|(memory, place)| Step::CopyTo(memory, place)),
        2 => (memory, place()).prop_map(|(memory, place)| Step::CopyFrom(memory, place)),
        1 => Just(Step::Instantiate),
        1 => Just(Step::Fail),
    ];
    prop::collection::vec(step, 1..40)
}

/// Memory of the graph, and what is known of it.
struct Known {
    memory: GraphBuffer<u32>,
    name: Box<str>,
    instantiated: bool,
    free: Option<Box<str>>,
}

struct Line<'l> {
    graph: Graph,
    last: Node,
    known: Vec<Known>,
    own: Slice<'l, u32>,
    refused: usize,
}

impl Line<'_> {
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let of = |memory: usize, known: &[Known]| (!known.is_empty()).then(|| memory % known.len());
        match step {
            Step::Alloc => {
                let (node, memory) = self.last.then().alloc::<u32>(N).unwrap();
                let name = node.name().into();
                self.known.push(Known { memory, name, instantiated: false, free: None });
                self.last = node.into();
            }
            Step::Free(memory) => {
                let Some(known) = of(memory, &self.known) else { return Ok(()) };
                let Known { memory, name, instantiated, free } = &mut self.known[known];
                let outcome = self.last.then().free(memory);
                let error = match (&*free, *instantiated) {
                    (Some(free), _) => Some(Error::Memory(MemoryError::FreedTwice {
                        memory: name.clone().into(),
                        free: free.clone().into(),
                    })),
                    (None, true) => {
                        Some(Error::Memory(MemoryError::FreedTooLate { memory: name.clone().into() }))
                    }
                    (None, false) => None,
                };
                self.refused += usize::from(error.is_some());
                match outcome {
                    Ok(node) => {
                        prop_assert!(error.is_none());
                        *free = Some(node.name().into());
                        self.last = node.into();
                    }
                    Err(found) => prop_assert_eq!(Some(found), error),
                }
            }
            Step::Fill(memory, place) | Step::CopyTo(memory, place) | Step::CopyFrom(memory, place) => {
                let Some(known) = of(memory, &self.known) else { return Ok(()) };
                self.transfer(step, known, place)?;
            }
            Step::Instantiate => {
                drop(self.graph.instantiate().unwrap());
                self.known.iter_mut().for_each(|known| known.instantiated = true);
            }
            Step::Fail => {
                let failing = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_UNKNOWN);
                prop_assert!(self.graph.instantiate().is_err());
                drop(failing);
            }
        }
        Ok(())
    }

    fn transfer(&mut self, step: Step, known: usize, place: Place) -> Result<(), TestCaseError> {
        let Known { memory, name, free, .. } = &self.known[known];
        let inner = match place {
            Place::Root => None,
            Place::Child => Some(self.last.then().child(&self.graph.context().graph().unwrap()).unwrap()),
        };
        let embedded = inner.as_ref().map(|child| child.embedded().unwrap());
        embedded.iter().for_each(|embedded| drop(embedded.root().empty().unwrap()));
        let at = embedded.as_ref().map_or_else(|| self.last.then(), Graph::root);
        let (kind, outcome) = match step {
            Step::CopyTo(..) => (NodeKind::Memcpy, at.copy(self.own, memory).map(Node::from)),
            Step::CopyFrom(..) => (NodeKind::Memcpy, at.copy(memory, self.own).map(Node::from)),
            _ => (NodeKind::Memset, at.fill(memory, 1).map(Node::from)),
        };
        match (free, outcome) {
            (None, Ok(node)) => self.last = node,
            (Some(free), Err(error)) => {
                let (memory, free) = (name.clone(), free.clone());
                prop_assert_eq!(
                    error,
                    Error::Memory(MemoryError::FreedBefore {
                        kind,
                        memory: memory.into(),
                        free: free.into()
                    })
                );
                self.refused += 1;
            }
            (free, outcome) => return Err(TestCaseError::fail(format!("{free:?} {outcome:?}"))),
        }
        if let Some(inner) = inner {
            self.last = inner.into();
        }
        Ok(())
    }
}

/// Whatever was done before: what is refused is what the driver would refuse, and what it takes is
/// taken.
#[test]
fn what_may_be_added_when_is_what_the_rules_say() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    traceless(|context, stream| {
        let own = stream.zeros::<u32>(N).unwrap();
        let refused = core::cell::Cell::new(0);
        let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
        let outcome = TestRunner::new(config).run(&steps(), |steps| {
            let graph = context.graph().unwrap();
            let last = graph.root().empty().unwrap().into();
            let mut line = Line { graph, last, known: Vec::new(), own: own.as_slice(), refused: 0 };
            steps.into_iter().try_for_each(|step| line.take(step))?;
            refused.set(refused.get() + line.refused);
            Ok(())
        });
        outcome.unwrap();
        assert!(refused.get() >= 200, "{}", refused.get());
    });
}
