//! A model that generates token after token, as inference engines do: 24 layers of six small
//! kernels, captured once. From token to token only the position and the cache differ. They are
//! graph parameters; three other ways to change them are compared.
//!
//! ```sh
//! cargo run -p cuda-graph --features svg --example decode -- --driver soft --svg decode.svg
//! ```
//!
//! The times mean something in a build with `--release`, on a GPU.

#[path = "../common/mod.rs"]
mod common;
mod model;
mod program;
mod reference;
mod ways;

use std::process::ExitCode;
use std::time::Duration;

use cuda_handles::Context;

use common::Options;
use model::Sizes;
use program::{Decoder, Result};
use ways::{Decoded, Way};

const WAYS: [(&str, Way); 4] = [
    ("parameters set", Way::Parameters),
    ("captured anew, whole update", Way::Update),
    ("captured anew, instantiated", Way::Rebuild),
    ("arguments in device memory", Way::Memory),
];

fn main() -> ExitCode {
    common::example(run)
}

fn run(context: &Context, options: &Options) -> Result<bool> {
    let width = if options.is_soft { 16 } else { 64 };
    let sizes = Sizes { layers: 24, width, tokens: 200 };
    let decoder = Decoder::new(context, sizes)?;
    let step = decoder.graph_with_parameters(0, &decoder.start()?[0])?;
    common::show(&step.graph, options)?;

    let expected = reference::run(sizes);
    let mut rows = Vec::new();
    for (name, way) in WAYS {
        rows.push((name, way.decode(&decoder)?));
    }
    println!("{} layers of 6 kernels, rows of {width} numbers, {} tokens", sizes.layers, sizes.tokens);
    println!("{:30} {:>10} {:>10}  results", "a token, by", "host", "in all");
    for (name, Decoded { results, on_host, in_all }) in &rows {
        let (host, in_all) = (median(on_host), *in_all / sizes.tokens);
        let compared = if *results == expected { "as in plain Rust" } else { "WRONG" };
        println!("{name:30} {host:>10.1?} {in_all:>10.1?}  {compared}");
    }
    Ok(rows.iter().all(|(_, decoded)| decoded.results == expected))
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
