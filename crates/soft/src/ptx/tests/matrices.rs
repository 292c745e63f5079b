//! Matrix instructions, against plain products of matrices. The places of elements in fragments are
//! written as the specification of PTX writes them.

use super::{Memory, Plain, arg, launch, load};
use crate::ptx::error::Fault;
use crate::ptx::{FaultKind, Image};

/// A kernel of one block, whose body begins in line 9. `%from` and `%to` are its two buffers,
/// `%lane` is the lane.
pub(super) fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to) {{\n\
         .reg .b32 %r<40>; .reg .b32 %a<8>; .reg .b32 %b<8>; .reg .b32 %c<8>; .reg .b32 %d<32>; .reg .b32 %lane;\n\
         .reg .f64 %x<8>; .reg .f64 %y<8>; .reg .f64 %z<8>; .reg .f64 %w<8>; .reg .b64 %from, %to, %p<8>;\n\
         .reg .pred %q<4>; .shared .align 1024 .b8 s[32768];\n\
         ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.u32 %lane, %laneid;\n{body}\nret;\n}}\n"
    )
}

/// What a block writes to `%to` of `count` values.
pub(super) fn run<I: Plain, O: Plain>(
    body: &str,
    input: &[I],
    count: usize,
    threads: u32,
) -> Result<Vec<O>, Fault> {
    let image = load(&kernel(body));
    let mut memory = Memory::default();
    let (from, to) = (memory.put(input), memory.put(&vec![0_u8; count * O::BYTES]));
    launch(&image, &mut memory, "k", [1, 1, 1], [threads, 1, 1], 0, &[arg(from), arg(to)])?;
    Ok(memory.get(to))
}

/// Numbers that look random.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 13
    }
}

/// An element type of the tests: its bits, and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) bits: u32,
    /// Bits of exponent and fraction, for floats.
    pub(super) float: Option<(u32, u32)>,
    signed: bool,
}

const fn float(name: &'static str, exponent: u32, fraction: u32) -> Kind {
    let bits = 1 + exponent + fraction;
    Kind { name, bits: if bits == 19 { 32 } else { bits }, float: Some((exponent, fraction)), signed: true }
}

const fn int(name: &'static str, bits: u32, signed: bool) -> Kind {
    Kind { name, bits, float: None, signed }
}

pub(super) const F16: Kind = float("f16", 5, 10);
pub(super) const BF16: Kind = float("bf16", 8, 7);
pub(super) const TF32: Kind = float("tf32", 8, 10);
pub(super) const F32: Kind = float("f32", 8, 23);
const F64: Kind = float("f64", 11, 52);
pub(super) const E4M3: Kind = float("e4m3", 4, 3);
pub(super) const E5M2: Kind = float("e5m2", 5, 2);
pub(super) const S8: Kind = int("s8", 8, true);
pub(super) const U8: Kind = int("u8", 8, false);
const S4: Kind = int("s4", 4, true);
const U4: Kind = int("u4", 4, false);
pub(super) const S32: Kind = int("s32", 32, true);
const B1: Kind = int("b1", 1, false);

impl Kind {
    /// The value of bits, by the definition of the format.
    pub(super) fn value(self, bits: u64) -> f64 {
        let Some((exponent_bits, fraction_bits)) = self.float else {
            let sign = self.signed && bits >> (self.bits - 1) & 1 == 1;
            return bits as f64 - if sign { (1_u64 << self.bits) as f64 } else { 0.0 };
        };
        // The low bits of such a single are not part of it.
        let bits = if self.name == "tf32" { bits >> 13 } else { bits };
        let fraction = bits & ((1 << fraction_bits) - 1);
        let exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
        let bias = (1 << (exponent_bits - 1)) - 1;
        let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -1.0 } else { 1.0 };
        let part = fraction as f64 / (1_u64 << fraction_bits) as f64;
        if self.name == "e4m3" {
            if exponent == 15 && fraction == 7 {
                return f64::NAN;
            }
        } else if exponent == (1 << exponent_bits) - 1 {
            return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        if exponent == 0 {
            sign * part * 2_f64.powi(1 - bias)
        } else {
            sign * (1.0 + part) * 2_f64.powi(exponent as i32 - bias)
        }
    }

