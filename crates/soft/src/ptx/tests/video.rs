//! Video instructions against arithmetic on whole numbers, with the results that assemblers make.

use super::evaluate::{check, inputs, word};

/// A type, `u32` or `s32`.
fn ty(signed: bool) -> &'static str {
    if signed { "s32" } else { "u32" }
}

/// A part of a word as a number.
fn part(x: u64, name: &str, signed: bool) -> i64 {
    let x = x as u32;
    let (bits, shift) = match name {
        "" => (32, 0),
        _ => {
            let index: u32 = name[2..].parse().unwrap();
            if name.starts_with(".b") { (8, 8 * index) } else { (16, 16 * index) }
        }
    };
    let field = u64::from(x >> shift) % (1_u64 << bits);
    let top = signed && field >> (bits - 1) == 1;
    field as i64 - if top { 1_i64 << bits } else { 0 }
}

fn clamp(x: i64, bits: u32, signed: bool) -> i64 {
    if signed { x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { x.clamp(0, (1 << bits) - 1) }
}

/// Saturates the result of an instruction on one part, of 64 bits, to `bits` bits.
fn saturate_single(x: i64, bits: u32, signed: bool) -> i64 {
    match (bits, signed) {
        (32, true) => clamp(x, 32, true),
        (32, false) => x.max(0),
        // Parts saturate from above only. Negative numbers are above.
        (_, _) if x < 0 => clamp(i64::MAX, bits, signed),
        (_, _) => clamp(x, bits, signed),
    }
}

fn operate(name: &str, a: i64, b: i64) -> i64 {
    match name {
        "vadd" => a + b,
        "vsub" => a - b,
        "vabsdiff" => (a - b).abs(),
        "vmin" => a.min(b),
        "vmax" => a.max(b),
        // Half-way averages go away from zero.
        "vavrg" if (a + b) % 2 == 0 || a + b < 0 => (a + b).div_euclid(2),
        "vavrg" => (a + b + 1) / 2,
        _ => panic!("{name}"),
    }
}

/// Puts `x` into a part of `c`.
fn merge(x: i64, c: u64, name: &str) -> u64 {
    let mut bytes = (c as u32).to_le_bytes();
    let new = (x as u32).to_le_bytes();
    let index: usize = name[2..].parse().unwrap();
    let (at, len) = if name.starts_with(".b") { (index, 1) } else { (2 * index, 2) };
    bytes[at..at + len].copy_from_slice(&new[..len]);
    u64::from(u32::from_le_bytes(bytes))
}

const SIGNS: [[bool; 3]; 8] = {
    let mut all = [[false; 3]; 8];
    let mut index = 0;
    while index < 8 {
        all[index] = [index & 1 != 0, index & 2 != 0, index & 4 != 0];
        index += 1;
    }
    all
};

#[test]
fn one_part_of_each_source() {
    let mut texts = Vec::new();
    let mut forms = Vec::new();
    for name in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
        for signs in SIGNS {
            for sat in ["", ".sat"] {
                for (a, b) in [("", ""), (".b0", ".h1"), (".b3", ".b1"), (".h0", "")] {
                    for rest in ["", "add", "min", "max", ".b2", ".h1", ".b0", ".h0"] {
                        let second = if rest.starts_with('.') || rest.is_empty() {
                            String::new()
                        } else {
                            format!(".{rest}")
                        };
                        let target = if rest.starts_with('.') { rest } else { "" };
                        let types = signs.map(ty).join(".");
                        let c = if rest.is_empty() { "" } else { ", %r3" };
                        texts.push(word(&format!(
                            "{name}.{types}{sat}{second} %r4{target}, %r1{a}, %r2{b}{c};"
                        )));
                        forms.push((name, signs, !sat.is_empty(), a, b, rest));
                    }
                }
            }
        }
    }
    check(&texts, &inputs(16), |index, [x, y, z]| {
        let (name, [signed, sa, sb], sat, a, b, rest) = forms[index];
        let mut result = operate(name, part(x, a, sa), part(y, b, sb));
        let width = match rest.as_bytes() {
            [b'.', b'b', _] => 8,
            [b'.', _, _] => 16,
            _ => 32,
        };
        if sat {
            result = saturate_single(result, width, signed);
        }
        // A further operation sees the low word of a sum as a signed number, and all of the others.
        if matches!(name, "vadd" | "vsub") {
            result = part(result as u64, "", true);
        }
        let c = part(z, "", signed);
        let is_less = if signed { result < c } else { (result as u64) < c as u64 };
        match (rest, is_less) {
            ("", _) => u64::from(result as u32),
            ("add", _) => u64::from((result as u32).wrapping_add(c as u32)),
            ("min", true) | ("max", false) => u64::from(result as u32),
            ("min" | "max", _) => u64::from(c as u32),
            // The upper half of a result goes into the upper half.
            (".h1", _) => merge(result >> 16, z, ".h1"),
            (target, _) => merge(result, z, target),
        }
    });
}

