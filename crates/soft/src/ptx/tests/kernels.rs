//! Whole kernels, against the same computation in Rust.

use super::{BASIC, CONDITIONAL, COOPERATION, FUNCTIONS, Memory, arg, bytes_of, launch, load};
use crate::ptx::FaultKind;

fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.37).collect()
}

#[test]
fn saxpy() {
    let image = load(BASIC);
    let mut memory = Memory::default();
    let n = 1000;
    let (xs, ys) = (floats(n), floats(n + 3)[3..].to_vec());
    let (x, y) = (memory.put(&xs), memory.put(&ys));
    let args = [arg(n as u32), arg(2.5_f32), arg(x), arg(y)];
    launch(&image, &mut memory, "saxpy", [4, 1, 1], [256, 1, 1], 0, &args).unwrap();
    let expected: Vec<f32> = xs.iter().zip(&ys).map(|(x, y)| 2.5_f32.mul_add(*x, *y)).collect();
    assert_eq!(memory.get::<f32>(y), expected);
}

#[test]
fn heat() {
    let image = load(BASIC);
    let mut memory = Memory::default();
    let (w, h, rate) = (45, 37, 0.2_f32);
    let from = floats(w * h);
    let (a, b) = (memory.put(&from), memory.put(&vec![0_f32; w * h]));
    let args = [arg(a), arg(b), arg(w as i32), arg(h as i32), arg(rate)];
    launch(&image, &mut memory, "heat", [3, 5, 1], [16, 8, 1], 0, &args).unwrap();
    for (i, got) in memory.get::<f32>(b).into_iter().enumerate() {
        let (x, y) = (i % w, i / w);
        let c = from[i];
        let expected = if x == 0 || y == 0 || x == w - 1 || y == h - 1 {
            c
        } else {
            let sum = from[i - 1] + from[i + 1] + from[i - w] + from[i + w];
            rate.mul_add((-4.0_f32).mul_add(c, sum), c)
        };
        assert!((got - expected).abs() <= 1e-5, "{i}: {got} {expected}");
    }
}

#[test]
fn struct_parameter() {
    let image = load(BASIC);
    let mut memory = Memory::default();
    let out = memory.put(&[0_f64; 50]);
    let line = [arg(0.5_f32), vec![0; 4], arg(3.25_f64), bytes_of(&[1_i32, -2, 7]), vec![0; 4]].concat();
    launch(&image, &mut memory, "struct_parameter", [1, 1, 1], [64, 1, 1], 0, &[line, arg(out), arg(50_i32)])
        .unwrap();
    let expected: Vec<f64> =
        (0..50).map(|i| f64::from(0.5 * i as f32) + 3.25 + f64::from([1, -2, 7][i as usize % 3])).collect();
    assert_eq!(memory.get::<f64>(out), expected);
}

#[test]
fn vectors() {
    let image = load(BASIC);
    let mut memory = Memory::default();
    let values = floats(40);
    let (from, to) = (memory.put(&values), memory.put(&[0_f32; 40]));
    launch(&image, &mut memory, "vectors", [1, 1, 1], [10, 1, 1], 0, &[arg(from), arg(to), arg(10_i32)])
        .unwrap();
    let expected: Vec<f32> = values.chunks(4).flat_map(|v| [v[3], v[2] * 2.0, v[1] - 1.0, v[0]]).collect();
    assert_eq!(memory.get::<f32>(to), expected);
}

#[test]
fn local_array() {
    let image = load(BASIC);
    let mut memory = Memory::default();
    let n = 100_i32;
    let values: Vec<i32> = (0..n).map(|i| i * i % 97).collect();
    let (from, to) = (memory.put(&values), memory.put(&vec![0_i32; n as usize]));
    launch(&image, &mut memory, "local_array", [2, 1, 1], [64, 1, 1], 0, &[arg(from), arg(to), arg(n)])
        .unwrap();
    let expected: Vec<i32> = (0..n)
        .map(|i| {
            let mut bins: Vec<i32> = (0..16).map(|k| k * i).collect();
            for k in 0..32 {
                bins[(values[((i + k) % n) as usize] & 15) as usize] += k;
            }
            (0..16).fold(0_i32, |sum, k| {
                sum.wrapping_mul(3).wrapping_add(bins[((values[i as usize] + k) & 15) as usize])
            })
        })
        .collect();
    assert_eq!(memory.get::<i32>(to), expected);
}

