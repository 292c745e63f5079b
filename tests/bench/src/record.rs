//! What a run has measured.

use serde::{Deserialize, Serialize};

use crate::statistics::Summary;

/// The library's side of a row, and the raw driver's.
pub(crate) const OURS: &str = "ours";
pub(crate) const RAW: &str = "raw";

/// A run: where it was made, and its rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) origin: Origin,
    pub(crate) rows: Vec<Row>,
}

impl Run {
    pub(crate) fn row(&self, part: Part, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.part == part && row.name == name)
    }
}

/// Where and when a run was made, and of what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The driver as the command line names it.
    pub(crate) driver: String,
    /// The driver's version and library; `None` for the driver that does nothing.
    pub(crate) driver_version: Option<String>,
    pub(crate) device: Option<String>,
    /// The processor's name, where the system tells it.
    #[serde(default)]
    pub(crate) processor: Option<String>,
    /// The times mean nothing.
    #[serde(default)]
    pub(crate) is_quick: bool,
    /// In UTC.
    pub(crate) date: String,
    /// The version of this library.
    pub(crate) version: String,
    pub(crate) commit: Option<String>,
    pub(crate) peers: Vec<Version>,
}

/// Another project that is measured beside this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// The parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// Hot paths beside the raw call, in batches.
    Paths,
    /// Graphs of several forms: instantiation and launches, one by one.
    Graphs,
    /// Costs for each node, over the size of a graph.
    Sizes,
    /// All-reduces of two devices.
    Collectives,
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::Paths, Self::Graphs, Self::Sizes, Self::Collectives];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Graphs => "graphs",
            Self::Sizes => "sizes",
            Self::Collectives => "collectives",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// One operation, by several sides. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) part: Part,
    pub(crate) name: String,
    /// The nodes of the graph, where a row is one of several sizes.
    pub(crate) nodes: Option<u32>,
    pub(crate) sides: Vec<Side>,
    /// Ours less the raw side's, of neighbouring samples.
    pub(crate) over: Option<Summary>,
}

/// What one side takes for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) summary: Summary,
    /// The samples, for a plot.
    #[serde(skip)]
    pub(crate) samples: Vec<f64>,
}

impl Side {
    pub(crate) fn new(name: &str, samples: Vec<f64>) -> Self {
        Self { name: name.to_owned(), summary: Summary::of(&samples), samples }
    }
}

impl Row {
    /// A row of sides with the same number of samples each, taken in turn.
    pub(crate) fn in_turn(part: Part, name: impl Into<String>, sides: Vec<Side>) -> Self {
        let mut row = Self { part, name: name.into(), nodes: None, sides, over: None };
        if let (Some(ours), Some(raw)) = (row.side(OURS), row.side(RAW)) {
            let over: Vec<f64> =
                ours.samples.iter().zip(&raw.samples).map(|(ours, raw)| ours - raw).collect();
            row.over = Some(Summary::of(&over));
        }
        row
    }

    pub(crate) fn side(&self, name: &str) -> Option<&Side> {
        self.sides.iter().find(|side| side.name == name)
    }

    pub(crate) fn summary(&self, name: &str) -> Option<&Summary> {
        self.side(name).map(|side| &side.summary)
    }

    /// Our time as a multiple of the raw call's; `None` if the raw call takes no time.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (ours, raw) = (self.summary(OURS)?.median, self.summary(RAW)?.median);
        (raw >= 0.1).then(|| ours / raw)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(name: &str, ours: &[f64], raw: &[f64]) -> Row {
        let sides = vec![Side::new(OURS, ours.to_vec()), Side::new(RAW, raw.to_vec())];
        Row::in_turn(Part::Paths, name, sides)
    }

    #[test]
    fn interrupted_batches_do_not_count() {
        let (ours, raw): (Vec<f64>, Vec<f64>) = (0..99)
            .map(|round| if round % 10 == 0 { (5000.0, 9000.0) } else { (12.0 + f64::from(round % 3), 10.0) })
            .unzip();
        let row = row("launch", &ours, &raw);
        let over = row.over.expect("both sides are there");
        assert_eq!(
            (row.sides[0].summary.median, row.sides[1].summary.median, over.median),
            (13.0, 10.0, 3.0)
        );
        assert!(over.spread() <= 2.0, "{over:?}");
        assert_eq!(row.ratio(), Some(1.3));
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(row("launch", &[1.0], &[0.0]).ratio(), None);
        let alone = Row::in_turn(Part::Graphs, "launch", vec![Side::new(OURS, vec![1.0])]);
        assert_eq!((alone.ratio(), alone.over), (None, None));
    }

    #[test]
    fn parts_are_found_by_their_names() {
        for part in Part::ALL {
            assert_eq!(Part::parse(part.name()), Some(part));
        }
        assert_eq!(Part::parse("all"), None);
    }
}
