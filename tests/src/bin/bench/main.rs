//! The benchmark: overhead over the raw driver in the same run, launches beside drops on another
//! thread, the memory of many replays, and graphs in all shapes.

mod driver;
mod figures;
mod latency;
mod measure;
mod options;
mod replays;
mod report;
mod shapes;

use std::error::Error;
use std::process::ExitCode;

use options::{Options, Task};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    driver::install(&options.driver)?;
    match options.task {
        Task::Figures { json, filter } => figures(&options.driver, json, filter.as_deref()),
        Task::Latency => latency::run(&options.driver),
        Task::Replays(count) => replays::run(count),
        Task::Shapes { filter, svg } => shapes::run(&options.driver, filter.as_deref(), svg.as_deref()),
    }
}

fn figures(driver: &driver::Choice, json: bool, filter: Option<&str>) -> Outcome<ExitCode> {
    if !json {
        report::header(driver)?;
    }
    keep_memory();
    let bench = figures::Bench::new()?;
    let effort = driver.effort();
    for figure in figures::all(driver).filter(|figure| filter.is_none_or(|text| figure.name.contains(text))) {
        let measured = figure.measure(&bench, effort)?;
        if json {
            report::json(figure.name, driver, &measured);
        } else {
            report::row(figure.name, driver, &measured);
        }
    }
    Ok(ExitCode::SUCCESS)
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
