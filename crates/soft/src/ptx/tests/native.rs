//! Native code does what the interpreter does: random programs run both ways.

use super::{Checks, Memory, arg, launch, load};
use crate::ptx::error::Fault;

const THREADS: u32 = 40;
/// Bytes of global memory that each thread has for itself.
const BYTES: u32 = 512;

/// Instructions; `$r`, `$d`, `$f`, `$g` and `$p` are registers of 32 and 64 bits, floats of both
/// sizes, and predicates; `$n` is a number.
const FORMS: &[&str] = &[
    "add.s32 $r, $r, $r;",
    "add.u32 $r, $r, $n;",
    "sub.s32 $r, $r, $r;",
    "mul.lo.s32 $r, $r, $r;",
    "mad.lo.s32 $r, $r, $r, $r;",
    "mul.hi.u32 $r, $r, $r;",
    "mul.hi.s32 $r, $r, $r;",
    "mul.wide.u32 $d, $r, $r;",
    "mul.wide.s32 $d, $r, $r;",
    "mad.wide.s32 $d, $r, $r, $d;",
    "mad.wide.u32 $d, $r, $r, $d;",
    "min.s32 $r, $r, $r;",
    "max.s32 $r, $r, $r;",
    "min.u32 $r, $r, $r;",
    "max.u32 $r, $r, $r;",
    "abs.s32 $r, $r;",
    "neg.s32 $r, $r;",
    "and.b32 $r, $r, $r;",
    "or.b32 $r, $r, $r;",
    "xor.b32 $r, $r, $r;",
    "not.b32 $r, $r;",
    "cnot.b32 $r, $r;",
    "shl.b32 $r, $r, $r;",
    "shl.b32 $r, $r, 5;",
    "shl.b32 $r, $r, 32;",
    "shr.u32 $r, $r, $r;",
    "shr.u32 $r, $r, 7;",
    "shr.s32 $r, $r, $r;",
    "shr.s32 $r, $r, 40;",
    "div.s32 $r, $r, $r;",
    "rem.s32 $r, $r, $r;",
    "div.u32 $r, $r, $r;",
    "rem.u32 $r, $r, $r;",
    "popc.b32 $r, $r;",
    "clz.b32 $r, $r;",
    "brev.b32 $r, $r;",
    "bfe.u32 $r, $r, $r, $r;",
    "bfe.s32 $r, $r, $r, $r;",
    "bfi.b32 $r, $r, $r, $r, $r;",
    "prmt.b32 $r, $r, $r, $r;",
    "lop3.b32 $r, $r, $r, $r, 0x96;",
    "lop3.b32 $r, $r, $r, $r, 0xe8;",
    "shf.l.wrap.b32 $r, $r, $r, $r;",
    "shf.r.wrap.b32 $r, $r, $r, 9;",
    "shf.r.clamp.b32 $r, $r, $r, $r;",
    "sad.s32 $r, $r, $r, $r;",
    "add.sat.s32 $r, $r, $r;",
    "add.s64 $d, $d, $d;",
    "sub.s64 $d, $d, $d;",
    "mul.lo.s64 $d, $d, $d;",
    "mul.hi.u64 $d, $d, $d;",
    "shl.b64 $d, $d, $r;",
    "shl.b64 $d, $d, 33;",
    "shr.u64 $d, $d, $r;",
    "shr.s64 $d, $d, $r;",
    "min.s64 $d, $d, $d;",
    "max.u64 $d, $d, $d;",
    "and.b64 $d, $d, $d;",
    "xor.b64 $d, $d, $d;",
    "not.b64 $d, $d;",
    "mad.lo.u64 $d, $d, $d, $d;",
    "div.u64 $d, $d, $d;",
    "rem.u64 $d, $d, $d;",
    "div.s64 $d, $d, $d;",
    "rem.s64 $d, $d, $d;",
    "neg.s64 $d, $d;",
    "abs.s64 $d, $d;",
    "add.cc.u32 $r, $r, $r;",
    "addc.cc.u32 $r, $r, $r;",
    "subc.u32 $r, $r, $r;",
    "add.cc.u64 $d, $d, $d;",
    "cvt.s64.s32 $d, $r;",
    "cvt.u64.u32 $d, $r;",
    "cvt.u32.u64 $r, $d;",
    "cvt.s32.s8 $r, $r;",
    "cvt.u32.u16 $r, $r;",
    "cvt.s64.s16 $d, $r;",
    "cvt.sat.s16.s32 $r, $r;",
    "cvt.rn.f32.s32 $f, $r;",
    "cvt.rn.f32.u32 $f, $r;",
    "cvt.rzi.s32.f32 $r, $f;",
    "cvt.rni.u32.f32 $r, $f;",
    "cvt.f64.f32 $g, $f;",
    "cvt.rn.f32.f64 $f, $g;",
    "cvt.rn.f64.s32 $g, $r;",
    "cvt.rn.f32.u64 $f, $d;",
    "cvt.rzi.s64.f64 $d, $g;",
    "add.rn.f32 $f, $f, $f;",
    "sub.rn.f32 $f, $f, $f;",
    "mul.rn.f32 $f, $f, $f;",
    "div.rn.f32 $f, $f, $f;",
    "fma.rn.f32 $f, $f, $f, $f;",
    "fma.rz.f32 $f, $f, $f, $f;",
    "min.f32 $f, $f, $f;",
    "max.f32 $f, $f, $f;",
    "abs.f32 $f, $f;",
    "neg.f32 $f, $f;",
    "sqrt.rn.f32 $f, $f;",
    "rcp.rn.f32 $f, $f;",
    "add.ftz.f32 $f, $f, $f;",
    "mul.ftz.f32 $f, $f, $f;",
    "fma.rn.ftz.f32 $f, $f, $f, $f;",
    "add.sat.f32 $f, $f, $f;",
    "ex2.approx.f32 $f, $f;",
    "add.rn.f32 $f, $f, 0f3F800000;",
    "add.f64 $g, $g, $g;",
    "sub.f64 $g, $g, $g;",
    "mul.f64 $g, $g, $g;",
    "div.rn.f64 $g, $g, $g;",
    "fma.rn.f64 $g, $g, $g, $g;",
    "min.f64 $g, $g, $g;",
    "max.f64 $g, $g, $g;",
    "neg.f64 $g, $g;",
    "abs.f64 $g, $g;",
    "sqrt.rn.f64 $g, $g;",
    "setp.lt.s32 $p, $r, $r;",
    "setp.ge.u32 $p, $r, $r;",
    "setp.eq.s32 $p, $r, $n;",
    "setp.ne.and.u32 $p, $r, $r, $p;",
    "setp.gt.or.s32 $p|$p, $r, $r, $p;",
    "setp.lt.f32 $p, $f, $f;",
    "setp.ne.f32 $p, $f, $f;",
    "setp.neu.f32 $p, $f, $f;",
    "setp.gtu.f32 $p, $f, $f;",
    "setp.equ.f32 $p, $f, $f;",
    "setp.num.f32 $p, $f, $f;",
    "setp.nan.f32 $p, $f, $f;",
    "setp.ge.ftz.f32 $p, $f, $f;",
    "setp.lt.f64 $p, $g, $g;",
    "setp.leu.f64 $p, $g, $g;",
    "setp.lt.u64 $p, $d, $d;",
    "setp.gt.s64 $p, $d, $d;",
    "set.lt.u32.s32 $r, $r, $r;",
    "selp.b32 $r, $r, $r, $p;",
    "selp.f32 $f, $f, $f, $p;",
    "selp.b64 $d, $d, $d, $p;",
    "slct.s32.s32 $r, $r, $r, $r;",
    "and.pred $p, $p, $p;",
    "or.pred $p, $p, $p;",
    "xor.pred $p, $p, $p;",
    "not.pred $p, $p;",
    "mov.pred $p, $p;",
    "mov.u32 $r, $r;",
    "mov.f32 $f, $f;",
    "mov.u32 $r, $n;",
    "mov.b32 $r, $f;",
    "mov.b32 $f, $r;",
    "mov.b64 $g, $d;",
    "mov.b64 $d, $g;",
    "mov.b64 $d, {$r, $r};",
    "mov.b64 {$r, $r}, $d;",
    "mov.u32 $r, %tid.x;",
    "mov.u32 $r, %laneid;",
    "mov.u32 $r, %warpid;",
    "mov.u32 $r, %ctaid.x;",
    "mov.u32 $r, %nctaid.x;",
    "mov.u32 $r, %ntid.x;",
    "mov.u32 $r, %lanemask_eq;",
    "mov.u32 $r, %lanemask_lt;",
    "mov.u32 $r, %lanemask_le;",
    "mov.u32 $r, %lanemask_ge;",
    "mov.u32 $r, %lanemask_gt;",
    "mov.u32 $r, %nwarpid;",
    "mov.u32 $r, %smid;",
    "mov.u32 $r, %dynamic_smem_size;",
    "mov.u32 $r, %total_smem_size;",
    "mov.u32 $r, %aggr_smem_size;",
    "mov.u32 $r, %envreg1;",
    "mov.u32 $r, %envreg2;",
    "mov.u32 $r, %clock;",
    "mov.u32 $r, %clock_hi;",
    "mov.u64 $d, %clock64;",
    "membar.gl;",
    "nanosleep.u32 1;",
    // Global memory of the thread.
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; ld.global.u32 $r, [%a+4];",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; ld.global.s8 $r, [%a+7];",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; ld.global.v2.u32 {$r, $r}, [%a+8];",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; ld.volatile.global.v4.f32 {$f, $f, $f, $f}, [%a];",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; ld.u64 $d, [%a];",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; st.global.u32 [%a+8], $r;",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; st.global.u8 [%a+1], $r;",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; st.global.v2.f64 [%a], {$g, $g};",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; st.u16 [%a+6], $r;",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; atom.global.add.u32 $r, [%a+4], $r;",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; atom.cas.b64 $d, [%a+8], $d, $d;",
    "and.b32 %i, $r, 31; mad.wide.u32 %a, %i, 16, %own; red.global.max.s32 [%a], $r;",
    // Shared memory of the thread, also by generic addresses.
    "and.b32 %i, $r, 1; shl.b32 %i, %i, 3; add.u32 %i, %i, %s; ld.shared.u32 $r, [%i+4];",
    "and.b32 %i, $r, 1; shl.b32 %i, %i, 3; add.u32 %i, %i, %s; ld.shared.f64 $g, [%i];",
    "and.b32 %i, $r, 1; shl.b32 %i, %i, 3; add.u32 %i, %i, %s; st.shared.u32 [%i], $r;",
    "and.b32 %i, $r, 1; shl.b32 %i, %i, 3; add.u32 %i, %i, %s; st.shared.u16 [%i+2], $r;",
    "cvt.u64.u32 %a, %s; cvta.shared.u64 %a, %a; ld.u32 $r, [%a+8];",
    "cvt.u64.u32 %a, %s; cvta.shared.u64 %a, %a; st.v2.u32 [%a], {$r, $r};",
    "atom.shared.min.u32 $r, [%s+12], $r;",
    // Local memory, and a call.
    "and.b32 %i, $r, 3; mul.wide.u32 %a, %i, 8; mov.u64 %b, l; add.s64 %a, %a, %b; ld.local.u64 $d, [%a];",
    "and.b32 %i, $r, 3; mul.wide.u32 %a, %i, 8; mov.u64 %b, l; add.s64 %a, %a, %b; st.local.u32 [%a+4], $r;",
    "st.local.u64 [l+8], $d;",
    "mov.u64 %a, l; cvta.local.u64 %a, %a; ld.u32 $r, [%a+12];",
    "mov.u64 %a, l; cvta.local.u64 %a, %a; st.v2.u32 [%a+16], {$r, $r};",
    "mov.u64 %a, l; cvta.local.u64 %a, %a; atom.add.u32 $r, [%a+4], $r;",
    "ld.local.f32 $f, [l+12];",
    "call.uni ($r), mix, ($r, $r);",
];

