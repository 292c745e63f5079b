//! Conversions to and from small formats, and operations on halves, against searches over all
//! numbers of a format.

use super::evaluate::{check, evaluate, half, inputs, word};

/// The value of a small float with so many bits of fraction and that bias; `None` for a NaN.
fn value(bits: u32, fraction: u32, bias: i32, is_e4m3: bool) -> Option<f64> {
    let field = bits >> fraction;
    let rest = bits & ((1 << fraction) - 1);
    let top = match (fraction, is_e4m3) {
        (2, _) | (10, _) => 31,
        (7, _) => 255,
        _ => 16,
    };
    if field == top || (is_e4m3 && bits == 0x7f) {
        return (rest == 0).then_some(f64::INFINITY);
    }
    let (whole, exponent) = if field == 0 { (0, 1 - bias) } else { (1, field as i32 - bias) };
    let significand = f64::from(whole) + f64::from(rest) / f64::from(1 << fraction);
    Some(significand * 2_f64.powi(exponent))
}

/// The nearest number among `count` magnitudes, ties to the even one, clamped to the last.
fn nearest(x: f64, count: u32, value: impl Fn(u32) -> f64) -> u32 {
    if x.abs() > value(count - 1) {
        return count - 1;
    }
    let distance = |bits: u32| (value(bits) - x.abs()).abs();
    (0..count).min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))).unwrap()
}

fn fp8(x: f64, e5: bool, relu: bool) -> u64 {
    if x.is_nan() {
        return 0x7f;
    }
    if relu && x <= 0.0 {
        return 0;
    }
    let bits = if e5 {
        nearest(x, 0x7c, |bits| value(bits, 2, 15, false).unwrap())
    } else {
        nearest(x, 0x7f, |bits| value(bits, 3, 7, true).unwrap())
    };
    u64::from(bits) | if x.is_sign_negative() { 0x80 } else { 0 }
}

fn f16(bits: u64) -> f64 {
    let magnitude = value(bits as u32 & 0x7fff, 10, 15, false).unwrap_or(f64::NAN);
    if bits & 0x8000 != 0 { -magnitude } else { magnitude }
}

fn single(bits: u64) -> f64 {
    f32::from_bits(bits as u32).into()
}

/// Words whose halves and singles are numbers of every size.
fn floats() -> Vec<[u64; 3]> {
    let mut all = inputs(200);
    for (index, exponent) in (-20..20).enumerate() {
        for step in [0, 1, 7, 8, 9, 15, 16] {
            let x = ((1.0 + f64::from(step) / 16.0) * 2_f64.powi(exponent)) as f32;
            let y = if index % 2 == 0 { -x } else { x * 1.0001 };
            all.push([x.to_bits().into(), y.to_bits().into(), 0]);
        }
    }
    for bits in
        [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 448.0, 464.0, 465.0, 57344.0, 61440.0, 1e-8, 1e-40]
    {
        all.push([bits.to_bits().into(), (-bits).to_bits().into(), 0]);
    }
    all
}

#[test]
fn singles_and_halves_to_8_bits() {
    let texts = [
        half("cvt.rn.satfinite.e4m3x2.f32 %h4, %r1, %r2;"),
        half("cvt.rn.satfinite.e5m2x2.f32 %h4, %r1, %r2;"),
        half("cvt.rn.satfinite.relu.e4m3x2.f32 %h4, %r1, %r2;"),
        half("cvt.rn.satfinite.relu.e5m2x2.f32 %h4, %r1, %r2;"),
    ];
    check(&texts, &floats(), |index, [a, b, _]| {
        let one = |x: u64| fp8(single(x), index % 2 == 1, index >= 2);
        (one(a) << 8) | one(b)
    });
    let texts = [
        half("cvt.rn.satfinite.e4m3x2.f16x2 %h4, %r1;"),
        half("cvt.rn.satfinite.e5m2x2.f16x2 %h4, %r1;"),
        half("cvt.rn.satfinite.relu.e4m3x2.f16x2 %h4, %r1;"),
    ];
    let all: Vec<[u64; 3]> =
        (0..0x1_0000).step_by(7).map(|low| [low | ((low * 31 % 0x1_0000) << 16), 0, 0]).collect();
    check(&texts, &all, |index, [a, ..]| {
        let one = |x: u64| fp8(f16(x), index == 1, index == 2);
        (one(a >> 16) << 8) | one(a)
    });
}

