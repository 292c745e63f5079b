//! Builds that fail, panic, and use the cache themselves.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_graph::{CacheError, CacheOptions, CachePath, ContextExt, Error, GraphCache, NodeError};
use cuda_sys::{CUresult, Call};
use cuda_tests::{fail, no_leaks, setup};

use super::{Cache, fill_with, filling};

#[test]
fn a_build_that_fails_or_panics_leaves_the_key_as_it_was() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new().most(1));
        let error = || Error::Node(NodeError::GraphRemoved);
        let get = |stamp, fails: bool| {
            cache.get(&stream, 1, stamp, || if fails { Err(error()) } else { filling(&context, &target) })
        };
        let panicking = |stamp| {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                cache.get(&stream, 1, stamp, || panic!("on purpose")).map(drop)
            }));
            assert!(outcome.is_err());
        };
        assert_eq!(get(0, true).map(drop), Err(error()));
        panicking(0);
        assert_eq!((cache.statistics().live, cache.entries().len()), (0, 0));
        assert_eq!(get(0, false).unwrap().path(), CachePath::Built);
        // For another stamp: the executable stays as it was.
        assert_eq!(get(1, true).map(drop), Err(error()));
        panicking(1);
        assert_eq!(get(0, true).unwrap().path(), CachePath::Hit);
        let statistics = cache.statistics();
        assert_eq!((statistics.builds, statistics.hits, statistics.live), (1, 1, 1));
    });
}

#[test]
fn an_instantiation_that_fails_leaves_no_place_taken() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new().most(1));
        let failed = {
            let call = Call::cuGraphInstantiateWithParams;
            let _fails = fail(call, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
            cache.get(&stream, 1, 0, || filling(&context, &target)).map(drop)
        };
        assert!(failed.is_err());
        assert_eq!((cache.statistics().live, cache.entries().len()), (0, 0));
        assert_eq!(cache.get(&stream, 1, 0, || filling(&context, &target)).unwrap().path(), CachePath::Built);
    });
}

#[test]
fn an_executable_that_was_given_up_leaves_the_cache() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let graph = context.graph().unwrap();
        let (node, memory) = graph.root().alloc::<u32>(16).unwrap();
        let fill = node.then().fill(&memory, 1).unwrap();
        fill.then().copy(&memory, &target).unwrap().then().free(&memory).unwrap();
        let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
        let run = |stamp| -> Result<CachePath, Error> {
            let mut cached = cache.get(&stream, 1, stamp, || Ok((graph.clone(), ())))?;
            cached.parts().0.launch(&stream)?;
            Ok(cached.path())
        };
        assert_eq!(run(0), Ok(CachePath::Built));
        for stamp in 1..4 {
            // The graph can have one executable, which goes before the next one is made.
            let call = Call::cuGraphInstantiateWithParams;
            let fails = fail(call, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
            run(stamp).unwrap_err();
            assert!(fails.hit());
            drop(fails);
            assert_eq!((cache.statistics().live, cache.entries().len()), (0, 0));
            // Whatever the stamp is, the next call makes one.
            fill.set(&memory, stamp as u32).unwrap();
            assert_eq!(run(stamp - stamp % 2), Ok(CachePath::Built));
            assert_eq!(target.read_blocking(&stream).unwrap(), [stamp as u32; 16]);
        }
        // A call site may give it up as well.
        let mut cached = cache.get(&stream, 1, 2, || unreachable!()).unwrap();
        let fails = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        cached.parts().0.update_or_rebuild(&graph).unwrap_err();
        assert!(fails.hit());
        drop((cached, fails));
        assert_eq!(run(2), Ok(CachePath::Built));
        assert_eq!(cache.statistics().live, 1);
    });
}

#[test]
fn a_build_uses_the_cache() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new());
        let inner = || {
            let launch = |exec: &mut _, params: &_| fill_with(exec, params, &stream, &target, 3);
            cache.launch(&stream, 2, 0, || filling(&context, &target), launch)
        };
        let outer = cache.get(&stream, 1, 0, || {
            inner()?;
            filling(&context, &target)
        });
        assert_eq!(outer.unwrap().path(), CachePath::Built);
        assert_eq!(target.read_blocking(&stream).unwrap(), [3; 16]);
        // The same key: the first that is there stays, and the outer graph is dropped.
        let depth = Cell::new(0);
        let outer = cache.get(&stream, 3, 0, || {
            depth.set(1);
            drop(cache.get(&stream, 3, 0, || filling(&context, &target))?);
            filling(&context, &target)
        });
        assert_eq!((outer.unwrap().path(), depth.get()), (CachePath::Hit, 1));
        assert_eq!(cache.statistics().builds, 4);
        // With another stamp the executable is taken.
        let outer = cache.get(&stream, 3, 1, || {
            let inner = cache.get(&stream, 3, 1, || filling(&context, &target)).map(drop);
            assert_eq!(inner, Err(Error::Cache(CacheError::InUse)));
            filling(&context, &target)
        });
        assert!(matches!(outer.unwrap().path(), CachePath::Updated | CachePath::Rebuilt));
    });
}

#[test]
fn a_launch_that_fails_or_panics_gives_the_executable_back() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        let cache = Cache::new(CacheOptions::new());
        let build = || filling(&context, &target);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            cache.launch(&stream, 1, 0, build, |_, _| -> cuda_graph::Result<()> { panic!("on purpose") })
        }));
        assert!(outcome.is_err());
        let failed = cache.launch(&stream, 1, 0, build, |_, _| -> cuda_graph::Result<()> {
            Err(Error::Node(NodeError::GraphRemoved))
        });
        assert_eq!(failed, Err(Error::Node(NodeError::GraphRemoved)));
        assert_eq!(cache.get(&stream, 1, 0, build).unwrap().path(), CachePath::Hit);
    });
}
