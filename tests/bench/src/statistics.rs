//! Medians and spread of samples.
//!
//! Nothing is left out: samples far from the others are counted as [outliers](Summary::outliers),
//! and stay. Medians and quartiles hardly move with them; the mean does.

use serde::{Deserialize, Serialize};
use statrs::statistics::{Data, Distribution, Max, Min, OrderStatistics};

/// A sample this many interquartile ranges outside of the quartiles is an outlier (Tukey's fences).
const FENCE: f64 = 1.5;
/// Of fewer samples, the quartiles are no spread.
const FEW: usize = 4;
/// Of fewer samples, the 99th percentile is the greatest one, or next to it.
const HUNDRED: usize = 100;

/// A set of samples in figures, all in the unit of the samples. No samples have zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) samples: usize,
    pub(crate) mean: f64,
    pub(crate) median: f64,
    /// The lower quartile and the upper one.
    pub(crate) quartiles: [f64; 2],
    pub(crate) p99: f64,
    /// The least and the greatest sample.
    pub(crate) range: [f64; 2],
    pub(crate) outliers: usize,
}

impl Summary {
    pub(crate) fn of(samples: &[f64]) -> Self {
        if samples.is_empty() {
            return Self::default();
        }
        let mut data = Data::new(samples.to_vec());
        let quartiles = [data.lower_quartile(), data.upper_quartile()];
        Self {
            samples: samples.len(),
            mean: data.mean().unwrap_or_default(),
            median: data.median(),
            quartiles,
            p99: data.quantile(0.99),
            range: [data.min(), data.max()],
            outliers: samples.iter().filter(|sample| is_outside(quartiles, **sample)).count(),
        }
    }

    /// The interquartile range.
    pub(crate) fn spread(&self) -> f64 {
        let [lower, upper] = self.quartiles;
        upper - lower
    }

    /// The 99th percentile, if there are enough samples for one.
    pub(crate) fn tail(&self) -> Option<f64> {
        (self.samples >= HUNDRED).then_some(self.p99)
    }

    /// Whether the interquartile ranges have nothing in common. Few samples say nothing of their
    /// spread.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        if self.samples.min(other.samples) < FEW {
            return false;
        }
        let ([lower, upper], [other_lower, other_upper]) = (self.quartiles, other.quartiles);
        lower > other_upper || upper < other_lower
    }
}

fn is_outside([lower, upper]: [f64; 2], sample: f64) -> bool {
    let fence = FENCE * (upper - lower);
    sample < lower - fence || sample > upper + fence
}

/// A quantile of samples; 0 if there are none.
pub(crate) fn quantile(samples: &[f64], part: f64) -> f64 {
    if samples.is_empty() { 0.0 } else { Data::new(samples.to_vec()).quantile(part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_samples() {
        let samples: Vec<f64> = (1..=101).rev().map(f64::from).collect();
        let summary = Summary::of(&samples);
        assert_eq!((summary.samples, summary.mean, summary.median), (101, 51.0, 51.0));
        assert_eq!(summary.range, [1.0, 101.0]);
        assert!((99.0..=101.0).contains(&summary.p99), "{summary:?}");
        assert!((summary.spread() - 50.0).abs() < 1.5, "{summary:?}");
        assert_eq!(summary.outliers, 0);
    }

    #[test]
    fn outliers_are_counted_and_stay() {
        let mut samples: Vec<f64> = (0..98).map(|number| 10.0 + f64::from(number % 5)).collect();
        let median = Summary::of(&samples).median;
        samples.extend([9_000.0, 10_000.0]);
        let summary = Summary::of(&samples);
        assert_eq!((summary.samples, summary.outliers, summary.range[1]), (100, 2, 10_000.0));
        assert_eq!(summary.median, median);
        assert!(summary.mean > 100.0, "{summary:?}");
        assert!(summary.tail().is_some_and(|p99| p99 >= 9_000.0), "{summary:?}");
        assert_eq!(Summary::of(&samples[1..]).tail(), None);
    }

    #[test]
    fn few_samples_and_none_have_figures() {
        assert_eq!(Summary::of(&[]), Summary::default());
        let one = Summary::of(&[7.0]);
        assert_eq!(
            (one.mean, one.median, one.quartiles, one.p99, one.outliers),
            (7.0, 7.0, [7.0; 2], 7.0, 0)
        );
        assert_eq!(Summary::of(&[1.0, 3.0]).median, 2.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn ranges_that_overlap_are_not_apart() {
        let of = |from: u32| Summary::of(&(from..from + 100).map(f64::from).collect::<Vec<_>>());
        assert!(!of(0).is_apart_from(&of(40)));
        assert!(of(0).is_apart_from(&of(80)) && of(80).is_apart_from(&of(0)));
        assert!(!Summary::of(&[1.0]).is_apart_from(&Summary::of(&[2.0])));
    }
}