#[test]
fn shifts_and_comparisons() {
    let mut texts = Vec::new();
    for name in ["vshl", "vshr"] {
        for mode in ["clamp", "wrap"] {
            for (signed, sa) in [(false, false), (true, true), (true, false), (false, true)] {
                texts.push(word(&format!(
                    "{name}.{}.{}.u32.{mode} %r4, %r1.h1, %r2.b0;",
                    ty(signed),
                    ty(sa)
                )));
                texts.push(word(&format!(
                    "{name}.{}.{}.u32.sat.{mode} %r4, %r1, %r2.b0;",
                    ty(signed),
                    ty(sa)
                )));
            }
        }
    }
    let forms = texts.clone();
    check(&texts, &inputs(64), |index, [x, y, _]| {
        let text = &forms[index];
        let (signed, sa) = (&text[5..8] == "s32", &text[9..12] == "s32");
        let a = i128::from(part(x, if text.contains(".h1") { ".h1" } else { "" }, sa));
        let by = part(y, ".b0", false);
        let by = if text.contains("wrap") { by % 32 } else { by.min(32) };
        let result = if text.starts_with("vshl") { a * (1_i128 << by) } else { a.div_euclid(1 << by) };
        let result = if text.contains("sat") {
            // Of what is shifted out, two bits count.
            let result = (result << 94) >> 94;
            let (least, greatest) = if signed { (-(1 << 31), (1 << 31) - 1) } else { (0, (1 << 32) - 1) };
            result.clamp(least, greatest)
        } else {
            result
        };
        u64::from(result as u32)
    });
    let mut texts = Vec::new();
    let names = ["eq", "ne", "lt", "le", "gt", "ge"];
    for name in names {
        texts.push(word(&format!("vset.s32.u32.{name} %r4, %r1.b1, %r2.b0;")));
        texts.push(word(&format!("vset.u32.u32.{name}.add %r4, %r1, %r2, %r3;")));
        texts.push(word(&format!("vset.s32.s32.{name} %r4.b3, %r1, %r2, %r3;")));
    }
    check(&texts, &inputs(64), |index, [x, y, z]| {
        let (a, b) = match index % 3 {
            0 => (part(x, ".b1", true), part(y, ".b0", false)),
            1 => (part(x, "", false), part(y, "", false)),
            _ => (part(x, "", true), part(y, "", true)),
        };
        let truth = [a == b, a != b, a < b, a <= b, a > b, a >= b][index / 3];
        match index % 3 {
            0 => u64::from(truth),
            1 => u64::from((z as u32).wrapping_add(u32::from(truth))),
            _ => merge(i64::from(truth), z, ".b3"),
        }
    });
}

