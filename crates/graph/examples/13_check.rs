//! 13: a graph that lacks an edge. The check names the nodes and the memory, and says what to do.
//!
//! ```sh
//! cargo run -p cuda-graph --example 13_check -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses elements below `n`.
    unsafe in "kernels/basics.ptx";
    fn add(n: u32, a: In<f32>, b: In<f32>, sum: Out<f32>)
    where a.len() >= n, b.len() >= n, sum.len() >= n, grid.x * block.x >= n;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let add = add::load(&context)?;
    let (a, b, sum) = (stream.zeros(1000)?, stream.zeros(1000)?, stream.zeros::<f32>(1000)?);

    let graph = context.graph()?;
    let ones = graph.root().fill(&a, 1.0)?.named("ones");
    let twos = graph.root().fill(&b, 2.0)?.named("twos");
    let added = ones.then().launch(&add, per(1000, 256), (1000, &a, &b, &sum))?.named("add");

    // `add` reads `b`, and nothing says that it waits for the fill.
    let report = graph.check()?;
    println!("{report}");
    assert!(!report.is_clean());

    graph.add_edge(&twos, &added)?;
    assert!(graph.check()?.is_clean());

    // What cannot be is refused at once.
    match graph.add_edge(&added, &ones) {
        Ok(()) => return Err("that is a cycle".into()),
        Err(error) => println!("refused: {error}"),
    }
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(sum.read_blocking(&stream)?, [3.0; 1000]);
    Ok(())
}
