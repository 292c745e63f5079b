//! The times of the executables of a graph.

use std::time::{Duration, Instant};

use cuda_graph::{ContextExt, Graph, GraphExec};

use super::drawings::{Drawing, Kit};
use super::variants::VARIANTS;
use crate::Outcome;

/// Rounds until clocks are as they stay.
const WARM_UP: usize = 1;
const ROUNDS: usize = 4;
/// Launches of a variant in a row, before it is the next one's turn.
const IN_A_ROW: usize = 24;
/// The first launches in a row find the host's caches full of other executables, and take several
/// times as long. They are not counted.
const COLD: usize = 4;
/// An instantiation takes long, and its time varies little.
const INSTANTIATIONS: usize = 5;

/// Medians, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) launch: Median,
    pub(super) run: Median,
    pub(super) instantiate: Median,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Median {
    pub(super) value: f64,
    /// The interquartile range.
    pub(super) spread: f64,
}

/// What was measured of a variant.
#[derive(Default)]
struct Samples {
    launch: Vec<Duration>,
    run: Vec<Duration>,
    instantiate: Vec<Duration>,
}

/// The times of a graph, by variant.
pub(super) fn measure(kit: &Kit, drawing: &Drawing) -> Outcome<Vec<Times>> {
    // A graph with loops has one executable at a time.
    let graphs: Vec<Graph> = VARIANTS.iter().map(|_| (drawing.draw)(kit)).collect::<Outcome<_>>()?;
    let mut samples: Vec<Samples> = VARIANTS.iter().map(|_| Samples::default()).collect();
    let mut executables: Vec<GraphExec> = Vec::new();
    for round in 0..=INSTANTIATIONS {
        executables.clear();
        for ((variant, graph), samples) in VARIANTS.iter().zip(&graphs).zip(&mut samples) {
            let start = Instant::now();
            let exec = graph.instantiate_with((variant.options)())?;
            // The first one loads kernels.
            if round > 0 {
                samples.instantiate.push(start.elapsed());
            }
            executables.push(exec);
        }
    }
    for round in 0..WARM_UP + ROUNDS {
        for (exec, samples) in executables.iter_mut().zip(&mut samples) {
            for launch in 0..IN_A_ROW {
                let start = Instant::now();
                exec.launch(&kit.stream)?;
                let launched = start.elapsed();
                kit.stream.synchronize_blocking()?;
                if round >= WARM_UP && launch >= COLD {
                    samples.launch.push(launched);
                    samples.run.push(start.elapsed());
                }
            }
        }
    }
    Ok(samples.into_iter().map(Samples::times).collect())
}

/// Prints the time of one instantiation of a graph in each variant.
pub(super) fn instantiate(graph: &Graph) -> Outcome<()> {
    // Loads kernels.
    let first = graph.context().graph()?;
    VARIANTS.iter().try_for_each(|variant| first.instantiate_with((variant.options)()).map(drop))?;
    for variant in VARIANTS {
        let start = Instant::now();
        let exec = graph.instantiate_with((variant.options)())?;
        let time = start.elapsed().as_secs_f64() * 1e3;
        println!("{:30} instantiated in {time:7.0} ms", variant.name);
        drop(exec);
    }
    Ok(())
}

impl Samples {
    fn times(self) -> Times {
        let Self { launch, run, instantiate } = self;
        Times { launch: Median::of(launch), run: Median::of(run), instantiate: Median::of(instantiate) }
    }
}

impl Median {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |part: usize| {
            let place = times.len().saturating_sub(1) * part / 4;
            times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
        };
        Self { value: at(2), spread: at(3) - at(1) }
    }
}
