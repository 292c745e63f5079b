//! Tables for people.

use core::fmt;

/// A table with a head. The first column is set to the left, the others to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[impl AsRef<str>]) -> Self {
        Self { rows: vec![head.iter().map(|cell| cell.as_ref().to_owned()).collect()] }
    }

    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = impl AsRef<str>>) {
        self.rows.push(row.into_iter().map(|cell| cell.as_ref().to_owned()).collect());
    }

    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let columns = self.rows.first().map_or(0, Vec::len);
        let ruler = format!("|---|{}\n", "---:|".repeat(columns.saturating_sub(1)));
        let mut lines = self.rows.iter().map(line);
        let head = lines.next().unwrap_or_default();
        head + &ruler + &lines.collect::<String>()
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        (0..columns).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => line += &format!("{cell:width$}"),
                    _ => line += &format!("  {cell:>width$}"),
                }
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A time of so many nanoseconds, with three digits at least.
pub(crate) fn time(nanoseconds: f64) -> String {
    let size = nanoseconds.abs();
    let (value, unit) = match size {
        _ if size < 1e4 => (nanoseconds, "ns"),
        _ if size < 1e7 => (nanoseconds / 1e3, "µs"),
        _ => (nanoseconds / 1e6, "ms"),
    };
    let digits = if value.abs() < 100.0 { 1 } else { 0 };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["operation", "ours", "raw"]);
        table.push(["fill of 5 µs", "12.5 ns", "3"]);
        table.push(["x", "1", "1000"]);
        assert_eq!(
            table.to_string(),
            "operation        ours   raw\nfill of 5 µs  12.5 ns     3\nx                   1  1000\n"
        );
    }

    #[test]
    fn markdown_has_the_same_cells() {
        let mut table = Table::new(&["operation", "ours", "raw"]);
        table.push(["a | b", "12.5 ns", "3"]);
        assert_eq!(
            table.markdown(),
            "| operation | ours | raw |\n|---|---:|---:|\n| a \\| b | 12.5 ns | 3 |\n"
        );
    }

    #[test]
    fn rows_may_be_short_and_have_no_spaces_at_the_end() {
        let mut table = Table::new(&["a", "b"]);
        table.push(["only"]);
        table.push(["last", ""]);
        assert_eq!(table.to_string(), "a     b\nonly\nlast\n");
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let shown = [0.0, 12.34, 345.6, -20.0, 9_999.0, 12_345.0, 1_234_567.0, 12_345_678.0].map(time);
        assert_eq!(
            shown,
            ["0.0 ns", "12.3 ns", "346 ns", "-20.0 ns", "9999 ns", "12.3 µs", "1235 µs", "12.3 ms"]
        );
    }
}