    /// Random bits; floats have magnitudes between 1/16 and 4, or are edge cases.
    pub(super) fn sample(self, numbers: &mut Numbers, edges: bool) -> u64 {
        let random = numbers.bits();
        let Some((exponent_bits, fraction_bits)) = self.float else {
            return random & ((1 << self.bits) - 1);
        };
        let shift = if self.name == "tf32" { 13 } else { 0 };
        let all = (1_u64 << exponent_bits) - 1;
        let bias = all / 2;
        let exponent = match random % 11 {
            0 if edges => 0,
            1 if edges && random.is_multiple_of(3) => all,
            _ => bias - 4 + random % 6,
        };
        let fraction =
            if edges && random.is_multiple_of(5) { 0 } else { numbers.bits() & ((1 << fraction_bits) - 1) };
        let sign = numbers.bits() & 1;
        let low = if shift > 0 { numbers.bits() & 0x1fff } else { 0 };
        (sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction) << shift | low
    }

    pub(super) fn per_register(self) -> u32 {
        if self.bits == 64 { 1 } else { 32 / self.bits }
    }
}

/// `mma` on some types and a shape.
#[derive(Clone, Copy)]
struct Mma {
    shape: [u32; 3],
    d: Kind,
    a: Kind,
    b: Kind,
    c: Kind,
    suffix: &'static str,
    layouts: [&'static str; 2],
}

/// Row of an element of `a`, from the tables of the specification.
fn a_row(m: u32, each: u32, group: u32, i: u32) -> u32 {
    if m == 8 {
        return group;
    }
    // Elements alternate between the halves in runs of a register.
    if i % (2 * each) < each { group } else { group + 8 }
}

/// Column of an element of `a`.
fn a_column(m: u32, each: u32, member: u32, i: u32) -> u32 {
    let run = if m == 8 { each } else { 2 * each };
    member * each + i % each + 4 * each * (i / run)
}

impl Mma {
    /// The matrix places (row, column) of the fragment `which` of a lane, in order.
    fn places(&self, which: char, lane: u32) -> Vec<(u32, u32)> {
        let [m, n, k] = self.shape;
        let (group, member) = (lane >> 2, lane & 3);
        if self.is_quad() {
            return self.quad_places(which, lane);
        }
        match which {
            'a' => {
                let each = self.a.per_register();
                (0..m * k / 32).map(|i| (a_row(m, each, group, i), a_column(m, each, member, i))).collect()
            }
            'b' => {
                let each = self.b.per_register();
                let row = |i: u32| member * each + i % each + 4 * each * (i / each);
                (0..k * n / 32).map(|i| (row(i), group)).collect()
            }
            _ => (0..m * n / 32)
                .map(|i| (if i < 2 { group } else { group + 8 }, member * 2 + (i & 1)))
                .collect(),
        }
    }

    fn is_quad(&self) -> bool {
        self.a == F16 && self.shape[0] == 8
    }