#[test]
fn transpose() {
    let image = load(COOPERATION);
    let mut memory = Memory::default();
    let (w, h) = (50, 35);
    let values = floats(w * h);
    let (from, to) = (memory.put(&values), memory.put(&vec![0_f32; w * h]));
    let args = [arg(from), arg(to), arg(w as i32), arg(h as i32)];
    launch(&image, &mut memory, "transpose", [4, 3, 1], [16, 16, 1], 0, &args).unwrap();
    let got = memory.get::<f32>(to);
    for y in 0..h {
        for x in 0..w {
            assert_eq!(got[x * h + y], values[y * w + x]);
        }
    }
}

#[test]
fn block_sum() {
    let image = load(COOPERATION);
    let mut memory = Memory::default();
    let values: Vec<f32> = (0..1000).map(|i| (i % 17) as f32).collect();
    let (from, to) = (memory.put(&values), memory.put(&[0_f32; 4]));
    launch(&image, &mut memory, "block_sum", [4, 1, 1], [256, 1, 1], 0, &[arg(from), arg(to), arg(1000_i32)])
        .unwrap();
    let expected: Vec<f32> = values.chunks(256).map(|chunk| chunk.iter().sum()).collect();
    assert_eq!(memory.get::<f32>(to), expected);
}

#[test]
fn dynamic_sum() {
    let image = load(COOPERATION);
    let mut memory = Memory::default();
    let values: Vec<i32> = (0..512).map(|i| i * 7 % 31).collect();
    let (from, to) = (memory.put(&values), memory.put(&[0_i32; 4]));
    launch(&image, &mut memory, "dynamic_sum", [4, 1, 1], [128, 1, 1], 512, &[arg(from), arg(to)]).unwrap();
    let weights = [3, 5, 7, 11];
    let expected: Vec<i32> =
        values.chunks(128).zip(weights).map(|(chunk, weight)| chunk.iter().sum::<i32>() * weight).collect();
    assert_eq!(memory.get::<i32>(to), expected);
    assert_eq!(image.kernel("dynamic_sum").unwrap().static_shared_bytes(), 0);
    assert_eq!(image.kernel("transpose").unwrap().static_shared_bytes(), 16 * 17 * 4);
}

#[test]
fn histogram() {
    let image = load(COOPERATION);
    let mut memory = Memory::default();
    let values: Vec<u8> = (0..5000_u32).map(|i| (i * i % 251) as u8).collect();
    let (from, bins) = (memory.put(&values), memory.put(&[0_u32; 256]));
    let args = [arg(from), arg(bins), arg(5000_i32)];
    let globals = launch(&image, &mut memory, "histogram", [6, 1, 1], [96, 1, 1], 0, &args).unwrap();
    let mut expected = vec![0_u32; 256];
    for value in values {
        expected[usize::from(value)] += 1;
    }
    assert_eq!(memory.get::<u32>(bins), expected);
    let launches = image.globals().iter().position(|global| global.name == "launches").unwrap();
    assert_eq!(memory.get::<u64>(globals[launches]), [6]);
}

#[test]
fn votes() {
    let image = load(COOPERATION);
    let mut memory = Memory::default();
    let values: Vec<i32> = (0..64).map(|i| i * i % 23 + i % 5).collect();
    let (from, to) = (memory.put(&values), memory.put(&[0_u32; 64 * 8]));
    launch(&image, &mut memory, "votes", [1, 1, 1], [64, 1, 1], 0, &[arg(from), arg(to)]).unwrap();
    let got = memory.get::<u32>(to);
    for (t, out) in got.chunks(8).enumerate() {
        let warp = &values[t / 32 * 32..][..32];
        let lane = t % 32;
        let ballot = warp.iter().enumerate().fold(0, |all, (i, v)| all | (((v & 1) as u32) << i));
        let odd = values.iter().filter(|v| **v & 1 == 1).count() as u32;
        let next = warp[(lane & !7) | (t + 1) & 7] as u32;
        let up = warp[if lane >= 3 { lane - 3 } else { lane }] as u32;
        assert_eq!(out, [ballot, 1, 0, odd, 1, 0, next, up], "thread {t}");
    }
}

