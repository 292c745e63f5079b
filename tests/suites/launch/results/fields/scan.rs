//! Inclusive sums over any number of blocks.

use cuda_launch::{LaunchConfig, kernel, per};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: the kernels check every index against `count` or `parts`, and a block touches the sum
    // of its own number or the one before.
    unsafe in "../../../../kernels/fields/scan.ptx";

    struct Scan;

    fn scan_parts(count: u32, input: In<u32>, output: Out<u32>, sums: Out<u32>)
    where input.len() >= count, output.len() >= count, sums.len() >= grid.x,
        block.x == 256, block.product() == 256;
    fn scan_sums(parts: u32, sums: InOut<u32>)
    where sums.len() >= parts, grid.product() == 1, block.x == 256, block.product() == 256;
    fn scan_add(count: u32, output: InOut<u32>, sums: In<u32>)
    where output.len() >= count, sums.len() + 1 >= grid.x, block.x == 256, block.product() == 256;
}

#[test]
fn each_element_is_the_sum_up_to_it() {
    with_stream(|context, stream| {
        let kernels = Scan::load(context).unwrap();
        for count in [1, 256, 257, size(4000, 3_000_001)] {
            let numbers = Numbers(4).words(count);
            let config = per(count, 256);
            let (input, output) = (stream.upload(&numbers).unwrap(), stream.zeros::<u32>(count).unwrap());
            let parts = config.grid().x;
            let sums = stream.zeros::<u32>(parts as usize).unwrap();
            kernels.scan_parts.launch(stream, config, (count as u32, &input, &output, &sums)).unwrap();
            kernels.scan_sums.launch(stream, LaunchConfig::new(1, 256), (parts, &sums)).unwrap();
            kernels.scan_add.launch(stream, config, (count as u32, &output, &sums)).unwrap();
            let add = |sum: &mut u32, number: &u32| {
                *sum = sum.wrapping_add(*number);
                Some(*sum)
            };
            let expected: Vec<u32> = numbers.iter().scan(0, add).collect();
            assert_eq!(output.read_blocking(stream).unwrap(), expected);
        }
    });
}