    fn quad_places(&self, which: char, lane: u32) -> Vec<(u32, u32)> {
        let high = if lane < 16 { 0 } else { 4 };
        let [a_layout, b_layout] = self.layouts;
        match (which, a_layout, b_layout) {
            ('a', "row", _) => (0..4).map(|i| (lane % 4 + high, i)).collect(),
            ('a', ..) => (0..4).map(|i| (i + high, lane % 4)).collect(),
            ('b', _, "row") => (0..4).map(|i| (lane % 4, i + high)).collect(),
            ('b', ..) => (0..4).map(|i| (i, lane % 4 + high)).collect(),
            (other, ..) => {
                let kind = if other == 'c' { self.c } else { self.d };
                let single = |i: u32| ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1));
                (0..8).map(|i| if kind == F16 { (lane % 4 + high, i) } else { single(i) }).collect()
            }
        }
    }

    /// The registers of a fragment and their type.
    fn registers(&self, which: char) -> (usize, Kind) {
        let kind = match which {
            'a' => self.a,
            'b' => self.b,
            'c' => self.c,
            _ => self.d,
        };
        (self.places(which, 0).len() / kind.per_register() as usize, kind)
    }

    /// The product of the lane in the matrices: which of the four, for quad pairs.
    fn matrix(&self, lane: u32) -> usize {
        if self.is_quad() { (lane % 16 / 4) as usize } else { 0 }
    }

    fn text(&self) -> String {
        let [m, n, k] = self.shape;
        let [a_layout, b_layout] = self.layouts;
        let (saturates, bits) = match self.suffix {
            ".satfinite" => (".satfinite", ""),
            other => ("", other),
        };
        let mut text = String::new();
        let mut lists = Vec::new();
        for (which, narrow, wide, at) in [('a', "a", "x", 0), ('b', "b", "y", 64), ('c', "c", "z", 96)] {
            let (count, kind) = self.registers(which);
            let (name, ty, step) = if kind == F64 { (wide, "f64", 8) } else { (narrow, "b32", 4) };
            for i in 0..count {
                text += &format!("ld.global.{ty} %{name}{i}, [%p1+{}];\n", at + step * i);
            }
            lists.push((0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", "));
        }
        let (count, kind) = self.registers('d');
        let (name, ty, step) = if kind == F64 { ("w", "f64", 8) } else { ("d", "b32", 4) };
        let list = (0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ");
        let stores: String =
            (0..count).map(|i| format!("st.global.{ty} [%p2+{}], %{name}{i};\n", step * i)).collect();
        let [a, b, c] = lists.try_into().unwrap();
        format!(
            "mad.wide.u32 %p1, %lane, 128, %from; mad.wide.u32 %p2, %lane, 32, %to;\n{text}\
             mma.sync.aligned.m{m}n{n}k{k}.{a_layout}.{b_layout}{saturates}.{}.{}.{}.{}{bits} {{{list}}}, {{{a}}}, {{{b}}}, {{{c}}};\n{stores}",
            self.d.name, self.a.name, self.b.name, self.c.name
        )
    }

    /// Runs it on random matrices, and compares with a plain product.
    fn check(&self, seed: u64, edges: bool) {
        let [m, n, k] = self.shape.map(|size| size as usize);
        let mut numbers = Numbers(seed);
        let mut table = vec![0_u8; 32 * 128];
        let mut matrices = Vec::new();
        for (which, len, columns, at) in [('a', m * k, k, 0), ('b', k * n, n, 64), ('c', m * n, n, 96)] {
            let kind = self.registers(which).1;
            let all: Vec<Vec<u64>> =
                (0..4).map(|_| (0..len).map(|_| kind.sample(&mut numbers, edges)).collect()).collect();
            for lane in 0..32 {
                for (i, (row, column)) in self.places(which, lane).into_iter().enumerate() {
                    let bits = all[self.matrix(lane)][row as usize * columns + column as usize];
                    put_bits(&mut table[lane as usize * 128 + at..], i, kind.bits, bits);
                }
            }
            matrices.push((kind, all));
        }
        let [(a_kind, a), (b_kind, b), (c_kind, c)] = matrices.try_into().unwrap();
        let found: Vec<u8> = run(&self.text(), &table, 32 * 32, 32).unwrap();
        for lane in 0..32 {
            let matrix = self.matrix(lane);
            for (i, (row, column)) in self.places('d', lane).into_iter().enumerate() {
                let (row, column) = (row as usize, column as usize);
                let terms = (0..k).map(|k_at| {
                    let a = a_kind.value(a[matrix][row * k + k_at]);
                    let b = b_kind.value(b[matrix][k_at * n + column]);
                    match self.suffix {
                        ".xor.popc" => f64::from(a != b),
                        _ => a * b,
                    }
                });
                let c = c_kind.value(c[matrix][row * n + column]);
                let (sum, size) =
                    terms.fold((c, c.abs()), |(sum, size), term| (sum + term, size + term.abs()));
                let bits = get_bits(&found[lane as usize * 32..], i, self.d.bits);
                let got = self.d.value(bits);
                let wanted = match self.suffix {
                    ".satfinite" => sum.clamp(f64::from(i32::MIN), f64::from(i32::MAX)),
                    _ if self.d == S32 => f64::from(sum as i64 as i32),
                    _ => sum,
                };
                let tolerance = match self.d.name {
                    "f16" => size * 2e-3 + 1e-7,
                    "f32" => size * 1e-6,
                    "f64" => size * 1e-14,
                    _ => 0.0,
                };
                // A sum beyond the format is infinite.
                let near = (got - wanted).abs() <= tolerance
                    || got == wanted
                    || (got.is_nan() && wanted.is_nan())
                    || (got.is_infinite() && wanted.abs() > 65504.0 && got.signum() == wanted.signum());
                assert!(near, "{}\nlane {lane} element {i}: {got}, expected {wanted}", self.text());
            }
        }
    }
}

