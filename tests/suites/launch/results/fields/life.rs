//! Conway's game of life, 32 cells a word.

use cuda_launch::{kernel, per_2d};

use crate::results::reference::{Numbers, size, with_stream};

kernel! {
    // SAFETY: `life` checks the word against the sizes, and takes neighbours modulo these.
    unsafe in "../../../../kernels/fields/life.ptx";

    fn life(words: u32, height: u32, input: In<u32>, output: Out<u32>)
    where words * 32 < 1 << 31, height < 1 << 31, input.len() >= words * height,
        output.len() >= words * height;
}

/// The next generation, cell by cell.
fn generation(width: usize, height: usize, cells: &[bool]) -> Vec<bool> {
    let alive = |x: usize, y: usize| cells[y % height * width + x % width];
    let next = |x: usize, y: usize| {
        let mut neighbours = 0;
        for (dx, dy) in [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2), (2, 2)] {
            neighbours += u32::from(alive(x + width + dx - 1, y + height + dy - 1));
        }
        neighbours == 3 || (neighbours == 2 && alive(x, y))
    };
    (0..height).flat_map(|y| (0..width).map(move |x| next(x, y))).collect()
}

#[test]
fn generations_follow_the_rules_of_life() {
    with_stream(|context, stream| {
        let kernel = life::load(context).unwrap();
        for (words, height) in [(size(2, 20), size(17, 500)), (1, 3)] {
            let mut numbers = Numbers(19);
            // Half of the cells live at first.
            let start = numbers.words(words * height);
            let mut cells: Vec<bool> =
                start.iter().flat_map(|word| (0..32).map(move |bit| word >> bit & 1 == 1)).collect();
            let (mut from, mut to) =
                (stream.upload(&start).unwrap(), stream.zeros::<u32>(words * height).unwrap());
            for _ in 0..4 {
                let arguments = (words as u32, height as u32, &from, &to);
                kernel.launch(stream, per_2d((words, height), (4, 8)), arguments).unwrap();
                std::mem::swap(&mut from, &mut to);
                cells = generation(32 * words, height, &cells);
            }
            let found = from.read_blocking(stream).unwrap();
            let expected: Vec<u32> = cells
                .chunks(32)
                .map(|word| (0..32).fold(0, |sum, bit| sum | u32::from(word[bit]) << bit))
                .collect();
            assert_eq!(found, expected);
        }
    });
}
