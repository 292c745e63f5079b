//! 7: loops on the device: one decided by a kernel of one's own, one by a number in memory.
//!
//! ```sh
//! cargo run -p cuda-graph --example 07_loop -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;

kernel! {
    // SAFETY: the kernels in the file have these parameters. `scale` accesses elements below `n`,
    // `count_down` the first of `left`, by one thread.
    unsafe in "kernels/basics.ptx";
    struct Basics;
    fn scale(n: u32, factor: f32, x: InOut<f32>) where x.len() >= n, grid.x * block.x >= n;
    fn count_down(left: InOut<u32>, go_on: ConditionalHandle)
    where left.len() >= 1, grid.product() * block.product() == 1;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let kernels = Basics::load(&context)?;
    let grid = per(1000, 256);
    let (x, left) = (stream.upload(&[1.0_f32; 1000])?, stream.upload(&[5_u32])?);

    // The kernel sets a condition; the node looks at it before each round.
    let graph = context.graph()?;
    let go_on = graph.condition_with_default(1)?;
    let rounds = graph.root().while_node(&go_on)?.named("rounds");
    let body = rounds.body()?;
    let double = body.root().launch(&kernels.scale, grid, (1000, 2.0, &x))?;
    double.then().launch(&kernels.count_down, per(1, 1), (&left, &go_on))?;
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(x.read_blocking(&stream)?, [32.0; 1000]);

    // A ready-made loop: while the first element is greater than 1, at most 100 rounds.
    let graph = context.graph()?;
    let going = Test::greater(x.slice(..1)?, 1.0).limit(100);
    let halving =
        graph.root().while_loop(going, |body| body.root().launch(&kernels.scale, grid, (1000, 0.5, &x)))?;
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(x.read_blocking(&stream)?, [1.0; 1000]);
    println!("{} rounds", halving.rounds_done_blocking(&stream)?);
    Ok(())
}
