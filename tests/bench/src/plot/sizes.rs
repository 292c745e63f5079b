//! The cost of a node over the size of its graph, on logarithmic axes.

use std::path::Path;

use plotters::prelude::*;

use super::{SIZE, colour, range};
use crate::Outcome;
use crate::record::{Part, Row};

/// Writes a panel for each kind of cost.
pub(super) fn write(path: &Path, rows: &[Row]) -> Outcome<()> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.part == Part::Sizes).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for row in &rows {
        if !kinds.contains(&kind(row)) {
            kinds.push(kind(row));
        }
    }
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, wanted) in area.split_evenly((1, kinds.len().max(1))).iter().zip(&kinds) {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| kind(row) == *wanted).collect();
        draw(panel, wanted, &rows)?;
    }
    area.present()?;
    Ok(())
}

/// What is measured: the name behind its last comma.
fn kind(row: &Row) -> &str {
    row.name.rsplit(", ").next().unwrap_or_default()
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    rows: &[&Row],
) -> Outcome<()> {
    let nodes = |row: &Row| f64::from(row.nodes.unwrap_or_default());
    let medians = rows.iter().flat_map(|row| row.sides.iter().map(|side| side.summary.median));
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{title}, for each node"), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(
            range(rows.iter().map(|row| nodes(row))).log_scale(),
            range(medians).log_scale(),
        )?;
    chart.configure_mesh().max_light_lines(1).x_desc("nodes").y_desc("ns").draw()?;
    for (number, side) in rows.first().map_or(&[][..], |row| &row.sides).iter().enumerate() {
        let colour = colour(&side.name);
        let points = rows.iter().filter_map(|row| Some((nodes(row), row.sides.get(number)?.summary.median)));
        let points: Vec<_> = points.filter(|(_, median)| *median > 0.0).collect();
        chart
            .draw_series([PathElement::new(points.clone(), colour.stroke_width(2))])?
            .label(side.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?;
    }
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    Ok(())
}
