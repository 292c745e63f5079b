//! Rounds of a cooperative launch, with a barrier over the whole grid.

use cuda_launch::{LaunchConfig, kernel};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: `list_ranking` takes no place beyond `count`, and ends after 33 rounds. Its barrier
    // ends, because all blocks run at the same time and `arrived` counts no arrivals of others.
    unsafe in "../../../../kernels/fields/list_ranking.ptx";

    /// # Safety
    /// `arrived` holds 0.
    unsafe fn list_ranking(
        count: u32, next: InOut<u32>, ranks: InOut<u32>, other_next: InOut<u32>, other_ranks: InOut<u32>,
        moved: InOut<u32>, rounds: Out<u32>, arrived: InOut<u32>
    )
    where cooperative, count >= 1, next.len() >= count, ranks.len() >= count, other_next.len() >= count,
        other_ranks.len() >= count, moved.len() >= 33, rounds.len() >= 1, arrived.len() >= 1,
        block.y * block.z == 1, grid.y * grid.z == 1;
}

#[test]
fn every_element_knows_its_distance_from_the_end() {
    with_stream(|context, stream| {
        let kernel = list_ranking::load(context).unwrap();
        for count in [5, size(300, 300_001)] {
            // A random order, cut into lists of a length of 1 to 40 and one of the rest.
            let mut numbers = Numbers(15);
            let mut order: Vec<u32> = (0..count as u32).collect();
            (1..count).rev().for_each(|i| order.swap(i, numbers.below(i as u32 + 1) as usize));
            let (mut next, mut expected) = (vec![0; count], vec![0; count]);
            let mut rest = &order[..];
            let mut longest = 0;
            while !rest.is_empty() {
                let length =
                    if rest.len() <= count * 3 / 4 { rest.len() } else { 1 + numbers.below(40) as usize };
                let (list, others) = rest.split_at(length.min(rest.len()));
                for (i, element) in list.iter().enumerate() {
                    next[*element as usize] = list[(i + 1).min(list.len() - 1)];
                    expected[*element as usize] = (list.len() - 1 - i) as u32;
                }
                longest = longest.max(list.len());
                rest = others;
            }
            let places = stream.upload(&next).unwrap();
            let [ranks, other_next, other_ranks] = [(); 3].map(|()| stream.zeros::<u32>(count).unwrap());
            let (moved, rounds) = (stream.zeros::<u32>(33).unwrap(), stream.zeros::<u32>(1).unwrap());
            let arrived = stream.zeros::<u32>(1).unwrap();
            let config = LaunchConfig::new(size(4, 64) as u32, size(32, 256) as u32).cooperative();
            let arguments =
                (count as u32, &places, &ranks, &other_next, &other_ranks, &moved, &rounds, &arrived);
            // SAFETY: `arrived` holds 0.
            unsafe { kernel.launch(stream, config, arguments) }.unwrap();
            assert_eq!(ranks.read_blocking(stream).unwrap(), expected);
            // Each round doubles the distance of all jumps; the last finds that nothing moved.
            let doublings = (longest - 1).max(1).next_power_of_two().ilog2();
            assert_eq!(rounds.read_blocking(stream).unwrap(), [doublings + 1]);
        }
    });
}
