//! Pools of one graph: refused where runs would write the same memory.

use cuda_graph::{CacheError, ContextExt, Error, ExecError, ExecPool, Graph};
use cuda_handles::{Buffer, Stream};
use cuda_launch::{kernel, params, per};
use cuda_tests::{kernel, needs, no_leaks, setup};

use crate::common::scale::SCALE;

kernel! {
    // SAFETY: the kernel has these parameters, and touches the elements below `n`.
    unsafe in cuda_handles::Image::Ptx(SCALE);

    fn scale(n: u32, factor: u32, from: In<u32>, to: Out<u32>)
    where from.len() >= n, to.len() >= n, grid.x * block.x >= n;
}

fn refused(graph: &Graph) -> CacheError {
    match ExecPool::of(graph, 2) {
        Err(Error::Cache(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn graphs_whose_writes_are_parameters() {
    let context = setup();
    no_leaks(|| {
        let streams: [Stream; 2] = [context.stream().unwrap(), context.stream().unwrap()];
        let buffers: Vec<Buffer<u32>> = streams.iter().map(|stream| stream.zeros(16).unwrap()).collect();
        let scale = scale::load(&context).unwrap();
        let from = streams[0].upload(&[3_u32; 16]).unwrap();
        streams[0].synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let (to, factor) = (graph.param(&buffers[0]).unwrap(), graph.param(1_u32).unwrap());
        let fill = graph.root().fill(&to, 9).unwrap();
        fill.then().launch(&scale, per(16, 32), (16, &factor, &from, &to)).unwrap();
        let pool = ExecPool::of(&graph, 2).unwrap();
        for (stream, buffer) in streams.iter().zip(&buffers) {
            let times = buffer.address() as u32 % 1000;
            let with = ((&to, buffer), (&factor, times));
            pool.launch(stream, |exec, ()| exec.launch_with(stream, with)).unwrap();
            assert_eq!(buffer.read_blocking(stream).unwrap(), [3 * times; 16]);
        }
    });
}

#[test]
fn writes_of_other_memory_are_named() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<u32>(16).unwrap(), stream.zeros::<u32>(16).unwrap());
        let scale = scale::load(&context).unwrap();
        let shared = |name: &str, what| CacheError::SharedWrite { node: name.into(), what };

        let graph = context.graph().unwrap();
        let value = graph.param(1_u32).unwrap();
        graph.root().fill(&x, &value).unwrap().named("first");
        assert_eq!(refused(&graph), shared("first", "target"));

        let graph = context.graph().unwrap();
        let from = graph.param(&x).unwrap();
        graph.root().copy(&from, &y).unwrap().named("second");
        assert_eq!(refused(&graph), shared("second", "destination"));

        let graph = context.graph().unwrap();
        let (from, to) = (graph.param(&x).unwrap(), graph.param(&y).unwrap());
        graph.root().launch(&scale, per(16, 32), (16, 1, &from, &y)).unwrap().named("third");
        assert_eq!(refused(&graph), shared("third", "to"));

        // In a child graph, too.
        let graph = context.graph().unwrap();
        let child = context.graph().unwrap();
        child.root().fill(&x, 1).unwrap().named("inner");
        graph.root().child(&child).unwrap();
        assert_eq!(refused(&graph), shared("inner", "target"));
        drop(to);
        // One executable shares nothing.
        assert_eq!(ExecPool::of(&graph, 1).unwrap().len(), 1);
    });
}

#[test]
fn nodes_that_may_write_are_named() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<f32>(16).unwrap();
        let may = |name: &str, why| CacheError::MayWrite { node: name.into(), why };
        let graph = context.graph().unwrap();
        let saxpy = kernel(&context, "saxpy");
        // SAFETY: the arguments are the kernel's, and the buffer has 16 elements.
        let launch =
            unsafe { graph.root().launch_untyped(&saxpy, per(16, 32), params![16_u32, 2.0_f32, &x, &x]) };
        launch.unwrap().named("untyped");
        assert_eq!(refused(&graph), may("untyped", "its kernel is untyped"));
        let graph = context.graph().unwrap();
        graph.root().host(|| {}).unwrap().named("host");
        assert_eq!(refused(&graph), may("host", "it is a host function"));
    });
}

#[test]
fn graphs_with_one_executable_are_refused() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let number = stream.zeros::<u32>(1).unwrap();
        let graph = context.graph().unwrap();
        let target = graph.param(&number).unwrap();
        let fill = graph.root().fill(&target, 0).unwrap();
        fill.then()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| body.root().fill(&target, 0))
            .unwrap();
        let error = ExecPool::of(&graph, 2).unwrap_err();
        let is_expected = matches!(
            error,
            Error::Exec(ExecError::OneExecutable { .. }) | Error::Cache(CacheError::SharedWrite { .. })
        );
        assert!(is_expected, "{error}");
        cuda_handles::reaper::drain();
    });
}
