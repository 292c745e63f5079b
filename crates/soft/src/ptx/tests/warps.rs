//! Instructions of whole warps, against what a GPU computed. `data/warps.py` makes the kernels and
//! records. An empty record waits for a GPU: then the kernels only run.

use super::matrices::get_bits;
use super::{Memory, arg, launch, load};

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

#[test]
fn agree_with_a_gpu() {
    let all: Vec<Line<'_>> = lines().collect();
    let total: usize = all.iter().map(|line| line.bytes).sum();
    let mut text = ".version 8.5\n.target sm_90a\n.address_size 64\n".to_owned();
    let mut at = 0;
    for (index, line) in all.iter().enumerate() {
        text += &TEMPLATE
            .replace("@INDEX@", &index.to_string())
            .replace("@PLACE@", &at.to_string())
            .replace("@TEXT@", line.text);
        at += line.bytes;
    }
    let image = load(&text);
    let mut memory = Memory::default();
    let (from, to) = (memory.put(INPUT), memory.put(&vec![0_u8; total]));
    for (index, line) in all.iter().enumerate() {
        let block = [line.threads, 1, 1];
        launch(&image, &mut memory, &format!("k{index}"), [1, 1, 1], block, 0, &[arg(from), arg(to)])
            .unwrap();
    }
    if RECORDED.is_empty() {
        return;
    }
    assert_eq!(RECORDED.len(), total);
    let found = memory.get::<u8>(to);
    let (mut wrong, mut at) = (String::new(), 0);
    for line in &all {
        let range = at..at + line.bytes;
        at += line.bytes;
        let found = values(line.format, &found[range.clone()]);
        let recorded = values(line.format, &RECORDED[range]);
        for (index, (found, recorded)) in found.into_iter().zip(recorded).enumerate() {
            if is_far(found, recorded, line.tolerance) {
                let (found, recorded) = (found.0, recorded.0);
                wrong += &format!("{}\nresult {index}: {found}, the GPU has {recorded}\n", line.text);
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
