//! The kernels of `rust.ptx`, in the Rust of a GPU: slices with checks, iterators, atomics of
//! `core`, and PTX in line where `core` has no function.
#![no_std]
#![feature(abi_ptx, stdarch_nvptx, asm_experimental_arch)]
#![allow(clippy::missing_safety_doc, improper_ctypes_definitions)]

use core::arch::asm;
use core::arch::nvptx::{_block_dim_x, _block_idx_x, _grid_dim_x, _thread_idx_x};
use core::sync::atomic::{AtomicI32, Ordering};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: it ends the kernel with an error.
    unsafe { core::arch::nvptx::trap() }
}

fn place() -> usize {
    // SAFETY: special registers.
    unsafe { (_block_idx_x() * _block_dim_x() + _thread_idx_x()) as usize }
}

fn stride() -> usize {
    // SAFETY: as above.
    unsafe { (_grid_dim_x() * _block_dim_x()) as usize }
}

/// The value of the thread of the warp whose number differs in the bits of `mask`.
fn exchanged(value: f32, mask: u32) -> f32 {
    let mut out: f32;
    // SAFETY: all threads of the warp are here.
    unsafe {
        asm!("shfl.sync.bfly.b32 {}, {}, {}, 31, -1;", out(reg32) out, in(reg32) value, in(reg32) mask);
    }
    out
}

fn exp(x: f32) -> f32 {
    let mut out: f32;
    // SAFETY: arithmetic.
    unsafe { asm!("ex2.approx.f32 {}, {};", out(reg32) out, in(reg32) x * core::f32::consts::LOG2_E) };
    out
}

#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn saxpy(n: usize, a: f32, x: *const f32, y: *mut f32) {
    let i = place();
    if i < n {
        // SAFETY: the arrays have `n` elements, and each thread has one of its own.
        unsafe { *y.add(i) += a * *x.add(i) };
    }
}

/// Adds the sum of `n` elements to `total`, which must start as 0.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn sum(n: usize, x: *const i32, total: *const AtomicI32) {
    // SAFETY: the array has `n` elements.
    let x = unsafe { core::slice::from_raw_parts(x, n) };
    let sum = x.iter().skip(place()).step_by(stride()).fold(0_i32, |sum, x| sum.wrapping_add(*x));
    // SAFETY: `total` is memory of the device.
    unsafe { &*total }.fetch_add(sum, Ordering::Relaxed);
}

/// One warp a row.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn softmax(columns: usize, x: *const f32, out: *mut f32) {
    // SAFETY: a special register.
    let (row, lane) = unsafe { (_block_idx_x() as usize, _thread_idx_x() as usize) };
    // SAFETY: each block has a row of its own in both arrays.
    let x = unsafe { core::slice::from_raw_parts(x.add(row * columns), columns) };
    let own = || x.iter().skip(lane).step_by(32);
    let mut largest = own().copied().fold(f32::MIN, f32::max);
    for mask in [16, 8, 4, 2, 1] {
        largest = largest.max(exchanged(largest, mask));
    }
    let mut sum: f32 = own().map(|x| exp(x - largest)).sum();
    for mask in [16, 8, 4, 2, 1] {
        sum += exchanged(sum, mask);
    }
    for i in (lane..columns).step_by(32) {
        // SAFETY: each thread has elements of its own.
        unsafe { *out.add(row * columns + i) = exp(x[i] - largest) / sum };
    }
}

/// Square matrices of `n` rows, a thread an element.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn matmul(n: usize, a: *const f32, b: *const f32, c: *mut f32) {
    // SAFETY: the matrices have `n` rows of `n`.
    let (a, b) = unsafe { (core::slice::from_raw_parts(a, n * n), core::slice::from_raw_parts(b, n * n)) };
    let i = place();
    if i < n * n {
        let column = b[i % n..].iter().step_by(n);
        let product = a.chunks_exact(n).nth(i / n).map(|row| row.iter().zip(column).map(|(a, b)| a * b).sum());
        // SAFETY: each thread has an element of its own.
        unsafe { *c.add(i) = product.unwrap_or(0.0) };
    }
}

/// The greatest common divisor of each pair, or the highest bit if that is 1.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn divisors(n: usize, pairs: *const [u64; 2], out: *mut u64) {
    // SAFETY: the arrays have `n` elements.
    let pairs = unsafe { core::slice::from_raw_parts(pairs, n) };
    if let Some([a, b]) = pairs.get(place()) {
        let (mut a, mut b) = (*a, *b);
        while b != 0 {
            (a, b) = (b, a.checked_rem(b).unwrap_or(0));
        }
        let answer = if a == 1 { a.reverse_bits() } else { a };
        // SAFETY: each thread has an element of its own.
        unsafe { *out.add(place()) = answer };
    }
}
