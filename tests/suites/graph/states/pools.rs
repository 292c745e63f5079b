//! Pools and caches of executables.

use cuda_graph::{CacheOptions, ExecPool, Graph, GraphCache};
use cuda_tests::states::{CALLS, CHECKS, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared};

use super::drawn;

type Cache = GraphCache<u32, ()>;

fn pool(things: &Things) -> Result<ExecPool, Refusal> {
    let mut graphs = [drawn(things)?, drawn(things)?].into_iter();
    Ok(ExecPool::new(2, |_| {
        graphs.next().map(|graph| (graph, ())).ok_or(cuda_graph::CacheError::InUse.into())
    })?)
}

/// A cache with one executable, and a graph for another.
fn cache(things: &Things) -> Result<(Cache, Graph), Refusal> {
    let (cache, graph) = (Cache::new(CacheOptions::new()), drawn(things)?);
    drop(cache.get(&things.home, 1, 0, || Ok((graph, ())))?);
    Ok((cache, drawn(things)?))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared("ExecPool::new", CALLS, drawn, |_, graph| {
            done(ExecPool::new(1, |_| Ok((graph.clone(), ())))?)
        }),
        prepared("ExecPool::launch", PERMITTED, pool, |things, pool| {
            Ok(pool.launch(&things.home, |exec, ()| exec.launch(&things.home))?)
        }),
        prepared("GraphCache::get of a hit", CHECKS, cache, |things, (cache, graph)| {
            let hit = cache.get(&things.home, 1, 0, || Ok((graph, ())));
            done(hit?.path())
        }),
        prepared("GraphCache::get of a new key", CALLS, cache, |things, (cache, graph)| {
            let built = cache.get(&things.home, 2, 0, || Ok((graph, ())));
            done(built?.path())
        }),
        prepared("GraphCache::get with another stamp", CALLS, cache, |things, (cache, graph)| {
            let refreshed = cache.get(&things.home, 1, 1, || Ok((graph, ())));
            done(refreshed?.path())
        }),
        prepared("GraphCache::statistics, entries, verify", PURE, cache, |_, (cache, _graph)| {
            cache.verify(true);
            done((cache.statistics(), cache.entries()))
        }),
        prepared("GraphCache::reset", PURE, cache, |_, (cache, _graph)| {
            cache.reset();
            done(cache.statistics())
        }),
        drops("drop of a pool", pool),
        drops("drop of a cache", cache),
    ]
}