#[test]
fn atomics() {
    let image = load(COOPERATION);
    let mut memory = Memory::default();
    let count = 128_u32;
    let i = memory.put(&[5_i32, 5, 5, 5]);
    let mut words = vec![u32::MAX, 0, 0, 0, 3, 0, 100];
    words.resize(7 + count as usize + 1, 0);
    let u = memory.put(&words);
    let l = memory.put(&[1_u64, 2, 7]);
    let (f, d) = (memory.put(&[1.0_f32]), memory.put(&[1.0_f64]));
    let args = [arg(i), arg(u), arg(l), arg(f), arg(d)];
    launch(&image, &mut memory, "atomics", [2, 1, 1], [64, 1, 1], 0, &args).unwrap();
    let sum = (count * (count - 1) / 2) as i32;
    assert_eq!(memory.get::<i32>(i), [5 + sum, 5 - sum, -127, 127]);
    let got = memory.get::<u32>(u);
    let xor = (0..count).fold(0, |all, t| all ^ t.wrapping_mul(2_654_435_761));
    // 128 steps in a cycle of seven: up from 0, down from 3.
    assert_eq!(got[..7], [0, u32::MAX, xor, 128 % 7, (3 + 7 * 19 - 128) % 7, 42, 100 + 3 * count]);
    let mut tickets = got[7..7 + count as usize].to_vec();
    tickets.sort_unstable();
    assert_eq!(tickets, (1..=count).collect::<Vec<_>>());
    let shifted = (sum as u64) << 20;
    assert_eq!(memory.get::<u64>(l), [1 + shifted, 127 * 127, 9]);
    assert_eq!(memory.get::<f32>(f), [1.0 + 0.5 * sum as f32]);
    assert_eq!(memory.get::<f64>(d), [1.0 + 0.25 * f64::from(sum)]);
}

#[test]
fn early_exit() {
    let image = load(COOPERATION);
    let mut memory = Memory::default();
    let out = memory.put(&[0_i32; 64]);
    launch(&image, &mut memory, "early_exit", [1, 1, 1], [64, 1, 1], 0, &[arg(out)]).unwrap();
    let expected: Vec<i32> = (0..64).map(|t| if t < 40 { 123 } else { 0 }).collect();
    assert_eq!(memory.get::<i32>(out), expected);
}

#[test]
fn calls() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let n = 100;
    let values = floats(n);
    let (from, to) = (memory.put(&values), memory.put(&vec![0_f32; n]));
    launch(&image, &mut memory, "calls", [1, 1, 1], [128, 1, 1], 0, &[arg(from), arg(to), arg(n as i32)])
        .unwrap();
    for (i, got) in memory.get::<f32>(to).into_iter().enumerate() {
        let x = values[i];
        let polynomial = (0..i & 7).fold(1.0_f32, |r, k| r.mul_add(x, k as f32));
        let a = f64::from(i as f32 * x);
        let b = (f64::from(x) * 3.0) as i32;
        let expected = polynomial + a as f32 + b as f32;
        assert!((got - expected).abs() <= expected.abs() * 1e-6 + 1e-5, "{i}: {got} {expected}");
    }
}

#[test]
fn recursion_and_indirect_calls() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let out = memory.put(&[0_i32; 32]);
    launch(&image, &mut memory, "recursion", [1, 1, 1], [32, 1, 1], 0, &[arg(out)]).unwrap();
    let fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
    assert_eq!(memory.get::<i32>(out), (0..32).map(|t| fibonacci[t % 12]).collect::<Vec<_>>());
    launch(&image, &mut memory, "indirect", [1, 1, 1], [32, 1, 1], 0, &[arg(out)]).unwrap();
    let expected: Vec<i32> = (0..32).map(|t| if t & 1 == 0 { 2 * t } else { t * t }).collect();
    assert_eq!(memory.get::<i32>(out), expected);
}

#[test]
fn switches() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let n = 120_i32;
    let values: Vec<i32> = (0..n).map(|i| i % 11 - 1).collect();
    let (from, to) = (memory.put(&values), memory.put(&vec![0_i32; n as usize]));
    launch(&image, &mut memory, "switches", [2, 1, 1], [64, 1, 1], 0, &[arg(from), arg(to), arg(n)]).unwrap();
    let expected: Vec<i32> = (0..n)
        .map(|i| match values[i as usize] {
            0 => i,
            1 => 1 ^ i,
            2 => i / 3,
            3 => i % 5,
            4 => i << 2,
            5 => !i,
            6 => i * i * i,
            7 => (i.count_ones() + i.leading_zeros()) as i32,
            8 => i.reverse_bits(),
            _ => -1,
        })
        .collect();
    assert_eq!(memory.get::<i32>(to), expected);
}

