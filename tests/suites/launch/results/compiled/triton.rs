//! Triton's PTX: lists of one register, required block sizes, shared memory set by the launch.

use cuda_handles::{Context, Stream};
use cuda_launch::{Launch, LaunchConfig, params};
use cuda_tests::{Need, device, no_leaks, setup, skip};

use super::compiled;

/// Elements of a block and threads that share them.
const BLOCK: u32 = 256;
const THREADS: u32 = 64;

/// Calls the test where the driver and its first device take the kernels.
macro_rules! with_triton {
    ($test:expr) => {
        let context = setup();
        if let Some(lacking) = Need::Ptx88.lacking() {
            skip!("{lacking}");
        }
        if device().compute_capability().unwrap() < (8, 0) {
            skip!("the kernels are for compute capability 8.0");
        }
        let test: fn(&Context, &Stream) = $test;
        no_leaks(|| test(&context, &context.stream().unwrap()));
    };
}

fn blocks(n: usize) -> LaunchConfig {
    LaunchConfig::new((n as u32).div_ceil(BLOCK), THREADS)
}

#[test]
fn masked_loads_and_stores_touch_the_elements_alone() {
    with_triton!(|context, stream| {
        let n = 1000_usize;
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let y: Vec<f32> = (0..n).map(|i| 3.0 - i as f32).collect();
        let (a, b, out) =
            (stream.upload(&x).unwrap(), stream.upload(&y).unwrap(), stream.zeros::<f32>(n).unwrap());
        let kernel = compiled!(context, "compilers/triton-add", "add");
        // SAFETY: the arguments are the kernel's, with two scratch pointers that it does not use.
        unsafe { kernel.launch(stream, blocks(n), params![&a, &b, &out, n as i32, 0_u64, 0_u64]) }.unwrap();
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        assert_eq!(out.read_blocking(stream).unwrap(), expected);
    });
}

#[test]
fn warps_reduce_through_shared_memory() {
    with_triton!(|context, stream| {
        let (rows, n) = (3_usize, 200_usize);
        let x: Vec<f32> = (0..rows * n).map(|i| (i * 37 % 101) as f32 * 0.1 - 5.0).collect();
        let (input, out) = (stream.upload(&x).unwrap(), stream.zeros::<f32>(rows * n).unwrap());
        let kernel = compiled!(context, "compilers/triton-softmax", "softmax");
        let config = LaunchConfig::new(rows as u32, THREADS).shared_bytes(1024);
        // SAFETY: as above.
        unsafe { kernel.launch(stream, config, params![&input, &out, n as i32, 0_u64, 0_u64]) }.unwrap();
        let found = out.read_blocking(stream).unwrap();
        for (row, found) in x.chunks(n).zip(found.chunks(n)) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = row.iter().map(|value| f64::from(value - most).exp()).sum();
            for (value, found) in row.iter().zip(found) {
                let expected = f64::from(value - most).exp() / sum;
                assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} and {expected}");
            }
        }
    });
}

#[test]
fn masked_atomics_count_every_element_once() {
    with_triton!(|context, stream| {
        let n = 777_usize;
        let x: Vec<i32> = (0..n as i32).map(|i| i * i).collect();
        let (input, bins) = (stream.upload(&x).unwrap(), stream.zeros::<i32>(8).unwrap());
        let kernel = compiled!(context, "compilers/triton-count", "count");
        // SAFETY: as above; the kernel counts in eight bins.
        unsafe { kernel.launch(stream, blocks(n), params![&input, &bins, n as i32, 0_u64, 0_u64]) }.unwrap();
        let mut expected = [0; 8];
        x.iter().for_each(|value| expected[(value & 7) as usize] += 1);
        assert_eq!(bins.read_blocking(stream).unwrap(), expected);
    });
}