#[test]
fn numbers_of_8_bits_to_halves_and_back() {
    let all: Vec<[u64; 3]> = (0..256).map(|low| [low | ((255 - low) << 8), 0, 0]).collect();
    let texts = [word("cvt.rn.f16x2.e4m3x2 %r4, %h1;"), word("cvt.rn.f16x2.e5m2x2 %r4, %h1;")];
    for (index, results) in evaluate(&texts, &all).into_iter().enumerate() {
        for ([input, ..], got) in all.iter().zip(results) {
            for (byte, half) in [(input & 0xff, got & 0xffff), (input >> 8, got >> 16)] {
                let magnitude = byte as u32 & 0x7f;
                let wanted =
                    if index == 0 { value(magnitude, 3, 7, true) } else { value(magnitude, 2, 15, false) };
                let wanted = wanted.map(|value| if byte & 0x80 != 0 { -value } else { value });
                match wanted {
                    None => assert!(f16(half).is_nan(), "{byte:#x}: {half:#x}"),
                    Some(wanted) => {
                        assert_eq!(
                            (f16(half), f16(half).is_sign_negative()),
                            (wanted, byte & 0x80 != 0),
                            "{byte:#x}"
                        );
                    }
                }
            }
        }
    }
    let texts =
        [word("cvt.rn.f16x2.e5m2x2 %r5, %h1; cvt.rn.satfinite.e5m2x2.f16x2 %h4, %r5; cvt.u32.u16 %r4, %h4;")];
    // Infinity comes back as the greatest number, a NaN as the one NaN.
    check(&texts, &all, |_, [input, ..]| {
        let one = |byte: u64| match byte & 0x7f {
            0x7c => (byte & 0x80) | 0x7b,
            0x7d.. => 0x7f,
            _ => byte,
        };
        (one(input >> 8) << 8) | one(input & 0xff)
    });
}

#[test]
fn singles_to_tf32() {
    let texts = [
        word("cvt.rna.tf32.f32 %r4, %r1;"),
        word("cvt.rn.tf32.f32 %r4, %r1;"),
        word("cvt.rz.tf32.f32 %r4, %r1;"),
        word("cvt.rz.relu.tf32.f32 %r4, %r1;"),
        word("cvt.rna.satfinite.tf32.f32 %r4, %r1;"),
    ];
    let mut all = floats();
    all.extend(
        [0x3f80_1000_u64, 0x3f80_3000, 0x3f80_0fff, 0x7f7f_ffff, 0xff7f_ffff, 0x0000_1000, 0x8000_0fff]
            .map(|x| [x, 0, 0]),
    );
    check(&texts, &all, |index, [a, ..]| {
        let x = f32::from_bits(a as u32);
        if x.is_nan() {
            return 0x7fff_ffff;
        }
        if index == 3 && x.is_sign_negative() {
            return 0;
        }
        let low = a as u32 & !0x1fff;
        if x.is_infinite() {
            return u64::from(if index == 4 { (low & 0x8000_0000) | 0x7f7f_e000 } else { low });
        }
        let rest = a as u32 & 0x1fff;
        let up = match index {
            0 | 4 => rest >= 0x1000,
            1 => rest > 0x1000 || (rest == 0x1000 && low & 0x2000 != 0),
            _ => false,
        };
        let result = if up { low + 0x2000 } else { low };
        u64::from(if index == 4 && result & 0x7fff_ffff == 0x7f80_0000 { result - 0x2000 } else { result })
    });
}

#[test]
fn finite_halves() {
    let texts = [
        half("cvt.rn.satfinite.f16.f32 %h4, %r1;"),
        half("cvt.rn.satfinite.relu.f16.f32 %h4, %r1;"),
        half("cvt.rn.satfinite.bf16.f32 %h4, %r1;"),
        word("cvt.rn.satfinite.f16x2.f32 %r4, %r2, %r1;"),
    ];
    check(&texts, &floats(), |index, [a, b, _]| {
        let one = |x: u64, bf16: bool, relu: bool| {
            let x = single(x);
            if x.is_nan() {
                return 0x7fff;
            }
            if relu && x <= 0.0 {
                return 0;
            }
            let bits = if bf16 {
                nearest_by_halving(x, 0x7f80, |bits| value(bits, 7, 127, false).unwrap())
            } else {
                nearest_by_halving(x, 0x7c00, |bits| value(bits, 10, 15, false).unwrap())
            };
            u64::from(bits) | if x.is_sign_negative() { 0x8000 } else { 0 }
        };
        match index {
            3 => (one(b, false, false) << 16) | one(a, false, false),
            _ => one(a, index == 2, index == 1),
        }
    });
}

/// As [`nearest`], by halving, since the magnitudes rise.
fn nearest_by_halving(x: f64, count: u32, value: impl Fn(u32) -> f64) -> u32 {
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if value(middle) <= x.abs() { low = middle } else { high = middle }
    }
    if low + 1 == count {
        return low;
    }
    let (down, up) = (x.abs() - value(low), value(low + 1) - x.abs());
    if down < up || (down == up && low % 2 == 0) { low } else { low + 1 }
}

