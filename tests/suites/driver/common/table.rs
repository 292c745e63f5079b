//! Tables of answers: a failed test shows every row, so that one run on a GPU shows everything.

use std::fmt::{Display, Write};

use cuda_sys::CUresult;

use crate::common::OK;

/// Questions and answers, row by row.
#[derive(Default)]
pub(crate) struct Table(Vec<String>);

impl Table {
    /// Notes a row. It is printed at once, since what comes after it may crash.
    pub(crate) fn row(&mut self, what: impl Display, seen: impl Display) {
        let row = format!("{what}: {seen}");
        eprintln!("seen: {row}");
        self.0.push(row);
    }

    /// Compares with the rows that are expected, one a line.
    #[track_caller]
    pub(crate) fn is(self, expected: &str) {
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let mut all = String::new();
        for row in 0..self.0.len().max(expected.len()) {
            let seen = self.0.get(row).map_or("(nothing)", String::as_str);
            match expected.get(row) {
                Some(same) if *same == seen => writeln!(all, "  {seen}"),
                other => writeln!(all, "! {seen}\n!   expected: {}", other.unwrap_or(&"(nothing)")),
            }
            .unwrap();
        }
        assert!(self.0 == expected, "the rows with ! differ:\n{all}");
    }
}

/// A code by its name, without what all of them begin with.
pub(crate) fn said(code: CUresult) -> String {
    match code.name() {
        _ if code == OK => "ok".to_owned(),
        Some(name) => name.trim_start_matches("CUDA_ERROR_").to_owned(),
        None => code.0.to_string(),
    }
}

/// Several codes, one after the other; many that are the same are told once.
pub(crate) fn all_said(codes: &[CUresult]) -> String {
    match codes {
        [first, rest @ ..] if rest.len() > 3 && rest.iter().all(|code| code == first) => {
            format!("all {} {}", codes.len(), said(*first))
        }
        _ => codes.iter().map(|code| said(*code)).collect::<Vec<_>>().join(", "),
    }
}