/// Instructions that all threads of a warp or block must reach.
const TOGETHER: &[&str] = &[
    "bar.sync 0;",
    "barrier.sync 1;",
    "barrier.red.popc.aligned.u32 $r, 0, $p;",
    "bar.warp.sync 0xffffffff;",
    "shfl.sync.bfly.b32 $r|$p, $r, 1, 31, 0xffffffff;",
    "shfl.sync.down.b32 $r, $r, 3, 31, 0xffffffff;",
    "vote.sync.ballot.b32 $r, $p, 0xffffffff;",
    "vote.sync.any.pred $p, $p, 0xffffffff;",
];

/// A source of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// A form with registers put in. Vectors name each register once.
    fn form(&mut self, forms: &[&str]) -> String {
        let form = forms[self.below(forms.len())];
        let mut text = String::new();
        let mut last = 0;
        for (index, part) in form.split('$').enumerate() {
            if index == 0 {
                text += part;
                continue;
            }
            let (kind, rest) = part.split_at(1);
            match kind {
                "n" => text += &self.below(1 << 20).to_string(),
                _ => {
                    // Vectors and pairs write several registers, which must differ.
                    last = if text.ends_with(", ") || text.ends_with('|') {
                        (last + 1 + self.below(2)) % 6
                    } else {
                        self.below(6)
                    };
                    text += &format!("%{kind}{last}");
                }
            }
            text += rest;
        }
        text + "\n"
    }

    /// Straight code, with guards and jumps over parts of it.
    fn straight(&mut self, text: &mut String, labels: &mut usize) {
        for _ in 0..1 + self.below(8) {
            match self.below(10) {
                0 => {
                    *labels += 1;
                    let (label, not) = (*labels, ["", "!"][self.below(2)]);
                    *text += &format!("@{not}%p{} bra L{label};\n", self.below(6));
                    for _ in 0..1 + self.below(4) {
                        *text += &self.form(FORMS);
                    }
                    *text += &format!("L{label}:\n");
                }
                _ => *text += &self.form(FORMS),
            }
        }
    }

    fn program(&mut self) -> String {
        let mut body = String::new();
        let mut labels = 0;
        for _ in 0..2 + self.below(5) {
            self.straight(&mut body, &mut labels);
            match self.below(4) {
                0 => body += &self.form(TOGETHER),
                1 => {
                    labels += 1;
                    let label = labels;
                    body += &format!("mov.u32 %c, {};\nL{label}:\n", 1 + self.below(6));
                    self.straight(&mut body, &mut labels);
                    if self.below(2) == 0 {
                        body += &self.form(TOGETHER);
                    }
                    body += &format!("sub.u32 %c, %c, 1;\nsetp.ne.u32 %q, %c, 0;\n@%q bra L{label};\n");
                }
                2 => {
                    // Threads leave this loop at different times.
                    labels += 1;
                    let label = labels;
                    body += &format!("and.b32 %c, %r{}, 7;\nL{label}:\n", self.below(6));
                    self.straight(&mut body, &mut labels);
                    body += &format!(
                        "setp.eq.u32 %q, %c, 0;\nsub.u32 %c, %c, 1;\n@!%q bra L{label};\nbar.warp.sync 0xffffffff;\n"
                    );
                }
                _ => {}
            }
        }
        body
    }
}

