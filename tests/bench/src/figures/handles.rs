//! Handles and memory.

use core::hint::black_box;

use cuda_handles::Buffer;
use cuda_sys::CUdeviceptr;

use super::Row;
use crate::Outcome;
use crate::bench::{Bench, N};
use crate::measure::{Pair, timed};
use crate::raw::ok;

pub(super) const FIGURES: &[Row] = &[
    ("clone and drop of a stream's handle", clone_stream),
    ("clone and drop of a buffer's handle", clone_buffer),
    ("buffer of zeros", make_buffer),
    ("drop of a buffer", drop_buffer),
    ("fill", fill),
    ("event record", record),
];

/// The raw counterpart is a copy of the pointer: the driver counts no references.
fn clone_stream(bench: &Bench) -> Outcome<Pair<'_>> {
    Ok(Pair {
        ours: Box::new(|count| {
            timed(count, || {
                drop(black_box(black_box(&bench.stream).clone()));
                Ok(())
            })
        }),
        raw: Box::new(|count| {
            timed(count, || {
                black_box(black_box(&bench.stream).as_raw());
                Ok(())
            })
        }),
    })
}

fn clone_buffer(bench: &Bench) -> Outcome<Pair<'_>> {
    Ok(Pair {
        ours: Box::new(|count| {
            timed(count, || {
                drop(black_box(black_box(&bench.x).clone()));
                Ok(())
            })
        }),
        raw: Box::new(|count| {
            timed(count, || {
                black_box(black_box(&bench.x).address());
                Ok(())
            })
        }),
    })
}

const BYTES: usize = N as usize * size_of::<f32>();

#[inline]
fn allocate(bench: &Bench) -> Outcome<CUdeviceptr> {
    let mut address = 0;
    // SAFETY: the out pointer is valid and the stream lives.
    ok(unsafe { bench.driver().cuMemAllocAsync(&raw mut address, BYTES, bench.stream.as_raw()) })?;
    Ok(address)
}

#[inline]
fn free(bench: &Bench, address: CUdeviceptr) -> Outcome<()> {
    // SAFETY: `allocate` made it, and this is its last use.
    ok(unsafe { bench.driver().cuMemFreeAsync(address, bench.stream.as_raw()) })
}

fn make_buffer(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = move |count| {
        let mut made = Vec::with_capacity(count as usize);
        let time = timed(count, || {
            made.push(black_box(&bench.stream).zeros::<f32>(N as usize)?);
            Ok(())
        })?;
        drop(made);
        bench.settle(time)
    };
    let raw = move |count| {
        let mut made = Vec::with_capacity(count as usize);
        let time = timed(count, || {
            let address = allocate(bench)?;
            made.push(address);
            // SAFETY: the memory is allocated on this stream and has that size.
            ok(unsafe { bench.driver().cuMemsetD8Async(address, 0, BYTES, bench.stream.as_raw()) })
        })?;
        made.into_iter().try_for_each(|address| free(bench, address))?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

fn drop_buffer(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = move |count| {
        let made = (0..count).map(|_| bench.stream.zeros::<f32>(N as usize));
        let mut made = made.collect::<Result<Vec<Buffer<f32>>, _>>()?;
        let time = timed(count, || {
            drop(made.pop());
            Ok(())
        })?;
        bench.settle(time)
    };
    let raw = move |count| {
        let mut made = (0..count).map(|_| allocate(bench)).collect::<Outcome<Vec<_>>>()?;
        let time = timed(count, || made.pop().map_or(Ok(()), |address| free(bench, address)))?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

fn fill(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = move |count| {
        let time = timed(count, || Ok(black_box(&bench.stream).fill(black_box(&bench.x), 1.0)?))?;
        bench.settle(time)
    };
    let raw = move |count| {
        let time = timed(count, || {
            let (address, value) = black_box((bench.x.address(), 1.0_f32));
            // SAFETY: the memory has that size and the stream lives.
            ok(unsafe {
                let driver = bench.driver();
                driver.cuMemsetD32Async(address, value.to_bits(), N as usize, bench.stream.as_raw())
            })
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}

fn record(bench: &Bench) -> Outcome<Pair<'_>> {
    let event = bench.context.event()?;
    let raw = event.as_raw();
    let ours = move |count| {
        let time = timed(count, || Ok(black_box(&bench.stream).record(black_box(&event))?))?;
        bench.settle(time)
    };
    let raw = move |count| {
        let time = timed(count, || {
            // SAFETY: the stream lives, and the event with the other closure.
            ok(unsafe { bench.driver().cuEventRecord(black_box(raw), black_box(bench.stream.as_raw())) })
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: Box::new(raw) })
}
