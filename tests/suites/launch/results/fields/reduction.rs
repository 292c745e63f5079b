//! Sums, and the place of the largest element.

use cuda_launch::{LaunchConfig, kernel, per};

use crate::results::reference::{Numbers, assert_close, size, with_stream};

kernel! {
    // SAFETY: each kernel reads its first elements, checks every index, and writes one element a
    // launch or a block; blocks have at most 32 whole warps.
    unsafe in "../../../../kernels/fields/reduction.ptx";

    struct Reduction;

    fn reduce_sum(count: u32, input: In<i32>, total: InOut<u64>)
    where input.len() >= count, total.len() >= 1, block.y * block.z == 1, block.x % 32 == 0;
    fn reduce_floats(fours: u32, input: In<[f32; 4]>, total: InOut<f32>)
    where input.len() >= fours, total.len() >= 1, block.y * block.z == 1, block.x % 32 == 0;
    fn reduce_largest(count: u32, input: In<f32>, largest: Out<f32>, place: Out<u32>)
    where input.len() >= count, largest.len() >= grid.x, place.len() >= grid.x,
        block.y * block.z == 1, block.x % 32 == 0;
}

#[test]
fn sums_of_whole_numbers_are_exact() {
    with_stream(|context, stream| {
        let kernels = Reduction::load(context).unwrap();
        for count in [1, 33, size(5000, 10_000_019)] {
            let numbers: Vec<i32> = Numbers(1).words(count).into_iter().map(u32::cast_signed).collect();
            let (input, total) = (stream.upload(&numbers).unwrap(), stream.zeros::<u64>(1).unwrap());
            let config = LaunchConfig::new(size(3, 500) as u32, 256);
            kernels.reduce_sum.launch(stream, config, (count as u32, &input, &total)).unwrap();
            let expected: i64 = numbers.iter().copied().map(i64::from).sum();
            assert_eq!(total.read_blocking(stream).unwrap()[0].cast_signed(), expected);
        }
    });
}

#[test]
fn sums_of_floats_are_close() {
    with_stream(|context, stream| {
        let kernels = Reduction::load(context).unwrap();
        let numbers: Vec<[f32; 4]> = Numbers(2).floats(4 * size(1000, 1 << 20)).as_chunks().0.to_vec();
        let (input, total) = (stream.upload(&numbers).unwrap(), stream.zeros::<f32>(1).unwrap());
        let config = LaunchConfig::new(4, 128);
        kernels.reduce_floats.launch(stream, config, (numbers.len() as u32, &input, &total)).unwrap();
        let (mut sum, mut absolute) = (0.0_f64, 0.0_f64);
        for number in numbers.iter().flatten().copied().map(f64::from) {
            sum += number;
            absolute += number.abs();
        }
        // Half a unit of the last place for each of some ten additions of a thread's share.
        assert_close(&total.read_blocking(stream).unwrap(), &[sum], absolute * 1e-6);
    });
}

#[test]
fn the_largest_element_is_found_at_its_first_place() {
    with_stream(|context, stream| {
        let kernels = Reduction::load(context).unwrap();
        let (count, block) = (size(3000, 1_000_003), 128);
        // Few different values: the largest is there more than once.
        let numbers: Vec<f32> = (0..count).scan(Numbers(3), |n, _| Some(n.below(60) as f32 - 90.0)).collect();
        let config = per(count, block);
        let blocks = config.grid().x as usize;
        let input = stream.upload(&numbers).unwrap();
        let (largest, place) = (stream.zeros::<f32>(blocks).unwrap(), stream.zeros::<u32>(blocks).unwrap());
        kernels.reduce_largest.launch(stream, config, (count as u32, &input, &largest, &place)).unwrap();
        let (mut expected, mut places) = (Vec::new(), Vec::new());
        for (part, start) in numbers.chunks(block as usize).zip((0_u32..).step_by(block as usize)) {
            let most = part.iter().copied().fold(f32::MIN, f32::max);
            places.push(start + part.iter().position(|number| *number == most).unwrap() as u32);
            expected.push(most);
        }
        assert_eq!(largest.read_blocking(stream).unwrap(), expected);
        assert_eq!(place.read_blocking(stream).unwrap(), places);
    });
}