pub(super) fn put_bits(bytes: &mut [u8], index: usize, width: u32, value: u64) {
    for bit in 0..width as usize {
        let at = index * width as usize + bit;
        bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
    }
}

pub(super) fn get_bits(bytes: &[u8], index: usize, width: u32) -> u64 {
    (0..width as usize).fold(0, |value, bit| {
        let at = index * width as usize + bit;
        value | u64::from(bytes[at / 8] >> (at % 8) & 1) << bit
    })
}

/// Checks a product with `.row.col`.
fn check(shape: [u32; 3], [d, a, b, c]: [Kind; 4], suffix: &'static str) {
    let mma = Mma { shape, d, a, b, c, suffix, layouts: ["row", "col"] };
    for seed in 0..4 {
        mma.check(seed, false);
    }
    if a.float.is_some() {
        (10..20).for_each(|seed| mma.check(seed, true));
    }
}

#[test]
fn products_of_floats() {
    for k in [8, 16] {
        check([16, 8, k], [F16, F16, F16, F16], "");
        check([16, 8, k], [F32, F16, F16, F32], "");
        check([16, 8, k], [F32, BF16, BF16, F32], "");
    }
    for k in [4, 8] {
        check([16, 8, k], [F32, TF32, TF32, F32], "");
    }
    for (a, b) in [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)] {
        check([16, 8, 32], [F32, a, b, F32], "");
        check([16, 8, 16], [F32, a, b, F32], "");
    }
    check([16, 8, 32], [F16, E4M3, E5M2, F16], "");
    for shape in [[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]] {
        check(shape, [F64; 4], "");
    }
}

#[test]
fn products_of_quad_pairs() {
    for a_layout in ["row", "col"] {
        for b_layout in ["row", "col"] {
            for (d, c) in [(F16, F16), (F32, F16), (F32, F32)] {
                let layouts = [a_layout, b_layout];
                let mma = Mma { shape: [8, 8, 4], d, a: F16, b: F16, c, suffix: "", layouts };
                mma.check(1, false);
                mma.check(2, true);
            }
        }
    }
}

#[test]
fn products_of_integers() {
    for suffix in ["", ".satfinite"] {
        for a in [S8, U8] {
            for b in [S8, U8] {
                for shape in [[8, 8, 16], [16, 8, 16], [16, 8, 32]] {
                    check(shape, [S32, a, b, S32], suffix);
                }
            }
        }
        for a in [S4, U4] {
            for b in [S4, U4] {
                for shape in [[8, 8, 32], [16, 8, 32], [16, 8, 64]] {
                    check(shape, [S32, a, b, S32], suffix);
                }
            }
        }
    }
    for suffix in [".xor.popc", ".and.popc"] {
        for shape in [[8, 8, 128], [16, 8, 128], [16, 8, 256]] {
            check(shape, [S32, B1, B1, S32], suffix);
        }
    }
}

#[test]
fn sums_of_integers_wrap_or_saturate() {
    // 16 products of 100 * 100 go beyond the greatest sum, or below the least.
    for (suffix, c, b, expected) in [
        ("", i32::MAX, 100_i8, i32::MAX.wrapping_add(160_000)),
        (".satfinite", i32::MAX, 100, i32::MAX),
        (".satfinite", i32::MIN, -100, i32::MIN),
        (".satfinite", i32::MAX, -100, i32::MAX - 160_000),
    ] {
        let (a, b) = (u32::from_le_bytes([100; 4]), u32::from_le_bytes([b as u8; 4]));
        let body = format!(
            "mov.u32 %a0, {a}; mov.u32 %b0, {b}; mov.u32 %c0, {c};\n\
             mma.sync.aligned.m8n8k16.row.col{suffix}.s32.s8.s8.s32 {{%d0, %d1}}, {{%a0}}, {{%b0}}, {{%c0, %c0}};\n\
             mad.wide.u32 %p2, %lane, 8, %to; st.global.v2.u32 [%p2], {{%d0, %d1}};"
        );
        assert_eq!(run::<u8, i32>(&body, &[0; 8], 64, 32).unwrap(), vec![expected; 64], "{body}");
    }
}

/// Copies 64 words from `%from` to shared memory.
const TO_SHARED: &str = "mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 16, %r1; mad.wide.u32 %p1, %lane, 16, %from;\n\
     ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%p1]; st.shared.v4.u32 [%r2], {%r3, %r4, %r5, %r6}; bar.warp.sync -1;\n";

