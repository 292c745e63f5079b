//! A small transformer whose code is written against a stream, and captured as it is: its branches
//! on other streams and its temporaries become part of the graph. A step costs one launch then.
//!
//! ```sh
//! cargo run -p cuda-graph --features svg --example capture -- --driver soft --svg capture.svg
//! ```

#[path = "../common/mod.rs"]
mod common;
mod layer;
mod program;
mod reference;
mod task;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cuda_handles::Context;
use cuda_handles::capture::CaptureMode;

use common::Options;
use layer::Layer;
use program::{Result, Transformer};
use task::Task;

/// Steps whose results are compared with the reference.
const COMPARED: usize = 3;

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let task = if options.is_soft {
        Task { tokens: 6, heads: 2, size: 16, layers: 2 }
    } else {
        Task { tokens: 32, heads: 4, size: 32, layers: 8 }
    };
    let layers: Vec<_> = (1..=task.layers as u64).map(|seed| Layer::by_chance(task, seed)).collect();
    let prompt = layer::prompt(task, 99);
    let transformer = Transformer::new(context, task, &layers)?;
    let graph = transformer.capture(CaptureMode::ThreadLocal)?;
    common::show(&graph, options)?;
    let mut executable = graph.instantiate()?;

    let mut enqueue = || transformer.step(transformer.stream());
    let mut replay = || Ok(executable.launch(transformer.stream())?);
    let Task { tokens, heads, size, layers: count } = task;
    println!("{count} layers, {tokens} tokens, {heads} heads of {size} numbers; times per step");
    let enqueued = Measured::new(&transformer, &prompt, options, &mut enqueue)?;
    println!("enqueued  {enqueued}");
    let replayed = Measured::new(&transformer, &prompt, options, &mut replay)?;
    println!("replayed  {replayed}");

    let expected = reference::run(task, &layers, &prompt, COMPARED);
    let differences = |rows: &[f32]| rows.iter().zip(&expected).filter(|(a, b)| a != b).count();
    let (first, second) = (differences(&enqueued.rows), differences(&replayed.rows));
    println!("of {} numbers, {first} and {second} differ from the reference", expected.len());
    Ok(enqueued.rows == replayed.rows && first + second == 0)
}

/// The result of the first steps, and the medians of the times of a step.
struct Measured {
    rows: Vec<f32>,
    /// The time on the host alone, and the time until the work is done.
    on_host: Duration,
    in_all: Duration,
}

impl Measured {
    fn new(
        transformer: &Transformer,
        prompt: &[f32],
        options: &Options,
        step: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        transformer.load(prompt)?;
        (0..COMPARED).try_for_each(|_| step())?;
        let rows = transformer.rows()?;
        let (rounds, steps) = if options.is_soft { (5, 4) } else { (21, 50) };
        let (mut on_host, mut in_all) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            transformer.load(prompt)?;
            let start = Instant::now();
            (0..steps).try_for_each(|_| step())?;
            on_host.push(start.elapsed() / steps);
            transformer.stream().synchronize_blocking()?;
            in_all.push(start.elapsed() / steps);
        }
        Ok(Self { rows, on_host: median(on_host), in_all: median(in_all) })
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { on_host, in_all, .. } = self;
        write!(formatter, "{in_all:>9.1?}, of which the host is busy for {on_host:>9.1?}")
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
