//! Two ways to do the same, timed alternately.
//!
//! Batches of both alternate, so that a change of the clock's speed or a neighbour on the machine
//! affects both. The report has medians over the batches, so that single interrupted batches do not
//! count. The difference is the median of the differences of neighbouring batches, and its spread
//! their interquartile range.

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
        Self { batch, least: if batch > LARGE { FEW } else { self.least }, ..self }
    }
}

/// Fewer batches than this are no measurement.
pub(crate) const LEAST: usize = 100;
/// A batch with more operations than this is large; the least number of these.
const LARGE: u32 = 10_000;
const FEW: usize = 7;
const MOST: usize = 10_000;

/// The host's time of one operation, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) ours: f64,
    pub(crate) raw: f64,
    pub(crate) over: f64,
    /// The interquartile range of the difference.
    pub(crate) spread: f64,
}

/// One of the two ways: does a number of operations and returns their time, without set-up and
/// clean-up.
pub(crate) type Side<'a> = Box<dyn FnMut(u32) -> Outcome<Duration> + 'a>;

/// The library's way and the raw driver's.
pub(crate) struct Pair<'a> {
    pub(crate) ours: Side<'a>,
    pub(crate) raw: Side<'a>,
}

/// Times a number of runs of `operation`.
#[inline]
pub(crate) fn timed(count: u32, mut operation: impl FnMut() -> Outcome<()>) -> Outcome<Duration> {
    let start = Instant::now();
    for _ in 0..count {
        operation()?;
    }
    Ok(start.elapsed())
}

impl Pair<'_> {
    /// Warms up for a tenth of the time, then measures.
    pub(crate) fn measure(mut self, effort: Effort) -> Outcome<Measured> {
        self.rounds(Effort { time: effort.time / 10, least: effort.least.div_ceil(10), ..effort })?;
        let rounds = self.rounds(effort)?;
        Ok(Measured::of(&rounds))
    }

    /// Nanoseconds for an operation, ours and raw, of each pair of batches.
    fn rounds(&mut self, Effort { batch, time, least }: Effort) -> Outcome<Vec<(f64, f64)>> {
        let end = Instant::now() + time;
        let mut rounds = Vec::new();
        while rounds.len() < least || rounds.len() < MOST && Instant::now() < end {
            // The second finds caches and queue as the first has left them, so they take turns.
            let (ours, raw) = if rounds.len() % 2 == 0 {
                let ours = (self.ours)(batch)?;
                (ours, (self.raw)(batch)?)
            } else {
                let raw = (self.raw)(batch)?;
                ((self.ours)(batch)?, raw)
            };
            let each = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(batch);
            rounds.push((each(ours), each(raw)));
        }
        Ok(rounds)
    }
}

impl Measured {
    fn of(rounds: &[(f64, f64)]) -> Self {
        let over = sorted(rounds.iter().map(|(ours, raw)| ours - raw));
        Self {
            ours: quantile(&sorted(rounds.iter().map(|(ours, _)| *ours)), 0.5),
            raw: quantile(&sorted(rounds.iter().map(|(_, raw)| *raw)), 0.5),
            over: quantile(&over, 0.5),
            spread: quantile(&over, 0.75) - quantile(&over, 0.25),
        }
    }

    /// Our time as a multiple of the raw call's; `None` if the raw call takes no time.
    pub(crate) fn ratio(&self) -> Option<f64> {
        (self.raw >= 0.1).then(|| self.ours / self.raw)
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// A quantile of the sorted values; 0 if there are none.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * part).round();
    sorted.get(place as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_batches_do_not_count() {
        let rounds: Vec<_> = (0..99)
            .map(|round| if round % 10 == 0 { (5000.0, 9000.0) } else { (12.0 + f64::from(round % 3), 10.0) })
            .collect();
        let measured = Measured::of(&rounds);
        assert_eq!((measured.ours, measured.raw, measured.over), (13.0, 10.0, 3.0));
        assert!(measured.spread <= 2.0, "{measured:?}");
        assert_eq!(measured.ratio(), Some(1.3));
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(Measured::of(&[(1.0, 0.0)]).ratio(), None);
    }

    #[test]
    fn both_sides_get_the_same_number_of_batches_in_turn() {
        use std::cell::RefCell;
        let order = RefCell::new(String::new());
        let side = |name: char| -> Side<'_> {
            let order = &order;
            Box::new(move |count| {
                order.borrow_mut().push(name);
                Ok(Duration::from_nanos(u64::from(count) * 7))
            })
        };
        let effort = Effort { batch: 10, time: Duration::ZERO, least: LEAST };
        let measured = Pair { ours: side('o'), raw: side('r') }.measure(effort).expect("nothing fails");
        assert_eq!((measured.ours, measured.over), (7.0, 0.0));
        assert!(order.borrow().starts_with("orroorro"));
        assert_eq!(order.borrow().len(), 2 * (LEAST + LEAST / 10));
    }
}
