//! 2: a kernel is declared and launched. What does not fit is an error before the driver sees it.
//!
//! ```sh
//! cargo run -p cuda-graph --example 02_launch -- --driver soft
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
    let n = 1000;
    let (x, y) = (stream.upload(&vec![1.0_f32; n])?, stream.upload(&vec![0.5_f32; n])?);

    // y += 2 * x, in blocks of 256 threads.
    saxpy.launch(&stream, per(n, 256), (n as u32, 2.0, &x, &y))?;
    assert_eq!(y.read_blocking(&stream)?, vec![2.5; n]);

    // A part of the memory, with a configuration of one's own.
    let (half, config) = (n / 2, LaunchConfig::new(4, 128));
    saxpy.launch(&stream, config, (half as u32, 1.0, x.slice(half..)?, y.slice(half..)?))?;
    let all = y.read_blocking(&stream)?;
    assert_eq!((all[0], all[n - 1]), (2.5, 3.5));

    match saxpy.launch(&stream, per(n, 256), (n as u32 + 1, 2.0, &x, &y)) {
        Ok(()) => Err("the arrays are too short for that".into()),
        Err(error) => {
            println!("refused: {error}");
            Ok(())
        }
    }
}
