//! Steps of shaping in bodies: programmatic edges, lanes, empty nodes, and order by data.

use cuda_graph::{
    ContextExt, Error, Frontier, Graph, GraphExec, InstantiateOptions, KernelNode, LoopBody, Node, Order,
    Shape, ShapeReport, Test, UpdateError,
};
use cuda_handles::{Buffer, Context, SharedHostBuffer, Stream};
use cuda_launch::{kernel, per, per_2d};
use cuda_tests::{is_soft, needs, no_leaks, setup};

use super::conditionals::ONE_LESS;
use super::{first, shaped, shapes};
use crate::capture::add_to;

kernel! {
    // SAFETY: the kernel has these parameters. Each thread writes the cell of its place, and reads
    // cells of the plate alone.
    unsafe in "../../../kernels/heat.ptx";

    fn heat_step(width: u32, height: u32, coefficient: f32, from: In<f32>, to: Out<f32>)
    where from.len() >= width * height, to.len() >= width * height;
}

/// The notes about the body of the only loop or branch.
fn of_body(report: &ShapeReport) -> Vec<&str> {
    report.notes().iter().filter_map(|note| note.strip_prefix("in ")).collect()
}

/// Plates of cells, of which each step needs what many blocks of the step before have written.
struct Plates {
    stream: Stream,
    step: heat_step,
    add: add_to,
    side: u32,
    plates: [Buffer<f32>; 2],
    between: Buffer<f32>,
    pinned: SharedHostBuffer<f32>,
}

impl Plates {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let side = if is_soft() { 24 } else { 256 };
        let cells = (side * side) as usize;
        let plate = || stream.zeros::<f32>(cells).unwrap();
        Self {
            step: heat_step::load_waiting(context).unwrap(),
            add: add_to::load_waiting(context).unwrap(),
            side,
            plates: [plate(), plate()],
            between: plate(),
            pinned: context.pinned_zeros(cells).unwrap().share(),
            stream,
        }
    }

    fn step(&self, at: &Frontier<'_>, from: &Buffer<f32>, to: &Buffer<f32>) -> Node {
        let side = self.side;
        let config = per_2d((side as usize, side as usize), (32, 8));
        at.launch(&self.step, config, (side, side, 0.24, from, to)).unwrap().into()
    }

    /// Two steps, from the first plate to the second and back.
    fn two_steps(&self, at: &Frontier<'_>) -> Node {
        let [one, two] = &self.plates;
        let there = self.step(at, one, two);
        self.step(&there.then(), two, one)
    }

    /// What a run makes of a plate.
    fn run(&self, exec: &mut GraphExec) -> Vec<f32> {
        let plate: Vec<f32> = (0..self.side * self.side).map(|cell| (cell * 7_919 % 1_009) as f32).collect();
        self.stream.write(&self.plates[0], &plate).unwrap();
        exec.launch(&self.stream).unwrap();
        self.plates[0].read_blocking(&self.stream).unwrap()
    }
}

#[test]
fn a_stencil_in_a_loop_gets_programmatic_edges_and_computes_the_same() {
    let context = setup();
    needs!(Conditionals, EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let plates = Plates::new(&context);
        let counter = plates.stream.zeros::<u32>(1).unwrap();
        let rounds = if is_soft() { 3 } else { 1_000 };
        let draw = || {
            let graph = context.graph().unwrap();
            let start = graph.root().fill(&counter, rounds).unwrap();
            let body = |body: &LoopBody| {
                let mut last = plates.two_steps(&body.root());
                for _ in 0..3 {
                    last = plates.two_steps(&last.then());
                }
                last.then().launch(&plates.add, per(1, 1), (ONE_LESS, &counter))
            };
            start.then().while_loop(Test::nonzero(&counter), body).unwrap();
            graph
        };
        let expected = plates.run(&mut draw().instantiate().unwrap());
        let mut exec = shaped(&draw(), Shape::Auto);
        let report = exec.shape_report().unwrap();
        let overlapped = of_body(report).iter().any(|note| note.contains("made 8 edges programmatic"));
        assert!(overlapped, "{report}");
        for _ in 0..3 {
            assert_eq!(plates.run(&mut exec), expected);
        }
    });
}

#[test]
fn chains_through_kernels_in_place_of_copies_and_fills_compute_the_same() {
    let context = setup();
    needs!(EdgeKinds, LaunchAttributes);
    no_leaks(|| {
        let plates = Plates::new(&context);
        let (between, pinned) = (&plates.between, &plates.pinned);
        let corner = plates.plates[0].slice(..64).unwrap();
        let graph = context.graph().unwrap();
        let mut last: Option<Node> = None;
        for round in 0..if is_soft() { 3 } else { 40 } {
            let at = last.as_ref().map_or_else(|| graph.root(), Node::then);
            let stepped = plates.two_steps(&at);
            let out = stepped.then().copy(&plates.plates[0], pinned).unwrap();
            let back = out.then().copy(pinned, between).unwrap();
            let stepped = plates.step(&back.then(), between, &plates.plates[0]);
            last = Some(stepped.then().fill(corner, round as f32).unwrap().into());
        }
        let expected = plates.run(&mut graph.instantiate().unwrap());
        let mut exec = shaped(&graph, Shape::Auto);
        let report = exec.shape_report().unwrap();
        assert!(report.to_string().contains("edges programmatic"), "{report}");
        assert!(report.after().unwrap().host_submitted < report.before().unwrap().host_submitted);
        for _ in 0..if is_soft() { 2 } else { 300 } {
            assert_eq!(plates.run(&mut exec), expected);
        }
    });
}

