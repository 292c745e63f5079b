//! Fills that parameters disable keep the nodes around them in order.

use cuda_graph::{ContextExt, Error, Graph, GraphExec, UpdateError};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{kernel, per};
use cuda_tests::{count, no_leaks, setup};

const LEN: usize = 16;
const NANOSECONDS: u64 = 200_000;

kernel! {
    // SAFETY: the kernel in the image has these parameters. It copies the first `n` elements after
    // some time.
    unsafe in "../../../kernels/spin.ptx";

    fn spin_copy(nanoseconds: u64, n: u32, from: In<u32>, to: Out<u32>)
    where from.len() >= n, to.len() >= n, grid.x * block.x >= 1;
}

/// A slow copy of `from`, and a fill of `from` behind it. Between them comes the node to disable.
struct Bench {
    stream: Stream,
    graph: Graph,
    from: Buffer<u32>,
    to: Buffer<u32>,
    between: Buffer<u32>,
}

impl Bench {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let [from, to, between] = [(); 3].map(|()| stream.zeros::<u32>(LEN).unwrap());
        stream.synchronize_blocking().unwrap();
        Self { graph: context.graph().unwrap(), stream, from, to, between }
    }

    fn slow(&self, context: &Context) -> cuda_graph::KernelNode {
        let spin_copy = spin_copy::load(context).unwrap();
        let arguments = (NANOSECONDS, LEN as u32, &self.from, &self.to);
        self.graph.root().launch(&spin_copy, per(1, 1), arguments).unwrap()
    }

    /// Launches; the copy has read `from` before it is filled. Returns the memory between.
    fn run(&self, exec: &mut GraphExec, value: u32) -> Vec<u32> {
        self.stream.fill(&self.from, value).unwrap();
        self.stream.fill(&self.to, 0).unwrap();
        self.stream.fill(&self.between, 0).unwrap();
        exec.launch(&self.stream).unwrap();
        let read = |buffer: &Buffer<u32>| buffer.read_blocking(&self.stream).unwrap();
        assert_eq!((read(&self.to), read(&self.from)), (vec![value; LEN], vec![9; LEN]));
        read(&self.between)
    }
}

#[test]
fn a_fill_without_anything_to_do_keeps_the_order() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let target = bench.graph.param(&bench.between).unwrap();
        let fill = bench.slow(&context).then().fill(&target, 5).unwrap();
        fill.then().fill(&bench.from, 9).unwrap();
        let mut exec = bench.graph.instantiate().unwrap();
        for round in 0..5 {
            exec.set(&target, bench.between.slice(..0).unwrap()).unwrap();
            assert_eq!(bench.run(&mut exec, 100 + round), [0; LEN]);
            assert!(!exec.node(&fill).is_enabled().unwrap());
            exec.set(&target, &bench.between).unwrap();
            assert_eq!(bench.run(&mut exec, 200 + round), [5; LEN]);
            assert!(exec.node(&fill).is_enabled().unwrap());
        }
        // Each change is one call.
        bench.stream.synchronize_blocking().unwrap();
        let (_, cost) = count(|| {
            exec.launch_with(&bench.stream, ((&target, bench.between.slice(..0).unwrap()),)).unwrap();
            exec.launch_with(&bench.stream, ((&target, &bench.between),)).unwrap();
        });
        cost.assert_calls(&[("cuGraphExecNodeSetParams", 2), ("cuGraphLaunch", 2)]);
        bench.stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn a_fill_that_a_parameter_disables_keeps_the_order() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (enabled, value) = (bench.graph.param(false).unwrap(), bench.graph.param(7_u32).unwrap());
        let slow = bench.slow(&context);
        // One fill has a parameter for its value as well, and one has none. Both are off at first.
        let first = slow.then().fill(bench.between.slice(..8).unwrap(), 6).unwrap();
        let second = first.then().fill(bench.between.slice(8..).unwrap(), &value).unwrap();
        for fill in [&first, &second] {
            fill.enabled_by(&enabled).unwrap();
        }
        second.then().fill(&bench.from, 9).unwrap();
        let mut exec = bench.graph.instantiate().unwrap();
        let all = |value: u32| [[6; 8], [value; 8]].concat();
        for round in 0..5 {
            assert_eq!(bench.run(&mut exec, 100 + round), [0; LEN]);
            exec.set(&value, 70 + round).unwrap();
            exec.set(&enabled, true).unwrap();
            assert_eq!(bench.run(&mut exec, 200 + round), all(70 + round));
            exec.set(&enabled, false).unwrap();
        }
        // After a whole update the parameters have their initial values again.
        bench.run(&mut exec, 300);
        assert!(exec.update(&bench.graph).unwrap().is_updated());
        assert_eq!(bench.run(&mut exec, 301), [0; LEN]);
        exec.set(&enabled, true).unwrap();
        assert_eq!(bench.run(&mut exec, 302), all(7));
    });
}

#[test]
fn a_fill_of_a_row_is_not_disabled_by_hand() {
    cuda_tests::as_drawn!("a node at a programmatic edge cannot be disabled");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let row = bench.slow(&context).then().fill(&bench.between, 5).unwrap();
        let rectangle = row.then().fill_2d(&bench.between, 4, [2, 2], 6).unwrap();
        rectangle.then().fill(&bench.from, 9).unwrap();
        let mut exec = bench.graph.instantiate().unwrap();
        let error = exec.node(&row).set_enabled(false).unwrap_err();
        assert!(matches!(error, Error::Update(UpdateError::NotPossible { .. })), "{error}");
        assert!(error.to_string().contains("MemsetNode::enabled_by"), "{error}");
        assert!(exec.node(&row).is_enabled().unwrap());
        for round in 0..5 {
            exec.node(&rectangle).set_enabled(false).unwrap();
            assert_eq!(bench.run(&mut exec, 100 + round), [5; LEN]);
            exec.node(&rectangle).set_enabled(true).unwrap();
            assert_eq!(bench.run(&mut exec, 200 + round)[..6], [6, 6, 5, 5, 6, 6]);
        }
    });
}
