//! Single instructions, against what an H200 computed (driver 580.159). `data/instructions.py`
//! makes the kernels and records.

use super::{Memory, arg, launch, load};

const TEMPLATE: &str = include_str!("data/instruction.template");
const NAMES: &str = include_str!("data/instructions.txt");
const INPUT: &[u8] = include_bytes!("data/instructions.in");
const RECORDED: &[u8] = include_bytes!("data/instructions.out");
const THREADS: usize = 32;

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
}

/// A kernel for each line.
fn text(names: &[&str]) -> String {
    let mut text = ".version 8.0\n.target sm_90\n.address_size 64\n".to_owned();
    for (index, name) in names.iter().enumerate() {
        let (table, instruction) = name.trim_start_matches('~').split_once(' ').unwrap();
        text += &TEMPLATE
            .replace("@INDEX@", &index.to_string())
            .replace("@TABLE@", table)
            .replace("@TEXT@", instruction)
            .replace("@PLACE@", &(index * THREADS * 8).to_string());
    }
    text
}

/// Approximate results are near enough at this relative and absolute distance.
fn is_near(got: u64, recorded: u64) -> bool {
    let (got, recorded) = (f32::from_bits(got as u32), f32::from_bits(recorded as u32));
    let distance = (f64::from(got) - f64::from(recorded)).abs();
    got == recorded
        || (got.is_nan() && recorded.is_nan())
        || distance <= f64::from(recorded.abs()) * 1e-5 + 1e-6
}

#[test]
fn agree_with_a_gpu() {
    compare(None);
}

#[test]
fn agree_with_a_gpu_as_native_code() {
    compare(Some(0));
}

/// Runs all instructions, compiled after so many or not at all.
fn compare(compile_after: Option<u64>) {
    let names: Vec<&str> = NAMES.lines().collect();
    let image = load(&text(&names));
    image.compile_after(compile_after);
    assert_eq!(RECORDED.len(), names.len() * THREADS * 8);
    // Cranelift is slow in a build that is not optimised.
    let step = if compile_after.is_some() && cfg!(debug_assertions) { 8 } else { 1 };
    let mut memory = Memory::default();
    let input = words(INPUT);
    let (from, to) = (memory.put(&input), memory.put(&vec![0_u64; names.len() * THREADS]));
    for index in (0..names.len()).step_by(step) {
        let name = format!("k{index}");
        launch(&image, &mut memory, &name, [1, 1, 1], [THREADS as u32, 1, 1], 0, &[arg(from), arg(to)])
            .unwrap();
    }
    let mut wrong = String::new();
    let got = memory.get::<u64>(to);
    let recorded = words(RECORDED);
    let lines = names.iter().zip(got.chunks(THREADS)).zip(recorded.chunks(THREADS)).step_by(step);
    for ((name, got), recorded) in lines {
        for (thread, (&got, &recorded)) in got.iter().zip(recorded).enumerate() {
            let is_right = if name.starts_with('~') { is_near(got, recorded) } else { got == recorded };
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
