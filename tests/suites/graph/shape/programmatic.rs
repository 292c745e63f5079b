//! Programmatic edges that shaping makes between kernels that wait at their entry.

use cuda_graph::{
    ContextExt, Error, Graph, GraphExec, InstantiateOptions, KernelNode, Node, Shape, UpdateError,
};
use cuda_handles::{Buffer, Context, Image, Stream};
use cuda_launch::{LaunchConfig, kernel, per};
use cuda_tests::{needs, no_leaks, setup};

use crate::capture::{N, add_to, increment_all};

/// A chain of three kernels that add 1 each.
struct Chain {
    graph: Graph,
    nodes: [KernelNode; 3],
    numbers: Buffer<u32>,
}

impl Chain {
    fn new(context: &Context, stream: &Stream, add: &add_to) -> Self {
        let (graph, numbers) = (context.graph().unwrap(), stream.zeros::<u32>(N).unwrap());
        let first = graph.root().launch(add, per(1, 1), (1, &numbers)).unwrap();
        let second = first.then().launch(add, per(1, 1), (1, &numbers)).unwrap();
        let third = second.then().launch(add, per(1, 1), (1, &numbers)).unwrap();
        Self { graph, nodes: [first, second, third], numbers }
    }

    fn shaped(&self) -> GraphExec {
        self.graph.instantiate_with(options()).unwrap()
    }

    fn number(&self, stream: &Stream) -> u32 {
        self.numbers.read_blocking(stream).unwrap()[0]
    }
}

fn options() -> InstantiateOptions {
    InstantiateOptions::new().shape(Shape::Reduced).programmatic_edges(true)
}

/// How many edges the report says are programmatic.
fn programmatic(exec: &GraphExec) -> usize {
    let report = exec.shape_report().unwrap();
    let made = report.notes().iter().find(|note| note.contains(" programmatic: "));
    made.map_or(0, |made| made.split(' ').nth(1).unwrap().parse().unwrap())
}

fn refused(result: &cuda_graph::Result<()>) -> &str {
    match result {
        Err(Error::Update(UpdateError::NotPossible { why, .. })) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn kernels_that_wait_get_programmatic_edges_where_asked_for() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let waiting = add_to::load_waiting(&context).unwrap();
        let chain = Chain::new(&context, &stream, &waiting);
        let count = |options: InstantiateOptions| {
            let mut exec = chain.graph.instantiate_with(options).unwrap();
            stream.clear(&chain.numbers).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(chain.number(&stream), 3);
            programmatic(&exec)
        };
        let shape = |shape| InstantiateOptions::new().shape(shape);
        assert_eq!(count(shape(Shape::Reduced)), 0);
        assert_eq!(count(shape(Shape::Reduced).programmatic_edges(true)), 2);
        assert_eq!(count(shape(Shape::Auto)), 2);
        assert_eq!(count(shape(Shape::Auto).programmatic_edges(false)), 0);
        let chain = Chain::new(&context, &stream, &add_to::load(&context).unwrap());
        let exec = chain.graph.instantiate_with(shape(Shape::Auto)).unwrap();
        let note = "left 2 edges between kernels full";
        assert!(exec.shape_report().unwrap().to_string().contains(note));
    });
}

#[test]
fn kernels_with_attributes_or_other_memory_keep_full_edges() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load_waiting(&context).unwrap();
        let count = |change: &dyn Fn(&Chain)| {
            let chain = Chain::new(&context, &stream, &add);
            change(&chain);
            programmatic(&chain.shaped())
        };
        assert_eq!(count(&|_| {}), 2);
        // An edge to a kernel with host memory can be programmatic, one from it cannot.
        let pinned = context.pinned_zeros::<u32>(1).unwrap().share();
        assert_eq!(count(&|chain| chain.nodes[2].set(&add, per(1, 1), (1, &pinned)).unwrap()), 2);
        assert_eq!(count(&|chain| chain.nodes[1].set(&add, per(1, 1), (1, &pinned)).unwrap()), 1);
        let cooperative = LaunchConfig::new(1, 1).cooperative();
        assert_eq!(count(&|chain| chain.nodes[1].set(&add, cooperative, (1, &chain.numbers)).unwrap()), 0);
        // A node that a parameter may disable.
        assert_eq!(
            count(&|chain| {
                let enabled = chain.graph.param(true).unwrap();
                chain.nodes[2].enabled_by(&enabled).unwrap();
            }),
            1
        );
    });
}