#[test]
fn ldmatrix() {
    // Four matrices of 64 halves; the rows of the second lie in the opposite order.
    let input: Vec<u16> = (0..256).map(|i| i * 7 + 3).collect::<Vec<u16>>();
    let bytes: Vec<u8> = input.iter().flat_map(|half| half.to_le_bytes()).collect();
    let row_of = |matrix: usize, row: usize| if matrix == 1 { 7 - row } else { row };
    for (count, space) in [(1, ".shared"), (2, ".shared::cta"), (4, ".shared"), (4, "")] {
        for trans in ["", ".trans"] {
            let list = (0..count).map(|i| format!("%d{i}")).collect::<Vec<_>>().join(", ");
            let stores: String =
                (0..count).map(|i| format!("st.global.u32 [%p2+{}], %d{i};", 4 * i)).collect();
            let address = if space.is_empty() { "%p5" } else { "%r7" };
            let body = format!(
                "{TO_SHARED}shr.u32 %r8, %lane, 3; setp.eq.u32 %q1, %r8, 1; and.b32 %r9, %lane, 7;\n\
                 sub.u32 %r10, 7, %r9; selp.b32 %r9, %r10, %r9, %q1; mad.lo.u32 %r9, %r8, 8, %r9; mad.lo.u32 %r7, %r9, 16, %r1;\n\
                 cvt.u64.u32 %p4, %r7; cvta.shared.u64 %p5, %p4;\n\
                 ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {{{list}}}, [{address}];\n\
                 mad.wide.u32 %p2, %lane, 16, %to; {stores}"
            );
            let found: Vec<u32> = run(&body, &bytes, 128, 32).unwrap();
            for lane in 0..32 {
                for matrix in 0..count {
                    let at = |row: usize, column: usize| {
                        let (row, column) = if trans.is_empty() { (row, column) } else { (column, row) };
                        u32::from(input[matrix * 64 + row_of(matrix, row) * 8 + column])
                    };
                    let (row, column) = (lane / 4, lane % 4 * 2);
                    let wanted = at(row, column) | at(row, column + 1) << 16;
                    assert_eq!(found[lane * 4 + matrix], wanted, "{body}\nlane {lane}, matrix {matrix}");
                }
            }
        }
    }
}

