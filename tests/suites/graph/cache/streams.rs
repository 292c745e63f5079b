//! One key on several streams, and families that share memory.

use cuda_graph::{CacheOptions, CachePath, StreamExt};
use cuda_handles::Stream;
use cuda_handles::capture::{CaptureOptions, Scratch};
use cuda_tests::{Gate, no_leaks, setup};

use super::{Cache, fill_with, filling};

#[test]
fn several_executables_of_a_key_run_in_parallel() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<Stream> = (0..3).map(|_| context.stream().unwrap()).collect();
        let targets: Vec<_> = streams.iter().map(|stream| stream.zeros::<u32>(16).unwrap()).collect();
        streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
        let cache = Cache::new(CacheOptions::new().most_per_key(2));
        let run = |at: usize, with| {
            let mut cached = cache.get(&streams[at], 1, 0, || filling(&context, &targets[at])).unwrap();
            let (exec, params) = cached.parts();
            fill_with(exec, params, &streams[at], &targets[at], with).unwrap();
            cached.path()
        };
        let gate = Gate::close(&streams[0]);
        assert_eq!(run(0, 1), CachePath::Built);
        // The first runs yet.
        assert_eq!(run(1, 2), CachePath::Built);
        // It does not hold up the second stream.
        assert_eq!(targets[1].read_blocking(&streams[1]).unwrap(), [2; 16]);
        // The second is over.
        assert_eq!(run(2, 3), CachePath::Hit);
        assert_eq!(targets[2].read_blocking(&streams[2]).unwrap(), [3; 16]);
        assert_eq!(run(0, 4), CachePath::Hit);
        gate.open();
        assert_eq!(targets[0].read_blocking(&streams[0]).unwrap(), [4; 16]);
        let entries = cache.entries();
        assert_eq!(entries.iter().map(|entry| entry.executables).collect::<Vec<_>>(), [2]);
    });
}

#[test]
fn another_stamp_refreshes_the_executables_of_a_key_one_by_one() {
    let context = setup();
    no_leaks(|| {
        let streams: Vec<Stream> = (0..2).map(|_| context.stream().unwrap()).collect();
        let targets: Vec<_> = streams.iter().map(|stream| stream.zeros::<u32>(16).unwrap()).collect();
        let cache = Cache::new(CacheOptions::new().most_per_key(2));
        let run = |at: usize, stamp, with| {
            let build = || filling(&context, &targets[at]);
            let mut cached = cache.get(&streams[at], 1, stamp, build).unwrap();
            let (exec, params) = cached.parts();
            fill_with(exec, params, &streams[at], &targets[at], with).unwrap();
            cached.path()
        };
        let gates: Vec<Gate> = streams.iter().map(Gate::close).collect();
        assert_eq!([run(0, 0, 1), run(1, 0, 2)], [CachePath::Built; 2]);
        let refreshed = [run(0, 1, 3), run(1, 1, 4)];
        assert!(refreshed.iter().all(|path| matches!(path, CachePath::Updated | CachePath::Rebuilt)));
        assert_eq!([run(0, 1, 5), run(1, 1, 6)], [CachePath::Hit; 2]);
        gates.iter().for_each(Gate::open);
        for (at, expected) in [(0, 5), (1, 6)] {
            assert_eq!(targets[at].read_blocking(&streams[at]).unwrap(), [expected; 16]);
        }
        assert_eq!((cache.statistics().builds, cache.statistics().live), (4, 2));
    });
}

#[test]
fn a_family_that_shares_memory_is_one_line() {
    let context = setup();
    no_leaks(|| {
        let streams = [context.stream().unwrap(), context.stream().unwrap()];
        let target = streams[0].zeros::<u32>(64).unwrap();
        streams[0].synchronize_blocking().unwrap();
        let scratch = Scratch::new(&context);
        let cache: cuda_graph::GraphCache<usize, ()> =
            cuda_graph::GraphCache::new(CacheOptions::new().most_per_key(4));
        let run = |stream: &Stream, len: usize| {
            let build = || {
                let capturing = context.stream()?;
                let options = CaptureOptions::new().scratch(&scratch);
                let graph = capturing.capture(options, |_| {
                    let own = capturing.zeros::<u32>(len)?;
                    capturing.fill(&own, len as u32)?;
                    Ok(capturing.copy(&own, target.slice(..len)?)?)
                })?;
                Ok((graph, ()))
            };
            let mut cached = cache.get(stream, len, 0, build).unwrap();
            cached.parts().0.launch(stream).unwrap();
            cached.path()
        };
        let gate = Gate::close(&streams[0]);
        assert_eq!(run(&streams[0], 64), CachePath::Built);
        // One executable of each key: more would not run in parallel.
        assert_eq!(run(&streams[1], 64), CachePath::Hit);
        assert_eq!(run(&streams[1], 16), CachePath::Built);
        gate.open();
        let read = target.read_blocking(&streams[1]).unwrap();
        assert_eq!((read[15], read[16]), (16, 64));
        // The larger memory serves both.
        assert_eq!(scratch.size_bytes(), 256);
    });
}
