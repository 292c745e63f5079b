//! Caches of executables in which the host may decide.

use cuda_graph::{
    CacheOptions, CachePath, ContextExt, Fallback, GraphCache, HostLoopExec, RefusalReason, Test,
};
use cuda_tests::{no_leaks, setup};

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
