//! Keys, stamps, and what the statistics say.

use cuda_graph::{CacheOptions, CachePath, ContextExt, Error, GraphCache, InstantiateOptions, RefusalReason};
use cuda_handles::Error as HandleError;
use cuda_tests::{alone, count, needs, no_leaks, other_device, setup};

use super::{Cache, fill_with, filling};

#[test]
fn one_build_serves_all_call_sites() {
    let context = setup();
    no_leaks(|| {
        let streams = [context.stream().unwrap(), context.stream().unwrap()];
        let cache = Cache::new(CacheOptions::new());
        let mut results = Vec::new();
        for round in 0..90_u32 {
            let stream = &streams[round as usize % 2];
            let target = stream.zeros::<u32>(16).unwrap();
            let build = || filling(&context, &target);
            let launch = |exec: &mut _, params: &_| fill_with(exec, params, stream, &target, round);
            cache.launch(stream, 1, 0, build, launch).unwrap();
            results.push((round, target));
        }
        for (round, target) in results {
            let read = target.read_blocking(&streams[round as usize % 2]).unwrap();
            assert_eq!(read, [round; 16]);
        }
        let statistics = cache.statistics();
        assert_eq!((statistics.builds, statistics.hits, statistics.live), (1, 89, 1));
        assert_eq!(statistics.last.map(|last| (last.path, last.nodes)), Some((CachePath::Hit, 2)));
    });
}

#[test]
fn a_hit_is_no_call_and_no_allocation() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache = Cache::new(CacheOptions::new());
        let launch = || {
            let build = || filling(&context, &target);
            cache.launch(&stream, 1, 0, build, |exec, params| fill_with(exec, params, &stream, &target, 5))
        };
        (0..3).for_each(|_| launch().unwrap());
        let (_, cost) = count(|| launch().unwrap());
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        assert_eq!(cost.heap_allocations(), 0, "{cost}");
    });
}

#[test]
fn another_stamp_builds_again_and_keeps_the_executables_place() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache: GraphCache<&str, u32, (u32, char)> = GraphCache::new(CacheOptions::new());
        let value = |stamp: (u32, char)| {
            let build = || {
                let graph = context.graph()?;
                graph.root().fill(&target, stamp.0)?;
                Ok((graph, stamp.0))
            };
            let mut cached = cache.get(&stream, "key", stamp, build).unwrap();
            let path = cached.path();
            let (exec, params) = cached.parts();
            exec.launch(&stream).unwrap();
            assert_eq!(target.read_blocking(&stream).unwrap(), [*params; 16]);
            (*params, path)
        };
        let first = value((1, 'a'));
        let hit = value((1, 'a'));
        let (second, path) = value((2, 'a'));
        let (third, _) = value((2, 'b'));
        assert_eq!((first, hit), ((1, CachePath::Built), (1, CachePath::Hit)));
        assert_eq!(path, CachePath::Updated);
        assert_eq!((second, third), (2, 2));
        let statistics = cache.statistics();
        assert_eq!((statistics.builds, statistics.hits, statistics.live), (3, 1, 1));
        assert_eq!((statistics.updates, statistics.rebuilds.len()), (2, 0));
        assert_eq!((statistics.evictions, statistics.deferred, statistics.verified), (0, 0, 0));
    });
}

#[test]
fn an_executable_that_cannot_be_updated_is_made_again_and_the_reason_counted() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let cache: GraphCache<u32, usize> = GraphCache::new(CacheOptions::new());
        let path = |stamp: u64| {
            let build = || {
                let graph = context.graph()?;
                for _ in 0..stamp {
                    graph.root().empty()?;
                }
                Ok((graph, stamp as usize))
            };
            let mut cached = cache.get(&stream, 1, stamp, build).unwrap();
            let (exec, nodes) = cached.parts();
            assert_eq!((exec.graph().unwrap().len().unwrap(), *nodes), (stamp as usize, stamp as usize));
            exec.launch(&stream).unwrap();
            cached.path()
        };
        assert_eq!([path(1), path(2), path(3)], [CachePath::Built, CachePath::Rebuilt, CachePath::Rebuilt]);
        let statistics = cache.statistics();
        assert_eq!(statistics.rebuilds, [(RefusalReason::Topology, 2)].into());
        assert_eq!(statistics.last.map(|last| last.nodes), Some(3));
    });
}

