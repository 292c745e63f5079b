//! Several ways to do the same, timed alternately.
//!
//! Batches of all sides alternate, so that a change of the clock's speed or a neighbour on the
//! machine affects all. The report has medians over the batches, so that single interrupted batches
//! do not count. The difference is the median of the differences of neighbouring batches, and its
//! spread their interquartile range.

use std::time::{Duration, Instant};

use crate::Outcome;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Operations in a batch.
    pub(crate) batch: u32,
    /// How long a figure may take, about.
    pub(crate) time: Duration,
    /// The least number of batches, however long they take.
    pub(crate) least: usize,
}

impl Effort {
    /// Batches of so many operations. Of large ones, fewer are a measurement.
    pub(crate) fn with_batch(self, batch: u32) -> Self {
        Self { batch, least: if batch > LARGE { self.least.min(FEW) } else { self.least }, ..self }
    }

    /// The least that shows that everything runs. Its times mean nothing.
    pub(crate) fn quick(self) -> Self {
        Self { batch: self.batch.min(20), time: Duration::ZERO, least: 3 }
    }
}

/// Fewer batches than this are no measurement.
pub(crate) const LEAST: usize = 100;
/// A batch with more operations than this is large; the least number of these.
pub(crate) const LARGE: u32 = 10_000;
const FEW: usize = 7;
const MOST: usize = 10_000;

/// One of the ways: does a number of operations and returns their time, without set-up and
/// clean-up.
pub type Way<'a> = Box<dyn FnMut(u32) -> Outcome<Duration> + 'a>;

/// The library's way and the raw driver's.
pub(crate) struct Pair<'a> {
    pub(crate) ours: Way<'a>,
    pub(crate) raw: Way<'a>,
}

/// Times a number of runs of `operation`.
///
/// # Errors
/// The first error of `operation`.
#[inline]
pub fn timed(count: u32, mut operation: impl FnMut() -> Outcome<()>) -> Outcome<Duration> {
    let start = start_clock();
    for _ in 0..count {
        operation()?;
    }
    Ok(read_clock(start))
}

/// The names of this function and of [`read_clock`] tell callgrind where to count: see
/// `xtask/src/instructions`.
#[inline(never)]
fn start_clock() -> Instant {
    Instant::now()
}

#[inline(never)]
fn read_clock(start: Instant) -> Duration {
    start.elapsed()
}

/// Warms up for a tenth of the time, then measures. Returns the nanoseconds for an operation, of
/// each batch of each way.
pub(crate) fn in_turn(ways: &mut [Way<'_>], effort: Effort) -> Outcome<Vec<Vec<f64>>> {
    rounds(ways, Effort { time: effort.time / 10, least: effort.least.div_ceil(10), ..effort })?;
    rounds(ways, effort)
}

fn rounds(ways: &mut [Way<'_>], Effort { batch, time, least }: Effort) -> Outcome<Vec<Vec<f64>>> {
    let end = Instant::now() + time;
    let mut samples = vec![Vec::new(); ways.len()];
    let mut round = 0;
    while round < least || round < MOST && Instant::now() < end {
        let mut turn = |(way, samples): (&mut Way<'_>, &mut Vec<f64>)| -> Outcome<()> {
            samples.push(way(batch)?.as_secs_f64() * 1e9 / f64::from(batch.max(1)));
            Ok(())
        };
        // Each finds caches and queue as the one before has left them, so they change places.
        let mut sides = ways.iter_mut().zip(&mut samples);
        if round % 2 == 0 { sides.try_for_each(&mut turn) } else { sides.rev().try_for_each(&mut turn) }?;
        round += 1;
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn all_sides_get_the_same_number_of_batches_in_turn() {
        let order = RefCell::new(String::new());
        let way = |name: char| -> Way<'_> {
            let order = &order;
            Box::new(move |count| {
                order.borrow_mut().push(name);
                Ok(Duration::from_nanos(u64::from(count) * 7))
            })
        };
        let effort = Effort { batch: 10, time: Duration::ZERO, least: LEAST };
        let samples = in_turn(&mut [way('o'), way('r'), way('p')], effort).expect("nothing fails");
        assert_eq!(samples, vec![vec![7.0; LEAST]; 3]);
        assert!(order.borrow().starts_with("orpproorp"));
        assert_eq!(order.borrow().len(), 3 * (LEAST + LEAST / 10));
    }

    #[test]
    fn errors_end_a_measurement() {
        let mut ways: [Way<'_>; 1] = [Box::new(|_| Err("refused".into()))];
        let effort = Effort { batch: 1, time: Duration::ZERO, least: 1 };
        assert!(in_turn(&mut ways, effort).is_err());
    }
}
