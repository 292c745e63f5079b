//! Graph parameters with lies, values that do not fit, and everything else that is refused.

use core::cell::Cell;
use core::num::NonZeroU64;

use cuda_graph::{
    ByValue, ContextExt, Error, FillValue, GraphParam, InstantiateOptions, NodeConfig, ParamError,
    UpdateError,
};
use cuda_handles::{Buffer, Error as HandleError, Image, NodeMemory, Placeholder, Slice};
use cuda_launch::internal::Placeholders;
use cuda_launch::{Argument, ArgumentsOf, In, LaunchConfig, Struct, kernel, per};
use cuda_tests::{alone, count, is_soft, needs, no_leaks, other_device, setup};

use super::params::scale;

const NOTHING: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .entry takes(.param .u64 floats, .param .u64 number) { ret; }
.visible .entry trusts(.param .u64 floats, .param .u64 number) { ret; }
.visible .entry length(.param .u32 n, .param .u64 bytes) { ret; }
";

kernel! {
    // SAFETY: the kernels have these parameters, and do nothing.
    unsafe in Image::Ptx(NOTHING);

    fn takes(floats: In<f32>, number: Struct<NonZeroU64>);
    fn length(n: i32, bytes: In<u8>) where bytes.len() >= n;
}

kernel! {
    // SAFETY: as above.
    unsafe in Image::Ptx(NOTHING);

    unsafe fn trusts(floats: In<f32>, number: Struct<NonZeroU64>);
}

/// Stands for a parameter of another type.
#[derive(Clone, Copy)]
struct Lie<V> {
    value: V,
    stands_for: Option<Placeholder>,
}

impl<'a> Argument<'a, In<f32>> for Lie<Slice<'a, f32>> {
    fn value(self) -> Slice<'a, f32> {
        self.value
    }

    fn placeholder(&self) -> Option<Placeholder> {
        self.stands_for
    }
}

impl<'a> Argument<'a, Struct<NonZeroU64>> for Lie<NonZeroU64> {
    fn value(self) -> NonZeroU64 {
        self.value
    }

    fn placeholder(&self) -> Option<Placeholder> {
        self.stands_for
    }
}

impl FillValue<u32> for Lie<u32> {
    fn value(&self) -> u32 {
        self.value
    }

    fn placeholder(&self) -> Option<Placeholder> {
        self.stands_for
    }
}

impl<'a> NodeMemory<'a, u32> for Lie<&'a Buffer<u32>> {
    fn operand(self) -> Slice<'a, u32> {
        self.value.as_slice()
    }

    fn placeholder(&self) -> Option<Placeholder> {
        self.stands_for
    }
}

/// Names a parameter for a position that is not its own.
struct Misplaced<'a>(Slice<'a, f32>, NonZeroU64, usize, Placeholder);

impl<'a> ArgumentsOf<'a, (In<f32>, Struct<NonZeroU64>)> for Misplaced<'a> {
    fn values(self) -> (Slice<'a, f32>, NonZeroU64) {
        (self.0, self.1)
    }

    fn placeholders(&self) -> Placeholders {
        Placeholders::from_iter([(self.2, self.3)])
    }
}

/// The placeholder of a number, which only fills ask for.
fn of_number(param: &GraphParam<u32>) -> Option<Placeholder> {
    FillValue::<u32>::placeholder(&param)
}