#[test]
fn products_with_a_sum() {
    let texts: Vec<String> = [
        "vmad.u32.u32.u32 %r4, %r1, %r2, %r3;",
        "vmad.s32.s32.s32.sat %r4, %r1.h0, %r2.h1, %r3;",
        "vmad.u32.u32.u32.sat.shr7 %r4, %r1.h1, %r2, %r3;",
        "vmad.s32.u32.s32.sat.shr15 %r4, %r1, %r2.h0, %r3;",
        "vmad.s32.s32.s32.sat %r4, -%r1.h0, %r2.h1, %r3;",
        "vmad.s32.u32.u32.sat %r4, %r1.b0, %r2.b1, -%r3;",
        "vmad.u32.u32.u32.po %r4, %r1, %r2, %r3;",
        "vmad.s32.s32.s32 %r4, -%r1, -%r2, %r3;",
    ]
    .map(word)
    .to_vec();
    check(&texts, &inputs(64), |index, [x, y, z]| {
        // Whole words are signed, whatever their types, and so is the last source.
        let whole = |x| part(x, "", true);
        let c = whole(z);
        let of = |a: &str, sa, b: &str, sb| part(x, a, sa) * part(y, b, sb);
        let signed = |x: i64| clamp(x, 32, true);
        let unsigned = |x: u64| x.min(u32::MAX.into()) as i64;
        let result = match index {
            0 => whole(x) * whole(y) + c,
            1 => signed(of(".h0", true, ".h1", true) + c),
            2 => unsigned((part(x, ".h1", false) * whole(y) + c) as u64 >> 7),
            3 => signed((whole(x) * part(y, ".h0", true) + c) >> 15),
            4 => signed(-of(".h0", true, ".h1", true) + c),
            5 => signed(of(".b0", false, ".b1", false) - part(z, "", true)),
            6 => whole(x) * whole(y) + c + 1,
            _ => whole(x) * whole(y) + c,
        };
        u64::from(result as u32)
    });
}

/// The lanes that digits select out of two words, the lowest first.
fn lanes(a: u64, b: u64, digits: &str, count: usize, signed: bool) -> Vec<i64> {
    let letter = if count == 4 { 'b' } else { 'h' };
    let one = |digit: char| {
        let lane = digit.to_digit(10).unwrap() as usize;
        let (word, lane) = if lane < count { (a, lane) } else { (b, lane - count) };
        part(word, &format!(".{letter}{lane}"), signed)
    };
    digits.chars().rev().map(one).collect()
}

#[test]
fn parts_side_by_side() {
    let mut texts = Vec::new();
    let mut forms = Vec::new();
    for count in [2_usize, 4] {
        let (letter, all) = if count == 4 { ('b', "3210") } else { ('h', "10") };
        let others = if count == 4 { "7654" } else { "32" };
        let (some, x, y) = if count == 4 { ("31", "7610", "0425") } else { ("1", "13", "02") };
        for name in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"] {
            for signs in SIGNS {
                for rest in ["", ".sat", ".add"] {
                    if name == "vset" && (rest == ".sat" || signs[0]) {
                        continue;
                    }
                    let types = if name == "vset" {
                        format!("{}.{}.lt", ty(signs[1]), ty(signs[2]))
                    } else {
                        signs.map(ty).join(".")
                    };
                    texts.push(word(&format!("{name}{count}.{types}{rest} %r4, %r1, %r2, %r3;")));
                    forms.push((name, count, signs, rest, all, all, others));
                    texts.push(word(&format!(
                        "{name}{count}.{types}{rest} %r4.{letter}{some}, %r1.{letter}{x}, %r2.{letter}{y}, %r3;"
                    )));
                    forms.push((name, count, signs, rest, some, x, y));
                }
            }
        }
    }
    check(&texts, &inputs(24), |index, [x, y, z]| {
        let (name, count, [signed, sa, sb], rest, mask, a, b) = forms[index];
        let (a, b) = (lanes(x, y, a, count, sa), lanes(x, y, b, count, sb));
        let mut whole = z;
        for lane in 0..count {
            if !mask.contains(&lane.to_string()) {
                continue;
            }
            let mut result =
                if name == "vset" { i64::from(a[lane] < b[lane]) } else { operate(name, a[lane], b[lane]) };
            if rest == ".sat" {
                result = clamp(result, 32 / count as u32, signed);
            }
            whole = match (rest, count) {
                (".add", _) => u64::from((whole as u32).wrapping_add(result as u32)),
                (_, 4) => merge(result, whole, &format!(".b{lane}")),
                _ => merge(result, whole, &format!(".h{lane}")),
            };
        }
        u64::from(whole as u32)
    });
}
