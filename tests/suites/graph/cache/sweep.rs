//! The fault sweep over pools and caches: each driver call fails in turn.

use cuda_graph::{CacheOptions, CachePath, ContextExt, Error, ExecPool};
use cuda_sys::CUresult;
use cuda_tests::{fail_any, setup, sweep, used_stream};

use super::{Cache, fill_with, filling};

#[test]
fn pools_and_caches() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    let stream = used_stream(&context);
    let cases = sweep("pools and caches", || -> Result<(), Error> {
        let target = stream.zeros::<u32>(16)?;
        let pool = ExecPool::new(2, |_| filling(&context, &target))?;
        pool.launch(&stream, |exec, params| fill_with(exec, params, &stream, &target, 1))?;
        drop(pool);
        let graph = context.graph()?;
        let (to, value) = (graph.param(&target)?, graph.param(0_u32)?);
        graph.root().fill(&to, &value)?;
        let pool = ExecPool::of(&graph, 2)?;
        pool.launch(&stream, |exec, ()| exec.launch_with(&stream, ((&to, &target), (&value, 2))))?;
        drop(pool);
        let cache = Cache::new(CacheOptions::new().most(2));
        let launch = |key, stamp, with| {
            let run = |exec: &mut _, params: &_| fill_with(exec, params, &stream, &target, with);
            cache.launch(&stream, key, stamp, || filling(&context, &target), run)
        };
        launch(1, 0, 2)?;
        launch(1, 0, 3)?;
        launch(1, 1, 4)?;
        launch(2, 0, 5)?;
        cache.verify(true);
        launch(2, 0, 6)?;
        launch(3, 0, 7)?;
        assert_eq!(target.read_blocking(&stream)?, [7; 16]);
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn after_each_failure_the_cache_is_as_before() {
    let context = setup();
    // Whether something is left behind is the sweep's matter: a drop may fail, too.
    let stream = used_stream(&context);
    let target = stream.zeros::<u32>(16).unwrap();
    stream.synchronize_blocking().unwrap();
    for nth in 1.. {
        let cache = Cache::new(CacheOptions::new().most(1));
        drop(cache.get(&stream, 1, 0, || filling(&context, &target)).unwrap());
        let injected = fail_any(nth, CUresult::CUDA_ERROR_INVALID_VALUE);
        let refreshed = cache.get(&stream, 1, 1, || filling(&context, &target)).map(drop);
        let was_hit = injected.hit();
        drop(injected);
        let stamp = u64::from(refreshed.is_ok());
        let hit = cache.get(&stream, 1, stamp, || unreachable!()).unwrap();
        assert_eq!(hit.path(), CachePath::Hit, "{nth}: {refreshed:?}");
        drop(hit);
        assert_eq!((cache.statistics().live, cache.entries().len()), (1, 1));
        if !was_hit {
            break;
        }
    }
}
