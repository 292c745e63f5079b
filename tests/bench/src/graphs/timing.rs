//! The times of one graph by several sides: instantiations, first launches and later ones, one by
//! one, and the device's time.
//!
//! Each launch finds an idle stream. The clock's own time, some 25 ns, is part of every sample of
//! every side.

use std::time::{Duration, Instant};

use cuda_handles::Event;

use super::made::{Launch, Made};
use crate::Outcome;
use crate::bench::Bench;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For each of the three steps, about.
    pub(crate) time: Duration,
    /// The least number of rounds, however long they take, and the most.
    pub(crate) rounds: [usize; 2],
    /// Launches of a side in a row, before it is the next one's turn.
    pub(crate) in_a_row: usize,
    /// The first launches in a row find the host's caches full of other executables, and take
    /// several times as long. So many are not counted.
    pub(crate) cold: usize,
}

/// The samples of a side, in nanoseconds.
#[derive(Default)]
pub(crate) struct Samples {
    pub(crate) instantiate: Vec<f64>,
    pub(crate) first: Vec<f64>,
    pub(crate) launch: Vec<f64>,
    /// None where no device has worked.
    pub(crate) device: Vec<f64>,
}

/// Measures all sides, in turn.
pub(crate) fn measure(
    bench: &Bench,
    sides: &[&dyn Made],
    patience: Patience,
    has_device: bool,
) -> Outcome<Vec<Samples>> {
    let mut samples: Vec<Samples> = sides.iter().map(|_| Samples::default()).collect();
    rounds(patience, &mut |counts| instantiate(bench, sides, &mut samples, counts))?;
    let mut executables = sides.iter().map(|side| side.instantiate()).collect::<Outcome<Vec<_>>>()?;
    let calls = repeat(&mut executables, patience, &mut |exec| launch(bench, exec))?;
    for (samples, calls) in samples.iter_mut().zip(calls) {
        samples.launch = calls;
    }
    if has_device {
        let events = [bench.context.event()?, bench.context.event()?];
        let runs = repeat(&mut executables, patience, &mut |exec| on_device(bench, &events, exec))?;
        for (samples, runs) in samples.iter_mut().zip(runs) {
            samples.device = runs;
        }
    }
    Ok(samples)
}

/// Times launches of all executables, some of each in a row.
fn repeat(
    executables: &mut [Box<dyn Launch>],
    patience: Patience,
    time: &mut dyn FnMut(&mut dyn Launch) -> Outcome<f64>,
) -> Outcome<Vec<Vec<f64>>> {
    let mut samples = vec![Vec::new(); executables.len()];
    rounds(patience, &mut |counts| {
        for (exec, samples) in executables.iter_mut().zip(&mut samples) {
            for launch in 0..patience.in_a_row {
                let sample = time(&mut **exec)?;
                if counts && launch >= patience.cold {
                    samples.push(sample);
                }
            }
        }
        Ok(())
    })?;
    Ok(samples)
}

/// Does rounds until the patience is over. The first one does not count: it loads kernels.
pub(crate) fn rounds(patience: Patience, round: &mut dyn FnMut(bool) -> Outcome<()>) -> Outcome<()> {
    round(false)?;
    let (end, [least, most]) = (Instant::now() + patience.time, patience.rounds);
    let mut done = 0;
    while done < least || done < most && Instant::now() < end {
        round(true)?;
        done += 1;
    }
    Ok(())
}

/// One executable of each side and its first launch. The drop does not count.
fn instantiate(bench: &Bench, sides: &[&dyn Made], samples: &mut [Samples], counts: bool) -> Outcome<()> {
    for (side, samples) in sides.iter().zip(samples) {
        let start = Instant::now();
        let mut exec = side.instantiate()?;
        let made = start.elapsed();
        let first = launch(bench, &mut *exec)?;
        if counts {
            samples.instantiate.push(nanoseconds(made));
            samples.first.push(first);
        }
    }
    Ok(())
}

/// The time of the launch call.
fn launch(bench: &Bench, exec: &mut dyn Launch) -> Outcome<f64> {
    let start = Instant::now();
    exec.launch(bench)?;
    let time = start.elapsed();
    bench.settle(nanoseconds(time))
}

/// The time from the begin of the run to its end, by events.
fn on_device(bench: &Bench, [start, end]: &[Event; 2], exec: &mut dyn Launch) -> Outcome<f64> {
    bench.stream.record(start)?;
    exec.launch(bench)?;
    bench.stream.record(end)?;
    bench.settle(())?;
    Ok(nanoseconds(end.elapsed_since(start)?))
}

pub(super) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
