//! 6: one executable with other memory, another count and another factor at each launch.
//!
//! ```sh
//! cargo run -p cuda-graph --example 06_parameters -- --driver soft
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
    let y = stream.zeros::<f32>(1000)?;

    let graph = context.graph()?;
    let factor = graph.param(1.0_f32)?;
    let input = graph.param(&stream.zeros::<f32>(1)?)?; // the first value; it may be small
    let clear = graph.root().fill(&y, 0.0)?;
    // The length of the input is the count, and makes the grid.
    let arguments = (input.len(), &factor, &input, &y);
    clear.then().launch(&saxpy, per(input.len(), 256), arguments)?.named("saxpy");

    let mut exec = graph.instantiate()?;
    for (n, a) in [(10, 1.0), (500, 2.0), (1000, 3.0)] {
        let x = stream.upload(&vec![2.0_f32; n])?;
        exec.launch_with(&stream, ((&input, &x), (&factor, a)))?;
        let result = y.read_blocking(&stream)?;
        assert_eq!(result.iter().filter(|element| **element == 2.0 * a).count(), n);
        println!("{n} elements, times {a}");
    }

    // What is not set keeps its value.
    exec.set(&factor, 5.0)?;
    exec.launch(&stream)?;
    assert_eq!(y.read_blocking(&stream)?, [10.0; 1000]);

    // A value that does not fit is refused, and nothing runs.
    let long = stream.zeros::<f32>(1001)?;
    match exec.launch_with(&stream, ((&input, &long),)) {
        Ok(()) => Err("the output has 1000 elements".into()),
        Err(error) => {
            println!("refused: {error}");
            Ok(())
        }
    }
}