#[test]
fn doubles() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let values: Vec<f64> =
        (0..200).map(|i| (f64::from(i) - 100.0) * 0.731 + if i % 50 == 0 { 1e9 } else { 0.01 }).collect();
    let n = values.len();
    let (from, to) = (memory.put(&values), memory.put(&vec![0_f64; n * 10]));
    launch(&image, &mut memory, "doubles", [4, 1, 1], [64, 1, 1], 0, &[arg(from), arg(to), arg(n as i32)])
        .unwrap();
    let names = ["sin", "cos", "exp", "log", "pow", "sqrt", "div", "tan", "atan", "fmod"];
    for (out, &x) in memory.get::<f64>(to).chunks(10).zip(&values) {
        let expected = [
            x.sin(),
            x.cos(),
            (x * 0.125).exp(),
            (x.abs() + 0.5).ln(),
            x.abs().powf(1.75),
            x.abs().sqrt(),
            x / 3.7,
            x.tan(),
            x.atan(),
            x % 0.7,
        ];
        for ((got, expected), name) in out.iter().zip(expected).zip(names) {
            let near = (got - expected).abs() <= expected.abs() * 1e-14 + 1e-15 || got == &expected;
            assert!(near, "{name}({x}) = {got}, {expected} is right");
        }
    }
}

#[test]
fn singles() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let values: Vec<f32> =
        (0..200).map(|i| (i as f32 - 100.0) * 0.731 + if i % 50 == 0 { 1e6 } else { 0.01 }).collect();
    let n = values.len();
    let (from, to) = (memory.put(&values), memory.put(&vec![0_f32; n * 12]));
    launch(&image, &mut memory, "floats", [4, 1, 1], [64, 1, 1], 0, &[arg(from), arg(to), arg(n as i32)])
        .unwrap();
    for (out, &x) in memory.get::<f32>(to).chunks(12).zip(&values) {
        let wide = f64::from(x);
        let expected = [
            wide.sin(),
            wide.cos(),
            (wide * 0.125).exp(),
            (wide.abs() + 0.5).ln(),
            wide.abs().powf(1.75),
            wide.abs().sqrt(),
            wide / f64::from(3.7_f32),
            wide.tanh(),
            1.0 / (wide.abs() + 1.0).sqrt(),
            wide.sin(),
            f64::from(x.floor() + x.ceil() * 2.0 + x.trunc() * 4.0 + x.round_ties_even() * 8.0),
            wide / 1.5,
        ];
        for (index, (got, expected)) in out.iter().zip(expected).enumerate() {
            let (got, expected) = (*got, expected as f32);
            // `__sinf` is as exact as its range reduction, which large angles do not survive.
            let slack = if index == 9 { x.abs() * 2e-7 } else { 2e-7 };
            let near = (got - expected).abs() <= expected.abs() * 1e-6 + slack || got == expected;
            assert!(near, "function {index} of {x} = {got}, {expected} is right");
        }
    }
}

#[test]
fn integers() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let specials =
        [0_i64, 1, -1, 7, -7, 0x1234_5678_9abc_def0, i64::MAX, i64::MIN, 1 << 33, -(1 << 40) + 12345];
    let mut pairs = Vec::new();
    for a in specials {
        for b in specials {
            if b != 0 && !(a == i64::MIN && b == -1) {
                pairs.push((a, b));
            }
        }
    }
    let (xs, ys): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    let n = pairs.len();
    let (a, b, to) = (memory.put(&xs), memory.put(&ys), memory.put(&vec![0_i64; n * 10]));
    launch(
        &image,
        &mut memory,
        "integers",
        [2, 1, 1],
        [64, 1, 1],
        0,
        &[arg(a), arg(b), arg(to), arg(n as i32)],
    )
    .unwrap();
    for (out, (x, y)) in memory.get::<i64>(to).chunks(10).zip(pairs) {
        let (ux, uy) = (x as u64, y as u64);
        let permuted = u32::from_le_bytes([x as u8, y as u8, (x >> 8) as u8, (y >> 8) as u8]);
        let expected = [
            x / y,
            x % y,
            (ux / uy) as i64,
            ((i128::from(x) * i128::from(y)) >> 64) as i64,
            ((u128::from(ux) * u128::from(uy)) >> 64) as i64,
            i64::from((x as i32).wrapping_div(y as i32 | 1)),
            i64::from(i32::from(x as i16) * i32::from(y as i8)),
            i64::from((((uy & 0xffff_ffff) << 32 | (ux & 0xffff_ffff)) << 13 >> 32) as u32),
            i64::from(permuted),
            (x >> 5)
                .wrapping_add((uy >> 3) as i64)
                .wrapping_add(i64::from(x < y))
                .wrapping_add(x.wrapping_abs()),
        ];
        assert_eq!(out, expected, "{x} {y}");
    }
}

