//! Running single instructions on inputs of a test's own.

use super::instructions::kernel;
use super::{Memory, arg, launch, load};

/// Threads of a launch, and inputs of a chunk.
const THREADS: usize = 32;

/// What each text leaves in `%d5` for each input, whose words are in `%d1`, `%d2`, `%d3`, their
/// low halves in `%r1`, `%r2`, `%r3`, and the low halves of these in `%h1`, `%h2`, `%h3`.
pub(super) fn evaluate(texts: &[String], inputs: &[[u64; 3]]) -> Vec<Vec<u64>> {
    let mut text = ".version 8.5\n.target sm_90\n.address_size 64\n".to_owned();
    for (index, each) in texts.iter().enumerate() {
        text += &kernel(index, "0", each, 0);
    }
    let image = load(&text);
    let mut all = vec![Vec::new(); texts.len()];
    for chunk in inputs.chunks(THREADS) {
        let mut memory = Memory::default();
        let words: Vec<u64> = chunk.iter().flatten().copied().collect();
        let (from, to) = (memory.put(&words), memory.put(&vec![0_u64; chunk.len()]));
        let threads = [chunk.len() as u32, 1, 1];
        for (index, results) in all.iter_mut().enumerate() {
            launch(&image, &mut memory, &format!("k{index}"), [1, 1, 1], threads, 0, &[arg(from), arg(to)])
                .unwrap();
            results.extend(memory.get::<u64>(to));
        }
    }
    all
}

/// A text whose result is the 32-bit register `%r4`.
pub(super) fn word(text: &str) -> String {
    format!("{text} cvt.u64.u32 %d5, %r4;")
}

/// A text whose result is the 16-bit register `%h4`.
pub(super) fn half(text: &str) -> String {
    format!("{text} cvt.u64.u16 %d5, %h4;")
}

/// A sequence of words without a pattern, the same in each run, with edges among them.
pub(super) fn inputs(count: usize) -> Vec<[u64; 3]> {
    const EDGES: [u64; 10] = [
        0,
        1,
        u64::MAX,
        0x80,
        0x7f,
        0x8000,
        0x7fff,
        0x8000_0000_8000_8080,
        0x7fff_ffff_7fff_7f7f,
        0xffff_0000_00ff_ff00,
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut one = move || match next() {
        pick if pick % 3 == 0 => EDGES[(pick / 3 % 10) as usize],
        _ => next(),
    };
    (0..count).map(|_| [one(), one(), one()]).collect()
}

/// Compares with a reference, and names what differs.
pub(super) fn check(texts: &[String], inputs: &[[u64; 3]], mut expected: impl FnMut(usize, [u64; 3]) -> u64) {
    let mut wrong = Vec::new();
    for (index, results) in evaluate(texts, inputs).into_iter().enumerate() {
        for (input, got) in inputs.iter().zip(results) {
            let wanted = expected(index, *input);
            if got != wanted {
                wrong.push(format!("{}: {got:#x}, expected {wanted:#x}, of {input:x?}", texts[index]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
