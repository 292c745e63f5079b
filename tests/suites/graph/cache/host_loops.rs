//! Caches of executables in which the host may decide.

use cuda_graph::{
    CacheOptions, CachePath, ContextExt, Error, Fallback, GraphCache, GraphParam, HostLoopExec,
    RefusalReason, Test,
};
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{fail, no_leaks, setup};

use crate::capture::Bench;

#[test]
fn host_fallbacks_are_counted() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let number = stream.zeros::<u32>(1).unwrap();
        let options = CacheOptions::new().fallback(Fallback::HostLoopAlways);
        let cache: GraphCache<u32, (), u64, HostLoopExec> = GraphCache::new(options);
        let run = |stamp| {
            let build = || {
                let graph = context.graph()?;
                let start = graph.root().fill(&number, 1)?;
                start.then().while_loop(Test::nonzero(&number), |body| body.root().fill(&number, 0))?;
                Ok((graph, ()))
            };
            let mut cached = cache.get(&stream, 1, stamp, build).unwrap();
            let (exec, ()) = cached.parts();
            exec.run_blocking(&stream).unwrap();
            assert!(exec.is_on_host());
            cached.path()
        };
        assert_eq!([run(0), run(0), run(1)], [CachePath::Built, CachePath::Hit, CachePath::Rebuilt]);
        let statistics = cache.statistics();
        assert_eq!((statistics.host_fallbacks, statistics.builds, statistics.hits), (2, 2, 1));
        assert_eq!(statistics.rebuilds, [(RefusalReason::HostDecides, 1)].into());
        assert_eq!(statistics.live, 1);
    });
}

#[test]
fn the_counter_of_a_loop_goes_with_the_executable() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        for fallback in [Fallback::HostLoop, Fallback::HostLoopAlways] {
            type Params = [GraphParam<[u32]>; 2];
            let cache: GraphCache<usize, Params, u64, HostLoopExec> =
                GraphCache::new(CacheOptions::new().fallback(fallback));
            let number = |value: u32| stream.upload(&[value]).unwrap();
            let unused = number(0);
            // The key says which of the two is the counter; the other one counts the rounds.
            let run = |counter: usize, stamp, rounds: u32| {
                let build = || {
                    let graph = context.graph()?;
                    let params = [graph.param(&unused)?, graph.param(&unused)?];
                    let (left, total) = (&params[counter], &params[1 - counter]);
                    graph.root().while_loop(Test::nonzero(left), |body| {
                        let down = body.root().launch(&bench.add, per(1, 1), (u32::MAX, left))?;
                        down.then().launch(&bench.add, per(1, 1), (1, total))
                    })?;
                    Ok((graph, params))
                };
                let (mut values, mut cached) =
                    ([number(100), number(100)], cache.get(stream, counter, stamp, build).unwrap());
                values[counter] = number(rounds);
                let path = cached.path();
                let (exec, [first, second]) = cached.parts();
                exec.run_blocking_with(stream, ((first, &values[0]), (second, &values[1]))).unwrap();
                let mut expected = [100 + rounds; 2];
                expected[counter] = 0;
                let found = values.map(|value| value.read_blocking(stream).unwrap()[0]);
                assert_eq!(found, expected, "{fallback:?} {counter}");
                path
            };
            assert_eq!([run(0, 0, 3), run(1, 0, 4)], [CachePath::Built; 2]);
            for round in 0..4 {
                assert_eq!([run(0, 0, round), run(1, 0, round + 1)], [CachePath::Hit; 2]);
            }
            assert_ne!(run(0, 1, 5), CachePath::Hit);
            assert_eq!([run(0, 1, 6), run(1, 0, 7)], [CachePath::Hit; 2]);
            assert_eq!((cache.statistics().builds, cache.statistics().live), (3, 2));
        }
    });
}

#[test]
fn builds_that_return_the_same_graph_are_made_again() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let number = stream.zeros::<u32>(1).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let start = graph.root().fill(&number, 1).unwrap();
        let rounds = start.then().while_loop(Test::nonzero(&number), |body| body.root().fill(&number, 0));
        let last = rounds.unwrap().then().fill(&number, 1).unwrap();
        let options = CacheOptions::new().fallback(Fallback::HostLoopAlways);
        let cache: GraphCache<u32, (), u64, HostLoopExec> = GraphCache::new(options);
        let run = |stamp: u64| -> Result<(CachePath, u32), Error> {
            last.set(&number, 10 + stamp as u32)?;
            let mut cached = cache.get(&stream, 1, stamp, || Ok((graph.clone(), ())))?;
            cached.parts().0.run_blocking(&stream)?;
            Ok((cached.path(), number.read_blocking(&stream)?[0]))
        };
        assert_eq!(run(0), Ok((CachePath::Built, 10)));
        // The graph can have one executable, which goes before the next one is made.
        assert_eq!(run(1), Ok((CachePath::Rebuilt, 11)));
        let fails = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        run(2).unwrap_err();
        assert!(fails.hit());
        drop(fails);
        assert_eq!((cache.statistics().live, cache.entries().len()), (0, 0));
        assert_eq!(run(2), Ok((CachePath::Built, 12)));
    });
}
