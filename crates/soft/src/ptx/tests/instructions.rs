//! Single instructions, against what an H200 computed (driver 580.159). `data/instructions.py`
//! makes the kernels and records. The instructions at the end of the list may lack a record: these
//! only run, and the tests of their families check them against arithmetic in Rust.

use super::coverage::{Form, Outcome, assert_agreement};
use super::{Checks, Memory, arg, launch};
use crate::ptx::Image;

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

/// What is wrong with a result, if anything.
fn difference(line: &str, thread: usize, input: &[u64], got: u64, recorded: u64) -> Option<String> {
    let is_right = match line.len() - line.trim_start_matches('~').len() {
        0 => got == recorded,
        1 if line.ends_with("mov.b64 %d5, %d4;") => is_near_f64(got, recorded),
        1 => is_near(got, recorded, 1e-5),
        // A step of the last place of a brain float, and a bit.
        _ => is_near(got, recorded, 0.01),
    };
    let inputs: Vec<String> =
        (0..5).map(|table| format!("{:x?}", &input[(table * THREADS + thread) * 3..][..3])).collect();
    (!is_right).then(|| {
        let inputs = inputs.join(" ");
        format!("{line} thread {thread}: {got:#x}, the GPU has {recorded:#x}; inputs {inputs}")
    })
}

/// Runs an instruction on the inputs at `from`, compiled after so many instructions or not at all.
/// Without a record, nothing is compared.
fn outcome(
    line: &str,
    memory: &mut Memory,
    [from, to]: [u64; 2],
    recorded: Option<&[u64]>,
    compile_after: Option<u64>,
) -> Outcome {
    let (table, instruction) = line.trim_start_matches('~').split_once(' ').unwrap();
    let text = kernel(0, table, instruction, 0);
    let image = match Image::parse(&format!(".version 8.5\n.target sm_90\n.address_size 64\n{text}")) {
        Ok(image) => image,
        Err(errors) => return Outcome::Refused(errors[0].to_string()),
    };
    image.compile_after(compile_after);
    let block = [THREADS as u32, 1, 1];
    if let Err(fault) = launch(&image, memory, "k0", [1, 1, 1], block, 0, &[arg(from), arg(to)]) {
        return Outcome::Differs(format!("{line}: {fault}"));
    }
    let Some(recorded) = recorded else { return Outcome::Loads };
    let (input, got) = (memory.get::<u64>(from), memory.get::<u64>(to));
    let differences = got.into_iter().zip(recorded).enumerate();
    let all: Vec<String> = differences
        .filter_map(|(thread, (got, &recorded))| difference(line, thread, &input, got, recorded))
        .collect();
    if all.is_empty() { Outcome::Agrees } else { Outcome::Differs(all.join("\n")) }
}

/// The instructions of the list, without the one behind each that hands over the result.
pub(super) fn forms() -> Vec<Form> {
    assert!(RECORDED.len().is_multiple_of(THREADS * 8));
    let recorded = words(RECORDED);
    assert!(recorded.len() <= NAMES.lines().count() * THREADS);
    let mut memory = Memory::default();
    let places = [memory.put(&words(INPUT)), memory.put(&[0_u64; THREADS])];
    let mut records = recorded.chunks(THREADS);
    NAMES
        .lines()
        .map(|line| {
            let outcome = outcome(line, &mut memory, places, records.next(), None);
            let (_, text) = line.split_once(' ').unwrap();
            let end = text.trim_end_matches(';').rfind(';').unwrap();
            Form { text: &text[..end], outcome }
        })
        .collect()
}

#[test]
fn agree_with_a_gpu() {
    assert_agreement(&forms());
}

#[test]
fn agree_with_a_gpu_as_native_code() {
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let places = [memory.put(&words(INPUT)), memory.put(&[0_u64; THREADS])];
    let recorded = words(RECORDED);
    // Cranelift is slow in a build that is not optimised.
    let step = if cfg!(debug_assertions) { 8 } else { 1 };
    let differences: Vec<String> = NAMES
        .lines()
        .zip(recorded.chunks(THREADS))
        .step_by(step)
        .filter_map(|(line, recorded)| match outcome(line, &mut memory, places, Some(recorded), Some(0)) {
            Outcome::Differs(how) => Some(how),
            _ => None,
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