#[test]
fn a_parameter_of_another_type_is_refused_wherever_it_is_given() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let takes = takes::load(&context).unwrap();
        let (floats, words) = (stream.zeros::<f32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = context.graph().unwrap();
        let (memory, number) = (graph.param(&words).unwrap(), graph.param(0_u32).unwrap());
        let (of_memory, of_number) = (NodeMemory::<u32>::placeholder(&&memory), of_number(&number));
        let one = NonZeroU64::MIN;
        let wrong = Err(Error::Param(ParamError::WrongType));
        let root = graph.root();
        for stands_for in [of_memory, of_number] {
            let lie = Lie { value: floats.as_slice(), stands_for };
            assert_eq!(root.launch(&takes, per(1, 1), (lie, one)).map(drop), wrong);
            let lie = Lie { value: one, stands_for };
            assert_eq!(root.launch(&takes, per(1, 1), (&floats, lie)).map(drop), wrong);
            for position in [0, 1, 2, usize::MAX] {
                let misplaced = Misplaced(floats.as_slice(), one, position, stands_for.unwrap());
                assert_eq!(root.launch(&takes, per(1, 1), misplaced).map(drop), wrong);
            }
        }
        // The length of memory is an integer, and no struct.
        let length = of_memory.unwrap().length::<u64>();
        let lie = Lie { value: one, stands_for: Some(length) };
        assert_eq!(root.launch(&takes, per(1, 1), (&floats, lie)).map(drop), wrong);
        assert_eq!(root.fill(&words, Lie { value: 1, stands_for: of_memory }).map(drop), wrong);
        assert_eq!(root.fill(Lie { value: &words, stands_for: of_number }, 1).map(drop), wrong);
        let half = words.slice(..4).unwrap();
        let lie = Lie { value: &stream.zeros::<u32>(4).unwrap(), stands_for: of_number };
        assert_eq!(root.copy(lie, half).map(drop), wrong);
        assert!(graph.is_empty().unwrap());
        // A kernel that safe code cannot launch takes parameters, too.
        let trusts = trusts::load(&context).unwrap();
        let (floats, number) = (graph.param(&floats).unwrap(), graph.param(ByValue(one)).unwrap());
        // SAFETY: the kernel does nothing.
        unsafe { root.launch_unchecked(&trusts, per(1, 1), (&floats, &number)) }.unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch_with(&stream, ((&number, ByValue(NonZeroU64::MAX)),)).unwrap();
    });
}

#[test]
fn values_that_differ_from_the_parameter_are_replaced_by_the_next_one() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffers: Vec<_> = (0..3).map(|_| stream.zeros::<u32>(8).unwrap()).collect();
        let graph = context.graph().unwrap();
        let (memory, value) = (graph.param(&buffers[0]).unwrap(), graph.param(5_u32).unwrap());
        // It stands for the first one, and says that it is the second.
        let lie = Lie { value: &buffers[1], stands_for: NodeMemory::<u32>::placeholder(&&memory) };
        graph.root().fill(lie, Lie { value: 6, stands_for: of_number(&value) }).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        exec.launch_with(&stream, ((&memory, &buffers[2]), (&value, 7))).unwrap();
        let firsts = buffers.iter().map(|buffer| buffer.read_blocking(&stream).unwrap()[0]);
        assert_eq!(firsts.collect::<Vec<_>>(), [0, 6, 7]);
    });
}

/// Is another configuration each time.
struct Wavering(Cell<u32>);

impl NodeConfig for Wavering {
    fn config(&self) -> LaunchConfig {
        self.0.set(self.0.get() * 2);
        LaunchConfig::new(1, self.0.get())
    }
}

#[test]
fn a_configuration_that_wavers_is_checked_as_it_is_launched() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let (x, y) = (stream.upload(&[1_u32; 8]).unwrap(), stream.zeros::<u32>(64).unwrap());
        let graph = context.graph().unwrap();
        let input = graph.param(&x).unwrap();
        let arguments = || (input.len(), 2, &input, &y);
        let refused = graph.root().launch(&scale, Wavering(Cell::new(2)), arguments()).map(drop);
        assert!(matches!(refused, Err(Error::Launch(_))), "{refused:?}");
        graph.root().launch(&scale, Wavering(Cell::new(4)), arguments()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..9], [2, 2, 2, 2, 2, 2, 2, 2, 0]);
        // One block of eight threads, as it was when the node was added.
        let longer = stream.upload(&[3_u32; 9]).unwrap();
        let refused = exec.launch_with(&stream, ((&input, &longer),));
        assert!(matches!(refused, Err(Error::Param(ParamError::Launch { .. }))), "{refused:?}");
        exec.launch_with(&stream, ((&input, longer.slice(..5).unwrap()),)).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap()[..9], [6, 6, 6, 6, 6, 2, 2, 2, 0]);
    });
}

