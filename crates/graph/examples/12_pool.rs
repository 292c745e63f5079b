//! 12: several executables of the same work run side by side, each with scratch memory of its own.
//!
//! ```sh
//! cargo run -p cuda-graph --example 12_pool -- --driver soft
//! ```

#[path = "common/start.rs"]
mod start;

use cuda_graph::{ExecPool, prelude::*};

kernel! {
    // SAFETY: the kernel in the file has these parameters, and accesses elements below `n`.
    unsafe in "kernels/basics.ptx";
    fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let saxpy = saxpy::load(&context)?;
    let (len, n, grid) = (1000, 1000, per(1000, 256));
    let build_stream = context.stream()?;
    let ones = build_stream.upload(&vec![1.0_f32; len])?;

    // Each of the three executables has its own `scratch`, so they do not disturb each other.
    let pool = ExecPool::new(3, |_| {
        let scratch = build_stream.zeros::<f32>(len)?;
        let graph = context.graph()?;
        let factor = graph.param(0.0_f32)?;
        let output = graph.param(&build_stream.zeros::<f32>(len)?)?;
        let clear = graph.root().clear(&scratch)?;
        let saxpy = clear.then().launch(&saxpy, grid, (n, &factor, &ones, &scratch))?;
        saxpy.then().copy(&scratch, &output)?;
        Ok((graph, (factor, output)))
    })?;

    // What was written there is there for the other streams.
    build_stream.synchronize_blocking()?;

    // Six threads, each with a stream. No call waits for the device.
    let results = std::thread::scope(|threads| {
        let run = |number: u32| {
            let (pool, context) = (&pool, &context);
            threads.spawn(move || -> cuda_graph::Result<Vec<f32>> {
                let stream = context.stream()?;
                let out = stream.zeros::<f32>(len)?;
                pool.launch(&stream, |exec, (factor, output)| {
                    exec.launch_with(&stream, ((factor, number as f32), (output, &out)))
                })?;
                Ok(out.read_blocking(&stream)?)
            })
        };
        (0..6).map(run).collect::<Vec<_>>().into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(result.map_err(|_| "a thread panicked")??, vec![number as f32; len]);
    }
    println!("6 threads, 3 executables");
    Ok(())
}
