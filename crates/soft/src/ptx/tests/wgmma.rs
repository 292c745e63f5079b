//! Products of four warps, on matrices in shared memory in each of its layouts.

use super::matrices::{
    BF16, E4M3, E5M2, F16, F32, Kind, Numbers, S8, S32, TF32, U8, get_bits, kernel, put_bits, run,
};
use crate::ptx::Image;

/// The layouts of a matrix in shared memory: units of 16 bytes in a row of the swizzle pattern, and
/// the number in the descriptor.
const SWIZZLES: [(usize, u64); 4] = [(1, 0), (2, 3), (4, 2), (8, 1)];

/// `wgmma` with one kind of swizzle for both matrices.
struct Group {
    n: usize,
    d: Kind,
    a: Kind,
    b: Kind,
    swizzle: (usize, u64),
    a_turned: bool,
    b_turned: bool,
    a_in_registers: bool,
}

/// The address of a unit of a matrix that starts at a multiple of 1024, as CUTLASS writes the
/// layouts: `outer` counts rows (units of rows, if turned), `k` units of columns (columns).
fn address(units: usize, turned: bool, outer: usize, k: usize, (leading, stride): (usize, usize)) -> usize {
    let plain = match (units, turned) {
        (1, false) => outer % 8 * 16 + outer / 8 * stride + k * leading,
        (_, false) => outer % 8 * units * 16 + outer / 8 * stride + k * 16,
        (1, true) => outer * stride + k % 8 * 16 + k / 8 * leading,
        (_, true) => outer % units * 16 + outer / units * leading + k % 8 * units * 16 + k / 8 * stride,
    };
    plain ^ (plain / 128 % units * 16)
}

impl Group {
    fn k(&self) -> usize {
        32 * 8 / self.a.bits as usize
    }

    /// Leading and stride distance of a matrix with so many rows.
    fn distances(&self, rows: usize, turned: bool) -> (usize, usize) {
        let (units, _) = self.swizzle;
        match (units, turned) {
            // Core matrices of 128 bytes: along the rows first, with a gap between the columns.
            (1, false) => (rows / 8 * 128 + 128, 128),
            (1, true) => (rows / 8 * 128 + 256, 128),
            (_, false) => (16, units * 128),
            (_, true) => (units * 256, units * 128),
        }
    }

    /// Puts a matrix of rows of `k` elements into shared memory.
    fn place(&self, shared: &mut [u8], matrix: &[u64], kind: Kind, turned: bool) {
        let (units, k) = (self.swizzle.0, self.k());
        let distances = self.distances(matrix.len() / k, turned);
        let per_unit = 128 / kind.bits as usize;
        for (index, &bits) in matrix.iter().enumerate() {
            let (row, column) = (index / k, index % k);
            let (at, part) = if turned {
                (address(units, true, row / per_unit, column, distances), row % per_unit)
            } else {
                (address(units, false, row, column / per_unit, distances), column % per_unit)
            };
            put_bits(&mut shared[at..at + 16], part, kind.bits, bits);
        }
    }

    fn descriptor(&self, start: u64, rows: usize, turned: bool) -> u64 {
        let (leading, stride) = self.distances(rows, turned);
        (start / 16) | ((leading as u64 / 16) << 16) | ((stride as u64 / 16) << 32) | (self.swizzle.1 << 62)
    }

    /// The name and the operands of the instruction, and what loads them.
    fn text(&self, adds: bool, negated: bool) -> String {
        let (n, k) = (self.n, self.k());
        let d_count = self.n * 16 / 32 / self.d.per_register() as usize;
        let d: Vec<String> = (0..d_count).map(|i| format!("%d{i}")).collect();
        let half = self.a.bits == 16;
        let integer = self.a.float.is_none();
        let mut options = String::new();
        if !integer {
            options += if negated { ", -1, 1" } else { ", 1, 1" };
        }
        if half && !self.a_in_registers {
            options += if self.a_turned { ", 1" } else { ", 0" };
        }
        if half {
            options += if self.b_turned { ", 1" } else { ", 0" };
        }
        let a = if self.a_in_registers { "{%a0, %a1, %a2, %a3}" } else { "%p3" };
        let a_descriptor = self.descriptor(0, 64, self.a_turned);
        let b_descriptor = self.descriptor(16384, n, self.b_turned);
        let starts: String = d.iter().map(|d| format!("mov.b32 {d}, %r5;")).collect();
        let stores: String =
            d.iter().enumerate().map(|(i, d)| format!("st.global.u32 [%p2+{}], {d};", 4 * i)).collect();
        let one = match self.d.name {
            "f32" => 1_f32.to_bits(),
            "f16" => 0x3c00_3c00,
            _ => 1,
        };
        format!(
            "mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r6, %r1;\n\
             COPY: mad.wide.u32 %p1, %r6, 4, %from; mad.lo.u32 %r3, %r6, 4, %r2; ld.global.u32 %r4, [%p1]; st.shared.u32 [%r3], %r4;\n\
             add.u32 %r6, %r6, 128; setp.lt.u32 %q1, %r6, 8192; @%q1 bra COPY;\nbar.sync 0;\n\
             cvt.u64.u32 %p4, %r2; shr.u64 %p4, %p4, 4; add.u64 %p3, %p4, {a_descriptor}; add.u64 %p4, %p4, {b_descriptor};\n\
             mad.wide.u32 %p5, %r1, 16, %from; ld.global.v4.u32 {{%a0, %a1, %a2, %a3}}, [%p5+32768];\n\
             mov.u32 %r5, {one}; {starts} setp.eq.u32 %q2, {}, 1; mad.wide.u32 %p2, %r1, {}, %to;\n\
             wgmma.fence.sync.aligned;\n\
             wgmma.mma_async.sync.aligned.m64n{n}k{k}.{}.{}.{} {{{}}}, {a}, %p4, %q2{options};\n\
             wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; {stores}",
            u32::from(adds),
            4 * d_count,
            self.d.name,
            self.a.name,
            self.b.name,
            d.join(", "),
        )
    }

