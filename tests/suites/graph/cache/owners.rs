//! What goes with the executables of a cache, and how long it lives.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use cuda_graph::{CacheOptions, CachePath, ContextExt, GraphCache};
use cuda_tests::{Kind, SOON, live, no_leaks, setup, until};

use super::{Cache, fill_with, filling};
use crate::common::gone::allocations;

#[test]
fn refreshed_executables_are_flat_in_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let cache = Cache::new(CacheOptions::new());
        let launch = |stamp| {
            let run = |exec: &mut _, params: &_| fill_with(exec, params, &stream, &target, stamp as u32);
            cache.launch(&stream, 1, stamp, || filling(&context, &target), run).unwrap();
        };
        launch(0);
        let before = live();
        for stamp in 1..=400 {
            launch(stamp);
            if stamp % 100 == 0 {
                assert_eq!(target.read_blocking(&stream).unwrap(), [stamp as u32; 16]);
                let since = || live().since(&before);
                // The graph that the executable was made of, and that of the last update.
                let is_flat =
                    until(SOON, || since().of(Kind::Allocation) <= 2 && since().of(Kind::Graph) <= 1);
                assert!(is_flat, "after {stamp}: {}", since());
            }
        }
        let statistics = cache.statistics();
        assert_eq!((statistics.updates, statistics.live), (400, 1));
    });
}

/// Uses its cache when it is dropped.
struct Reentrant {
    cache: Weak<GraphCache<u32, Self>>,
    drops: Rc<RefCell<u32>>,
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        *self.drops.borrow_mut() += 1;
        if let Some(cache) = self.cache.upgrade() {
            assert!(cache.entries().len() <= 2);
            assert!(cache.statistics().live <= 3);
        }
    }
}

#[test]
fn destructors_of_what_goes_with_executables_may_use_the_cache() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let target = stream.zeros::<u32>(16).unwrap();
        stream.synchronize_blocking().unwrap();
        let (cache, drops) =
            (Rc::new(GraphCache::new(CacheOptions::new().most(2))), Rc::new(RefCell::new(0)));
        let get = |key, stamp| {
            let build = || {
                let graph = context.graph()?;
                graph.root().fill(&target, key)?;
                Ok((graph, Reentrant { cache: Rc::downgrade(&cache), drops: Rc::clone(&drops) }))
            };
            cache.get(&stream, key, stamp, build).unwrap().path()
        };
        let before = allocations();
        assert_eq!([get(1, 0), get(2, 0)], [CachePath::Built; 2]);
        // Evicted, replaced by an update, and cleared.
        assert_eq!((get(3, 0), *drops.borrow()), (CachePath::Built, 1));
        assert_eq!((get(3, 1), *drops.borrow()), (CachePath::Updated, 2));
        cache.clear();
        assert_eq!((*drops.borrow(), cache.statistics().live), (4, 0));
        // Put back after a clear.
        let taken = cache.get(&stream, 1, 0, || {
            let graph = context.graph()?;
            Ok((graph, Reentrant { cache: Rc::downgrade(&cache), drops: Rc::clone(&drops) }))
        });
        cache.clear();
        drop(taken.unwrap());
        assert_eq!((*drops.borrow(), allocations()), (5, before));
        get(1, 0);
        drop(cache);
        assert_eq!(*drops.borrow(), 6);
    });
}
