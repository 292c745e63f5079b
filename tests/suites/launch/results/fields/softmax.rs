//! Powers of each row's elements as shares of their sum.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{Numbers, assert_close, row_softmax, size, with_stream};

kernel! {
    // SAFETY: a block touches the `columns` elements of its row.
    unsafe in "../../../../kernels/fields/softmax.ptx";

    fn softmax(columns: u32, input: In<f32>, output: Out<f32>)
    where input.len() >= columns * grid.x, output.len() >= columns * grid.x,
        grid.y * grid.z == 1, block.y * block.z == 1, block.x % 32 == 0;
}

#[test]
fn shares_of_every_row_add_up() {
    with_stream(|context, stream| {
        let kernel = softmax::load(context).unwrap();
        let (rows, columns) = (size(4, 500), size(333, 4001));
        // Powers of -160 and less, of which the smallest become 0.
        let numbers: Vec<f32> = Numbers(9).floats(rows * columns).iter().map(|x| x * 80.0).collect();
        let (input, output) =
            (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(rows * columns).unwrap());
        let config = LaunchConfig::new(rows as u32, 128);
        kernel.launch(stream, config, (columns as u32, &input, &output)).unwrap();
        let expected: Vec<f64> = numbers
            .chunks(columns)
            .flat_map(|row| row_softmax(&row.iter().copied().map(f64::from).collect::<Vec<_>>()))
            .collect();
        assert_close(&output.read_blocking(stream).unwrap(), &expected, 1e-6);
    });
}