    fn check(&self, adds: bool, negated: bool) {
        let (n, k) = (self.n, self.k());
        let mut numbers = Numbers(7);
        let mut sample = |kind: Kind, rows: usize| -> Vec<u64> {
            (0..rows * k).map(|_| kind.sample(&mut numbers, false)).collect()
        };
        let (a, b) = (sample(self.a, 64), sample(self.b, n));
        let mut input = vec![0_u8; 32768 + 128 * 16];
        self.place(&mut input[..16384], &a, self.a, self.a_turned);
        self.place(&mut input[16384..32768], &b, self.b, self.b_turned);
        let each = self.a.per_register() as usize;
        for thread in 0..128 {
            for index in 0..4 * each {
                let (register, part) = (index / each, index % each);
                let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (register % 2);
                let column = thread % 4 * each + part + 4 * each * (register / 2);
                put_bits(&mut input[32768 + thread * 16..], index, self.a.bits, a[row * k + column]);
            }
        }
        let text = self.text(adds, negated);
        let bytes = n * 16 / 32 * self.d.bits as usize / 8;
        let found: Vec<u8> = run(&text, &input, 128 * bytes, 128).unwrap();
        for thread in 0..128 {
            for index in 0..n / 2 {
                let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (index / 2 % 2);
                let column = index / 4 * 8 + thread % 4 * 2 + index % 2;
                let sum: f64 =
                    (0..k).map(|at| self.a.value(a[row * k + at]) * self.b.value(b[column * k + at])).sum();
                let wanted = if adds { 1.0 } else { 0.0 } + if negated { -sum } else { sum };
                let got = self.d.value(get_bits(&found[thread * bytes..], index, self.d.bits));
                let tolerance = match self.d.name {
                    "f16" => 0.25,
                    "f32" => 1e-4,
                    _ => 0.0,
                };
                assert!((got - wanted).abs() <= tolerance, "{text}\n{row} {column}: {got}, {wanted}");
            }
        }
    }
}

#[test]
fn every_layout_of_both_sources() {
    for swizzle in SWIZZLES {
        for n in [8, 24, 64] {
            for turned in 0..4 {
                // Turned columns fill whole rows of the pattern.
                let (a_turned, b_turned) = (turned & 1 == 1, turned & 2 == 2);
                if b_turned && n % (swizzle.0 * 8) != 0 {
                    continue;
                }
                let group =
                    Group { n, d: F32, a: F16, b: F16, swizzle, a_turned, b_turned, a_in_registers: false };
                group.check(true, false);
            }
        }
    }
}

#[test]
fn every_type() {
    let floats = [(F32, F16, F16), (F16, F16, F16), (F32, BF16, BF16), (F32, TF32, TF32), (F32, E4M3, E5M2)];
    let others = [(F16, E5M2, E4M3), (S32, S8, S8), (S32, U8, S8)];
    for (d, a, b) in floats.into_iter().chain(others) {
        for a_in_registers in [false, true] {
            for (adds, negated) in [(true, false), (false, false), (true, true)] {
                let group = Group {
                    n: 16,
                    d,
                    a,
                    b,
                    swizzle: SWIZZLES[2],
                    a_turned: false,
                    b_turned: false,
                    a_in_registers,
                };
                group.check(adds, negated && a.float.is_some());
            }
        }
    }
}

#[test]
fn wrong_products_are_refused() {
    let d = "{%d0, %d1, %d2, %d3}";
    for (text, message) in [
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {d}, %p3, %p4, 1, 1, 1, 0, 0;"),
            "not supported",
        ),
        (
            format!(
                "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {d}, %p3, %p4, %r1, 0, 1, 1, 1, 0, 0;"
            ),
            "not supported",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d}, %p3, %p4, 1, 1, 1;"),
            "expected two signs",
        ),
        (
            format!("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {d}, %p3, %p4, 1, 1, 1, 0, 0;"),
            "expected 8 registers, found 4",
        ),
    ] {
        let errors = Image::parse(&kernel(&text)).map(|_| ()).unwrap_err();
        assert_eq!((errors.len(), errors[0].line), (1, 9), "{text}");
        assert!(errors[0].message.contains(message), "{}", errors[0]);
    }
}
