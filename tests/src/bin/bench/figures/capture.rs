//! Calls in a capture.

use core::hint::black_box;
use core::ptr;

use cuda_handles::capture::CaptureMode;
use cuda_sys::CUstreamCaptureMode;

use super::{Bench, N, Row, ok};
use crate::Outcome;
use crate::measure::{Pair, timed};

pub(super) const FIGURES: &[Row] =
    &[("captured fill", fill), ("captured buffer of zeros, and its drop", zeros)];

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
        let (driver, stream) = (bench.driver(), bench.stream.as_raw());
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives.
        ok(unsafe { driver.cuStreamBeginCapture(stream, mode) })?;
        let time = timed(count, &mut raw)?;
        let mut graph = ptr::null_mut();
        // SAFETY: the out pointer is valid, and the graph is ours.
        ok(unsafe { driver.cuStreamEndCapture(stream, &raw mut graph) })?;
        // SAFETY: as above.
        ok(unsafe { driver.cuGraphDestroy(graph) })?;
        Ok(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
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