fn text(body: &str) -> String {
    let mut text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .func (.reg .b32 %x) mix (.reg .b32 %y, .reg .b32 %z) {\n.reg .pred %p;\nsetp.lt.u32 %p, %y, %z;\n\
        @%p bra L;\nmul.lo.u32 %x, %y, 3;\nret;\nL:\nxor.b32 %x, %y, %z;\nret;\n}\n\
        .visible .entry k(.param .u64 out) {\n\
        .reg .pred %p<6>; .reg .pred %q; .reg .b32 %r<6>; .reg .b32 %i; .reg .b32 %s; .reg .b32 %c;\n\
        .reg .b64 %d<6>; .reg .b64 %a; .reg .b64 %b; .reg .b64 %own; .reg .f32 %f<6>; .reg .f64 %g<6>;\n\
        .shared .align 16 .b8 s[1024]; .local .align 16 .b8 l[32];\n\
        ld.param.u64 %own, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n\
        mad.lo.u32 %r3, %r1, %r2, %r0;\n"
        .to_owned();
    text += &format!("mad.wide.u32 %own, %r3, {BYTES}, %own;\nmov.u32 %s, s; mad.lo.u32 %s, %r0, 16, %s;\n");
    for index in 0..6 {
        text += &format!(
            "ld.global.u32 %r{index}, [%own+{}]; ld.global.u64 %d{index}, [%own+{}];\n\
             ld.global.f32 %f{index}, [%own+{}]; ld.global.f64 %g{index}, [%own+{}];\n\
             setp.gt.s32 %p{index}, %r{index}, 0;\n",
            index * 4,
            32 + index * 8,
            96 + index * 4,
            128 + index * 8
        );
    }
    text += body;
    for index in 0..6 {
        text += &format!(
            "st.global.u32 [%own+{}], %r{index}; st.global.u64 [%own+{}], %d{index};\n\
             st.global.f32 [%own+{}], %f{index}; st.global.f64 [%own+{}], %g{index};\n\
             selp.b32 %i, 1, 0, %p{index}; st.global.u8 [%own+{}], %i;\n",
            index * 4,
            32 + index * 8,
            96 + index * 4,
            128 + index * 8,
            200 + index
        );
    }
    text + "ret;\n}\n"
}

/// Runs a program; returns the memory behind it.
fn outcome(text: &str, native: bool) -> (Result<(), Fault>, Vec<u64>) {
    let image = load(text);
    image.compile_after(native.then_some(0));
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let mut random = Random(7);
    // Some words look like usual floats, others like anything.
    let words: Vec<u64> = (0..2 * THREADS * BYTES / 8)
        .map(|_| match random.below(4) {
            0 => random.below(100) as u64,
            1 => (random.below(100) as f64 - 50.0).to_bits(),
            2 => u64::from((random.below(100) as f32 / 8.0).to_bits()) * 0x1_0000_0001,
            _ => random.below(usize::MAX) as u64 | ((random.below(usize::MAX) as u64) << 33),
        })
        .collect();
    let at = memory.put(&words);
    let result = launch(&image, &mut memory, "k", [2, 1, 1], [THREADS, 1, 1], 0, &[arg(at)]);
    assert_eq!(image.is_native("k"), native);
    (result.map(|_| ()), memory.get::<u64>(at))
}

#[test]
fn random_programs_do_the_same_as_interpreted() {
    // More with `CUDA_SOFT_SEEDS`: Cranelift is slow in a build that is not optimised.
    let seeds = std::env::var("CUDA_SOFT_SEEDS").map_or(40, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let text = text(&Random(seed).program());
        let (interpreted, native) = (outcome(&text, false), outcome(&text, true));
        let same = format!("{:?}", interpreted.0) == format!("{:?}", native.0);
        assert!(same, "seed {seed}: {:?}\n{:?}\n{text}", interpreted.0, native.0);
        let words = interpreted.1.iter().zip(&native.1).enumerate();
        let wrong: Vec<_> =
            words.filter(|(_, (a, b))| a != b).map(|(at, _)| (at / 64, at % 64 * 8)).collect();
        assert!(wrong.is_empty(), "seed {seed}: thread and byte {wrong:?} differ\n{text}");
    }
}

/// Blocks that run for a short time are counted together.
#[test]
fn kernels_of_one_short_block_are_compiled() {
    let image = load(&text("add.u32 %r0, %r0, 1;"));
    image.compile_after(Some(20_000));
    let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
    let at = memory.put(&[0_u64; (THREADS * BYTES / 8) as usize]);
    let launches = (1..100).find(|_| {
        launch(&image, &mut memory, "k", [1; 3], [THREADS, 1, 1], 0, &[arg(at)]).unwrap();
        image.is_native("k")
    });
    assert!((2..20).contains(&launches.unwrap()), "{launches:?}");
}

/// Memory of the heap is in no slot, and an access there leaves the slots of others alone.
#[test]
fn accesses_to_the_heap_do_the_same_as_interpreted() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .extern .func (.param .b64 p) malloc (.param .b64 size);\n\
        .visible .entry k(.param .u64 out) {\n\
        .reg .b64 %d<8>; .reg .b32 %r<4>; .reg .pred %p; .param .b64 size; .param .b64 back;\n\
        ld.param.u64 %d1, [out]; mov.u64 %d2, 64; st.param.b64 [size], %d2;\n\
        call.uni (back), malloc, (size); ld.param.b64 %d3, [back]; mov.u32 %r1, 0; mov.u64 %d4, 0;\n\
        L:\n\
        and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; selp.b64 %d5, %d1, %d3, %p;\n\
        cvt.u64.u32 %d6, %r1; st.u64 [%d5+8], %d6; st.u64 [%d1+16], %d6; ld.u64 %d7, [%d5+8]; add.u64 %d4, %d4, %d7;\n\
        add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 100; @%p bra L;\n\
        ld.u64 %d7, [%d3+8]; add.u64 %d4, %d4, %d7; st.global.u64 [%d1], %d4; ret;\n}\n";
    for native in [false, true] {
        let image = load(text);
        image.compile_after(native.then_some(0));
        let mut memory = Memory { checks: Checks::default(), ..Memory::default() };
        let out = memory.put(&[0_u64; 3]);
        launch(&image, &mut memory, "k", [1; 3], [1; 3], 0, &[arg(out)]).unwrap();
        assert_eq!(image.is_native("k"), native);
        assert_eq!(memory.get::<u64>(out), [4950 + 99, 98, 99]);
    }
}