#[test]
fn packed_words() {
    let widths = [("u2", 2), ("s2", 2), ("u4", 4), ("s4", 4), ("u8", 8), ("s8", 8)];
    let mut texts: Vec<String> = widths
        .iter()
        .map(|(ty, _)| word(&format!("cvt.pack.sat.{ty}.s32.b32 %r4, %r1, %r2, %r3;")))
        .collect();
    texts.push(word("cvt.pack.sat.u16.s32 %r4, %r1, %r2;"));
    texts.push(word("cvt.pack.sat.s16.s32 %r4, %r1, %r2;"));
    let mut all = inputs(100);
    all.extend((0..20).map(|x| [x, (x as i64 - 9) as u64, 0xabcd_1234]));
    check(&texts, &all, |index, [a, b, c]| {
        let width = widths.get(index).map_or(16, |(_, width)| *width);
        let (least, greatest) = if index % 2 == 1 {
            (-(1_i64 << (width - 1)), (1 << (width - 1)) - 1)
        } else {
            (0, (1 << width) - 1)
        };
        let one = |x: u64| (i64::from(x as i32).clamp(least, greatest) as u64) % (1 << width);
        let pair = (one(a) << width) | one(b);
        if index < 6 { ((c << (2 * width)) | pair) & 0xffff_ffff } else { pair }
    });
}

#[test]
fn minima_of_magnitudes() {
    let texts = [
        word("min.xorsign.abs.f32 %r4, %r1, %r2;"),
        word("max.xorsign.abs.f32 %r4, %r1, %r2;"),
        word("max.NaN.xorsign.abs.f32 %r4, %r1, %r2;"),
    ];
    check(&texts, &floats(), |index, [a, b, _]| {
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        if (x.is_nan() && y.is_nan()) || (index == 2 && (x.is_nan() || y.is_nan())) {
            return 0x7fff_ffff;
        }
        let magnitude = if index == 0 { x.abs().min(y.abs()) } else { x.abs().max(y.abs()) };
        let negative = x.is_sign_negative() != y.is_sign_negative();
        u64::from((if negative { -magnitude } else { magnitude }).to_bits())
    });
}

#[test]
fn halves_that_flush() {
    let texts = [
        half("add.ftz.f16 %h4, %h1, %h2;"),
        half("mul.ftz.f16 %h4, %h1, %h2;"),
        half("mul.f16 %h4, %h1, %h2;"),
    ];
    // Subnormal sources, then a subnormal product of normal numbers.
    let all = [[1_u64, 0x3c00, 0], [0x83ff, 0x8000, 0], [0x0400, 0x3800, 0]];
    let results = evaluate(&texts, &all);
    assert_eq!(results[0], [0x3c00, 0x8000, 0x3800]);
    assert_eq!(results[1], [0, 0, 0]);
    assert_eq!(results[2], [1, 0, 0x0200]);
}

#[test]
fn logic_with_a_predicate() {
    let texts = [
        word("lop3.or.b32 %r8|%p1, %r1, %r2, %r3, 0x80, %p3; selp.b32 %r4, %r8, 7, %p1;"),
        word("lop3.and.b32 %r8|%p1, %r1, %r2, %r3, 0x96, !%p3; selp.b32 %r4, %r8, 7, %p1;"),
        word("lop3.and.b32 _|%p1, %r1, %r2, %r3, 0x80, 1; selp.b32 %r4, 1, 0, %p1;"),
        word("mad24.hi.sat.s32 %r4, %r1, %r2, %r3;"),
        word("add.cc.u32 %r5, %r1, %r2; addc.u16 %h4, %h1, %h2; cvt.u32.u16 %r4, %h4;"),
    ];
    check(&texts, &inputs(200), |index, [a, b, c]| {
        let (a, b, c) = (a as u32, b as u32, c as u32);
        let q = (c as i32) > 5;
        let low24 = |x: u32| i64::from((x << 8) as i32 >> 8);
        u64::from(match index {
            0 if (a & b & c) != 0 || q => a & b & c,
            1 if (a ^ b ^ c) != 0 && !q => a ^ b ^ c,
            2 => u32::from(a & b & c != 0),
            3 => ((low24(a) * low24(b)) >> 16) as i32 as u32,
            4 => u32::from(
                (a as u16).wrapping_add(b as u16).wrapping_add(u16::from(a.checked_add(b).is_none())),
            ),
            _ => 7,
        })
        .wrapping_add(if index == 3 {
            let product = ((low24(a) * low24(b)) >> 16) as i32;
            let sum = product.saturating_add(c as i32) as u32;
            u64::from(sum).wrapping_sub(u64::from(product as u32))
        } else {
            0
        })
    });
}
