//! The program, all in one graph: halves an interval until it is narrow, and polishes the root if
//! it is not accurate enough. Kernels decide.

use std::error::Error;

use cuda_graph::{Condition, ContextExt, Graph, GraphExec};
use cuda_handles::{Buffer, Context, SharedHostBuffer, Stream};
use cuda_launch::{kernel, per};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

kernel! {
    // SAFETY: the kernels in the file have these parameters, and access the first element of each,
    // and the first five of `problem`.
    unsafe in "../kernels/bisection.ptx";

    fn begin(problem: In<f64>, low: Out<f64>, high: Out<f64>, go_on: ConditionalHandle)
    where problem.len() >= 5, low.len() >= 1, high.len() >= 1;

    fn look(problem: In<f64>, low: In<f64>, high: In<f64>, middle: Out<f64>, is_below: ConditionalHandle)
    where problem.len() >= 5, low.len() >= 1, high.len() >= 1, middle.len() >= 1;

    fn judge(problem: In<f64>, low: In<f64>, high: In<f64>, rounds: InOut<u32>, go_on: ConditionalHandle)
    where problem.len() >= 5, low.len() >= 1, high.len() >= 1, rounds.len() >= 1;

    fn conclude(problem: In<f64>, low: In<f64>, high: In<f64>, root: Out<f64>, needs_polish: ConditionalHandle)
    where problem.len() >= 5, low.len() >= 1, high.len() >= 1, root.len() >= 1;

    fn polish(problem: In<f64>, root: InOut<f64>, steps: InOut<u32>)
    where problem.len() >= 5, root.len() >= 1, steps.len() >= 1;
}

/// The problem: find `x` between `low` and `high` with `x³ + x = level`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub(crate) level: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// An interval of this width is narrow enough.
    pub(crate) tolerance: f64,
    /// The root is polished if the function is farther from its level.
    pub(crate) accuracy: f64,
}

/// The results of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) root: f64,
    /// How often the interval was halved.
    pub(crate) rounds: u32,
    /// Newton steps of the polish; 0 if none was needed.
    pub(crate) steps: u32,
}

/// The graph, with the memory to feed it and to read its results.
pub(crate) struct Bisection {
    graph: Graph,
    executable: GraphExec,
    stream: Stream,
    staging: Staging,
}

/// Pinned memory that the graph copies from and to.
struct Staging {
    problem: SharedHostBuffer<f64>,
    root: SharedHostBuffer<f64>,
    counts: SharedHostBuffer<u32>,
}

/// Kernels and memory of the graph on the device.
struct Device {
    kernels: Kernels,
    problem: Buffer<f64>,
    low: Buffer<f64>,
    high: Buffer<f64>,
    middle: Buffer<f64>,
    root: Buffer<f64>,
    /// Rounds of the loop, and steps of the polish.
    counts: Buffer<u32>,
}

struct Kernels {
    begin: begin,
    look: look,
    judge: judge,
    conclude: conclude,
    polish: polish,
}

impl Bisection {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let staging = Staging {
            problem: context.pinned_zeros(5)?.share(),
            root: context.pinned_zeros(1)?.share(),
            counts: context.pinned_zeros(2)?.share(),
        };
        let kernels = Kernels {
            begin: begin::load(context)?,
            look: look::load(context)?,
            judge: judge::load(context)?,
            conclude: conclude::load(context)?,
            polish: polish::load(context)?,
        };
        let device = Device {
            kernels,
            problem: stream.zeros(5)?,
            low: stream.zeros(1)?,
            high: stream.zeros(1)?,
            middle: stream.zeros(1)?,
            root: stream.zeros(1)?,
            counts: stream.zeros(2)?,
        };
        let graph = device.graph(context, &staging)?;
        let executable = graph.instantiate()?;
        Ok(Self { graph, executable, stream, staging })
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Launches the graph by one driver call, without waiting.
    pub(crate) fn launch(&mut self) -> Result<()> {
        Ok(self.executable.launch(&self.stream)?)
    }

    /// Stages a problem for the next launches, once the earlier ones have ended.
    pub(crate) fn load(&self, problem: Problem) -> Result<()> {
        let Problem { level, low, high, tolerance, accuracy } = problem;
        Ok(self.staging.problem.write_blocking(&self.stream, &[level, low, high, tolerance, accuracy])?)
    }

    /// Waits for the last launch, and reads its results.
    pub(crate) fn outcome(&self) -> Result<Outcome> {
        let root = self.staging.root.read_blocking(&self.stream)?;
        let counts = self.staging.counts.read_blocking(&self.stream)?;
        match (root.as_slice(), counts.as_slice()) {
            (&[root], &[rounds, steps]) => Ok(Outcome { root, rounds, steps }),
            _ => Err("the staging memory has another size".into()),
        }
    }

    pub(crate) fn run(&mut self, problem: Problem) -> Result<Outcome> {
        self.load(problem)?;
        self.launch()?;
        self.outcome()
    }
}

impl Device {
    fn graph(&self, context: &Context, staging: &Staging) -> Result<Graph> {
        let Self { kernels, problem, low, high, root, .. } = self;
        let graph = context.graph()?;
        // Conditions without a default: a kernel sets each before its node.
        let (go_on, needs_polish) = (graph.condition()?, graph.condition()?);
        let problem_in = graph.root().copy(&staging.problem, problem)?.named("problem in");
        let clear = graph.root().fill(&self.counts, 0)?.named("nothing counted yet");
        let begin = graph.after([&*problem_in, &*clear])?;
        let begin = begin.launch(&kernels.begin, per(1, 1), (problem, low, high, &go_on))?;

        let halving = begin.then().while_node(&go_on)?.named("halving");
        self.halve(&halving.body()?, &go_on)?;

        let conclude = (problem, low, high, root, &needs_polish);
        let conclude = halving.then().launch(&kernels.conclude, per(1, 1), conclude)?;
        let polishing = conclude.then().if_node(&needs_polish)?.named("is it good enough?");
        let steps = self.counts.slice(1..)?;
        polishing.body()?.root().launch(&kernels.polish, per(1, 1), (problem, root, steps))?;

        polishing.then().copy(root, &staging.root)?.named("root out");
        polishing.then().copy(&self.counts, &staging.counts)?.named("counts out");
        Ok(graph)
    }

    /// One round: the middle becomes one of the bounds.
    fn halve(&self, body: &Graph, go_on: &Condition) -> Result<()> {
        let Self { kernels, problem, low, high, middle, .. } = self;
        let is_below = body.condition()?;
        let look = body.root().launch(&kernels.look, per(1, 1), (problem, low, high, middle, &is_below))?;
        let side = look.then().if_else_node(&is_below)?.named("which side?");
        side.then_body()?.root().copy(middle, low)?.named("the upper half");
        side.else_body()?.root().copy(middle, high)?.named("the lower half");
        let rounds = self.counts.slice(..1)?;
        side.then().launch(&kernels.judge, per(1, 1), (problem, low, high, rounds, go_on))?;
        Ok(())
    }
}
