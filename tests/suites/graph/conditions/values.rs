//! The value of a condition when its node runs: over launches, executables, streams and nested
//! graphs.

use cuda_graph::{ContextExt, Error, Graph, GraphExec, Test};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use cuda_tests::{needs, no_leaks, setup};

use crate::conditions::branches_and_loops::{count_down, increment_by, set_from};

/// Numbers in memory by which a graph goes, and a count of what it does.
struct Bench {
    stream: Stream,
    set_from: set_from,
    count_down: count_down,
    increment_by: increment_by,
    /// Whether the condition is set, and to what.
    sets: Buffer<u32>,
    value: Buffer<u32>,
    counted: Buffer<u32>,
}

impl Bench {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        Self {
            set_from: set_from::load(context).unwrap(),
            count_down: count_down::load(context).unwrap(),
            increment_by: increment_by::load(context).unwrap(),
            sets: stream.zeros(1).unwrap(),
            value: stream.zeros(1).unwrap(),
            counted: stream.zeros(1).unwrap(),
            stream,
        }
    }

    /// Launches with something to set, or with nothing; gives what was counted.
    fn launch(&self, exec: &mut GraphExec, value: Option<u32>) -> u32 {
        self.stream.fill(&self.sets, u32::from(value.is_some())).unwrap();
        self.stream.fill(&self.value, value.unwrap_or(77)).unwrap();
        self.stream.fill(&self.counted, 0).unwrap();
        exec.launch(&self.stream).unwrap();
        self.counted.read_blocking(&self.stream).unwrap()[0]
    }

    /// A branch in whose body a condition is set, if at all; then a branch that goes by the
    /// condition.
    fn graph(&self, context: &Context, default: Option<u32>) -> Graph {
        let graph = context.graph().unwrap();
        let condition = match default {
            Some(value) => graph.condition_with_default(value).unwrap(),
            None => graph.condition().unwrap(),
        };
        let sets = graph.root().if_then(cuda_graph::Test::nonzero(&self.sets), |body| {
            body.root().launch(&self.set_from, per(1, 1), (&self.value, &condition))
        });
        let branch = sets.unwrap().then().if_node(&condition).unwrap();
        branch.body().unwrap().root().launch(&self.increment_by, per(1, 1), (1, &self.counted)).unwrap();
        graph
    }
}

#[test]
fn without_a_default_the_value_stays_over_launches_and_executables() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = bench.graph(&context, None);
        let mut exec = graph.instantiate().unwrap();
        let mut counted: Vec<u32> =
            [None, Some(1), None, None].map(|value| bench.launch(&mut exec, value)).into();
        drop(exec);
        let mut exec = graph.instantiate().unwrap();
        counted.extend([None, Some(0), None, Some(5), None].map(|value| bench.launch(&mut exec, value)));
        assert_eq!(counted, [0, 1, 1, 1, 1, 0, 0, 1, 1]);
    });
}

#[test]
fn a_default_is_there_again_at_each_launch() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        for default in [0, 1] {
            let mut exec = bench.graph(&context, Some(default)).instantiate().unwrap();
            let counted =
                [None, Some(1), None, Some(0), None, None].map(|value| bench.launch(&mut exec, value));
            assert_eq!(counted, [default, 1, default, 0, default, default]);
        }
    });
}

#[test]
fn launches_of_a_loop_on_two_streams_come_one_after_the_other() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let streams = [context.stream().unwrap(), context.stream().unwrap()];
        let (graph, left) = (context.graph().unwrap(), context.stream().unwrap().zeros::<u32>(1).unwrap());
        let start = graph.root().fill(&left, 5).unwrap();
        let go_on = graph.condition_with_default(1).unwrap();
        let rounds = start.then().while_node(&go_on).unwrap();
        let body = rounds.body().unwrap();
        let step = body.root().launch(&bench.increment_by, per(1, 1), (1, &bench.counted)).unwrap();
        step.then().launch(&bench.count_down, per(1, 1), (&left, &go_on)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        bench.stream.synchronize_blocking().unwrap();
        (0..10).for_each(|launch| exec.launch(&streams[launch % 2]).unwrap());
        streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
        assert_eq!(bench.counted.read_blocking(&bench.stream).unwrap(), [50]);
    });
}

/// Of loops in child graphs that lie in bodies, and of one graph embedded twice.
#[test]
fn loops_in_embedded_graphs_have_conditions_of_their_own() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (graph, empty) = (context.graph().unwrap(), context.graph().unwrap());
        let outer = bench.stream.zeros::<u32>(1).unwrap();
        let counters = bench.stream.zeros::<u32>(2).unwrap();
        let start = graph.root().fill(&outer, 3).unwrap();
        let rounds = start.then().while_loop(Test::nonzero(&outer), |body| {
            let mut last = None;
            for (index, times) in [(0, 2), (1, 4)] {
                let inner = counters.slice(index..=index)?;
                let at = last.as_ref().map_or_else(|| body.root(), cuda_graph::Node::then);
                let child = at.child(&empty)?;
                let embedded = child.embedded()?;
                let go_on = embedded.condition_with_default(1)?;
                let start = embedded.root().fill(inner, times)?;
                let node = start.then().while_node(&go_on)?;
                let step = node.body()?.root().launch(&bench.increment_by, per(1, 1), (1, &bench.counted))?;
                step.then().launch(&bench.count_down, per(1, 1), (inner, &go_on))?;
                last = Some((*child).clone());
            }
            body.after_all(&last)?.launch(&bench.increment_by, per(1, 1), (u32::MAX, &outer))?;
            Ok::<_, Error>(())
        });
        let mut exec = graph.instantiate().unwrap();
        (0..10).for_each(|_| exec.launch(&bench.stream).unwrap());
        assert_eq!(bench.counted.read_blocking(&bench.stream).unwrap(), [10 * 3 * (2 + 4)]);
        assert_eq!(rounds.unwrap().rounds_done_blocking(&bench.stream).unwrap(), 3);
    });
}
