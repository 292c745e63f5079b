//! The times of the executables of a graph.

use std::time::{Duration, Instant};

use cuda_graph::{ContextExt, Graph, GraphExec};

use super::drawings::{Drawing, Kit};
use super::variants::VARIANTS;
use crate::Outcome;
use crate::statistics::Summary;

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

/// Times in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) launch: Summary,
    pub(super) run: Summary,
    pub(super) instantiate: Summary,
}

/// What was measured of a variant.
#[derive(Default)]
struct Samples {
    launch: Vec<f64>,
    run: Vec<f64>,
    instantiate: Vec<f64>,
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
                samples.instantiate.push(microseconds(start.elapsed()));
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
                    samples.launch.push(microseconds(launched));
                    samples.run.push(microseconds(start.elapsed()));
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
        let [launch, run, instantiate] =
            [self.launch, self.run, self.instantiate].map(|samples| Summary::of(&samples));
        Times { launch, run, instantiate }
    }
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
