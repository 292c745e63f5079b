//! Single instructions, against what an H200 computed (driver 580.159). `data/instructions.py`
//! makes the kernels and records. The instructions at the end of the list may lack a record: these
//! only run, and the tests of their families check them against arithmetic in Rust.

use super::{Memory, arg, launch, load};

const TEMPLATE: &str = include_str!("data/instruction.template");
const NAMES: &str = include_str!("data/instructions.txt");
const INPUT: &[u8] = include_bytes!("data/instructions.in");
const RECORDED: &[u8] = include_bytes!("data/instructions.out");
const THREADS: usize = 32;

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
}

/// A kernel that runs a text on the inputs from byte `table` on, and writes from byte `place` on.
pub(super) fn kernel(index: usize, table: &str, instruction: &str, place: usize) -> String {
    TEMPLATE
        .replace("@INDEX@", &index.to_string())
        .replace("@TABLE@", table)
        .replace("@TEXT@", instruction)
        .replace("@PLACE@", &place.to_string())
}

/// A kernel for each line.
fn text(names: &[&str]) -> String {
    let mut text = ".version 8.5\n.target sm_90\n.address_size 64\n".to_owned();
    for (index, name) in names.iter().enumerate() {
        let (table, instruction) = name.trim_start_matches('~').split_once(' ').unwrap();
        text += &kernel(index, table, instruction, index * THREADS * 8);
    }
    text
}

/// Whether approximate double results agree up to the last place of their upper words.
fn is_near_f64(got: u64, recorded: u64) -> bool {
    let (got, recorded) = (f64::from_bits(got), f64::from_bits(recorded));
    let both_nan = got.is_nan() && recorded.is_nan();
    got == recorded || both_nan || (got - recorded).abs() <= recorded.abs() * 0.5_f64.powi(20)
}

/// Whether an approximate single result is near enough.
fn is_near(got: u64, recorded: u64, distance_allowed: f64) -> bool {
    let (got, recorded) = (f32::from_bits(got as u32), f32::from_bits(recorded as u32));
    let distance = (f64::from(got) - f64::from(recorded)).abs();
    got == recorded
        || (got.is_nan() && recorded.is_nan())
        || distance <= f64::from(recorded.abs()) * distance_allowed + distance_allowed / 10.0
}

#[test]
fn agree_with_a_gpu() {
    let names: Vec<&str> = NAMES.lines().collect();
    let image = load(&text(&names));
    assert!(RECORDED.len() <= names.len() * THREADS * 8 && RECORDED.len().is_multiple_of(THREADS * 8));
    let mut memory = Memory::default();
    let input = words(INPUT);
    let (from, to) = (memory.put(&input), memory.put(&vec![0_u64; names.len() * THREADS]));
    for index in 0..names.len() {
        let name = format!("k{index}");
        launch(&image, &mut memory, &name, [1, 1, 1], [THREADS as u32, 1, 1], 0, &[arg(from), arg(to)])
            .unwrap();
    }
    let mut wrong = String::new();
    let got = memory.get::<u64>(to);
    for ((name, got), recorded) in names.iter().zip(got.chunks(THREADS)).zip(words(RECORDED).chunks(THREADS))
    {
        for (thread, (&got, &recorded)) in got.iter().zip(recorded).enumerate() {
            let is_right = match name.len() - name.trim_start_matches('~').len() {
                0 => got == recorded,
                1 if name.ends_with("mov.b64 %d5, %d4;") => is_near_f64(got, recorded),
                1 => is_near(got, recorded, 1e-5),
                // A step of the last place of a brain float, and a bit.
                _ => is_near(got, recorded, 0.01),
            };
            if !is_right {
                let inputs: Vec<String> = (0..5)
                    .map(|table| format!("{:x?}", &input[(table * THREADS + thread) * 3..][..3]))
                    .collect();
                wrong += &format!(
                    "{name} thread {thread}: {got:#x}, the GPU has {recorded:#x}; inputs {}\n",
                    inputs.join(" ")
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