#[test]
fn a_larger_graph_that_is_moved_in_leaves_the_parameters_here() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let (outer, inner) = (context.graph().unwrap(), context.graph().unwrap());
        let target = outer.param(&x).unwrap();
        let fill = outer.root().fill(&target, 1).unwrap();
        let number = inner.param(2_u32).unwrap();
        for _ in 0..64 {
            inner.root().fill(&y, &number).unwrap();
        }
        let mut before = inner.instantiate().unwrap();
        fill.then().child_moved(inner).unwrap();
        let mut exec = outer.instantiate().unwrap();
        assert_eq!(exec.set(&number, 3), Err(Error::Param(ParamError::Foreign)));
        let z = stream.zeros::<u32>(8).unwrap();
        exec.launch_with(&stream, ((&target, &z),)).unwrap();
        let firsts = [&x, &y, &z].map(|buffer| buffer.read_blocking(&stream).unwrap()[0]);
        assert_eq!(firsts, [0, 2, 1]);
        // The executable of the moved graph has no nodes to update any more, and says so.
        before.launch(&stream).unwrap();
        let refused = before.launch_with(&stream, ((&number, 9),));
        assert!(matches!(refused, Err(Error::Node(_))), "{refused:?}");
        assert_eq!(y.read_blocking(&stream).unwrap(), [2; 8]);
        outer.root().fill(&target, 4).unwrap();
    });
}

#[test]
fn memory_of_graphs_is_no_value() {
    cuda_tests::as_drawn!("kernels in place of fills and copies do not reach the memory");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(8).unwrap();
        let target = graph.param(&x).unwrap();
        let fill = alloc.then().fill(&target, 3).unwrap();
        fill.then().fill(&memory, 4).unwrap();
        let slice = memory.as_slice().as_operand();
        let is_refused = |refused: Error| {
            assert!(refused.to_string().contains(&format!("{:#x}", memory.address())), "{refused}");
            matches!(refused, Error::Param(ParamError::GraphMemory { .. }))
        };
        assert!(is_refused(graph.param(slice).map(drop).unwrap_err()));
        let mut exec = graph.instantiate().unwrap();
        assert!(is_refused(exec.set(&target, slice).unwrap_err()));
        // The output of the graph itself would keep it from being launched again.
        let output = exec.launch_with_outputs(&stream).unwrap().take(&memory).unwrap();
        let refused = graph.param(output.as_slice()).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Param(ParamError::OwnOutput { .. })), "{refused}");
        // Other graphs take it like any buffer.
        let other = context.graph().unwrap();
        let there = other.param(&x).unwrap();
        other.root().fill(&there, 6).unwrap();
        let mut of_other = other.instantiate().unwrap();
        of_other.launch_with(&stream, ((&there, output.as_slice()),)).unwrap();
        assert_eq!(output.as_slice().allocation().bytes(), 32);
        of_other.launch_with(&stream, ((&there, &x),)).unwrap();
        of_other.release();
        stream.synchronize_blocking().unwrap();
        drop(of_other);
        drop(output);
        assert_eq!(x.read_blocking(&stream).unwrap(), [6; 8]);
    });
    context.synchronize_blocking().unwrap();
    context.trim_graph_memory().unwrap();
}

#[test]
fn calls_that_take_no_parameters_say_so() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let (x, y) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = context.graph().unwrap();
        let (memory, number) = (graph.param(&y).unwrap(), graph.param(2_u32).unwrap());
        let fill = graph.root().fill(&x, 1).unwrap();
        let copy = fill.then().copy(&x, &y).unwrap();
        let kernel = copy.then().launch(&scale, per(8, 8), (8, 1, &x, &y)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let refusals = [
            ("Frontier::fill_2d", graph.root().fill_2d(&memory, 8, [8, 1], 1).map(drop)),
            ("Frontier::copy_peer", graph.root().copy_peer(&x, &memory).map(drop)),
            ("MemsetNode::set", fill.set(&memory, 1)),
            ("MemsetNode::set_2d", fill.set_2d(&memory, 8, [8, 1], 1)),
            ("MemsetNode::set_clear", fill.set_clear(&memory)),
            ("MemcpyNode::set", copy.set(&memory, &x)),
            ("MemcpyNode::set_peer", copy.set_peer(&x, &memory)),
            ("KernelNode::set", kernel.set(&scale, per(8, 8), (8, &number, &x, &y))),
            ("ExecNode::set", exec.node(&fill).set(&memory, 1)),
            ("ExecNode::set_2d", exec.node(&fill).set_2d(&memory, 8, [8, 1], 1)),
            ("ExecNode::set_clear", exec.node(&fill).set_clear(&memory)),
            ("ExecNode::set", exec.node(&copy).set(&x, &memory)),
            ("ExecNode::set", exec.node(&kernel).set(&scale, per(8, 8), (8, 1, &x, &memory))),
        ];
        for (call, refused) in refusals {
            assert_eq!(refused, Err(Error::Param(ParamError::NotTaken { call })));
        }
        assert_eq!(graph.len().unwrap(), 3);
    });
}

