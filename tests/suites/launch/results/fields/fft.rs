//! Fourier transforms of 256 points.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{Numbers, assert_close, size, with_stream};

kernel! {
    // SAFETY: a block touches the 256 points of its transform.
    unsafe in "../../../../kernels/fields/fft.ptx";

    fn fft_256(direction: f32, input: In<[f32; 2]>, output: Out<[f32; 2]>)
    where input.len() >= 256 * grid.x, output.len() >= 256 * grid.x, grid.y * grid.z == 1,
        block.x == 128, block.product() == 128;
}

const POINTS: usize = 256;

/// The sum that defines the transform.
fn transform(points: &[[f32; 2]]) -> Vec<[f64; 2]> {
    let turn = std::f64::consts::TAU / POINTS as f64;
    let frequency = |k: usize| {
        points.iter().enumerate().fold([0.0; 2], |sum, (i, point)| {
            let (sine, cosine) = (-turn * (i * k % POINTS) as f64).sin_cos();
            let [real, imaginary] = point.map(f64::from);
            [sum[0] + real * cosine - imaginary * sine, sum[1] + real * sine + imaginary * cosine]
        })
    };
    (0..POINTS).map(frequency).collect()
}

#[test]
fn transforms_are_the_defining_sums_and_their_inverse_leads_back() {
    with_stream(|context, stream| {
        let kernel = fft_256::load(context).unwrap();
        let batches = size(2, 200);
        let mut numbers = Numbers(18);
        let points: Vec<[f32; 2]> =
            (0..batches * POINTS).map(|_| [numbers.float(), numbers.float()]).collect();
        let input = stream.upload(&points).unwrap();
        let (spectra, back) = (
            stream.zeros::<[f32; 2]>(points.len()).unwrap(),
            stream.zeros::<[f32; 2]>(points.len()).unwrap(),
        );
        let config = LaunchConfig::new(batches as u32, 128);
        kernel.launch(stream, config, (-1.0, &input, &spectra)).unwrap();
        kernel.launch(stream, config, (1.0, &spectra, &back)).unwrap();
        let expected: Vec<[f64; 2]> = points.chunks(POINTS).flat_map(transform).collect();
        // Values of up to some 40, with the rounding of eight stages.
        assert_close(spectra.read_blocking(stream).unwrap().as_flattened(), expected.as_flattened(), 1e-4);
        let scaled: Vec<f64> = points.as_flattened().iter().map(|x| f64::from(*x) * POINTS as f64).collect();
        assert_close(back.read_blocking(stream).unwrap().as_flattened(), &scaled, 1e-3);
    });
}
