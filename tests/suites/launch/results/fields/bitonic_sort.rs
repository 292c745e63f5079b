//! Parts sorted in shared memory.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: a block touches the `2 * block.x` elements of its part, and as many in shared memory.
    unsafe in "../../../../kernels/fields/bitonic_sort.ptx";

    fn bitonic_sort(input: In<i64>, output: Out<i64>)
    where 1024 % block.x == 0, input.len() >= 2 * block.x * grid.x,
        output.len() >= 2 * block.x * grid.x, shared >= 16 * block.x,
        grid.y * grid.z == 1, block.y * block.z == 1;
}

#[test]
fn every_part_is_sorted() {
    with_stream(|context, stream| {
        let kernel = bitonic_sort::load(context).unwrap();
        for (parts, block) in [(size(2, 200), size(128, 1024)), (3, 1), (1, 32)] {
            let mut numbers = Numbers(16);
            let mut values: Vec<i64> = (0..2 * parts * block)
                .map(|_| (i64::from(numbers.word().cast_signed()) << 32) | i64::from(numbers.word()))
                .collect();
            let input = stream.upload(&values).unwrap();
            let output = stream.zeros::<i64>(values.len()).unwrap();
            let config = LaunchConfig::new(parts as u32, block as u32).shared_bytes(16 * block as u32);
            kernel.launch(stream, config, (&input, &output)).unwrap();
            values.chunks_mut(2 * block).for_each(<[i64]>::sort_unstable);
            assert_eq!(output.read_blocking(stream).unwrap(), values);
        }
    });
}
