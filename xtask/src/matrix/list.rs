//! The rows, before they run.

use super::expand::Planned;

/// Prints each row with its axes and groups, and what is skipped with the reason.
pub(super) fn print(rows: &[Planned]) {
    println!();
    for row in rows {
        match &row.skipped {
            Some(reason) => println!("{}: skipped, {reason}", row.name),
            None if row.name == row.axes.to_string() => println!("{}: {}", row.name, row.groups.join(", ")),
            None => println!("{}: {}; {}", row.name, row.axes, row.groups.join(", ")),
        }
        for (group, reason) in row.left_out.iter().filter(|_| row.skipped.is_none()) {
            println!("    without {group}: {reason}");
        }
    }
}
