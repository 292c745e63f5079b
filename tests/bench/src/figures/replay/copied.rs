//! Launches of an unchanged graph after a copy of its arguments into a buffer on the device, from
//! which its kernels would read them.

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;

use cuda_graph::{ContextExt, GraphExec};
use cuda_handles::{Buffer, HostBuffer};
use cuda_sys::CUgraphExec;

use super::{NODES, SHARE, chain, replays};
use crate::Outcome;
use crate::bench::Bench;
use crate::figures::launch::saxpy;
use crate::measure::Pair;
use crate::raw::ok;

/// The arguments of a replay: an address for each node.
type Values = [u64; NODES];

/// The values of the next replay.
fn next(values: &mut Values) -> &Values {
    values.iter_mut().for_each(|value| *value = value.wrapping_add(1));
    black_box(values)
}

/// The graph, whose nodes never change, and the buffer of their arguments. Neither side changes the
/// executable, so both launch the same one.
struct Copied {
    exec: GraphExec,
    arguments: Buffer<u64>,
}

impl Copied {
    fn new(bench: &Bench) -> Outcome<Self> {
        let (graph, kernel) = (bench.context.graph()?, saxpy::load(&bench.context)?);
        chain(bench, &graph, &kernel)?;
        let mut exec = graph.instantiate()?;
        exec.launch(&bench.stream)?;
        let arguments = bench.stream.zeros(NODES)?;
        bench.settle(Self { exec, arguments })
    }
}

fn launch(bench: &Bench, exec: CUgraphExec) -> Outcome<()> {
    // SAFETY: the stream lives, and the executable with the other closure.
    ok(unsafe { bench.driver().cuGraphLaunch(black_box(exec), black_box(bench.stream.as_raw())) })
}

/// The copy is over before the launch. The raw copy waits for no other work of a stream that does
/// not block, so a program has to wait for the replay before, too; here none reads the arguments.
pub(super) fn waited_for(bench: &Bench) -> Outcome<Pair<'_>> {
    let Copied { mut exec, arguments } = Copied::new(bench)?;
    let (address, raw_exec) = (arguments.address(), exec.as_raw());
    let (mut values, mut raw_values) = ([0; NODES], [0; NODES]);
    let ours = move |count| {
        replays(bench, count, || {
            arguments.write_blocking(&bench.stream, next(&mut values))?;
            Ok(exec.launch(black_box(&bench.stream))?)
        })
    };
    let raw = move |count| {
        replays(bench, count, || {
            let from: *const c_void = ptr::from_ref(next(&mut raw_values)).cast();
            // SAFETY: both have that size, and the buffer lives with the other closure.
            ok(unsafe { bench.driver().cuMemcpyHtoD(address, from, size_of::<Values>()) })?;
            launch(bench, raw_exec)
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

/// The copy is enqueued. Ours takes pinned memory from the stream; the raw side has as much as the
/// replays between two waits need.
pub(super) fn from_pinned(bench: &Bench) -> Outcome<Pair<'_>> {
    let Copied { mut exec, arguments } = Copied::new(bench)?;
    let (address, raw_exec) = (arguments.address(), exec.as_raw());
    let mut pinned: HostBuffer<u64> = bench.context.pinned_zeros(NODES * SHARE as usize)?;
    let (mut values, mut raw_values) = ([0; NODES], [0; NODES]);
    let ours = move |count| {
        replays(bench, count, || {
            bench.stream.write(&arguments, next(&mut values))?;
            Ok(exec.launch(black_box(&bench.stream))?)
        })
    };
    let mut turn = 0;
    let raw = move |count| {
        replays(bench, count, || {
            turn = (turn + 1) % SHARE as usize;
            let place = &mut pinned[NODES * turn..NODES * (turn + 1)];
            place.copy_from_slice(next(&mut raw_values));
            let from: *const c_void = place.as_ptr().cast();
            // SAFETY: both have that size and live until the wait: the pinned memory in this
            // closure, the buffer in the other one. The place is not written before that.
            ok(unsafe {
                let stream = bench.stream.as_raw();
                bench.driver().cuMemcpyHtoDAsync(address, from, size_of::<Values>(), stream)
            })?;
            launch(bench, raw_exec)
        })
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}
