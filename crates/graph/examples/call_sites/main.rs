//! One loop called from three places, each with arrays, sizes and counters of its own. The graph is
//! built once; calls queue behind each other and wait for nothing. The same with the host deciding.
//!
//! ```sh
//! cargo run -p cuda-graph --features svg --example call_sites -- --driver soft --svg sites.svg
//! ```

#[path = "../common/mod.rs"]
mod common;
mod program;
mod reference;

use std::process::ExitCode;
use std::time::Instant;

use cuda_handles::Context;

use common::Options;
use program::{CallSites, Result, Site};

/// The calls from each place.
const CALLS: u32 = 1000;

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let mut program = CallSites::new(context)?;
    common::show(&program.graph()?, options)?;
    let sites = [
        Site { name: "few numbers", n: 40, factor: 3, most_rounds: 2 },
        Site { name: "more numbers", n: 700, factor: 5, most_rounds: 3 },
        Site { name: "one number", n: 1, factor: 7, most_rounds: 4 },
    ];
    let mut is_good = true;
    if program.device_decides() {
        let start = Instant::now();
        let found = program.call_all(&sites, CALLS)?;
        let queued = start.elapsed();
        is_good &= compare("the device decides", &sites, &found);
        println!("  {} calls queued in {queued:.1?}", 3 * CALLS);
        println!("  {:?}", program.statistics());
        println!("  builds={}", program.statistics().builds);
    }
    let found = program.call_all_by_host(&sites, CALLS)?;
    is_good &= compare("the host decides", &sites, &found);
    println!("  builds={}", program.host_statistics().builds);
    Ok(is_good)
}

fn compare(what: &str, sites: &[Site], found: &[Vec<u32>]) -> bool {
    println!("{what}:");
    let mut is_good = true;
    for (site, found) in sites.iter().zip(found) {
        let is_same = *found == reference::run(site, CALLS);
        println!("  {:13} {CALLS} calls: {}", site.name, if is_same { "as in plain Rust" } else { "WRONG" });
        is_good &= is_same;
    }
    is_good
}
