//! Launches through a cache and through a pool, with graph parameters set, beside updates of the
//! nodes by raw calls.

use core::hint::black_box;

use cuda_graph::{CacheOptions, ExecPool, GraphCache, GraphExec};
use cuda_handles::Buffer;

use super::raw::RawReplay;
use super::set::{Parameters, chain};
use super::{NODES, Turns, replays};
use crate::Outcome;
use crate::bench::Bench;
use crate::figures::launch::saxpy;
use crate::measure::Pair;

/// Keys in the cache, of which one is launched.
const KEYS: u32 = 4;

pub(super) fn nothing(bench: &Bench) -> Outcome<Pair<'_>> {
    cached(bench, 0)
}

pub(super) fn one_buffer(bench: &Bench) -> Outcome<Pair<'_>> {
    cached(bench, 1)
}

pub(super) fn all_buffers(bench: &Bench) -> Outcome<Pair<'_>> {
    cached(bench, NODES)
}

/// A replay after which so many nodes have another buffer.
fn cached(bench: &Bench, changed: usize) -> Outcome<Pair<'_>> {
    let kernel = saxpy::load(&bench.context)?;
    let cache: GraphCache<u32, Parameters> = GraphCache::new(CacheOptions::new().most(KEYS as usize));
    let replay = move |key: u32, x: &Buffer<f32>| -> Outcome<()> {
        let (stream, build) = (black_box(&bench.stream), || chain(bench, &kernel));
        let launch = |exec: &mut GraphExec, parameters: &Parameters| set(bench, exec, parameters, x, changed);
        Ok(cache.launch(stream, key, 0, build, launch)?)
    };
    (0..KEYS).try_for_each(|key| replay(key, &bench.x))?;
    beside_raw(bench, changed, move |x| replay(black_box(KEYS / 2), x))
}

pub(super) fn pooled(bench: &Bench) -> Outcome<Pair<'_>> {
    let kernel = saxpy::load(&bench.context)?;
    let pool = ExecPool::new(2, |_| chain(bench, &kernel))?;
    let replay = move |x: &Buffer<f32>| -> Outcome<()> {
        Ok(pool.launch(black_box(&bench.stream), |exec, parameters| set(bench, exec, parameters, x, 1))?)
    };
    beside_raw(bench, 1, replay)
}

#[inline]
fn set(
    bench: &Bench,
    exec: &mut GraphExec,
    parameters: &Parameters,
    x: &Buffer<f32>,
    changed: usize,
) -> cuda_graph::Result<()> {
    for buffer in parameters.buffers.iter().take(changed) {
        exec.set(buffer, x)?;
    }
    exec.launch(black_box(&bench.stream))
}

fn beside_raw<'b>(
    bench: &'b Bench,
    changed: usize,
    replay: impl Fn(&Buffer<f32>) -> Outcome<()> + 'b,
) -> Outcome<Pair<'b>> {
    let (mut values, others) = (Turns::new(bench)?, Turns::new(bench)?);
    let ours = move |count| replays(bench, count, || replay(values.next()));
    let raw = RawReplay::instantiated(bench)?.with_buffers(changed, others);
    Ok(Pair { ours: Box::new(ours), raw })
}