#[test]
fn removed_nodes_are_named_and_new_ones_at_their_address_are_not_updated() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = context.graph().unwrap();
        let (value, other) = (graph.param(1_u32).unwrap(), graph.param(1_u32).unwrap());
        let gone = graph.root().fill(&x, &value).unwrap().named("gone");
        graph.root().fill(&y, &other).unwrap();
        let mut exec = graph.instantiate().unwrap();
        gone.remove().unwrap();
        // The driver gives it the address of the removed node.
        let z = stream.zeros::<u32>(8).unwrap();
        let again = graph.root().fill(&z, &value).unwrap();
        exec.launch_with(&stream, ((&other, 4),)).unwrap();
        let refused = exec.launch_with(&stream, ((&value, 5), (&other, 6))).unwrap_err();
        assert!(refused.to_string().contains("`gone`"), "{refused}");
        let firsts = [&x, &y, &z].map(|buffer| buffer.read_blocking(&stream).unwrap()[0]);
        assert_eq!(firsts, [1, 4, 0]);
        let mut exec = graph.instantiate().unwrap();
        exec.launch_with(&stream, ((&value, 5), (&other, 6))).unwrap();
        let firsts = [&x, &y, &z].map(|buffer| buffer.read_blocking(&stream).unwrap()[0]);
        assert_eq!(firsts, [1, 6, 5]);
        drop(again);
    });
}

#[test]
fn bound_nodes_in_a_child_go_with_the_child() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let (graph, inner) = (context.graph().unwrap(), context.graph().unwrap());
        inner.root().empty().unwrap();
        let value = graph.param(1_u32).unwrap();
        let (child, other) = (graph.root().child(&inner).unwrap(), graph.root().child(&inner).unwrap());
        for (node, memory) in [(&child, &x), (&other, &y)] {
            node.embedded().unwrap().root().fill(memory, &value).unwrap();
        }
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        // The nodes inside would be other ones, and get no values.
        let same = context.graph().unwrap();
        same.root().empty().unwrap();
        same.root().fill(&x, 9).unwrap();
        let refused = exec.node(&child).set_graph(&same).unwrap_err();
        assert!(matches!(refused, Error::Param(ParamError::Bound { .. })), "{refused}");
        // The graph's own nodes can be replaced; later executables do not know the old ones.
        child.set_graph(&same).unwrap();
        other.remove().unwrap();
        assert!(exec.launch_with(&stream, ((&value, 2),)).is_err());
        assert_eq!([&x, &y].map(|buffer| buffer.read_blocking(&stream).unwrap()[0]), [1, 1]);
        let mut exec = graph.instantiate().unwrap();
        let (_, cost) = count(|| exec.launch_with(&stream, ((&value, 3),)).unwrap());
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        assert_eq!([&x, &y].map(|buffer| buffer.read_blocking(&stream).unwrap()[0]), [9, 1]);
    });
}

#[test]
fn memory_of_the_graph_stays_beside_a_parameter() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scale = scale::load(&context).unwrap();
        let x = stream.upload(&[3_u32; 8]).unwrap();
        let y = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(8).unwrap();
        let factor = graph.param(2_u32).unwrap();
        let node = alloc.then().launch(&scale, per(8, 8), (8, &factor, &x, &memory)).unwrap();
        node.then().copy(&memory, &y).unwrap();
        graph.free(&memory).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for factor_of in [2, 5, 7] {
            exec.launch_with(&stream, ((&factor, factor_of),)).unwrap();
            assert_eq!(y.read_blocking(&stream).unwrap(), [3 * factor_of; 8]);
        }
    });
    context.synchronize_blocking().unwrap();
    context.trim_graph_memory().unwrap();
}

