//! The distribution of the times of launch calls: which part of them took no longer.

use std::path::Path;

use plotters::prelude::*;

use super::{SIZE, colour, range};
use crate::Outcome;
use crate::graphs::LAUNCH;
use crate::record::{Part, Row, Side};

/// Of many samples, as many points of a line suffice.
const POINTS: usize = 400;
/// The part of the samples that the axis shows; a few are far beyond it.
const SHOWN: f64 = 0.99;

/// Writes a panel for each graph, in rows by form and columns by size.
pub(super) fn write(path: &Path, rows: &[Row]) -> Outcome<()> {
    let is_launch = |row: &&Row| row.part == Part::Graphs && row.name.ends_with(LAUNCH);
    let rows: Vec<&Row> = rows.iter().filter(is_launch).collect();
    let columns = rows.iter().map(|row| row.nodes).collect::<std::collections::BTreeSet<_>>().len().max(1);
    let lines = rows.len().div_ceil(columns).max(1);
    let area = SVGBackend::new(path, (SIZE.0, 300 * lines as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, row) in area.split_evenly((lines, columns)).iter().zip(rows) {
        draw(panel, row)?;
    }
    area.present()?;
    Ok(())
}

fn draw(area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>, row: &Row) -> Outcome<()> {
    let lines: Vec<(&Side, Vec<(f64, f64)>)> =
        row.sides.iter().map(|side| (side, distribution(side))).collect();
    let shown = lines.iter().flat_map(|(_, line)| line).filter(|(_, part)| *part <= SHOWN);
    let times = range(shown.map(|(time, _)| *time));
    let mut chart = ChartBuilder::on(area)
        .caption(row.name.trim_end_matches(LAUNCH), ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(44)
        .build_cartesian_2d(times.clone(), 0.0..1.0)?;
    chart
        .configure_mesh()
        .max_light_lines(1)
        .x_labels(5)
        .x_label_formatter(&|time| format!("{time:.0}"))
        .x_desc("ns")
        .draw()?;
    for (side, line) in lines {
        let colour = colour(&side.name);
        let line: Vec<_> = line.into_iter().filter(|(time, _)| times.contains(time)).collect();
        chart
            .draw_series([PathElement::new(line, colour.stroke_width(2))])?
            .label(side.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    let place = SeriesLabelPosition::LowerRight;
    chart.configure_series_labels().position(place).border_style(BLACK).background_style(WHITE).draw()?;
    Ok(())
}

/// Times in order, each with the part of the samples up to it.
fn distribution(side: &Side) -> Vec<(f64, f64)> {
    let mut samples: Vec<f64> = side.samples.iter().copied().filter(|sample| *sample > 0.0).collect();
    samples.sort_unstable_by(f64::total_cmp);
    let count = samples.len();
    let step = count.div_ceil(POINTS).max(1);
    let points = samples.into_iter().enumerate().skip(step - 1).step_by(step);
    points.map(|(number, sample)| (sample, (number + 1) as f64 / count as f64)).collect()
}
