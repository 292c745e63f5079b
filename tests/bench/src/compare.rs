//! A run beside an earlier one.

use crate::record::{Origin, Run};
use crate::statistics::Summary;
use crate::table::{Table, time};

/// One side of a row in both runs.
#[derive(Debug, PartialEq)]
struct Change<'a> {
    row: &'a str,
    side: &'a str,
    before: Summary,
    now: Summary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Faster,
    Slower,
    /// The interquartile ranges overlap.
    WithinSpread,
}

impl Change<'_> {
    /// In percent of the earlier median; `None` if that is nothing.
    fn percent(&self) -> Option<f64> {
        (self.before.median.abs() >= 0.1).then(|| (self.now.median / self.before.median - 1.0) * 100.0)
    }

    fn verdict(&self) -> Verdict {
        match self.now.is_apart_from(&self.before) {
            false => Verdict::WithinSpread,
            true if self.now.median < self.before.median => Verdict::Faster,
            true => Verdict::Slower,
        }
    }
}

/// What both runs have, in the order of the later one.
fn changes<'a>(before: &Run, now: &'a Run) -> Vec<Change<'a>> {
    let mut found = Vec::new();
    for row in &now.rows {
        let Some(earlier) = before.row(row.part, &row.name) else { continue };
        for side in &row.sides {
            if let Some(before) = earlier.summary(&side.name) {
                found.push(Change { row: &row.name, side: &side.name, before: *before, now: side.summary });
            }
        }
    }
    found
}

/// The comparison as text.
pub(crate) fn report(before: &Run, now: &Run) -> String {
    let changes = changes(before, now);
    let mut text = format!("compared with {}\n", describe(&before.origin));
    for warning in warnings(&before.origin, &now.origin) {
        text += &format!("note: {warning}\n");
    }
    let mut table = Table::new(&["operation", "side", "before", "now", "change", ""]);
    for change in &changes {
        let percent = change.percent().map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.1} %"));
        let mark = match change.verdict() {
            Verdict::Faster => "faster",
            Verdict::Slower => "SLOWER",
            Verdict::WithinSpread => "",
        };
        let (before, now) = (time(change.before.median), time(change.now.median));
        table.push([change.row, change.side, &before, &now, &percent, mark]);
    }
    text + "\n" + &table.to_string() + &totals(&changes, before, now)
}

fn totals(changes: &[Change<'_>], before: &Run, now: &Run) -> String {
    let count = |verdict| changes.iter().filter(|change| change.verdict() == verdict).count();
    let new = now.rows.iter().filter(|row| before.row(row.part, &row.name).is_none()).count();
    let gone = before.rows.iter().filter(|row| now.row(row.part, &row.name).is_none()).count();
    format!(
        "\n{} faster, {} slower, {} within the spread (the quartiles overlap); {new} rows are new, {gone} were \
         not measured now\n",
        count(Verdict::Faster),
        count(Verdict::Slower),
        count(Verdict::WithinSpread)
    )
}

fn describe(origin: &Origin) -> String {
    let device = origin.device.as_deref().unwrap_or("no device");
    let commit = origin.commit.as_deref().map(|commit| format!(" ({commit})")).unwrap_or_default();
    format!("{} of {}{commit}, driver {}, {device}", origin.date, origin.version, origin.driver)
}

/// Why the runs may not be comparable.
fn warnings(before: &Origin, now: &Origin) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, before: &str, now: &str| {
        if before != now {
            found.push(format!("the {what} was {before} then and is {now} now"));
        }
    };
    compare("driver", &before.driver, &now.driver);
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    compare("driver's version", &text(&before.driver_version), &text(&now.driver_version));
    compare("device", &text(&before.device), &text(&now.device));
    compare("processor", &text(&before.processor), &text(&now.processor));
    if before.is_quick || now.is_quick {
        found.push("times of a quick run or of a smoke test mean nothing".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;

    fn run(driver: &str, rows: Vec<crate::record::Row>) -> Run {
        Run { origin: Origin { driver: driver.to_owned(), ..Origin::default() }, rows }
    }

    #[test]
    fn what_lies_outside_of_the_spread_is_marked() {
        let steady = |value: f64| vec![value, value + 1.0, value + 2.0, value + 3.0];
        let before = run(
            "null",
            vec![
                row("launch", &steady(100.0), &steady(50.0)),
                row("fill", &steady(10.0), &steady(10.0)),
                row("gone", &[1.0], &[1.0]),
            ],
        );
        let now = run(
            "null",
            vec![
                row("launch", &steady(150.0), &steady(20.0)),
                row("fill", &steady(11.0), &steady(10.0)),
                row("new", &[1.0], &[1.0]),
            ],
        );
        let found = changes(&before, &now);
        let verdicts: Vec<_> =
            found.iter().map(|change| (change.row, change.side, change.verdict())).collect();
        assert_eq!(
            verdicts,
            [
                ("launch", "ours", Verdict::Slower),
                ("launch", "raw", Verdict::Faster),
                ("fill", "ours", Verdict::WithinSpread),
                ("fill", "raw", Verdict::WithinSpread),
            ]
        );
        let percent = found[0].percent().expect("it took some time before");
        assert!((percent - 49.3).abs() < 0.1, "{percent}");
        let text = report(&before, &now);
        assert!(text.contains("1 faster, 1 slower, 2 within the spread"), "{text}");
        assert!(text.contains("1 rows are new, 1 were not measured now"), "{text}");
        assert!(text.contains("+49.3 %") && text.contains("SLOWER"), "{text}");
        assert!(!text.contains("note:"), "{text}");
    }

    #[test]
    fn runs_of_other_drivers_are_told() {
        let text = report(&run("null", Vec::new()), &run("soft", Vec::new()));
        assert!(text.contains("the driver was null then and is soft now"), "{text}");
    }

    #[test]
    fn runs_of_other_machines_and_quick_ones_are_told() {
        let (mut before, now) = (run("null", Vec::new()), run("null", Vec::new()));
        before.origin.processor = Some("a fast one".to_owned());
        before.origin.is_quick = true;
        let text = report(&before, &now);
        assert!(text.contains("the processor was a fast one then and is none now"), "{text}");
        assert!(text.contains("times of a quick run"), "{text}");
    }

    #[test]
    fn there_is_no_change_from_nothing() {
        let (nothing, some) = (Summary::of(&[0.0]), Summary::of(&[5.0]));
        assert_eq!(Change { row: "", side: "", before: nothing, now: some }.percent(), None);
    }
}
