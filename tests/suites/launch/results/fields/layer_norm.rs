//! Rows with mean 0 and variance 1, scaled and shifted.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{Numbers, assert_close, row_norm, size, with_stream};

kernel! {
    // SAFETY: `layer_norm` touches `fours` elements of each of the first `rows` rows.
    unsafe in "../../../../kernels/fields/layer_norm.ptx";

    fn layer_norm(
        rows: u32, fours: u32, epsilon: f32, input: In<[f32; 4]>, weight: In<[f32; 4]>,
        bias: In<[f32; 4]>, output: Out<[f32; 4]>
    )
    where input.len() >= rows * fours, weight.len() >= fours, bias.len() >= fours,
        output.len() >= rows * fours, block.x == 32, block.z == 1;
}

const EPSILON: f32 = 1e-5;

#[test]
fn rows_have_the_mean_and_variance_that_are_asked_for() {
    with_stream(|context, stream| {
        let kernel = layer_norm::load(context).unwrap();
        let (rows, fours) = (size(6, 1000), size(50, 512));
        let width = 4 * fours;
        let mut numbers = Numbers(10);
        // The mean is larger than the deviation, as Welford's sums need to be tested.
        let values: Vec<f32> = numbers.floats(rows * width).iter().map(|x| x * 3.0 + 20.0).collect();
        let (weight, bias) = (numbers.floats(width), numbers.floats(width));
        let groups = |values: &[f32]| stream.upload(values.as_chunks::<4>().0).unwrap();
        let (input, factors, offsets) = (groups(&values), groups(&weight), groups(&bias));
        let output = stream.zeros::<[f32; 4]>(rows * fours).unwrap();
        let config = LaunchConfig::new((rows as u32).div_ceil(4), (32, 4));
        let arguments = (rows as u32, fours as u32, EPSILON, &input, &factors, &offsets, &output);
        kernel.launch(stream, config, arguments).unwrap();
        let expected: Vec<f64> =
            values.chunks(width).flat_map(|row| row_norm(EPSILON, row, &weight, &bias)).collect();
        // Elements near 20 have units of 2e-6, and lie up to two deviations from the mean.
        assert_close(output.read_blocking(stream).unwrap().as_flattened(), &expected, 1e-5);
    });
}