/// A branch that runs, with many kernels that nothing orders in its body.
fn wide_branch(context: &Context, stream: &Stream, width: usize) -> (Graph, Vec<Buffer<u32>>) {
    let add = add_to::load(context).unwrap();
    let numbers: Vec<_> = (0..width).map(|_| stream.zeros::<u32>(1).unwrap()).collect();
    let graph = context.graph().unwrap();
    let body = |body: &Graph| {
        let begin = body.root().launch(&add, per(1, 1), (1, &numbers[0]))?;
        for number in &numbers {
            begin.then().launch(&add, per(1, 1), (1, number))?;
        }
        Ok::<_, Error>(())
    };
    let flag = stream.upload(&[1_u32]).unwrap();
    graph.root().if_then(Test::nonzero(&flag), body).unwrap();
    (graph, numbers)
}

#[test]
fn lanes_are_made_in_bodies_only_where_asked_for() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (graph, numbers) = wide_branch(&context, &stream, 48);
        for shape in shapes() {
            let mut exec = shaped(&graph, shape);
            let report = exec.shape_report().unwrap();
            let is_threaded = of_body(report).iter().any(|note| note.contains("threaded 48 nodes"));
            assert_eq!(is_threaded, matches!(shape, Shape::Lanes(_)), "{report}");
            numbers.iter().for_each(|number| stream.clear(number).unwrap());
            exec.launch(&stream).unwrap();
            let values: Vec<u32> = numbers.iter().map(|number| first(number, &stream)).collect();
            assert_eq!((values[0], &values[1..]), (2, &[1; 47][..]));
        }
    });
}

#[test]
fn empty_nodes_in_bodies_become_kernels_only_between_wide_layers() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let number = stream.zeros::<u32>(1).unwrap();
        for (width, is_replaced) in [(4, false), (8, true)] {
            let layers = |body: &Graph| {
                let layer = |at: &Frontier<'_>| -> Result<Vec<Node>, Error> {
                    (0..width).map(|_| Ok(at.launch(&add, per(1, 1), (1, &number))?.into())).collect()
                };
                let join = body.after_all(&layer(&body.root())?)?.empty()?;
                layer(&join.then())
            };
            let graph = context.graph().unwrap();
            graph.root().if_then(Test::zero(&number), layers).unwrap();
            let mut exec = shaped(&graph, Shape::Auto);
            let report = exec.shape_report().unwrap();
            let is_found = of_body(report).iter().any(|note| note.contains("put kernels that do nothing"));
            assert_eq!(is_found, is_replaced, "{report}");
            stream.clear(&number).unwrap();
            exec.launch(&stream).unwrap();
            assert_eq!(number.read_blocking(&stream).unwrap(), [2 * width]);
        }
    });
}

/// A loop of three rounds, with a chain of two kernels on two numbers in its body.
struct Chain {
    graph: Graph,
    one: KernelNode,
    numbers: [Buffer<u32>; 2],
}

impl Chain {
    fn new(context: &Context, stream: &Stream, add: &add_to) -> Self {
        let numbers = [0; 2].map(|_| stream.zeros::<u32>(1).unwrap());
        let counter = stream.zeros::<u32>(1).unwrap();
        let graph = context.graph().unwrap();
        let start = graph.root().fill(&counter, 3).unwrap();
        let mut first = None;
        let body = |body: &LoopBody| {
            let one = body.root().launch(add, per(1, 1), (1, &numbers[0]))?.named("one");
            let two = one.then().launch(add, per(1, 1), (10, &numbers[1]))?.named("two");
            first = Some(one);
            two.then().launch(add, per(1, 1), (ONE_LESS, &counter))
        };
        start.then().while_loop(Test::nonzero(&counter), body).unwrap();
        Self { graph, one: first.unwrap(), numbers }
    }
}

#[test]
fn order_by_data_holds_in_bodies_and_keeps_nodes_apart_there() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let Chain { graph, one, numbers: [x, y] } = Chain::new(&context, &stream, &add);
        let mut exec = graph.instantiate_with(InstantiateOptions::new().order(Order::ByData)).unwrap();
        let report = exec.shape_report().unwrap();
        let dropped: Vec<_> = report.dropped_edges().iter().map(|edge| (edge.from(), edge.to())).collect();
        assert_eq!(dropped[0], ("one", "two"), "{report}");
        assert!(of_body(report).iter().any(|note| note.contains("dropped 2 edges")), "{report}");
        let read = || [&x, &y].map(|number| first(number, &stream));
        exec.launch(&stream).unwrap();
        assert_eq!(read(), [3, 30]);
        match exec.node(&one).set(&add, per(1, 1), (1, &y)) {
            Err(Error::Update(UpdateError::Meets { node, other, .. })) => {
                assert_eq!((&*node, &*other), ("one", "two"));
            }
            other => panic!("{other:?}"),
        }
        exec.launch(&stream).unwrap();
        assert_eq!(read(), [6, 60]);
        exec.node(&one).set(&add, per(1, 1), (2, &x)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(read(), [12, 90]);
    });
}
