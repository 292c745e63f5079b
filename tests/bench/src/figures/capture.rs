//! Calls in a capture.

use core::hint::black_box;
use core::ptr;
use std::time::Duration;

use cuda_graph::{Graph, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_launch::{Launch, params, per};
use cuda_sys::CUstreamCaptureMode;

use super::Row;
use super::launch::launch_anew;
use crate::Outcome;
use crate::bench::{Bench, N};
use crate::measure::{Pair, timed};
use crate::raw::{RawGraph, ok};

pub(super) const FIGURES: &[Row] = &[
    ("captured fill", fill),
    ("captured buffer of zeros, and its drop", zeros),
    ("capture of 8 launches", whole),
    ("capture of 8 launches, instantiated", instantiated),
];

/// The launches of a whole capture.
const LAUNCHES: usize = 8;

/// The begin and the end of the capture do not count, nor does the drop of its owners.
pub(super) fn captured<'a>(
    bench: &'a Bench,
    mut ours: impl FnMut() -> Outcome<()> + 'a,
    mut raw: impl FnMut() -> Outcome<()> + 'a,
) -> Outcome<Pair<'a>> {
    let ours = move |count| {
        let capture = bench.stream.begin_capture(CaptureMode::ThreadLocal)?;
        let time = timed(count, &mut ours)?;
        capture.end()?;
        Ok(time)
    };
    let raw = move |count| {
        raw_begin(bench)?;
        let time = timed(count, &mut raw)?;
        raw_end(bench)?;
        Ok(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

fn raw_begin(bench: &Bench) -> Outcome<()> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: the stream lives.
    ok(unsafe { bench.driver().cuStreamBeginCapture(bench.stream.as_raw(), mode) })
}

fn raw_end(bench: &Bench) -> Outcome<RawGraph> {
    let mut graph = ptr::null_mut();
    // SAFETY: the stream lives and the out pointer is valid.
    ok(unsafe { bench.driver().cuStreamEndCapture(bench.stream.as_raw(), &raw mut graph) })?;
    Ok(RawGraph::of(bench, graph))
}

/// From the begin to the graph. The drop of the graph does not count.
fn whole(bench: &Bench) -> Outcome<Pair<'_>> {
    kept(|| capture(bench), || raw_capture(bench))
}

/// From the begin to an executable.
fn instantiated(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = || Ok({ capture(bench)? }.instantiate()?);
    let raw = || {
        let graph = raw_capture(bench)?;
        Ok((graph.instantiate()?, graph))
    };
    kept(ours, raw)
}

/// Keeps what each side makes until the time is over.
fn kept<'a, T, R>(
    mut ours: impl FnMut() -> Outcome<T> + 'a,
    mut raw: impl FnMut() -> Outcome<R> + 'a,
) -> Outcome<Pair<'a>> {
    Ok(Pair {
        ours: Box::new(move |count| timed_kept(count, &mut ours)),
        raw: Box::new(move |count| timed_kept(count, &mut raw)),
    })
}

fn timed_kept<T>(count: u32, make: &mut impl FnMut() -> Outcome<T>) -> Outcome<Duration> {
    let mut made = Vec::with_capacity(count as usize);
    timed(count, || {
        made.push(make()?);
        Ok(())
    })
}

fn capture(bench: &Bench) -> Outcome<Graph> {
    Ok(black_box(&bench.stream).capture(CaptureMode::ThreadLocal, |capture| {
        for _ in 0..LAUNCHES {
            let (n, a) = black_box((N, 2.0_f32));
            let arguments = params![n, a, &bench.x, &bench.y];
            // SAFETY: what is captured never runs.
            unsafe { bench.saxpy.launch(capture.stream(), per(n as usize, N), arguments) }?;
        }
        Ok(())
    })?)
}

fn raw_capture(bench: &Bench) -> Outcome<RawGraph> {
    raw_begin(bench)?;
    for _ in 0..LAUNCHES {
        launch_anew(bench)?;
    }
    raw_end(bench)
}

fn fill(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = || Ok(black_box(&bench.stream).fill(black_box(&bench.x), 1.0)?);
    captured(bench, ours, || raw_fill(bench))
}

/// From the second on, the memory of the one before is given again: only the fill calls the driver.
fn zeros(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = || {
        drop(black_box(&bench.stream).zeros::<f32>(N as usize)?);
        Ok(())
    };
    captured(bench, ours, || raw_fill(bench))
}

fn raw_fill(bench: &Bench) -> Outcome<()> {
    let (address, value) = black_box((bench.x.address(), 0_u32));
    // SAFETY: the memory has that size and the stream lives; what is captured never runs.
    ok(unsafe { bench.driver().cuMemsetD32Async(address, value, N as usize, bench.stream.as_raw()) })
}
