//! Launches of a kernel with four arguments.

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;

use cuda_handles::Image;
use cuda_launch::{Arguments, Launch, LaunchConfig, kernel, params, per};
use cuda_sys::CUresult;

use super::Row;
use super::capture::captured;
use crate::Outcome;
use crate::bench::{Bench, IMAGE, N, RawArguments};
use crate::measure::{Pair, Way, timed};
use crate::raw::ok;

pub(super) const FIGURES: &[Row] = &[
    ("launch, built per call", built_per_call),
    ("launch, reused borrowing holder", borrowing_holder),
    ("launch, reused owning holder", owning_holder),
    ("launch, built per call, not at home", elsewhere),
    ("launch of a typed kernel", typed),
    ("captured launch, kept arguments", captured_launch),
];

fn built_per_call(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = move |count| {
        let time = timed(count, || {
            let (kernel, stream) = black_box((&bench.saxpy, &bench.stream));
            let (n, a) = black_box((N, 2.0_f32));
            // SAFETY: the arguments are the kernel's, and both buffers have `N` elements.
            unsafe { kernel.launch(stream, per(n as usize, N), params![n, a, &bench.x, &bench.y]) }?;
            Ok(())
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: raw_built_per_call(bench) })
}

fn elsewhere(bench: &Bench) -> Outcome<Pair<'_>> {
    let other = bench.context.stream()?;
    let ours = move |count| {
        let time = timed(count, || {
            let (kernel, stream) = black_box((&bench.saxpy, &other));
            let (n, a) = black_box((N, 2.0_f32));
            // SAFETY: the arguments are the kernel's, both buffers have `N` elements, and nothing
            // else runs.
            unsafe { kernel.launch(stream, per(n as usize, N), params![n, a, &bench.x, &bench.y]) }?;
            Ok(())
        })?;
        other.synchronize_blocking()?;
        Ok(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: raw_built_per_call(bench) })
}

fn borrowing_holder(bench: &Bench) -> Outcome<Pair<'_>> {
    reused(bench, params![N, 2.0_f32, &bench.x, &bench.y])
}

fn owning_holder(bench: &Bench) -> Outcome<Pair<'_>> {
    reused(bench, params![N, 2.0_f32, &bench.x, &bench.y].into_owned())
}

fn reused<'a>(bench: &'a Bench, holder: impl Arguments + 'a) -> Outcome<Pair<'a>> {
    let ours = move |count| {
        let time = timed(count, || {
            let (kernel, stream) = black_box((&bench.saxpy, &bench.stream));
            let config = LaunchConfig::new(black_box(1), N);
            // SAFETY: the arguments are the kernel's, and both buffers have `N` elements.
            unsafe { kernel.launch(stream, config, black_box(&holder)) }?;
            Ok(())
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: raw_reused(bench) })
}

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(IMAGE);

    pub(super) fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
    where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
}

fn typed(bench: &Bench) -> Outcome<Pair<'_>> {
    let kernel = saxpy::load(&bench.context)?;
    let ours = move |count| {
        let time = timed(count, || {
            let (kernel, stream) = black_box((&kernel, &bench.stream));
            let (n, a) = black_box((N, 2.0_f32));
            Ok(kernel.launch(stream, per(n as usize, N), (n, a, &bench.x, &bench.y))?)
        })?;
        bench.settle(time)
    };
    Ok(Pair { ours: Box::new(ours), raw: raw_built_per_call(bench) })
}

fn captured_launch(bench: &Bench) -> Outcome<Pair<'_>> {
    let ours = || {
        let (kernel, stream) = black_box((&bench.saxpy, &bench.stream));
        let (n, a) = black_box((N, 2.0_f32));
        // SAFETY: what is captured never runs.
        unsafe { kernel.launch(stream, per(n as usize, N), params![n, a, &bench.x, &bench.y]) }?;
        Ok(())
    };
    captured(bench, ours, || launch_anew(bench))
}

/// Values and pointers are written anew for each call. The block is known when this is compiled,
/// the number of elements is not, as on the other side: a configuration that went through memory as
/// a whole would cost more than the launch.
fn raw_built_per_call(bench: &Bench) -> Way<'_> {
    Box::new(move |count| {
        let time = timed(count, || launch_anew(bench))?;
        bench.settle(time)
    })
}

/// A launch whose arguments are written for it.
#[inline]
pub(super) fn launch_anew(bench: &Bench) -> Outcome<()> {
    let (n, a) = black_box((N, 2.0_f32));
    let mut arguments = RawArguments::new(bench, n, a);
    ok(launch_raw(bench, n.div_ceil(N), &mut arguments.pointers()))
}

fn raw_reused(bench: &Bench) -> Way<'_> {
    Box::new(move |count| {
        let mut arguments = RawArguments::new(bench, N, 2.0);
        let mut pointers = arguments.pointers();
        let time = timed(count, || ok(launch_raw(bench, black_box(1), black_box(&mut pointers))))?;
        bench.settle(time)
    })
}

#[inline]
pub(super) fn launch_raw(bench: &Bench, grid: u32, pointers: &mut [*mut c_void; 4]) -> CUresult {
    let (function, stream) = black_box((bench.saxpy.function(), bench.stream.as_raw()));
    // SAFETY: function and stream live; the pointers are those of the kernel's four arguments.
    unsafe {
        bench.driver().cuLaunchKernel(
            function,
            grid,
            1,
            1,
            N,
            1,
            1,
            0,
            stream,
            pointers.as_mut_ptr(),
            ptr::null_mut(),
        )
    }
}