/// Functions are recognised by their addresses: each has one.
#[test]
fn common_functions_are_translated() {
    let forms = [
        "sub.s32 %r0, %r1, %r2;",
        "sub.s64 %d0, %d1, %d2;",
        "mul.wide.u32 %d0, %r1, %r2;",
        "mad.wide.s32 %d0, %r1, %r2, %d3;",
        "or.b32 %r0, %r1, %r2;",
        "or.pred %p0, %p1, %p2;",
        "xor.b32 %r0, %r1, %r2;",
        "shl.b32 %r0, %r1, 3;",
        "shr.u32 %r0, %r1, %r2;",
        "shr.s32 %r0, %r1, 2;",
        "min.s32 %r0, %r1, %r2;",
        "setp.lt.s32 %p0, %r1, %r2;",
        "setp.ge.u32 %p0, %r1, %r2;",
        "setp.eq.s64 %p0, %d1, %d2;",
        "setp.lt.f32 %p0, %f1, %f2;",
        "cvt.u64.u32 %d0, %r1;",
        "cvt.s64.s32 %d0, %r1;",
        "cvt.u32.u64 %r0, %d1;",
        "cvt.s32.s8 %r0, %r1;",
        "cvt.u32.u16 %r0, %r1;",
        "cvt.s64.s16 %d0, %r1;",
        "cvt.rn.f32.s32 %f0, %r1;",
        "cvt.rn.f32.u32 %f0, %r1;",
        "cvt.rn.f64.s32 %g0, %r1;",
        "cvt.f64.f32 %g0, %f1;",
        "cvt.rn.f32.f64 %f0, %g1;",
        "mul.lo.s64 %d0, %d1, %d2;",
        "mad.lo.u64 %d0, %d1, %d2, %d3;",
        "div.u32 %r0, %r1, %r2;",
        "rem.s32 %r0, %r1, %r2;",
        "neg.s32 %r0, %r1;",
        "abs.s32 %r0, %r1;",
        "not.b32 %r0, %r1;",
        "not.pred %p0, %p1;",
        "mov.b64 {%r0, %r1}, %d2;",
        "mov.b64 %d0, {%r1, %r2};",
        "lop3.b32 %r0, %r1, %r2, %r3, 0x96;",
        "shf.l.wrap.b32 %r0, %r1, %r2, %r3;",
        "shf.r.wrap.b32 %r0, %r1, %r2, 9;",
        "popc.b32 %r0, %r1;",
        "clz.b32 %r0, %r1;",
        "setp.neu.f64 %p0, %g1, %g2;",
        "setp.num.f32 %p0, %f1, %f2;",
        "mul.f64 %g0, %g1, %g2;",
        "sqrt.rn.f32 %f0, %f1;",
        "neg.f32 %f0, %f1;",
        "min.f64 %g0, %g1, %g2;",
        "sub.f32 %f0, %f1, %f2;",
        "div.rn.f32 %f0, %f1, %f2;",
        "fma.rn.f32 %f0, %f1, %f2, %f3;",
        "max.f32 %f0, %f1, %f2;",
        "abs.f32 %f0, %f1;",
        "add.f64 %g0, %g1, %g2;",
        "fma.rn.f64 %g0, %g1, %g2, %g3;",
    ];
    let missing: Vec<&str> = forms.into_iter().filter(|form| !load(&text(form)).is_translated("k")).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
