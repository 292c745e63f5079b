//! The picture: how many times faster each variant is than the graph as drawn.

use std::path::Path;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::Row;
use super::timing::Times;
use super::variants::{VARIANTS, Variant};
use crate::Outcome;
use crate::statistics::Summary;

/// Pixels.
const WIDTH: u32 = 1160;
const ROW: u32 = 26;
const NAMES: u32 = 400;
const HEAD: u32 = 64;
const FOOT: u32 = 60;

type Panel<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, RangedCoordf64>>;

/// Writes an SVG with two panels: launch calls and runs.
pub(super) fn write(path: &Path, rows: &[Row]) -> Outcome<()> {
    let height = HEAD + FOOT + ROW * rows.len().max(1) as u32;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let (head, body) = area.split_vertically(HEAD);
    legend(&head)?;
    let (left, right) = body.split_horizontally(NAMES + (WIDTH - NAMES) / 2);
    panel(&left, "launch call, times faster", rows, NAMES, |times| times.launch)?;
    panel(&right, "run, times faster", rows, 16, |times| times.run)?;
    area.present()?;
    Ok(())
}

fn legend(area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Outcome<()> {
    let mut left = 20;
    for variant in VARIANTS.iter().skip(1) {
        area.draw(&Circle::new((left, 24), 5, colour(variant).filled()))?;
        area.draw(&Text::new(variant.name, (left + 10, 17), ("sans-serif", 15)))?;
        left += 40 + 8 * variant.name.len() as i32;
    }
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    rows: &[Row],
    names: u32,
    median: fn(&Times) -> Summary,
) -> Outcome<()> {
    let gains: Vec<Vec<f64>> = rows.iter().map(|row| gains(&row.times, median)).collect();
    let all = || gains.iter().flatten().copied();
    let (least, most) = (all().fold(0.8, f64::min), all().fold(2.0, f64::max));
    let mut chart: Panel<'_> = ChartBuilder::on(area)
        .margin_right(16)
        .x_label_area_size(FOOT)
        .y_label_area_size(names)
        .build_cartesian_2d((least * 0.9..most * 1.2).log_scale(), rows.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .max_light_lines(1)
        .y_labels(0)
        .x_label_formatter(&|gain| format!("{gain}"))
        .x_desc(title)
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    // As drawn.
    let height = rows.len() as f64;
    chart.draw_series([PathElement::new([(1.0, 0.0), (1.0, height)], BLACK.stroke_width(2))])?;
    for (at, (row, gains)) in rows.iter().zip(&gains).enumerate() {
        let middle = at as f64 + 0.5;
        chart.draw_series([PathElement::new(
            [(least * 0.9, middle), (most * 1.2, middle)],
            RGBColor(0xdd, 0xdd, 0xdd),
        )])?;
        let dots = VARIANTS.iter().skip(1).zip(gains);
        chart.draw_series(
            dots.map(|(variant, gain)| Circle::new((*gain, middle), 5, colour(variant).mix(0.85).filled())),
        )?;
        if names > ROW {
            let place = (8, (middle * f64::from(ROW)) as i32 - 8);
            area.draw(&Text::new(row.name, place, ("sans-serif", 15)))?;
        }
    }
    Ok(())
}

/// The times of the graph as drawn, by those of the variants.
fn gains(times: &[Times], median: fn(&Times) -> Summary) -> Vec<f64> {
    let Some((drawn, others)) = times.split_first() else { return Vec::new() };
    others.iter().map(|other| median(drawn).median / median(other).median).collect()
}

fn colour(variant: &Variant) -> RGBColor {
    let [red, green, blue] = variant.colour;
    RGBColor(red, green, blue)
}