#[test]
fn a_node_at_such_an_edge_keeps_waiting() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (add, plain) = (add_to::load_waiting(&context).unwrap(), add_to::load(&context).unwrap());
        let chain = Chain::new(&context, &stream, &add);
        let mut exec = chain.shaped();
        let [first, second, third] = &chain.nodes;
        for node in [first, second, third] {
            assert!(refused(&exec.node(node).set_enabled(false)).contains("programmatic edge"));
            let other = exec.node(node).set(&plain, per(1, 1), (1, &chain.numbers));
            assert!(refused(&other).contains("does not wait"));
        }
        let pinned = context.pinned_zeros::<u32>(1).unwrap().share();
        for node in [first, second] {
            let other = exec.node(node).set(&add, per(1, 1), (1, &pinned));
            assert!(refused(&other).contains("other memory"));
        }
        exec.node(third).set(&add, per(1, 1), (1, &pinned)).unwrap();
        exec.node(first).set(&add, per(1, 1), (10, &chain.numbers)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(chain.number(&stream), 11);

        // The same by the graph.
        third.set(&add, per(1, 1), (100, &chain.numbers)).unwrap();
        assert!(exec.update(&chain.graph).unwrap().is_updated());
        exec.launch(&stream).unwrap();
        assert_eq!(chain.number(&stream), 11 + 102);
        for change in [
            &|| second.set(&plain, per(1, 1), (1, &chain.numbers)),
            &|| second.set(&add, per(1, 1), (1, &pinned)),
            &|| second.enabled_by(&chain.graph.param(true)?),
        ] as [&dyn Fn() -> cuda_graph::Result<()>; 3]
        {
            second.set(&add, per(1, 1), (1, &chain.numbers)).unwrap();
            change().unwrap();
            let outcome = exec.update(&chain.graph).unwrap();
            let refusal = outcome.refusal().unwrap();
            assert!(refusal.why.contains("programmatic edge"), "{refusal}");
        }
        exec.launch(&stream).unwrap();
        assert_eq!(chain.number(&stream), 11 + 2 * 102);
    });
}

#[test]
fn a_parameter_stands_for_memory_of_the_device_alone() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load_waiting(&context).unwrap();
        let numbers: Vec<_> = (0..2).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let graph = context.graph().unwrap();
        let target = graph.param(&numbers[0]).unwrap();
        let first = graph.root().launch(&add, per(1, 1), (1, &target)).unwrap();
        first.then().launch(&add, per(1, 1), (1, &target)).unwrap();
        let mut exec = graph.instantiate_with(options()).unwrap();
        assert_eq!(programmatic(&exec), 1);
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        assert!(refused(&exec.launch_with(&stream, ((&target, &pinned),))).contains("other memory"));
        exec.launch_with(&stream, ((&target, &numbers[1]),)).unwrap();
        exec.launch_with(&stream, ((&target, &numbers[0]),)).unwrap();
        exec.launch(&stream).unwrap();
        let first = |numbers: &Buffer<u32>| numbers.read_blocking(&stream).unwrap()[0];
        assert_eq!((first(&numbers[0]), first(&numbers[1])), (4, 2));
    });
}

