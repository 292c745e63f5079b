//! 5: code that is written against a stream is captured, with a fork for branches side by side.
//!
//! ```sh
//! cargo run -p cuda-graph --example 05_capture -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses elements below `n`.
    unsafe in "kernels/basics.ptx";
    fn scale(n: u32, factor: f32, x: InOut<f32>) where x.len() >= n, grid.x * block.x >= n;
}

/// Doubles `x`, by way of memory that only this call needs.
fn double(stream: &Stream, scale: &scale, x: &Buffer<f32>) -> cuda_graph::launch::Result<()> {
    let copy = stream.alloc::<f32>(x.len())?;
    stream.copy(x, &copy)?;
    scale.launch(stream, per(x.len(), 256), (x.len() as u32, 2.0, &copy))?;
    Ok(stream.copy(&copy, x)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let scale = scale::load(&context)?;
    let (x, y) = (stream.upload(&[1.0_f32; 1000])?, stream.upload(&[1.0_f32; 1000])?);

    // Outside of a capture, the code runs.
    double(&stream, &scale, &x)?;
    assert_eq!(x.read_blocking(&stream)?, [2.0; 1000]);

    // In a capture, it becomes nodes, and the graph keeps all that the calls use.
    let graph = stream.capture(CaptureMode::ThreadLocal, |capture| {
        let [side] = capture.split()?;
        double(capture.stream(), &scale, &x)?;
        double(side.stream(), &scale, &y)?;
        capture.join([side])
    })?;
    println!("{} nodes, {} edges", graph.len()?, graph.edges()?.len());

    let mut exec = graph.instantiate()?;
    for _ in 0..3 {
        exec.launch(&stream)?;
    }
    assert_eq!(x.read_blocking(&stream)?, [16.0; 1000]);
    assert_eq!(y.read_blocking(&stream)?, [8.0; 1000]);
    Ok(())
}
