//! Instructions of whole warps, against what an H200 computed (driver 580.159). `data/warps.py`
//! makes the kernels and records. Lines at the end of the list may lack a record, and a kernel that
//! the GPU's driver refused has zeros alone: these only run.

use super::coverage::{Form, Outcome, assert_agreement};
use super::matrices::get_bits;
use super::{Memory, arg, launch};
use crate::ptx::Image;

const TEMPLATE: &str = include_str!("data/warps.template");
const LINES: &str = include_str!("data/warps.txt");
const INPUT: &[u8] = include_bytes!("data/warps.in");
const RECORDED: &[u8] = include_bytes!("data/warps.out");

/// An instruction of the list.
struct Line<'t> {
    format: &'t str,
    /// How far results may be away.
    tolerance: f64,
    threads: u32,
    bytes: usize,
    text: &'t str,
}

fn lines() -> impl Iterator<Item = Line<'static>> {
    LINES.lines().map(|line| {
        let [format, tolerance, threads, bytes, text] =
            line.splitn(5, ' ').collect::<Vec<_>>().try_into().unwrap();
        let (tolerance, threads) = (tolerance.parse().unwrap(), threads.parse().unwrap());
        Line { format, tolerance, threads, bytes: bytes.parse().unwrap(), text }
    })
}

/// The results as numbers, and as bits.
fn values(format: &str, bytes: &[u8]) -> Vec<(f64, u64)> {
    let width = match format {
        "f16" => 16,
        "f64" => 64,
        _ => 32,
    };
    let value = |bits: u64| match format {
        "f16" => super::matrices::F16.value(bits),
        "f64" => f64::from_bits(bits),
        "f32" => f64::from(f32::from_bits(bits as u32)),
        _ => bits as f64,
    };
    let all = (0..bytes.len() * 8 / width).map(|index| get_bits(bytes, index, width as u32));
    all.map(|bits| (value(bits), bits)).collect()
}

/// Whether two results, as numbers and as bits, are not the same.
fn is_far((found, bits): (f64, u64), (recorded, recorded_bits): (f64, u64), tolerance: f64) -> bool {
    let both_nan = found.is_nan() && recorded.is_nan();
    let is_near = bits == recorded_bits || both_nan || (found - recorded).abs() <= tolerance;
    !is_near
}

/// Runs a line, and compares with its record.
fn outcome(line: &Line<'_>, recorded: Option<&[u8]>) -> Outcome {
    let kernel = TEMPLATE.replace("@INDEX@", "0").replace("@PLACE@", "0").replace("@TEXT@", line.text);
    let image = match Image::parse(&format!(".version 8.5\n.target sm_90a\n.address_size 64\n{kernel}")) {
        Ok(image) => image,
        Err(errors) => return Outcome::Refused(errors[0].to_string()),
    };
    let mut memory = Memory::default();
    let (from, to) = (memory.put(INPUT), memory.put(&vec![0_u8; line.bytes]));
    let block = [line.threads, 1, 1];
    if let Err(fault) = launch(&image, &mut memory, "k0", [1, 1, 1], block, 0, &[arg(from), arg(to)]) {
        return Outcome::Differs(format!("{}: {fault}", line.text));
    }
    let Some(recorded) = recorded.filter(|bytes| bytes.iter().any(|byte| *byte != 0)) else {
        return Outcome::Loads;
    };
    let found = values(line.format, &memory.get::<u8>(to));
    for (index, (found, recorded)) in found.into_iter().zip(values(line.format, recorded)).enumerate() {
        if is_far(found, recorded, line.tolerance) {
            let (found, recorded) = (found.0, recorded.0);
            let text = line.text;
            return Outcome::Differs(format!("{text}\nresult {index}: {found}, the GPU has {recorded}"));
        }
    }
    Outcome::Agrees
}

/// The lines of the list.
pub(super) fn forms() -> Vec<Form> {
    let mut at = 0;
    let forms = lines().map(|line| {
        let recorded = RECORDED.get(at..at + line.bytes);
        at += line.bytes;
        Form { text: line.text, outcome: outcome(&line, recorded) }
    });
    forms.collect()
}

#[test]
fn agree_with_a_gpu() {
    assert_agreement(&forms());
}
