//! Attention over tiles of keys, with sums that are scaled down on the way.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{Numbers, assert_close, attended, size, with_stream};

kernel! {
    // SAFETY: `attention` checks each place against `length`; heads are blocks' second index.
    unsafe in "../../../../kernels/fields/attention.ptx";

    fn attention(
        length: u32, scale: f32, is_causal: u32, queries: In<f32>, keys: In<f32>, values: In<f32>,
        output: Out<f32>
    )
    where queries.len() >= length * 32 * grid.y, keys.len() >= length * 32 * grid.y,
        values.len() >= length * 32 * grid.y, output.len() >= length * 32 * grid.y,
        grid.z == 1, block.x == 64, block.product() == 64;
}

const WIDTH: usize = 32;
const SCALE: f32 = 0.5;

#[test]
fn online_softmax_gives_the_weighted_means() {
    with_stream(|context, stream| {
        let kernel = attention::load(context).unwrap();
        let (heads, length) = (size(1, 4), size(70, 400));
        let count = heads * length * WIDTH;
        let mut numbers = Numbers(11);
        let mut tensor = || numbers.floats(count);
        let (queries, keys, values) = (tensor(), tensor(), tensor());
        let on_device = [&queries, &keys, &values].map(|tensor| stream.upload(tensor).unwrap());
        for is_causal in [false, true] {
            let output = stream.zeros::<f32>(count).unwrap();
            let config = LaunchConfig::new((length.div_ceil(64) as u32, heads as u32), 64);
            let [queries_on, keys_on, values_on] = &on_device;
            let arguments =
                (length as u32, SCALE, u32::from(is_causal), queries_on, keys_on, values_on, &output);
            kernel.launch(stream, config, arguments).unwrap();
            let expected: Vec<f64> = queries
                .chunks(length * WIDTH)
                .zip(keys.chunks(length * WIDTH))
                .zip(values.chunks(length * WIDTH))
                .flat_map(|((queries, keys), values)| {
                    attended(WIDTH, SCALE, is_causal, queries, keys, values)
                })
                .collect();
            assert_close(&output.read_blocking(stream).unwrap(), &expected, 1e-5);
        }
    });
}