#[test]
fn kernels_in_place_of_fills_and_copies_wait_as_well() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load_waiting(&context).unwrap();
        let (numbers, pinned) =
            (stream.zeros::<u32>(N).unwrap(), context.pinned_zeros::<u32>(N).unwrap().share());
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&numbers, 5).unwrap();
        let added = fill.then().launch(&add, per(1, 1), (1, &numbers)).unwrap();
        let output = added.then().copy(&numbers, &pinned).unwrap();
        let after = output.then().fill(&numbers, 7).unwrap();
        after.then().launch(&add, per(1, 1), (1, &numbers)).unwrap();
        let mut exec = graph.instantiate_with(InstantiateOptions::new().shape(Shape::Auto)).unwrap();
        // The edges of the copy to the host are full.
        assert_eq!(programmatic(&exec), 2);
        let read = |numbers: Vec<u32>| numbers[..2].to_vec();
        exec.launch(&stream).unwrap();
        assert_eq!(read(pinned.read_blocking(&stream).unwrap()), [6, 5]);
        assert_eq!(read(numbers.read_blocking(&stream).unwrap()), [8, 7]);
        assert!(refused(&exec.node(&fill).set(&pinned, 3)).contains("other memory"));
        assert!(refused(&exec.node(&added).set_enabled(false)).contains("programmatic edge"));
        exec.node(&fill).set(&numbers, 10).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(read(pinned.read_blocking(&stream).unwrap()), [11, 10]);
    });
}

#[test]
fn nodes_that_parameters_may_empty_keep_full_edges() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let all = increment_all::load_waiting(&context).unwrap();
        let (numbers, others) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        let empty = || pinned.slice(0..0).unwrap();
        // The middle of three is a launch by a length, one by a configuration, and a copy.
        for middle in 0..3 {
            stream.clear(&numbers).unwrap();
            let graph = context.graph().unwrap();
            let values = graph.param(&others).unwrap();
            let config = graph.param(LaunchConfig::new(1, 1)).unwrap();
            let source = graph.param(&pinned).unwrap();
            let first = graph.root().launch(&all, per(N, 4), (N as u32, &numbers)).unwrap();
            let at = first.then();
            let second: Node = match middle {
                0 => {
                    let node = at.launch(&all, per(values.len(), 4), (values.len(), &values)).unwrap();
                    (*node).clone()
                }
                1 => (*at.launch(&all, &config, (1, &others)).unwrap()).clone(),
                _ => (*at.copy(&source, &others).unwrap()).clone(),
            };
            second.then().launch(&all, per(N, 4), (N as u32, &numbers)).unwrap();
            let mut exec = graph.instantiate_with(InstantiateOptions::new().shape(Shape::Auto)).unwrap();
            assert_eq!(programmatic(&exec), 0);
            match middle {
                0 => exec.launch_with(&stream, ((&values, others.slice(0..0).unwrap()),)).unwrap(),
                1 => exec.launch_with(&stream, ((&config, LaunchConfig::new(0, 1)),)).unwrap(),
                _ => exec.launch_with(&stream, ((&source, empty()),)).unwrap(),
            }
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [2; N]);
        }
    });
}

const MANAGED: &str = "
.version 7.8
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 total;
.visible .entry bump(.param .u64 value)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [value];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r1, [total];
    add.u32 %r2, %r1, 1;
    st.global.u32 [total], %r2;
    st.global.u32 [%rd2], %r2;
    ret;
}";

kernel! {
    // SAFETY: the kernel has this parameter, and touches the first element and a variable of the
    // image.
    unsafe in Image::Ptx(MANAGED);

    fn bump(value: Out<u32>)
    where value.len() >= 1;
}

#[test]
fn kernels_with_a_managed_variable_have_full_edges_behind_them() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let bump = bump::load_waiting(&context).unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().launch(&bump, per(1, 1), (&numbers,)).unwrap();
        first.then().launch(&bump, per(1, 1), (&numbers,)).unwrap();
        assert_eq!(programmatic(&graph.instantiate_with(options()).unwrap()), 0);
    });
}
