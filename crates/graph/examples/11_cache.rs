//! 11: a function that is called with arrays of all sizes, and builds its graph once.
//!
//! ```sh
//! cargo run -p cuda-graph --example 11_cache -- --driver soft
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

/// What differs from call to call: the source and the target.
type Arrays = (GraphParam<[f32]>, GraphParam<[f32]>);

struct Axpy {
    saxpy: saxpy,
    cache: GraphCache<&'static str, Arrays>,
}

impl Axpy {
    /// y = 3 * x
    fn run(&self, stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>) -> cuda_graph::Result<()> {
        let build = || {
            let graph = stream.context().graph()?;
            let (source, target) = (graph.param(x)?, graph.param(y)?);
            let arguments = (source.len(), 3.0, &source, &target);
            let clear = graph.root().clear(&target)?;
            clear.then().launch(&self.saxpy, per(source.len(), 256), arguments)?;
            Ok((graph, (source, target)))
        };
        self.cache.launch(stream, "axpy", 0, build, |exec, (source, target)| {
            exec.launch_bound(stream, ((source, x), (target, y)))
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = start::context()?;
    let stream = context.stream()?;
    let axpy = Axpy { saxpy: saxpy::load(&context)?, cache: GraphCache::new(CacheOptions::new()) };
    // Debug builds build at each hit as well, and find constants that should be parameters.
    axpy.cache.verify(cfg!(debug_assertions));
    for n in [10, 1000, 100, 10] {
        let (x, y) = (stream.upload(&vec![1.0_f32; n])?, stream.zeros::<f32>(n)?);
        axpy.run(&stream, &x, &y)?;
        assert_eq!(y.read_blocking(&stream)?, vec![3.0; n]);
    }
    let statistics = axpy.cache.statistics();
    println!("{} build, {} hits", statistics.builds, statistics.hits);
    assert_eq!((statistics.builds, statistics.hits), (1, 3));
    Ok(())
}
