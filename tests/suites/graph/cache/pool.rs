//! Pools: parallel runs, and the choice of an executable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;

use cuda_graph::{CacheError, ContextExt, Error, ExecPool};
use cuda_handles::{Buffer, Context, Error as HandleError, Stream};
use cuda_tests::{Gate, alone, count, needs, no_leaks, other_device, setup};

use super::{Fill, fill_with, filling};

fn pool(context: &Context, count: usize, target: &Buffer<u32>) -> ExecPool<Fill> {
    ExecPool::new(count, |_| filling(context, target)).unwrap()
}

/// Launches, and returns the number of the executable.
fn launch(pool: &ExecPool<Fill>, stream: &Stream, target: &Buffer<u32>, with: u32) -> usize {
    let mut pooled = pool.get(stream).unwrap();
    let (exec, params) = pooled.parts();
    fill_with(exec, params, stream, target, with).unwrap();
    pooled.number()
}

#[test]
fn parallel_runs_have_memory_of_their_own() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<Stream> = (0..3).map(|_| context.stream().unwrap()).collect();
        let targets: Vec<Buffer<u32>> = streams.iter().map(|on| on.zeros(16).unwrap()).collect();
        let pool = pool(&context, 3, &targets[0]);
        assert_eq!(pool.len(), 3);
        for round in 1..20 {
            for (number, (stream, target)) in streams.iter().zip(&targets).enumerate() {
                let with = round * 10 + number as u32;
                pool.launch(stream, |exec, params| fill_with(exec, params, stream, target, with)).unwrap();
            }
        }
        for (number, (stream, target)) in streams.iter().zip(&targets).enumerate() {
            assert_eq!(target.read_blocking(stream).unwrap(), [190 + number as u32; 16]);
        }
    });
}

#[test]
fn the_executable_of_the_stream_is_taken_then_one_that_is_over_then_the_oldest() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<Stream> = (0..3).map(|_| context.stream().unwrap()).collect();
        let target = streams[0].zeros::<u32>(16).unwrap();
        streams[0].synchronize_blocking().unwrap();
        let pool = pool(&context, 2, &target);
        let gates: Vec<Gate> = streams.iter().map(Gate::close).collect();
        // One that has not run, then the stream's own, though both runs wait behind their gates.
        assert_eq!(launch(&pool, &streams[0], &target, 1), 0);
        assert_eq!(launch(&pool, &streams[1], &target, 2), 1);
        assert_eq!(launch(&pool, &streams[0], &target, 3), 0);
        assert_eq!(launch(&pool, &streams[1], &target, 4), 1);
        assert_eq!(launch(&pool, &streams[0], &target, 5), 0);
        // Nothing is over: the one that was used longest ago. The host does not wait.
        assert_eq!(launch(&pool, &streams[2], &target, 6), 1);
        gates.iter().for_each(Gate::open);
        streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
        // The run of the other is over.
        let gate = Gate::close(&streams[2]);
        assert_eq!(launch(&pool, &streams[2], &target, 7), 1);
        assert_eq!(launch(&pool, &streams[1], &target, 8), 0);
        gate.open();
    });
}

#[test]
fn one_that_is_over_is_preferred_to_one_that_is_older_and_runs() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<Stream> = (0..3).map(|_| context.stream().unwrap()).collect();
        let target = streams[0].zeros::<u32>(16).unwrap();
        streams[0].synchronize_blocking().unwrap();
        let pool = pool(&context, 2, &target);
        let gate = Gate::close(&streams[0]);
        assert_eq!(launch(&pool, &streams[0], &target, 1), 0);
        assert_eq!(launch(&pool, &streams[1], &target, 2), 1);
        streams[1].synchronize_blocking().unwrap();
        assert_eq!(launch(&pool, &streams[2], &target, 3), 1);
        gate.open();
    });
}

#[test]
fn a_launch_is_one_call_without_an_allocation() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let pool = pool(&context, 2, &target);
        for _ in 0..3 {
            launch(&pool, &stream, &target, 1);
        }
        let (_, cost) = count(|| launch(&pool, &stream, &target, 1));
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        assert_eq!(cost.heap_allocations(), 0, "{cost}");
        // A changed value is an update of the node that has it.
        let (_, cost) = count(|| launch(&pool, &stream, &target, 2));
        assert_eq!((cost.calls("cuGraphExecNodeSetParams"), cost.calls("cuGraphLaunch")), (1, 1), "{cost}");
    });
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let pool = pool(&context, 1, &target);
        let first = pool.get(&stream).unwrap();
        let error = pool.get(&stream).unwrap_err();
        assert_eq!(error, Error::Cache(CacheError::InUse));
        assert!(error.to_string().contains("CacheOptions::most_per_key"), "{error}");
        drop(first);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.launch(&stream, |_, _| -> cuda_graph::Result<()> { panic!("on purpose") })
        }));
        assert!(panicked.is_err());
        // The executable is back.
        assert_eq!(launch(&pool, &stream, &target, 4), 0);
        assert_eq!(target.read_blocking(&stream).unwrap(), [4; 16]);
    });
}

#[test]
fn more_threads_than_executables_take_turns() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let pool = pool(&context, 2, &target);
        let begin = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let (pool, begin, context) = (&pool, &begin, &context);
                scope.spawn(move || {
                    let stream = context.stream().unwrap();
                    let own = stream.zeros::<u32>(16).unwrap();
                    begin.wait();
                    for round in 0..50 {
                        launch(pool, &stream, &own, thread * 1000 + round);
                    }
                    assert_eq!(own.read_blocking(&stream).unwrap(), [thread * 1000 + 49; 16]);
                });
            }
        });
    });
}

#[test]
fn pools_that_cannot_be() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let none = ExecPool::new(0, |_| filling(&context, &target)).unwrap_err();
        assert_eq!(none, Error::Cache(CacheError::NoExecutables));
        let mut calls = 0;
        let failed = ExecPool::new(3, |number| {
            calls += 1;
            if number == 1 {
                Err(Error::Node(cuda_graph::NodeError::GraphRemoved))
            } else {
                filling(&context, &target)
            }
        });
        assert_eq!((failed.unwrap_err(), calls), (Error::Node(cuda_graph::NodeError::GraphRemoved), 2));
        // The same graph again would share its intermediate memory.
        let (graph, params) = filling(&context, &target).unwrap();
        let same = ExecPool::new(2, |_| Ok((graph.clone(), params.clone()))).unwrap_err();
        assert!(matches!(same, Error::Cache(CacheError::SharedWrite { .. })), "{same}");
    });
}

#[test]
fn a_pool_is_of_one_context() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let other = other_device().context().unwrap();
    no_leaks(|| {
        let target = context.stream().unwrap().zeros::<u32>(16).unwrap();
        let pool = pool(&context, 1, &target);
        let wrong = pool.get(&other.stream().unwrap()).unwrap_err();
        assert!(matches!(wrong, Error::Handles(HandleError::WrongContext(_))), "{wrong}");
        let mut contexts = [&context, &other].into_iter();
        let mixed = ExecPool::new(2, |_| Ok((contexts.next().unwrap().graph()?, ()))).unwrap_err();
        assert!(matches!(mixed, Error::Handles(HandleError::WrongContext(_))), "{mixed}");
    });
}

#[test]
fn a_pool_is_dropped_while_its_executables_run() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let pool = pool(&context, 2, &target);
        let gate = Gate::close(&stream);
        launch(&pool, &stream, &target, 3);
        drop(pool);
        gate.open();
        assert_eq!(target.read_blocking(&stream).unwrap(), [3; 16]);
    });
}
