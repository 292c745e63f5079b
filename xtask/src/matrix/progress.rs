//! Progress while the matrix runs: two bars on a terminal, else a line for each test that did not
//! pass, and for each row.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::report::{Counts, RowReport};
use crate::runner::progress::is_watched;
use crate::runner::{Outcome, Row};

pub(super) struct Progress {
    bars: Option<Bars>,
    /// The counts of the row that runs.
    counts: RefCell<Counts>,
}

struct Bars {
    all: MultiProgress,
    rows: ProgressBar,
    tests: ProgressBar,
}

impl Bars {
    fn new(rows: usize) -> Self {
        let all = MultiProgress::new();
        let bar = |template: &str, len: u64| {
            let bar = all.add(ProgressBar::new(len));
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        };
        let rows = bar("rows   {wide_bar} {pos}/{len} {elapsed}", rows as u64);
        let tests = bar("{prefix}\n{msg:50} {wide_bar} {pos}/{len} {elapsed}, {eta} left", 0);
        Self { all, rows, tests }
    }
}

impl Progress {
    pub(super) fn new(rows: usize) -> Self {
        let bars = is_watched().then(|| Bars::new(rows));
        Self { bars, counts: RefCell::default() }
    }

    pub(super) fn row_starts(&self, name: &str, tests: usize) {
        *self.counts.borrow_mut() = Counts::default();
        match &self.bars {
            Some(Bars { tests: bar, .. }) => {
                bar.reset();
                bar.set_length(tests as u64);
                bar.set_prefix(name.to_owned());
                bar.set_message("");
            }
            None => println!("\n==== {name}: {tests} tests"),
        }
    }

    pub(super) fn test_ended(&self, row: &Row, is_expected: bool) {
        let mut counts = self.counts.borrow_mut();
        counts.add(row, is_expected);
        let failed = matches!(row.outcome, Outcome::Failed { .. });
        if failed {
            self.line(&if is_expected { format!("{row}, as expected") } else { row.to_string() });
        }
        if let Some(Bars { tests, .. }) = &self.bars {
            tests.set_message(counts.words());
            tests.inc(1);
        }
    }

    pub(super) fn again(&self, row: &Row) {
        self.line(&format!("again: {row}"));
    }

    pub(super) fn row_ended(&self, row: &RowReport) {
        self.line(&match &row.skipped {
            Some(reason) => format!("row {}: skipped, {reason}", row.name),
            None if row.left > 0 => {
                format!("row {}: {}, {} left, {:.1} s", row.name, row.counts().words(), row.left, row.seconds)
            }
            None => format!("row {}: {}, {:.1} s", row.name, row.counts().words(), row.seconds),
        });
        if let Some(Bars { rows, .. }) = &self.bars {
            rows.inc(1);
        }
    }

    fn line(&self, line: &str) {
        match &self.bars {
            Some(Bars { all, .. }) => drop(all.println(line)),
            None => println!("{line}"),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(Bars { all, .. }) = &self.bars {
            drop(all.clear());
        }
    }
}