#[test]
fn a_node_that_a_parameter_disables_is_in_no_graph_that_kernels_launch() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let on = graph.param(false).unwrap();
        let fill = graph.root().fill(&x, 1).unwrap().named("off");
        fill.enabled_by(&on).unwrap();
        let refused =
            graph.instantiate_with(InstantiateOptions::new().device_launch()).map(drop).unwrap_err();
        assert!(refused.to_string().contains("`off`"), "{refused}");
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        assert!(!exec.node(&fill).is_enabled().unwrap());
        exec.launch_with(&stream, ((&on, true),)).unwrap();
        assert!(exec.node(&fill).is_enabled().unwrap());
        assert_eq!(x.read_blocking(&stream).unwrap(), [1; 8]);
        // Set before the handle was lent, and not launched.
        exec.set(&on, false).unwrap();
        let _ = exec.as_raw();
        assert_eq!(exec.launch(&stream), Err(Error::Update(UpdateError::Lent)));
    });
}

#[test]
fn lent_executables_take_no_values() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let value = graph.param(1_u32).unwrap();
        graph.root().fill(&x, &value).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let _ = exec.as_raw();
        assert_eq!(exec.set(&value, 2), Err(Error::Update(UpdateError::Lent)));
        assert_eq!(exec.launch_with(&stream, ((&value, 2),)), Err(Error::Update(UpdateError::Lent)));
        exec.launch(&stream).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap(), [1; 8]);
        // Nodes of lent graphs can be updated: the executable is not lent.
        graph.lend().unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch_with(&stream, ((&value, 3),)).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap(), [3; 8]);
    });
}

#[test]
fn nodes_of_adopted_graphs_take_parameters() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(8).unwrap();
        let mut raw = core::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        cuda_tests::raw::ok(unsafe { context.driver().cuGraphCreate(&raw mut raw, 0) });
        // SAFETY: nobody else changes the graph while the handle lives.
        let graph = unsafe { cuda_graph::Graph::from_raw(&context, raw) }.unwrap();
        let value = graph.param(1_u32).unwrap();
        graph.root().fill(&x, &value).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch_with(&stream, ((&value, 2),)).unwrap();
        assert_eq!(x.read_blocking(&stream).unwrap(), [2; 8]);
        // Without a handle, the graph's nodes are not known.
        drop(graph);
        let refused = exec.launch_with(&stream, ((&value, 3),));
        assert!(refused.is_err());
        assert_eq!(x.read_blocking(&stream).unwrap(), [2; 8]);
        drop(exec);
        // SAFETY: the graph is this test's own, and no handle is left.
        cuda_tests::raw::ok(unsafe { context.driver().cuGraphDestroy(raw) });
    });
}

#[test]
fn memory_of_another_context_is_refused() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let there = other_device().context().unwrap();
    let (stream, other) = (context.stream().unwrap(), there.stream().unwrap());
    let (x, far) = (stream.zeros::<u32>(8).unwrap(), other.zeros::<u32>(8).unwrap());
    let graph = context.graph().unwrap();
    let target = graph.param(&x).unwrap();
    graph.root().fill(&target, 1).unwrap();
    let mut exec = graph.instantiate().unwrap();
    let is_wrong = |refused| matches!(refused, Err(Error::Handles(HandleError::WrongContext(_))));
    assert!(is_wrong(exec.set(&target, &far)));
    assert!(is_wrong(graph.param(&far).map(drop)));
    exec.launch(&stream).unwrap();
    assert_eq!(x.read_blocking(&stream).unwrap(), [1; 8]);
}

