//! 10: work that is captured again goes into the executable that exists, or into a new one.
//!
//! ```sh
//! cargo run -p cuda-graph --example 10_update -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses elements below `n`.
    unsafe in "kernels/basics.ptx";
    fn scale(n: u32, factor: f32, x: InOut<f32>) where x.len() >= n, grid.x * block.x >= n;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let scale = scale::load(&context)?;
    let x = stream.upload(&[1.0_f32; 1000])?;
    let capture = |factor: f32, times: u32| {
        stream.capture(CaptureMode::ThreadLocal, |capture| {
            (0..times).try_for_each(|_| capture.launch(&scale, per(1000, 256), (1000, factor, &x)))
        })
    };

    let mut exec = capture(2.0, 1)?.instantiate()?;
    exec.launch(&stream)?; // 2

    // The same shape with another factor: an update.
    let refusal = exec.update_or_rebuild(&capture(5.0, 1)?)?;
    assert!(refusal.is_none());
    exec.launch(&stream)?; // 10

    // Two nodes instead of one: made anew, with the reason.
    match exec.update_or_rebuild(&capture(0.5, 2)?)? {
        Some(refusal) => println!("made anew: {refusal}"),
        None => return Err("the shapes differ".into()),
    }
    exec.launch(&stream)?; // 2.5
    assert_eq!(x.read_blocking(&stream)?, [2.5; 1000]);

    // One node of the executable alone.
    let graph = context.graph()?;
    let node = graph.root().launch(&scale, per(1000, 256), (1000, 2.0, &x))?;
    let mut exec = graph.instantiate()?;
    exec.node(&node).set(&scale, per(1000, 256), (1000, 4.0, &x))?;
    exec.launch(&stream)?; // 10
    assert_eq!(x.read_blocking(&stream)?, [10.0; 1000]);
    Ok(())
}
