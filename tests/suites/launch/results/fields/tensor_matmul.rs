//! A product by tensor cores, of 16-bit floats with 32-bit sums.

use cuda_launch::{LaunchConfig, kernel};
use cuda_tests::{device, setup, skip};

use crate::results::reference::{Numbers, assert_close, halves, product, size, wide, with_stream};

kernel! {
    // SAFETY: `tensor_matmul` touches the tiles of its blocks, of which the matrices are made.
    unsafe in "../../../../kernels/fields/compute_80/tensor_matmul.ptx";

    fn tensor_matmul(m: u32, n: u32, k: u32, a: In<u16>, b: In<u16>, c: Out<f32>)
    where n % 32 == 0, k % 16 == 0, m == 32 * grid.y, n == 32 * grid.x, a.len() >= m * k,
        b.len() >= k * n, c.len() >= m * n, grid.z == 1, block.x == 128, block.product() == 128;
}

#[test]
fn tensor_cores_make_the_product() {
    drop(setup());
    if device().compute_capability().unwrap() < (8, 0) {
        skip!("the kernel is for compute capability 8.0");
    }
    with_stream(|context, stream| {
        let kernel = tensor_matmul::load(context).unwrap();
        let (m, n, k) = (size(32, 320), size(64, 512), size(48, 256));
        let mut numbers = Numbers(20);
        let (left, right) = (numbers.eighths(m * k), numbers.eighths(k * n));
        let (a, b) = (stream.upload(&halves(&left)).unwrap(), stream.upload(&halves(&right)).unwrap());
        let c = stream.zeros::<f32>(m * n).unwrap();
        let config = LaunchConfig::new((n as u32 / 32, m as u32 / 32), 128);
        kernel.launch(stream, config, (m as u32, n as u32, k as u32, &a, &b, &c)).unwrap();
        // Sums of multiples of 1/64 below 2^12 are exact.
        assert_close(&c.read_blocking(stream).unwrap(), &product(n, k, &wide(&left), &wide(&right)), 0.0);
    });
}