/// Half precision to the nearest, by trying all.
fn nearest_half(x: f32) -> u16 {
    let value = |bits: u16| {
        let (exponent, fraction) = ((bits >> 10) & 31, f64::from(bits & 1023));
        let magnitude = match exponent {
            0 => fraction * 2_f64.powi(-24),
            _ => (1024.0 + fraction) * 2_f64.powi(i32::from(exponent) - 25),
        };
        if bits >> 15 == 1 { -magnitude } else { magnitude }
    };
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let distance = |bits: u16| (value(bits) - f64::from(x)).abs();
    (0..0x7c00_u16)
        .map(|bits| bits | sign)
        .min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))))
        .unwrap()
}

#[test]
fn halves() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let mut values = floats(40);
    values.extend([6e-8, 3e-8, 2.98e-8, 65504.0, 1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, -0.0]);
    let n = values.len();
    let (from, to, bits) = (memory.put(&values), memory.put(&vec![0_f32; n]), memory.put(&vec![0_u16; n]));
    launch(
        &image,
        &mut memory,
        "halves",
        [1, 1, 1],
        [64, 1, 1],
        0,
        &[arg(from), arg(to), arg(bits), arg(n as i32)],
    )
    .unwrap();
    for ((got, out), &x) in memory.get::<u16>(bits).into_iter().zip(memory.get::<f32>(to)).zip(&values) {
        assert_eq!(got, nearest_half(x), "{x}");
        if x.abs() < 20.0 {
            let expected = x + (x * x + 0.5) + 4.5 + if x < 0.0 { 100.0 } else { 0.0 };
            assert!((out - expected).abs() <= expected.abs() * 4e-3 + 2e-3, "{x}: {out} {expected}");
        }
    }
}

#[test]
fn traps_and_assertions() {
    let image = load(FUNCTIONS);
    let mut memory = Memory::default();
    let values = memory.put(&[1_i32, -5, 2, 1]);
    let result = launch(&image, &mut memory, "checked", [1, 1, 1], [4, 1, 1], 0, &[arg(values), arg(1_i32)]);
    let fault = result.unwrap_err();
    assert_eq!((fault.kind, fault.thread, fault.kernel.as_str()), (FaultKind::Trap, [2, 0, 0], "checked"));
    let fault = launch(&image, &mut memory, "asserted", [1, 1, 1], [4, 1, 1], 0, &[arg(values)]).unwrap_err();
    assert_eq!((fault.kind, fault.thread), (FaultKind::Assert, [1, 0, 0]));
    assert!(
        fault.to_string().contains("assertion `in[threadIdx.x] == 1` at functions.cu:120 in `asserted`"),
        "{fault}"
    );
}

#[test]
fn conditional_nodes() {
    let image = load(CONDITIONAL);
    let mut memory = Memory::default();
    let left = memory.put(&[2_i32]);
    for _ in 0..2 {
        launch(&image, &mut memory, "count_down", [1, 1, 1], [1, 1, 1], 0, &[arg(left), arg(77_u64)])
            .unwrap();
    }
    assert_eq!(*memory.conditions.lock().unwrap(), [(77, 1), (77, 0)]);
    let fault = launch(&image, &mut memory, "count_down", [1, 1, 1], [1, 1, 1], 0, &[arg(left), arg(0_u64)])
        .unwrap_err();
    assert!(fault.to_string().contains("no such condition"), "{fault}");
}
