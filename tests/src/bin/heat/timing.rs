//! The time of a step, as a plain launch and in a replay.

use std::time::{Duration, Instant};

/// The rounds of one way of launching.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// The time until the calls returned.
    enqueued: Vec<Duration>,
    /// The time until the device was done.
    complete: Vec<Duration>,
}

impl Times {
    /// Times one round: `enqueue` enqueues the work, `wait` returns when it is done.
    pub(crate) fn round<E>(
        &mut self,
        enqueue: impl FnOnce() -> Result<(), E>,
        wait: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let start = Instant::now();
        enqueue()?;
        self.enqueued.push(start.elapsed());
        wait()?;
        self.complete.push(start.elapsed());
        Ok(())
    }

    /// Medians for one of `steps`, in microseconds: until enqueued, until complete. The first round
    /// warms up and does not count.
    pub(crate) fn per_step(&self, steps: usize) -> (f64, f64) {
        let median = |times: &[Duration]| {
            let mut times = times.get(1..).unwrap_or_default().to_vec();
            times.sort_unstable();
            let middle = times.get(times.len() / 2).copied().unwrap_or_default();
            middle.as_secs_f64() * 1e6 / steps as f64
        };
        (median(&self.enqueued), median(&self.complete))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_leaves_out_the_first_round() {
        let milliseconds = |list: &[u64]| list.iter().map(|&n| Duration::from_millis(n)).collect::<Vec<_>>();
        let times =
            Times { enqueued: milliseconds(&[900, 1, 3, 2]), complete: milliseconds(&[900, 30, 10, 20]) };
        let (enqueued, complete) = times.per_step(10);
        assert!((enqueued - 200.0).abs() < 1e-6 && (complete - 2000.0).abs() < 1e-6);
    }
}
