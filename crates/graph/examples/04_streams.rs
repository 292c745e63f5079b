//! 4: two streams work side by side and are ordered by events; two events measure the time.
//!
//! ```sh
//! cargo run -p cuda-graph --example 04_streams -- --driver soft
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
    let (first, second) = (context.stream()?, context.stream()?);
    let saxpy = saxpy::load(&context)?;
    let (len, n, grid) = (1000, 1000, per(1000, 256));
    let ones = first.upload(&vec![1.0_f32; len])?;
    let (x, y) = (first.zeros::<f32>(len)?, second.zeros::<f32>(len)?);
    let (start, forked, end) = (context.event()?, context.event()?, context.event()?);

    first.record(&start)?;
    saxpy.launch(&first, grid, (n, 2.0, &ones, &x))?; // x = 2
    first.record(&forked)?;

    // The second stream waits for the point behind the first kernel. The host waits for nothing.
    second.wait(&forked)?;
    saxpy.launch(&second, grid, (n, 3.0, &x, &y))?; // y = 6
    // Meanwhile on the first: `ones` is read by nobody else any more.
    first.fill(&ones, 10.0)?;

    first.wait_for(&second)?; // all that is on `second` so far
    saxpy.launch(&first, grid, (n, 1.0, &ones, &y))?; // y = 16
    first.record(&end)?;
    assert_eq!(y.read_blocking(&first)?, vec![16.0; len]);
    println!("{:?} from the first kernel to the last", end.elapsed_since(&start)?);
    Ok(())
}
