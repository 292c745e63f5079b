//! Shapes: the same graph in all shapes, on a device.
//!
//! For each [drawing](drawings) and each [variant](variants): how long the launch call takes, how
//! long a run, and how long an instantiation. The variants of a drawing take turns, so that a
//! change of the clock's speed affects all.

mod drawings;
mod plot;
mod table;
mod timing;
mod variants;

use std::path::Path;
use std::process::ExitCode;

use cuda_handles::Device;

use crate::Outcome;
use crate::driver::Choice;
use crate::record::Origin;
use crate::report;
use crate::run::NO_ROW;
use drawings::{DRAWINGS, Drawing, Kit, LARGE};
use timing::Times;

/// The times of a drawing, in the order of the variants.
pub(super) struct Row {
    name: &'static str,
    times: Vec<Times>,
}

pub(crate) fn run(driver: &Choice, filter: Option<&str>, svg: Option<&Path>) -> Outcome<ExitCode> {
    report::head(&Origin::of(driver, None, Vec::new())?).iter().for_each(|line| println!("{line}"));
    let kit = Kit::new(&Device::new(0)?.context()?)?;
    let is_named = |drawing: &&Drawing| filter.is_some_and(|text| drawing.name.contains(text));
    let large: Vec<_> = LARGE.iter().filter(is_named).collect();
    for drawing in &large {
        println!("\n{}", drawing.name);
        timing::instantiate(&(drawing.draw)(&kit)?)?;
    }
    let mut rows = Vec::new();
    table::header();
    for drawing in DRAWINGS.iter().filter(|drawing| filter.is_none() || is_named(drawing)) {
        let row = Row { name: drawing.name, times: timing::measure(&kit, drawing)? };
        table::row(&row);
        rows.push(row);
    }
    if rows.is_empty() && large.is_empty() {
        return Err(NO_ROW.into());
    }
    table::legend();
    if let Some(path) = svg {
        plot::write(path, &rows)?;
        println!("wrote {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
