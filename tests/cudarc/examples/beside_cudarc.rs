//! A program of cudarc's that builds its graph here: cudarc has the context, the stream and the
//! data, this library the graph.
//!
//! `cargo xtask cudarc` runs it on the software driver; on a machine with a GPU `cargo run -p
//! cuda-tests-cudarc --example beside_cudarc` will do.

use cuda_graph::ContextExt;
use cuda_launch::{kernel, per};
use cuda_tests_cudarc::{adopt_slice, adopt_stream, shared_context};
use cudarc::driver::CudaContext;

kernel! {
    // SAFETY: each of the first n threads reads x and updates y at its own index.
    unsafe in "../../kernels/saxpy.ptx";
    fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>) where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = 1 << 16;
    let theirs = CudaContext::new(0)?;
    let their_stream = theirs.new_stream()?;
    let data = their_stream.clone_htod(&vec![1.0_f32; n])?;

    let context = shared_context(&theirs)?;
    // SAFETY: `their_stream` is declared before, so it is dropped after everything that is made of
    // it here.
    let stream = unsafe { adopt_stream(&context, &their_stream)? };
    let x = adopt_slice(&context, data)?;
    let y = stream.zeros::<f32>(n)?;
    let saxpy = saxpy::load(&context)?;
    let graph = context.graph()?;
    let clear = graph.root().fill(&y, 1.0)?;
    clear.then().launch(&saxpy, per(n, 256), (u32::try_from(n)?, 2.0, &x, &y))?;
    let mut executable = graph.instantiate()?;
    for _ in 0..10 {
        executable.launch(&stream)?;
    }
    their_stream.synchronize()?;
    let result = y.read_blocking(&stream)?;
    assert!(result.iter().all(|&value| value == 3.0));
    println!("{} on {}: {n} elements are 3", theirs.name()?, context.device().name()?);
    Ok(())
}
