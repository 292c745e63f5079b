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

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let calls = if options.is_soft { 50 } else { 1000 };
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
        let found = program.call_all(&sites, calls)?;
        let queued = start.elapsed();
        is_good &= compare("the device decides", &sites, calls, &found);
        println!("  {} calls queued in {queued:.1?}", 3 * calls);
        println!("  {:?}", program.statistics());
        println!("  builds={}", program.statistics().builds);
    }
    let few = calls / 10;
    let found = program.call_all_by_host(&sites, few)?;
    is_good &= compare("the host decides", &sites, few, &found);
    println!("  builds={}", program.host_statistics().builds);
    Ok(is_good)
}

fn compare(what: &str, sites: &[Site], calls: u32, found: &[Vec<u32>]) -> bool {
    println!("{what}:");
    let mut is_good = true;
    for (site, found) in sites.iter().zip(found) {
        let is_same = *found == reference::run(site, calls);
        println!("  {:13} {calls} calls: {}", site.name, if is_same { "as in plain Rust" } else { "WRONG" });
        is_good &= is_same;
    }
    is_good
}
