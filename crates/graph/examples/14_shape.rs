//! 14: a captured loop is a chain. An executable of another shape runs its steps side by side.
//!
//! ```sh
//! cargo run -p cuda-graph --example 14_shape -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::prelude::*;
use cuda_graph::{Order, Shape};

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses elements below `n`.
    unsafe in "kernels/basics.ptx";
    fn scale(n: u32, factor: f32, x: InOut<f32>) where x.len() >= n, grid.x * block.x >= n;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let scale = scale::load(&context)?;
    let upload = |_| stream.upload(&[1.0_f32; 256]);
    let rows: Vec<Buffer<f32>> = (0..64).map(upload).collect::<Result<_, _>>()?;

    let graph = stream.capture(CaptureMode::ThreadLocal, |capture| {
        rows.iter().try_for_each(|row| capture.launch(&scale, per(256, 256), (256, 2.0, row)))
    })?;
    println!("as drawn: {} nodes in a chain of {} edges", graph.len()?, graph.edges()?.len());

    // Only the order that the data needs, then the shape that the driver runs best.
    let options = InstantiateOptions::new().order(Order::ByData).shape(Shape::Auto);
    let mut exec = graph.instantiate_with(options)?;
    let Some(report) = exec.shape_report() else { return Err("a shape was asked for".into()) };
    println!("{} edges are not needed", report.dropped_edges().len());
    if let (Some(before), Some(after)) = (report.before(), report.after()) {
        println!("{before:?}\n{after:?}");
    }
    assert_eq!(report.dropped_edges().len(), 63);

    exec.launch(&stream)?;
    for row in &rows {
        assert_eq!(row.read_blocking(&stream)?, [2.0; 256]);
    }
    Ok(())
}
