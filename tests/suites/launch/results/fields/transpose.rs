//! A matrix with rows and columns exchanged.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{size, with_stream};

kernel! {
    // SAFETY: `transpose` checks rows and columns against the sizes of the matrix.
    unsafe in "../../../../kernels/fields/transpose.ptx";

    fn transpose(width: u32, height: u32, input: In<f32>, output: Out<f32>)
    where input.len() >= width * height, output.len() >= width * height,
        block.x == 32, block.y == 8, block.z == 1;
}

#[test]
fn rows_become_columns() {
    with_stream(|context, stream| {
        let kernel = transpose::load(context).unwrap();
        for (width, height) in [(32, 32), (size(70, 1000), size(45, 777)), (1, 50)] {
            let matrix: Vec<f32> = (0..width * height).map(|i| i as f32).collect();
            let (input, output) =
                (stream.upload(&matrix).unwrap(), stream.zeros::<f32>(width * height).unwrap());
            let tiles = (width.div_ceil(32) as u32, height.div_ceil(32) as u32);
            let config = LaunchConfig::new(tiles, (32, 8));
            kernel.launch(stream, config, (width as u32, height as u32, &input, &output)).unwrap();
            let expected: Vec<f32> =
                (0..width).flat_map(|x| (0..height).map(move |y| (y * width + x) as f32)).collect();
            assert_eq!(output.read_blocking(stream).unwrap(), expected);
        }
    });
}
