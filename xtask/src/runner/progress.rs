//! Progress while tests run: a bar on a terminal, else a line for each test.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use super::Row;

/// Whether somebody sees both what is printed and the bars, which are drawn on standard error.
pub(crate) fn is_watched() -> bool {
    std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(count: usize) -> Self {
        let bar = is_watched().then(|| {
            let bar = ProgressBar::new(count as u64);
            if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {elapsed}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar }
    }

    pub(crate) fn ended(&self, row: &Row) {
        match &self.bar {
            Some(bar) => {
                if row.outcome.reason().is_some() {
                    bar.println(row.to_string());
                }
                bar.inc(1);
            }
            None => println!("{row}"),
        }
    }

    pub(crate) fn again(&self, row: &Row) {
        let line = format!("again: {row}");
        match &self.bar {
            Some(bar) => bar.println(line),
            None => println!("{line}"),
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
