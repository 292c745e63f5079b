//! Measurements: hot paths, graphs and sizes beside the raw driver in the same run, launches beside
//! drops on another thread, the memory of many replays, and graphs in all shapes.
//!
//! This is a library for a program that measures other projects in the same run: such a
//! [`Peer`] brings its own way of some operations, which takes turns with the others.

mod bench;
mod collectives;
mod compare;
mod driver;
mod figures;
mod graphs;
mod latency;
mod lines;
mod measure;
mod options;
mod origin;
mod peers;
mod plot;
mod raw;
mod record;
mod replays;
mod report;
mod run;
mod save;
mod shapes;
mod statistics;
mod table;

use std::error::Error;
use std::process::ExitCode;

pub use bench::{Bench, IMAGE, N};
pub use measure::{Way, timed};
pub use peers::{Peer, WayOf};

use options::{Options, Task};

/// What measurements return.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Reads the command line and measures.
#[must_use]
pub fn main(peers: &[Peer]) -> ExitCode {
    match start(peers) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(peers: &[Peer]) -> Outcome<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    if !peers.is_empty() && !options.driver.is_library() {
        return Err("the peers open the driver by its name: --driver system, or the path of a library".into());
    }
    driver::install(&options.driver)?;
    match options.task {
        Task::Measure(measure) => run::run(&options.driver, &measure, peers),
        Task::Twice { operation, count } => run::twice(&options.driver, &operation, count),
        Task::Latency => latency::run(&options.driver),
        Task::Replays(count) => replays::run(count),
        Task::Shapes { filter, svg } => shapes::run(&options.driver, filter.as_deref(), svg.as_deref()),
    }
}
