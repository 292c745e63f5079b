//! How many executables a cache has, and which go first.

use cuda_graph::{CacheError, CacheOptions, CachePath, ContextExt, Error, Graph, GraphCache, Test};
use cuda_handles::{Buffer, Context, Error as HandleError, Stream, reaper};
use cuda_tests::{Gate, Kind, live, needs, no_leaks, setup, used_stream};

use super::{Cache, fill_with, filling};

/// Keeps the executable of a key in use on a stream.
fn launch(cache: &Cache, context: &Context, stream: &Stream, key: u32, target: &Buffer<u32>) -> CachePath {
    let mut cached = cache.get(stream, key, 0, || filling(context, target)).unwrap();
    let (exec, params) = cached.parts();
    fill_with(exec, params, stream, target, key).unwrap();
    cached.path()
}

fn keys(cache: &Cache) -> Vec<u32> {
    let mut keys: Vec<u32> = cache.entries().iter().map(|entry| entry.key).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn the_longest_unused_goes_first() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new().most(3));
        let run = |key| launch(&cache, &context, &stream, key, &target);
        let execs = live().of(Kind::Exec);
        for key in [1, 2, 3, 1] {
            run(key);
        }
        stream.synchronize_blocking().unwrap();
        assert_eq!(run(4), CachePath::Built);
        assert_eq!(keys(&cache), [1, 3, 4]);
        stream.synchronize_blocking().unwrap();
        assert_eq!(run(2), CachePath::Built);
        assert_eq!(keys(&cache), [1, 2, 4]);
        assert_eq!(live().of(Kind::Exec) - execs, 3);
        let statistics = cache.statistics();
        assert_eq!((statistics.live, statistics.evictions, statistics.builds), (3, 2, 5));
    });
}

#[test]
fn idle_ones_go_before_those_that_run_and_nothing_waits() {
    let context = setup();
    no_leaks(|| {
        let (busy, idle) = (context.stream().unwrap(), context.stream().unwrap());
        let target = busy.zeros::<u32>(16).unwrap();
        busy.synchronize_blocking().unwrap();
        let cache = Cache::new(CacheOptions::new().most(2));
        let gate = Gate::close(&busy);
        launch(&cache, &context, &busy, 1, &target);
        launch(&cache, &context, &idle, 2, &target);
        idle.synchronize_blocking().unwrap();
        // The older one runs yet.
        launch(&cache, &context, &busy, 3, &target);
        assert_eq!(keys(&cache), [1, 3]);
        // Both run: the older one goes all the same.
        launch(&cache, &context, &busy, 4, &target);
        assert_eq!(keys(&cache), [3, 4]);
        gate.open();
        assert_eq!(target.read_blocking(&busy).unwrap(), [4; 16]);
    });
}

#[test]
fn executables_that_calls_have_taken_stay() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new().most(2));
        let get = |key| cache.get(&stream, key, 0, || filling(&context, &target));
        let (first, second) = (get(1).unwrap(), get(2).unwrap());
        assert_eq!(get(3).map(drop), Err(Error::Cache(CacheError::Full { bound: 2 })));
        drop(second);
        let third = get(3).unwrap();
        assert_eq!(keys(&cache), [1, 3]);
        drop((first, third));
    });
}

/// A graph with a loop.
fn looping(context: &Context, number: &Buffer<u32>) -> cuda_graph::Result<(Graph, ())> {
    let graph = context.graph()?;
    let start = graph.root().fill(number, 1)?;
    start.then().while_loop(Test::nonzero(number), |body| body.root().fill(number, 0))?;
    Ok((graph, ()))
}

#[test]
fn executables_whose_destruction_is_deferred_count() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = used_stream(&context);
        let number = stream.zeros::<u32>(1).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new().most(2));
        let get = |key| cache.get(&stream, key, 0, || looping(&context, &number)).map(drop);
        get(1).unwrap();
        get(2).unwrap();
        // No stream has work, so the driver destroys the dropped one.
        get(3).unwrap();
        let statistics = cache.statistics();
        assert_eq!((statistics.live, statistics.deferred, statistics.evictions), (2, 0, 1));
        let gate = Gate::close(&stream);
        let full = get(4).unwrap_err();
        assert!(matches!(full, Error::Handles(HandleError::StillRunning { .. })), "{full}");
        // One was dropped, and keeps its place until the driver has destroyed it.
        let statistics = cache.statistics();
        assert_eq!((statistics.live, statistics.deferred, statistics.evictions), (1, 1, 2));
        assert!(get(4).is_err());
        assert_eq!(cache.statistics().live, 1);
        get(3).unwrap();
        gate.open();
        stream.synchronize_blocking().unwrap();
        get(4).unwrap();
        let statistics = cache.statistics();
        assert_eq!((statistics.live, statistics.deferred, statistics.evictions), (2, 0, 2));
        cache.clear();
        let statistics = cache.statistics();
        assert_eq!((statistics.live, statistics.deferred), (0, 2));
        drop(cache);
        reaper::drain();
    });
}
