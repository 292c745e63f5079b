//! A stable sort by passes over the digits.

use cuda_launch::{LaunchConfig, kernel, per};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: the kernels check every index of elements, and that of a count is below 16 times the
    // number of blocks.
    unsafe in "../../../../kernels/fields/radix_sort.ptx";

    struct RadixSort;

    fn radix_count(count: u32, shift: u32, keys: In<u32>, counts: Out<u32>)
    where keys.len() >= count, shift < 32, counts.len() >= 16 * grid.x,
        block.x == 128, block.product() == 128;
    fn radix_scan(length: u32, counts: InOut<u32>)
    where counts.len() >= length, grid.product() == 1, block.x == 128, block.product() == 128;
    fn radix_scatter(
        count: u32, shift: u32, starts: In<u32>, keys: In<u32>, values: In<u32>,
        sorted_keys: Out<u32>, sorted_values: Out<u32>
    )
    where keys.len() >= count, values.len() >= count, sorted_keys.len() >= count,
        sorted_values.len() >= count, shift < 32, starts.len() >= 16 * grid.x,
        block.x == 128, block.product() == 128;
}

#[test]
fn pairs_are_sorted_by_their_keys_and_equal_ones_keep_their_order() {
    with_stream(|context, stream| {
        let kernels = RadixSort::load(context).unwrap();
        for (count, limit) in [(1, 9), (size(700, 2_000_001), u32::MAX), (size(500, 100_000), 40)] {
            let mut numbers = Numbers(6);
            let pairs: Vec<(u32, u32)> = (0..count as u32).map(|i| (numbers.below(limit), i)).collect();
            let (keys, values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
            let config = per(count, 128);
            let length = 16 * config.grid().x;
            let counts = stream.zeros::<u32>(length as usize).unwrap();
            let mut from = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
            let mut to = (stream.zeros::<u32>(count).unwrap(), stream.zeros::<u32>(count).unwrap());
            let n = count as u32;
            for shift in (0..32).step_by(4) {
                kernels.radix_count.launch(stream, config, (n, shift, &from.0, &counts)).unwrap();
                kernels.radix_scan.launch(stream, LaunchConfig::new(1, 128), (length, &counts)).unwrap();
                let arguments = (n, shift, &counts, &from.0, &from.1, &to.0, &to.1);
                kernels.radix_scatter.launch(stream, config, arguments).unwrap();
                std::mem::swap(&mut from, &mut to);
            }
            let mut expected = pairs;
            expected.sort_by_key(|(key, _)| *key);
            let keys = from.0.read_blocking(stream).unwrap();
            let values = from.1.read_blocking(stream).unwrap();
            assert_eq!(keys.into_iter().zip(values).collect::<Vec<_>>(), expected);
        }
    });
}
