//! 3: a graph with a fork and a join is built once and launched many times.
//!
//! ```sh
//! cargo run -p cuda-graph --example 03_graph -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;

kernel! {
    // SAFETY: the kernels in the file have these parameters, and access elements below `n`.
    unsafe in "kernels/basics.ptx";
    struct Basics;
    fn scale(n: u32, factor: f32, x: InOut<f32>) where x.len() >= n, grid.x * block.x >= n;
    fn add(n: u32, a: In<f32>, b: In<f32>, sum: Out<f32>)
    where a.len() >= n, b.len() >= n, sum.len() >= n, grid.x * block.x >= n;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let kernels = Basics::load(&context)?;
    let (len, n, grid) = (1000, 1000, per(1000, 256));
    let (a, b, sum) = (stream.zeros(len)?, stream.zeros(len)?, stream.zeros::<f32>(len)?);
    let input = context.pinned_zeros::<f32>(len)?.share();

    let graph = context.graph()?;
    let load = graph.root().copy(&input, &a)?.named("load");
    let copy = load.then().copy(&a, &b)?.named("copy");
    // These two wait for the copy, and not for each other.
    let twice = copy.then().launch(&kernels.scale, grid, (n, 2.0, &a))?.named("twice");
    let thrice = copy.then().launch(&kernels.scale, grid, (n, 3.0, &b))?.named("thrice");
    let both = graph.after([&twice, &thrice])?;
    both.launch(&kernels.add, grid, (n, &a, &b, &sum))?.named("add");
    println!("{}", graph.to_dot()?);

    let mut exec = graph.instantiate()?;
    drop((graph, kernels, a, b)); // the executable owns what it uses
    for round in 0..10 {
        input.write_blocking(&stream, &vec![round as f32; len])?;
        exec.launch(&stream)?; // one driver call
        assert_eq!(sum.read_blocking(&stream)?, vec![5.0 * round as f32; len]);
    }
    println!("10 launches, each as expected");
    Ok(())
}