#[test]
fn stmatrix_is_the_opposite_of_ldmatrix() {
    let input: Vec<u32> = (0..128).map(|i| i * 65_539 + 11).collect();
    for trans in ["", ".trans"] {
        for count in [1, 2, 4] {
            let list = ["%d0", "%d1", "%d2", "%d3"][..count].join(", ");
            let body = format!(
                "{TO_SHARED}mov.u32 %r7, s; mad.lo.u32 %r7, %lane, 16, %r7;\n\
                 ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{list}}}, [%r7];\n\
                 stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r7+512], {{{list}}}; bar.warp.sync -1;\n\
                 ld.shared.v4.u32 {{%r3, %r4, %r5, %r6}}, [%r7+512]; mad.wide.u32 %p2, %lane, 16, %to;\n\
                 st.global.v4.u32 [%p2], {{%r3, %r4, %r5, %r6}};"
            );
            let found: Vec<u32> = run(&body, &input, 128, 32).unwrap();
            let words = count * 32;
            assert_eq!(found[..words], input[..words], "{body}");
            assert!(found[words..].iter().all(|&word| word == 0));
        }
    }
    // Without and with `.trans`: a transposed matrix, as `movmatrix` makes it.
    let moved =
        "ld.global.u32 %a0, [%p1]; movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0; st.global.u32 [%p2], %d0;";
    let stored = "ld.global.u32 %a0, [%p1]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 16, %r1; mad.lo.u32 %r3, %lane, 4, %r1;\n\
         stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r2], {%a0}; bar.warp.sync -1; ld.shared.u32 %d0, [%r3]; st.global.u32 [%p2], %d0;";
    let places = "mad.wide.u32 %p1, %lane, 4, %from; mad.wide.u32 %p2, %lane, 4, %to;\n";
    let run_one = |body: &str| run::<u32, u32>(&format!("{places}{body}"), &input, 32, 32).unwrap();
    let half = |words: &[u32], row: usize, column: usize| {
        words[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff
    };
    let found = run_one(moved);
    assert_eq!(found, run_one(stored));
    for row in 0..8 {
        for column in 0..8 {
            assert_eq!(half(&found, row, column), half(&input, column, row));
        }
    }
}

/// A product by `wmma`: loads, multiplies, stores; both layouts of every matrix.
fn wmma(shape: [u32; 3], [d, a, b, c]: [Kind; 4], types: &str, counts: [u32; 3], seed: u64) {
    let [m, n, k] = shape.map(|size| size as usize);
    let mut numbers = Numbers(seed);
    let is_row: [bool; 4] = std::array::from_fn(|_| numbers.bits() & 1 == 1);
    let layout = is_row.map(|is_row| if is_row { "row" } else { "col" });
    let sizes = [(m, k, a), (k, n, b), (m, n, c), (m, n, d)];
    // Rows and columns are a little apart.
    let stride = |which: usize| {
        let (rows, columns, kind) = sizes[which];
        (if is_row[which] { columns } else { rows }) + 16 * 8 / kind.bits as usize
    };
    let mut table = vec![0_u8; 3 * 8192];
    let matrices: Vec<Vec<u64>> = (0..3)
        .map(|which| {
            let (rows, columns, kind) = sizes[which];
            let matrix: Vec<u64> = (0..rows * columns).map(|_| kind.sample(&mut numbers, false)).collect();
            for (i, &bits) in matrix.iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let at =
                    if is_row[which] { row * stride(which) + column } else { column * stride(which) + row };
                put_bits(&mut table[which * 8192..], at, kind.bits, bits);
            }
            matrix
        })
        .collect();
    let shape_name = format!("m{m}n{n}k{k}");
    let is_wide = d == F64;
    let list = |narrow: &str, wide: &str, count: u32| {
        let name = if is_wide { wide } else { narrow };
        (0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ")
    };
    let [a_list, b_list, c_list] =
        [list("a", "x", counts[0]), list("b", "y", counts[1]), list("c", "z", counts[2])];
    let d_list = list(
        "d",
        "w",
        if d == F16 {
            4
        } else if is_wide {
            2
        } else {
            8
        },
    );
    let body = format!(
        "mov.u32 %r1, {}; mov.u32 %r2, {};\n\
         wmma.load.a.sync.aligned.{}.{shape_name}.global.{} {{{a_list}}}, [%from], %r1;\n\
         wmma.load.b.sync.aligned.{}.{shape_name}.{} {{{b_list}}}, [%from+8192], %r2;\n\
         wmma.load.c.sync.aligned.{}.{shape_name}.global.{} {{{c_list}}}, [%from+16384], {};\n\
         wmma.mma.sync.aligned.{}.{}.{shape_name}.{types} {{{d_list}}}, {{{a_list}}}, {{{b_list}}}, {{{c_list}}};\n\
         wmma.store.d.sync.aligned.{}.{shape_name}.global.{} [%to], {{{d_list}}}, {};",
        stride(0),
        stride(1),
        layout[0],
        a.name,
        layout[1],
        b.name,
        layout[2],
        c.name,
        stride(2),
        layout[0],
        layout[1],
        layout[3],
        d.name,
        stride(3)
    );
    let found: Vec<u8> = run(&body, &table, 8192, 32).unwrap();
    for row in 0..m {
        for column in 0..n {
            let value = |which: usize, at: usize| sizes[which].2.value(matrices[which][at]);
            let wanted = (0..k).fold(value(2, row * n + column), |sum, at| {
                sum + value(0, row * k + at) * value(1, at * n + column)
            });
            let at = if is_row[3] { row * stride(3) + column } else { column * stride(3) + row };
            let got = d.value(get_bits(&found, at, d.bits));
            let tolerance = match d.name {
                "f16" => 0.1,
                "f32" => 1e-4,
                "f64" => 1e-12,
                _ => 0.0,
            };
            // Large sums of random integers wrap.
            let wanted = if d == S32 { f64::from(wanted as i64 as i32) } else { wanted };
            assert!((got - wanted).abs() <= tolerance, "{body}\nrow {row}, column {column}: {got}, {wanted}");
        }
    }
}

#[test]
fn wmma_products() {
    for seed in 0..8 {
        for shape in [[16, 16, 16], [32, 8, 16], [8, 32, 16]] {
            let [m, n, _] = shape;
            wmma(shape, [F32, F16, F16, F32], "f32.f32", [8, 8, 8], seed);
            wmma(shape, [F16, F16, F16, F16], "f16.f16", [8, 8, 4], seed);
            wmma(shape, [F32, F16, F16, F16], "f32.f16", [8, 8, 4], seed);
            wmma(shape, [F32, BF16, BF16, F32], "f32.bf16.bf16.f32", [m / 4, n / 4, 8], seed);
            for kind in [S8, U8] {
                let types = format!("s32.{0}.{0}.s32", kind.name);
                wmma(shape, [S32, kind, kind, S32], &types, [m / 8, n / 8, 8], seed);
            }
        }
        wmma([16, 16, 8], [F32, TF32, TF32, F32], "f32.tf32.tf32.f32", [4, 4, 8], seed);
        wmma([8, 8, 4], [F64; 4], "rn.f64.f64.f64.f64", [1, 1, 2], seed);
    }
}

#[test]
fn wmma_fragments_in_shared_memory() {
    // Without a stride, rows follow each other; the whole fragment comes back.
    let input: Vec<u32> = (0..128).map(|i| i * 3 + 1).collect();
    let body = format!(
        "{TO_SHARED}wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}}, [%r1];\n\
         wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {{%c0, %c1, %c2, %c3}}, [s];\n\
         wmma.store.d.sync.aligned.col.m16n16k16.f16 [%to], {{%c0, %c1, %c2, %c3}};"
    );
    let found: Vec<u16> = run(&body, &input, 256, 32).unwrap();
    let halves: Vec<u16> = input.iter().flat_map(|word| [*word as u16, (word >> 16) as u16]).collect();
    for row in 0..16 {
        for column in 0..16 {
            assert_eq!(found[column * 16 + row], halves[row * 16 + column]);
        }
    }
}

#[test]
fn the_whole_warp_takes_part() {
    let body = "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %lane;";
    let fault = run::<u8, u8>(body, &[0; 8], 8, 16).unwrap_err();
    assert_eq!((fault.kind, fault.line), (FaultKind::BarrierDivergence, 9));
    assert!(fault.detail.contains("for all 32 lanes"), "{fault}");
    let body = format!("setp.lt.u32 %q1, %lane, 3; @%q1 bra END;\n{body}\nEND:");
    assert_eq!(run::<u8, u8>(&body, &[0; 8], 8, 32).unwrap_err().kind, FaultKind::BarrierDivergence);
}

#[test]
fn rows_of_ldmatrix_are_checked() {
    for (address, lane, kind) in [
        ("setp.eq.u32 %q1, %lane, 5; @%q1 add.u32 %r1, %r1, 8;", 5, FaultKind::MisalignedAddress),
        ("setp.eq.u32 %q1, %lane, 7; @%q1 add.u32 %r1, %r1, 32768;", 7, FaultKind::IllegalAddress),
    ] {
        let load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%r1];";
        let body = format!("mov.u32 %r1, s; {address}\n{load}");
        let fault = run::<u8, u8>(&body, &[0; 8], 8, 32).unwrap_err();
        assert_eq!((fault.kind, fault.line, fault.thread), (kind, 10, [lane, 0, 0]), "{fault}");
    }
    // The addresses of the other lanes are not used.
    let body = "mov.u32 %r1, s; setp.gt.u32 %q1, %lane, 7; @%q1 mov.u32 %r1, 1;\n\
                ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%r1];";
    run::<u8, u8>(body, &[0; 8], 8, 32).unwrap();
}

#[test]
fn other_matrix_instructions_are_refused() {
    for text in [
        "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};",
        "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};",
        "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0, %b1}, {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7};",
        "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%d0, %d1}, {%a0, %a1}, {%b0, %b1}, {%c0, %c1}, %r1, 0;",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%d0, %d1}, [%r1];",
        "movmatrix.sync.aligned.m8n8.b16 %d0, %a0;",
        "wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%a0}, [%from];",
    ] {
        let errors = Image::parse(&kernel(text)).map(|_| ()).unwrap_err();
        let name = text.split(' ').next().unwrap();
        assert_eq!((errors.len(), errors[0].line), (1, 9), "{errors:?}");
        assert!(errors[0].message.contains(&format!("`{name}` is not supported")), "{}", errors[0]);
    }
    let short = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0}, [%r1];";
    let errors = Image::parse(&kernel(short)).map(|_| ()).unwrap_err();
    assert!(errors[0].message.contains("expected 2 registers, found 1"), "{}", errors[0]);
}
