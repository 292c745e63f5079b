//! The figures: each operation of the library beside the raw calls that do the same.

mod capture;
mod chains;
mod graph;
mod handles;
mod launch;
mod loops;
mod replay;

use crate::Outcome;
use crate::bench::Bench;
use crate::driver::Choice;
use crate::measure::{self, Effort, Pair};
use crate::peers::Peer;
use crate::record::{OURS, Part, RAW, Row as Record, Side};

/// A figure: one operation.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// The operations of a batch, where not the driver decides.
    batch: Option<u32>,
    pair: RowOf,
}

impl Figure {
    /// Measures the operation by the library, by raw calls and by those peers that have it.
    pub(crate) fn measure(&self, bench: &Bench, peers: &[Peer], effort: Effort) -> Outcome<Record> {
        let Pair { ours, raw } = (self.pair)(bench)?;
        let (mut names, mut ways) = (vec![OURS, RAW], vec![ours, raw]);
        for (peer, way) in peers.iter().filter_map(|peer| Some((peer, peer.way(self.name)?))) {
            names.push(peer.name);
            ways.push(way(bench)?);
        }
        let samples = measure::in_turn(&mut ways, self.effort(effort))?;
        let sides = names.into_iter().zip(samples).map(|(name, samples)| Side::new(name, samples));
        Ok(Record::in_turn(Part::Paths, self.name, sides.collect()))
    }

    /// Whether it takes more than moments, however few batches there are.
    pub(crate) fn is_large(&self) -> bool {
        self.batch.is_some_and(|batch| batch > measure::LARGE)
    }

    fn effort(&self, effort: Effort) -> Effort {
        self.batch.map_or(effort, |batch| effort.with_batch(batch))
    }

    /// Runs the library's way once to warm up, and once for a profiler to count.
    pub(crate) fn run_twice(&self, bench: &Bench, count: u32) -> Outcome<()> {
        let mut pair = (self.pair)(bench)?;
        (pair.ours)(count)?;
        (pair.ours)(count)?;
        Ok(())
    }
}

/// All figures that make sense on a driver: on one that does nothing, loops have no rounds and
/// graphs no nodes.
pub(crate) fn all(driver: &Choice) -> impl Iterator<Item = Figure> {
    let is_null = *driver == Choice::Null;
    let loops = if is_null { &[] } else { loops::FIGURES };
    let lists = if is_null { &[] } else { chains::LISTS };
    let figures =
        [launch::FIGURES, capture::FIGURES, graph::FIGURES, replay::FIGURES, handles::FIGURES, loops];
    let figures = figures.into_iter().flatten().map(|&(name, pair)| Figure { name, batch: None, pair });
    let sized = [chains::FIGURES, lists].into_iter().flatten();
    figures.chain(sized.map(|&(name, batch, pair)| Figure { name, batch: Some(batch), pair }))
}

type RowOf = for<'a> fn(&'a Bench) -> Outcome<Pair<'a>>;

type Row = (&'static str, RowOf);
