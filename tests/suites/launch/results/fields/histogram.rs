//! Counts of bytes.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: `histogram` reads the first `words` elements of its input, and a byte is below 256.
    unsafe in "../../../../kernels/fields/histogram.ptx";

    fn histogram(words: u32, input: In<[u8; 4]>, bins: InOut<u32>)
    where input.len() >= words, bins.len() >= 256, block.y * block.z == 1;
}

#[test]
fn every_byte_is_counted_once() {
    with_stream(|context, stream| {
        let kernel = histogram::load(context).unwrap();
        let mut numbers = Numbers(5);
        // Small values are frequent, so that threads meet in one bin.
        let words: Vec<[u8; 4]> = (0..size(2000, 2_000_003))
            .map(|_| [0; 4].map(|_: u8| (numbers.below(256) * numbers.below(256) / 256) as u8))
            .collect();
        let (input, bins) = (stream.upload(&words).unwrap(), stream.zeros::<u32>(256).unwrap());
        let config = LaunchConfig::new(size(3, 300) as u32, 192);
        kernel.launch(stream, config, (words.len() as u32, &input, &bins)).unwrap();
        let mut expected = [0; 256];
        words.iter().flatten().for_each(|byte| expected[usize::from(*byte)] += 1);
        assert_eq!(bins.read_blocking(stream).unwrap(), expected);
    });
}
