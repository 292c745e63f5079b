//! Pool memory used on other streams at once.

use cuda_launch::{Launch, params, per};
use cuda_tests::{kernel, no_leaks, setup};

const LEN: usize = 16;
const ROUNDS: u32 = 10_000;
/// Rounds whose results are looked at together.
const TOGETHER: u32 = 500;

/// Allocated on one stream, written, read and given back at once by two others: each round gets
/// memory that rounds before have had.
#[test]
fn pool_memory_used_across_streams_at_once_is_right_ten_thousand_times() {
    let context = setup();
    let offset_copy = kernel(&context, "offset_copy");
    no_leaks(|| {
        let streams: Vec<_> = (0..3).map(|_| context.stream().unwrap()).collect();
        for first in (0..ROUNDS).step_by(TOGETHER as usize) {
            let results = streams[0].zeros::<u32>(LEN * TOGETHER as usize).unwrap();
            for round in first..first + TOGETHER {
                let at = |offset: u32| &streams[((round + offset) % 3) as usize];
                let (home, writer, reader) = (at(0), at(1), at(2));
                let buffer = home.zeros::<u32>(LEN).unwrap();
                writer.fill(&buffer, round).unwrap();
                reader.wait_for(writer).unwrap();
                let start = (round - first) as usize * LEN;
                let result = results.slice(start..start + LEN).unwrap();
                // SAFETY: the arguments are the kernel's, both ranges have `LEN` elements, and the
                // launch waits for the fill.
                unsafe {
                    offset_copy.launch(
                        reader,
                        per(LEN, LEN as u32),
                        params![&buffer, result, 1_u32, LEN as u32],
                    )
                }
                .unwrap();
            }
            streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
            let found = results.read_blocking(&streams[0]).unwrap();
            for (place, value) in found.iter().enumerate() {
                let round = first + (place / LEN) as u32;
                assert_eq!(*value, round + 1, "round {round}, element {}", place % LEN);
            }
        }
    });
}
