//! 9: at each launch a host node reads a result, and decides about the input of the next launch.
//!
//! ```sh
//! cargo run -p cuda-graph --example 09_host_node -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use std::sync::mpsc;

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
    let x = stream.upload(&[1.0_f32; 100])?;
    let pinned = context.pinned_zeros::<f32>(100)?.share();
    let (send, receive) = mpsc::channel();

    let graph = context.graph()?;
    let double = graph.root().launch(&scale, per(100, 64), (100, 2.0, &x))?;
    let out = double.then().copy(&x, &pinned)?.named("out");
    // The closure runs on a thread of the driver. It may not use CUDA, and should be short.
    let look = out.then().host_with(&pinned, move |numbers| {
        let _ = send.send(numbers.iter().sum::<f32>());
        if numbers.get(0).is_some_and(|first| first >= 8.0) {
            // The copy behind this node takes it back to the device.
            let _ = numbers.copy_from_slice(&[1.0; 100]);
        }
    })?;
    look.named("look").then().copy(&pinned, &x)?.named("back");

    let mut exec = graph.instantiate()?;
    for _ in 0..6 {
        exec.launch(&stream)?; // the host does not wait in between
    }
    stream.synchronize_blocking()?;
    let sums: Vec<f32> = receive.try_iter().collect();
    println!("{sums:?}");
    assert_eq!(sums, [200.0, 400.0, 800.0, 200.0, 400.0, 800.0]);
    Ok(())
}
