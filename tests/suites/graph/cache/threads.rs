//! Caches and threads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuda_graph::{CacheOptions, CachePath, Error};
use cuda_handles::{Error as HandleError, set_patience};
use cuda_tests::{alone, ends_soon, in_callback, no_leaks, setup};

use super::{Cache, fill_with, filling};

#[test]
fn many_threads_and_few_places() {
    let context = setup();
    no_leaks(|| {
        let cache = Cache::new(CacheOptions::new().most(2).most_per_key(2));
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let (cache, context) = (&cache, &context);
                scope.spawn(move || {
                    let stream = context.stream().unwrap();
                    let target = stream.zeros::<u32>(16).unwrap();
                    for round in 0..40 {
                        let (key, stamp, with) = (round % 3, u64::from(round / 20), thread * 1000 + round);
                        let launch =
                            |exec: &mut _, params: &_| fill_with(exec, params, &stream, &target, with);
                        cache.launch(&stream, key, stamp, || filling(context, &target), launch).unwrap();
                        if round % 8 == 0 {
                            assert_eq!(target.read_blocking(&stream).unwrap(), [with; 16]);
                        }
                    }
                    assert_eq!(target.read_blocking(&stream).unwrap(), [thread * 1000 + 39; 16]);
                });
            }
        });
        let statistics = cache.statistics();
        assert!(statistics.live <= 2, "{statistics:?}");
        let refreshed = statistics.updates + statistics.rebuilds.values().sum::<u64>();
        assert!(statistics.hits + statistics.builds >= 160, "{statistics:?}");
        assert!(refreshed <= statistics.builds, "{statistics:?}");
    });
}

#[test]
fn of_two_builds_of_a_key_the_first_stays() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache = Cache::new(CacheOptions::new());
        let (both_build, built) = (Barrier::new(2), AtomicU32::new(0));
        let paths = std::thread::scope(|scope| {
            let threads = [0, 1].map(|_| {
                scope.spawn(|| {
                    let stream = context.stream().unwrap();
                    let cached = cache.get(&stream, 1, 0, || {
                        both_build.wait();
                        built.fetch_add(1, Ordering::Relaxed);
                        filling(&context, &target)
                    });
                    cached.unwrap().path()
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(paths.contains(&CachePath::Built) && paths.contains(&CachePath::Hit), "{paths:?}");
        let statistics = cache.statistics();
        assert_eq!((built.into_inner(), statistics.builds, statistics.live), (2, 2, 1));
    });
}

#[test]
fn a_build_holds_up_no_other_key() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new());
        let cached = cache.get(&stream, 1, 0, || {
            // Another thread uses the cache meanwhile, the same key included.
            std::thread::scope(|scope| {
                let other = || {
                    let stream = context.stream().unwrap();
                    let get = |key| cache.get(&stream, key, 0, || filling(&context, &target)).unwrap().path();
                    [get(2), get(1), get(1)]
                };
                let paths = scope.spawn(other).join().unwrap();
                assert_eq!(paths, [CachePath::Built, CachePath::Built, CachePath::Hit]);
            });
            filling(&context, &target)
        });
        assert_eq!(cached.unwrap().path(), CachePath::Hit);
    });
}

#[test]
fn waiting_for_an_executable_has_an_end() {
    alone!();
    let context = setup();
    set_patience(Duration::from_millis(50));
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new());
        let taken = cache.get(&stream, 1, 0, || filling(&context, &target)).unwrap();
        let get = || {
            let stream = context.stream().unwrap();
            cache.get(&stream, 1, 0, || filling(&context, &target)).map(drop)
        };
        let waited = std::thread::scope(|scope| scope.spawn(get).join().unwrap());
        assert!(matches!(waited, Err(Error::Handles(HandleError::Busy { .. }))), "{waited:?}");
        drop(taken);
        get().unwrap();
    });
}

#[test]
fn a_host_function_does_not_wait_for_an_executable() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache = std::sync::Arc::new(Cache::new(CacheOptions::new()));
        let taken = cache.get(&stream, 1, 0, || filling(&context, &target)).unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let (in_callback_cache, in_callback_stream) = (std::sync::Arc::clone(&cache), stream.clone());
        let on = context.stream().unwrap();
        in_callback(&on, move || {
            let got = in_callback_cache.get(&in_callback_stream, 1, 0, || unreachable!()).map(drop);
            drop((in_callback_cache, in_callback_stream));
            send.send(got).unwrap();
        });
        let got = ends_soon(move || receive.recv().unwrap());
        assert!(matches!(got, Err(Error::Handles(HandleError::Driver { .. }))), "{got:?}");
        drop(taken);
    });
}
