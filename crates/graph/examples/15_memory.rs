//! 15: memory that only a launch needs, and memory that a launch leaves to the program.
//!
//! ```sh
//! cargo run -p cuda-graph --example 15_memory -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses elements below `n`.
    unsafe in "kernels/basics.ptx";
    fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let saxpy = saxpy::load(&context)?;
    let (len, n, grid) = (1000, 1000, per(1000, 256));
    let x = stream.upload(&vec![2.0_f32; len])?;

    let graph = context.graph()?;
    let (scratch_node, scratch) = graph.root().alloc::<f32>(len)?;
    let (result_node, result) = graph.root().alloc::<f32>(len)?;
    let fill = scratch_node.then().fill(&scratch, 1.0)?;
    let first = fill.then().launch(&saxpy, grid, (n, 3.0, &x, &scratch))?; // 7
    let clear = graph.after([&result_node, &first])?.fill(&result, 0.5)?;
    clear.then().launch(&saxpy, grid, (n, 2.0, &scratch, &result))?; // 14.5
    // Behind all nodes that use it. `result` is not freed, so each launch leaves it.
    graph.free(&scratch)?;

    let mut exec = graph.instantiate()?;
    for round in 0..3 {
        let mut outputs = exec.launch_with_outputs(&stream)?;
        let output = outputs.take(&result)?;
        assert_eq!(output.read_blocking(&stream)?, vec![14.5; len]);
        println!("launch {round} left {} numbers", output.len());
        // The drop frees it. The executable cannot be launched again before.
    }
    Ok(())
}
