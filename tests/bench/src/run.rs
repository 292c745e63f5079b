//! A run: measures, prints, saves, compares and draws.

use std::process::ExitCode;

use crate::Outcome;
use crate::bench::Bench;
use crate::driver::Choice;
use crate::graphs::{self, Scope};
use crate::lines::Told;
use crate::measure::Effort;
use crate::options::Measure;
use crate::peers::Peer;
use crate::record::{Origin, Part, Row, Run, Version};
use crate::{collectives, compare, figures, plot, report, save};

/// A filter that nothing passes is a mistake.
pub(crate) const NO_ROW: &str = "no row that is measured so has that text in its name";

pub(crate) fn run(driver: &Choice, options: &Measure, peers: &[Peer]) -> Outcome<ExitCode> {
    // Files that cannot be read or written are known before anything is measured.
    let before = options.compare.as_deref().map(save::load).transpose()?;
    let told = options.lines.as_deref().map(Told::read).transpose()?.unwrap_or_default();
    [&options.save, &options.markdown].into_iter().flatten().try_for_each(|path| save::check(path))?;
    options.svg.as_deref().map_or(Ok(()), plot::make)?;
    keep_memory();
    let bench = Bench::new()?;
    let origin = Origin::of(driver, options.commit.clone(), versions(peers, &told))?;
    let origin = Origin { is_quick: options.is_quick || options.is_smoke_test, ..origin };
    if !options.json {
        report::head(&origin).iter().for_each(|line| println!("{line}"));
    }
    let mut notes = report::notes(driver, options, &told.notes);
    notes.iter().for_each(|note| report::line(options.json, note));
    let mut run = Run { origin, rows: Vec::new() };
    for part in &options.parts {
        let skipped = measure(*part, driver, options, peers, &bench, &mut |mut row| {
            told.complete(&mut row);
            report::progress(&row);
            if options.json {
                report::json(&run.origin, &row)?;
            }
            run.rows.push(row);
            Ok(())
        })?;
        report::end_of_progress();
        if let Some(skipped) = skipped {
            report::line(options.json, &format!("\n{skipped}"));
            notes.push(skipped);
        }
        if !options.json {
            report::part(*part, &run);
        }
        // After each part: an interrupted run loses the part in progress alone.
        if !run.rows.is_empty() {
            write(options, &run, &notes)?;
        }
    }
    // Without a filter, what was not measured has been said.
    if run.rows.is_empty() && options.filter.is_some() {
        return Err(NO_ROW.into());
    }
    write(options, &run, &notes)?;
    if let Some(folder) = &options.svg {
        plot::write(folder, &run)?;
    }
    if let Some(before) = before {
        report::line(options.json, &format!("\n{}", compare::report(&before, &run)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the files of the run so far.
fn write(options: &Measure, run: &Run, notes: &[String]) -> Outcome<()> {
    if let Some(path) = &options.save {
        save::save(path, run)?;
    }
    if let Some(path) = &options.markdown {
        save::write(path, &report::markdown(run, notes))?;
    }
    Ok(())
}

/// Does an operation so often, twice, for a profiler to count.
pub(crate) fn twice(driver: &Choice, operation: &str, count: u32) -> Outcome<ExitCode> {
    keep_memory();
    let figure = figures::all(driver).find(|figure| figure.name == operation);
    let figure = figure.ok_or_else(|| format!("there is no operation {operation:?} on this driver"))?;
    figure.run_twice(&Bench::new()?, count)?;
    Ok(ExitCode::SUCCESS)
}

fn versions(peers: &[Peer], told: &Told) -> Vec<Version> {
    let here =
        peers.iter().map(|peer| Version { name: peer.name.to_owned(), version: peer.version.to_owned() });
    here.chain(told.peers.iter().cloned()).collect()
}

/// Measures the rows of a part. Says why if it has none.
fn measure(
    part: Part,
    driver: &Choice,
    options: &Measure,
    peers: &[Peer],
    bench: &Bench,
    done: &mut dyn FnMut(Row) -> Outcome<()>,
) -> Outcome<Option<String>> {
    let filter = options.filter.as_deref();
    let scope = Scope::new(driver, options.is_quick, filter);
    match part {
        Part::Paths => figures::all(driver)
            .filter(|figure| filter.is_none_or(|text| figure.name.contains(text)))
            .filter(|figure| !(options.is_quick && figure.is_large()))
            .try_for_each(|figure| done(figure.measure(bench, peers, effort(driver, options))?))?,
        Part::Graphs => graphs::forms(bench, scope, done)?,
        Part::Sizes => graphs::each_node(bench, scope, done)?,
        Part::Collectives => {
            let skipped = collectives::all_reduces(bench, driver, options.is_quick, filter, done)?;
            return Ok(skipped.map(|why| format!("collectives were not measured: {why}")));
        }
    }
    Ok(None)
}

fn effort(driver: &Choice, options: &Measure) -> Effort {
    if options.is_quick { driver.effort().quick() } else { driver.effort() }
}

/// Makes the allocator keep freed memory. Otherwise it returns large tables of each batch to the
/// system and gets them back page by page, which takes longer than the measured calls.
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the calls change settings of the allocator.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 24);
    }
}