#[test]
fn kinds_of_memory_that_the_driver_refuses_are_refused_in_words() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.upload(&[1_u32; 8]).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = context.graph().unwrap();
        let (source, target) = (graph.param(&x).unwrap(), graph.param(&x).unwrap());
        let copy = graph.root().copy(&source, &y).unwrap().named("copied");
        copy.then().fill(&target, 5).unwrap().named("filled");
        let mut exec = graph.instantiate().unwrap();
        let pinned = context.pinned_zeros::<u32>(8).unwrap().share();
        let managed = context.managed_zeros::<u32>(8).unwrap().share();
        let plain = context.alloc_blocking::<u32>(8).unwrap();
        // A copy from the host is one in another direction.
        let refused = exec.launch_with(&stream, ((&source, &pinned),)).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotPossible { .. })), "{refused}");
        assert!(refused.to_string().contains("`copied`"), "{refused}");
        assert_eq!(y.read_blocking(&stream).unwrap(), [0; 8], "nothing was launched");
        exec.launch_with(&stream, ((&source, &x),)).unwrap();
        assert_eq!(y.read_blocking(&stream).unwrap(), [1; 8]);
        // Whatever the driver says of the others, values of the first kind mend it.
        for memory in [pinned.as_slice(), managed.as_slice(), plain.as_slice()] {
            for param in [&source, &target] {
                match exec.launch_with(&stream, ((param, memory),)) {
                    Ok(()) => {}
                    Err(Error::Update(UpdateError::NotPossible { .. })) => {}
                    Err(Error::Param(ParamError::Exchanged { node, side: "source", is_pooled: false })) => {
                        assert_eq!(&*node, "copied");
                    }
                    Err(other) => panic!("{other}"),
                }
                stream.fill(&x, 9).unwrap();
                exec.launch_with(&stream, ((&source, &x), (&target, &x))).unwrap();
                let found = [&x, &y].map(|buffer| buffer.read_blocking(&stream).unwrap()[0]);
                assert_eq!(found, [5, 9]);
            }
        }
    });
}

#[test]
fn overlapping_and_misaligned_memory_is_refused_at_the_launch() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let bytes = stream.zeros::<u8>(64).unwrap();
        let y = stream.zeros::<u8>(64).unwrap();
        let part = |range: core::ops::Range<usize>| bytes.slice(range).unwrap();
        let quads = |range| part(range).cast::<[u8; 4]>().unwrap();
        let graph = context.graph().unwrap();
        let (from, to) = (graph.param(part(0..8)).unwrap(), graph.param(y.slice(..8).unwrap()).unwrap());
        let copy = graph.root().copy(&from, &to).unwrap();
        // Elements of four bytes at any address.
        let target = graph.param(quads(32..40)).unwrap();
        copy.then().fill(&target, [7_u8; 4]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let (refused, cost) = count(|| exec.launch_with(&stream, ((&to, part(4..12)),)));
        assert!(matches!(refused, Err(Error::Handles(HandleError::Overlap { .. }))), "{refused:?}");
        cost.assert_calls(&[]);
        exec.set(&to, part(16..24)).unwrap();
        let (refused, cost) = count(|| exec.launch_with(&stream, ((&target, quads(41..49)),)));
        assert!(matches!(refused, Err(Error::Handles(HandleError::Unaligned { .. }))), "{refused:?}");
        cost.assert_calls(&[]);
        exec.launch_with(&stream, ((&target, quads(44..60)),)).unwrap();
        let found = bytes.read_blocking(&stream).unwrap();
        assert_eq!((found[43], &found[44..60], found[60]), (0, &[7; 16][..], 0));
    });
}

#[test]
fn lengths_that_an_argument_cannot_express_are_refused() {
    let context = setup();
    if is_soft() {
        cuda_tests::skip!("it takes 2 GiB, most of which a GPU does not touch");
    }
    no_leaks(|| {
        let length = length::load(&context).unwrap();
        let long = context.alloc_blocking::<u8>(1 << 31).unwrap();
        let graph = context.graph().unwrap();
        let too_long = graph.param(&long).unwrap();
        let refused = graph.root().launch(&length, per(1, 1), (too_long.len(), &too_long)).map(drop);
        assert!(matches!(refused, Err(Error::Param(ParamError::TooLong { .. }))), "{refused:?}");
        let fits = graph.param(long.slice(..(1 << 31) - 1).unwrap()).unwrap();
        graph.root().launch(&length, per(1, 1), (fits.len(), &fits)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let stream = context.stream().unwrap();
        exec.launch(&stream).unwrap();
        let refused = exec.launch_with(&stream, ((&fits, &long),));
        assert!(matches!(refused, Err(Error::Param(ParamError::TooLong { .. }))), "{refused:?}");
        exec.launch_with(&stream, ((&fits, long.slice(..7).unwrap()),)).unwrap();
        stream.synchronize_blocking().unwrap();
    });
}
