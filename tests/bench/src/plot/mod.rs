//! Plots of a run, as SVG.

mod latency;
mod sizes;

use std::path::Path;

use plotters::prelude::*;

use crate::Outcome;
use crate::graphs::SHAPED;
use crate::record::{Part, RAW, Run};

/// Pixels.
const SIZE: (u32, u32) = (1160, 420);

/// Makes the folder for plots, if there is none.
pub(crate) fn make(folder: &Path) -> Outcome<()> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| format!("no folder {}: {error}", folder.display()).into())
}

/// Writes the plots for which the run has rows, and tells where.
pub(crate) fn write(folder: &Path, run: &Run) -> Outcome<()> {
    let has = |part: Part| run.rows.iter().any(|row| row.part == part);
    if has(Part::Sizes) {
        let path = folder.join("per-node.svg");
        sizes::write(&path, &run.rows)?;
        eprintln!("wrote {}", path.display());
    }
    if has(Part::Graphs) {
        let path = folder.join("launch-latency.svg");
        latency::write(&path, &run.rows)?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// The colour of a side.
fn colour(side: &str) -> RGBColor {
    match side {
        RAW => RGBColor(0x66, 0x66, 0x66),
        SHAPED => RGBColor(0xd5, 0x5e, 0x00),
        _ => RGBColor(0x00, 0x72, 0xb2),
    }
}

/// The least value and the greatest, as a range for a logarithmic axis.
fn range(values: impl Iterator<Item = f64>) -> core::ops::Range<f64> {
    let (least, most) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| (least.min(value), most.max(value)));
    if most > 0.0 { least * 0.8..most * 1.25 } else { 0.1..10.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Row;
    use crate::record::tests::row;

    #[test]
    fn both_plots_are_written_where_there_are_rows() {
        let folder = std::env::temp_dir().join(format!("cuda-bench-plots-{}", std::process::id()));
        let sized = |part: Part, name: &str, nodes: u32| Row {
            part,
            nodes: Some(nodes),
            ..row(name, &[2.0, 3.0, 5.0], &[1.0, 2.0, 2.5])
        };
        let rows = vec![
            sized(Part::Sizes, "each of 100 nodes, build", 100),
            sized(Part::Sizes, "each of 1000 nodes, build", 1000),
            sized(Part::Graphs, "line of 10, launch", 10),
        ];
        make(&folder).expect("the folder can be made");
        write(&folder, &Run { rows, ..Run::default() }).expect("the folder is there");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it was written");
        let (sizes, latency) = (read("per-node.svg"), read("launch-latency.svg"));
        std::fs::remove_dir_all(&folder).expect("it was just made");
        assert!(sizes.contains("build") && sizes.contains("polyline"), "{sizes}");
        assert!(latency.contains("line of 10") && latency.contains("polyline"), "{latency}");
    }

    #[test]
    fn ranges_are_of_positive_values() {
        assert_eq!(range([0.0, 10.0, 100.0].into_iter()), 8.0..125.0);
        assert_eq!(range([0.0].into_iter()), 0.1..10.0);
    }
}