#[test]
fn parameters_stay_with_the_executable_of_their_graph() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new());
        let before = {
            let mut cached = cache.get(&stream, 1, 0, || filling(&context, &target)).unwrap();
            cached.parts().1.clone()
        };
        let mut cached = cache.get(&stream, 1, 1, || filling(&context, &target)).unwrap();
        let (exec, params) = cached.parts();
        let refused = exec.set(&before.1, 7);
        assert!(matches!(refused, Err(Error::Param(_))), "{refused:?}");
        fill_with(exec, params, &stream, &target, 8).unwrap();
        assert_eq!(target.read_blocking(&stream).unwrap(), [8; 16]);
    });
}

#[test]
fn options_are_part_of_the_key() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new());
        let plain = InstantiateOptions::new();
        let uploaded = InstantiateOptions::new().upload_on(&stream);
        let priorities = InstantiateOptions::new().node_priorities();
        let path = |options| {
            let cached = cache.get_with(&stream, options, 1, 0, || filling(&context, &target));
            cached.unwrap().path()
        };
        assert_eq!([path(&plain), path(&priorities)], [CachePath::Built; 2]);
        assert_eq!([path(&plain), path(&uploaded), path(&priorities)], [CachePath::Hit; 3]);
        assert_eq!(cache.statistics().live, 2);
    });
}

#[test]
fn the_context_is_part_of_the_key() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let other = other_device().context().unwrap();
    no_leaks(|| {
        let (stream, stream_of_other) = (context.stream().unwrap(), other.stream().unwrap());
        let target = stream.zeros::<u32>(16).unwrap();
        let target_of_other = stream_of_other.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new());
        for path in [CachePath::Built, CachePath::Hit] {
            let here = cache.get(&stream, 1, 0, || filling(&context, &target)).unwrap();
            let there = cache.get(&stream_of_other, 1, 0, || filling(&other, &target_of_other)).unwrap();
            assert_eq!([here.path(), there.path()], [path; 2]);
        }
        // A graph of the wrong context is refused, and the key stays empty.
        let wrong = cache.get(&stream, 2, 0, || filling(&other, &target_of_other)).unwrap_err();
        assert!(matches!(wrong, Error::Handles(HandleError::WrongContext(_))), "{wrong}");
        assert_eq!(cache.statistics().live, 2);
    });
}

#[test]
fn entries_are_listed_and_a_reset_drops_all() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (small, large) = (stream.zeros::<u32>(16).unwrap(), stream.zeros::<u32>(1024).unwrap());
        let cache = Cache::new(CacheOptions::new());
        drop(cache.get(&stream, 1, 0, || filling(&context, &small)).unwrap());
        let taken = cache.get(&stream, 2, 0, || filling(&context, &large)).unwrap();
        let mut entries = cache.entries();
        entries.sort_by_key(|entry| entry.key);
        let facts: Vec<_> = entries.iter().map(|entry| (entry.key, entry.executables, entry.nodes)).collect();
        assert_eq!(facts, [(1, 1, 2), (2, 1, 2)]);
        // The target and the graph's own memory, each once.
        let bytes: Vec<_> = entries.iter().map(|entry| entry.memory_bytes).collect();
        assert!(bytes[0] >= 128 && bytes[1] >= 8192, "{bytes:?}");
        cache.reset();
        let statistics = cache.statistics();
        assert_eq!((statistics.live, statistics.builds, statistics.last), (1, 0, None));
        drop(taken);
        assert_eq!(cache.statistics().live, 0);
        assert_eq!(cache.entries(), []);
        let again = cache.get(&stream, 1, 0, || filling(&context, &small)).unwrap();
        assert_eq!(again.path(), CachePath::Built);
    });
}
