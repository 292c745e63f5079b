"""Lists instructions, and records on a GPU what they compute.

    python3 instructions.py           writes instructions.txt and instructions.in
    python3 instructions.py record    runs them through libcuda and writes instructions.out

Each line of instructions.txt has the first byte of a table of inputs and the text of a kernel made from
instruction.template; those of approximate instructions begin with `~`, of half precision with `~~`. The kernel reads three 64-bit words per thread and
writes one. Registers of the instruction are the low bits of those words.

New instructions go to the end: those that nobody has recorded yet are only run by the tests, not compared.
"""
import ctypes, os, random, struct, sys

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS = 32
BITS = {"h": 16, "r": 32, "d": 64}


def inputs():
    """Four tables of three words a thread: integers, singles, doubles, halves."""
    rng = random.Random(7)
    f32 = lambda x: struct.unpack("<I", struct.pack("<f", x))[0]
    f64 = lambda x: struct.unpack("<Q", struct.pack("<d", x))[0]
    f16 = lambda x: struct.unpack("<H", struct.pack("<e", x))[0]
    ints = [0, 1, 2**64 - 1, 2**63, 2**63 - 1, 2**31, 2**31 - 1, 2**32 - 1, 7, 2**64 - 7, 0x8000, 0x7FFF, 31, 32, 33, 64, 5]
    values = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.5, 2.5, 3.0, 1e-3, 12345.678, -98765.4, 255.5, 65535.5, -0.3, 0.7]
    singles = [0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, f32(2e9), f32(-3e9), f32(1e19)]
    doubles = [0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 1, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF,
               f64(2.0**31 - 0.5), f64(1e300), f64(-4e9), f64(1e19), f64(1e-310), f64(6e-46)]
    halves = [0x7C00, 0xFC00, 0x7E00, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF]
    small = [0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 255, 300]
    pick = lambda special, other: rng.choice(special) if rng.random() < 0.6 else other()
    tables = [
        [pick(ints, lambda: rng.getrandbits(64)) for _ in range(3 * THREADS)],
        [pick([f32(v) for v in values] + singles, lambda: f32(rng.uniform(-10, 10)) ^ rng.getrandbits(4)) for _ in range(3 * THREADS)],
        [pick([f64(v) for v in values] + doubles, lambda: f64(rng.uniform(-10, 10)) ^ rng.getrandbits(8)) for _ in range(3 * THREADS)],
        [pick([f16(v) for v in values if abs(v) < 60000] + halves, lambda: f16(rng.uniform(-10, 10)) ^ rng.getrandbits(3))
         | (pick([f16(v) for v in values if abs(v) < 60000] + halves, lambda: f16(rng.uniform(-10, 10)))) << 16 for _ in range(3 * THREADS)],
        [rng.getrandbits(64) if i % 3 == 0 else rng.choice(small) for i in range(3 * THREADS)],
    ]
    return [word for table in tables for word in table]


INT, F32, F64, F16, SHIFT = range(5)


def instructions():
    """Text, destination, sources, table. `$d`, `$a`, `$b`, `$c` are the operands; approximate ones are marked `~`."""
    out = []

    def op(text, d, sources, table, plain=True):
        operands = ", ".join(["$d"] + ["$" + "abc"[i] for i in range(len(sources))])
        out.append((f"{text} {operands};" if plain else text, d, sources, table))

    for w, r in ((16, "h"), (32, "r"), (64, "d")):
        for s in "us":
            for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
                op(f"{name}.{s}{w}", r, r * 2, INT)
            for name in ("div", "rem"):
                out.append((f"or.b{w} $b, $b, 1; {name}.{s}{w} $d, $a, $b;", r, r * 2, INT))
            op(f"mad.lo.{s}{w}", r, r * 3, INT)
            op(f"mad.hi.{s}{w}", r, r * 3, INT)
            op(f"sad.{s}{w}", r, r * 3, INT)
            out.append((f"cvt.u32.u64 $x, %d2; shr.{s}{w} $d, $a, $x;", r, r, SHIFT))
            for cmp in ("eq", "ne", "lt", "le", "gt", "ge"):
                out.append((f"setp.{cmp}.{s}{w} %p1, $a, $b; selp.b{w} $d, $b, $c, %p1;", r, r * 3, INT))
        out.append((f"cvt.u32.u64 $x, %d2; shl.b{w} $d, $a, $x;", r, r, SHIFT))
        op(f"abs.s{w}", r, r, INT)
        op(f"neg.s{w}", r, r, INT)
        for name in ("and", "or", "xor"):
            op(f"{name}.b{w}", r, r * 2, INT)
        op(f"not.b{w}", r, r, INT)
        op(f"cnot.b{w}", r, r, INT)
    for s in "us":
        op(f"mul.wide.{s}16", "r", "hh", INT)
        op(f"mul.wide.{s}32", "d", "rr", INT)
        op(f"mad.wide.{s}16", "r", "hhr", INT)
        op(f"mad.wide.{s}32", "d", "rrd", INT)
        for part in ("lo", "hi"):
            op(f"mul24.{part}.{s}32", "r", "rr", INT)
            op(f"mad24.{part}.{s}32", "r", "rrr", INT)
        for w, r in ((32, "r"), (64, "d")):
            out.append((f"cvt.u32.u64 $x, %d2; cvt.u32.u64 $y, %d3; bfe.{s}{w} $d, $a, $x, $y;", r, r, SHIFT))
            op(f"bfind.{s}{w}", "r", r, INT)
            op(f"bfind.shiftamt.{s}{w}", "r", r, INT)
        for t in "us":
            op(f"dp4a.{s}32.{t}32", "r", "rrr", INT)
            op(f"dp2a.lo.{s}32.{t}32", "r", "rrr", INT)
            op(f"dp2a.hi.{s}32.{t}32", "r", "rrr", INT)
        for mode in ("wrap", "clamp"):
            op(f"szext.{mode}.{s}32", "r", "rr", SHIFT)
    for w, r in ((32, "r"), (64, "d")):
        for name in ("popc", "clz"):
            op(f"{name}.b{w}", "r", r, INT)
        op(f"brev.b{w}", r, r, INT)
        out.append((f"cvt.u32.u64 $x, %d2; cvt.u32.u64 $y, %d3; bfi.b{w} $d, $a, $a, $x, $y;", r, r, SHIFT))
        out.append((f"add.cc.u{w} $a, $a, $b; addc.cc.u{w} $b, $b, $c; addc.u{w} $d, $b, $a;", r, r * 3, INT))
        out.append((f"sub.cc.u{w} $a, $a, $b; subc.cc.u{w} $b, $b, $c; subc.u{w} $d, $b, $a;", r, r * 3, INT))
        out.append((f"mad.lo.cc.u{w} $a, $a, $b, $c; madc.hi.cc.u{w} $b, $b, $c, $a; addc.u{w} $d, $b, $a;", r, r * 3, INT))
        out.append((f"mad.hi.cc.s{w} $a, $a, $b, $c; madc.lo.u{w} $d, $b, $c, $a;", r, r * 3, INT))
    op("add.sat.s32", "r", "rr", INT)
    op("sub.sat.s32", "r", "rr", INT)
    op("mad.hi.sat.s32", "r", "rrr", INT)
    for mode in ("wrap", "clamp"):
        for way in "lr":
            op(f"shf.{way}.{mode}.b32", "r", "rrr", SHIFT)
            out.append((f"shf.{way}.{mode}.b32 $d, $b, $a, $c;", "r", "rrr", SHIFT))
        op(f"bmsk.{mode}.b32", "r", "rr", SHIFT)
        out.append((f"bmsk.{mode}.b32 $d, $b, $c;", "r", "rrr", SHIFT))
    op("prmt.b32", "r", "rrr", INT)
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        op(f"prmt.b32.{mode}", "r", "rrr", INT)
    for table in (0x80, 0xFE, 0x96, 0xE8, 0x1D, 0x3C):
        out.append((f"lop3.b32 $d, $a, $b, $c, {table};", "r", "rrr", INT))
    op("fns.b32", "r", "rrr", SHIFT)
    op("slct.b32.s32", "r", "rrr", INT)
    op("slct.b64.f32", "d", "ddr", F32)
    for w, r, table in ((32, "r", F32), (64, "d", F64)):
        flushes = ("", ".ftz") if w == 32 else ("",)
        for mode in ("rn", "rz", "rm", "rp"):
            for ftz in flushes:
                for name in ("add", "sub", "mul", "div"):
                    op(f"{name}.{mode}{ftz}.f{w}", r, r * 2, table)
                op(f"fma.{mode}{ftz}.f{w}", r, r * 3, table)
                op(f"sqrt.{mode}{ftz}.f{w}", r, r, table)
                op(f"rcp.{mode}{ftz}.f{w}", r, r, table)
        for ftz in flushes:
            op(f"min{ftz}.f{w}", r, r * 2, table)
            op(f"max{ftz}.f{w}", r, r * 2, table)
            for cmp in "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split():
                out.append((f"setp.{cmp}{ftz}.f{w} %p1, $a, $b; selp.b{w} $d, $b, $c, %p1;", r, r * 3, table))
        for kind in "finite infinite number notanumber normal subnormal".split():
            out.append((f"testp.{kind}.f{w} %p1, $a; selp.b{w} $d, $b, $c, %p1;", r, r * 3, table))
        op(f"copysign.f{w}", r, r * 2, table)
        op(f"abs.f{w}", r, r, table)
        op(f"neg.f{w}", r, r, table)
    op("add.sat.f32", "r", "rr", F32)
    op("fma.rn.sat.f32", "r", "rrr", F32)
    op("min.NaN.f32", "r", "rr", F32)
    op("max.NaN.f32", "r", "rr", F32)
    op("set.lt.u32.f32", "r", "rr", F32)
    op("set.ge.f32.s32", "r", "rr", INT)
    for text in ("sin", "cos", "ex2", "lg2", "rcp", "sqrt", "rsqrt", "tanh"):
        out.append((f"~{text}.approx.f32 $d, $a;", "r", "r", F32))
    out.append(("~div.approx.f32 $d, $a, $b;", "r", "rr", F32))
    out.append(("~div.full.f32 $d, $a, $b;", "r", "rr", F32))
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        r = "r" if t.endswith("x2") else "h"
        op(f"fma.rn.{t}", r, r * 3, F16)
        op(f"neg.{t}", r, r, F16)
        op(f"abs.{t}", r, r, F16)
        op(f"min.{t}", r, r * 2, F16)
        op(f"max.{t}", r, r * 2, F16)
        op(f"max.NaN.{t}", r, r * 2, F16)
        op(f"fma.rn.relu.{t}", r, r * 3, F16)
        for name in ("add", "sub", "mul"):
            op(f"{name}.{t}", r, r * 2, F16)
    for cmp in ("lt", "neu", "ge"):
        out.append((f"setp.{cmp}.f16 %p1, $a, $b; selp.b16 $d, $b, $c, %p1;", "h", "hhh", F16))
        out.append((f"setp.{cmp}.f16x2 %p1|%p2, $a, $b; selp.b32 $x, $b, $c, %p1; selp.b32 $d, $x, $a, %p2;", "r", "rrr", F16))
    out.append(("setp.lt.and.s32 %p1|%p2, $a, $b, %p3; selp.b32 $x, $b, $c, %p1; selp.b32 $d, $x, $a, %p2;", "r", "rrr", INT))
    integers = [(f"{s}{w}", {8: "r", 16: "h", 32: "r", 64: "d"}[w], w) for w in (8, 16, 32, 64) for s in "us"]
    for to, d, _ in integers:
        for source, a, _ in integers:
            op(f"cvt.{to}.{source}", d, a, INT)
            # The assembler refuses `.sat` where nothing can be out of range.
            bits, source_bits = int(to[1:]), int(source[1:])
            if source[0] != to[0] and source_bits >= bits or source_bits > bits or source[0] == "s" and to[0] == "u":
                op(f"cvt.sat.{to}.{source}", d, a, INT)
        for mode in ("rni", "rzi", "rmi", "rpi"):
            for source, a, table in (("f32", "r", F32), ("f64", "d", F64), ("f16", "h", F16)):
                op(f"cvt.{mode}.{to}.{source}", d, a, table)
        op(f"cvt.rzi.ftz.{to}.f32", d, "r", F32)
        for mode in ("rn", "rz", "rm", "rp"):
            for t, r in (("f32", "r"), ("f64", "d")):
                op(f"cvt.{mode}.{t}.{to}", r, d, INT)
        op(f"cvt.rn.f16.{to}", "h", d, INT)
    for mode in ("rn", "rz", "rm", "rp"):
        op(f"cvt.{mode}.f32.f64", "r", "d", F64)
        op(f"cvt.{mode}.ftz.f32.f64", "r", "d", F64)
    for mode in ("rn", "rz"):
        op(f"cvt.{mode}.f16.f32", "h", "r", F32)
        op(f"cvt.{mode}.bf16.f32", "h", "r", F32)
        op(f"cvt.{mode}.f16x2.f32", "r", "rr", F32)
        op(f"cvt.{mode}.relu.bf16x2.f32", "r", "rr", F32)
    op("cvt.rn.f16.f64", "h", "d", F64)
    op("cvt.f32.f16", "r", "h", F16)
    op("cvt.f64.f16", "d", "h", F16)
    op("cvt.f32.bf16", "r", "h", F16)
    op("cvt.f64.f32", "d", "r", F32)
    op("cvt.ftz.f64.f32", "d", "r", F32)
    op("cvt.sat.f32.f32", "r", "r", F32)
    op("cvt.rn.sat.f32.f64", "r", "d", F64)
    op("cvt.rn.sat.f16.f32", "h", "r", F32)
    for mode in ("rni", "rzi", "rmi", "rpi"):
        op(f"cvt.{mode}.f32.f32", "r", "r", F32)
        op(f"cvt.{mode}.ftz.f32.f32", "r", "r", F32)
        op(f"cvt.{mode}.f64.f64", "d", "d", F64)
        op(f"cvt.{mode}.f16.f16", "h", "h", F16)
    for t in ("u16x2", "s16x2"):
        for name in ("add", "min", "max"):
            op(f"{name}.{t}", "r", "rr", INT)
    op("max.relu.s16x2", "r", "rr", INT)
    op("max.relu.s32", "r", "rr", INT)
    for cmp in ("lt", "neu"):
        for to, r in (("u32", "r"), ("f16x2", "r")):
            op(f"set.{cmp}.{to}.f16x2", r, "rr", F16)
        op(f"set.{cmp}.u32.f16", "r", "hh", F16)
        op(f"set.{cmp}.f16.f16", "h", "hh", F16)
        op(f"set.{cmp}.bf16x2.bf16x2", "r", "rr", F16)
    op("set.lt.and.u32.s32", "r", "rr", INT)
    text, *rest = out.pop()
    out.append((text.replace(";", ", !%p3;"), *rest))
    for bits, r in ((16, "h"), (32, "r")):
        out.append((f"mov.b{2 * bits} {'%d6' if r == 'r' else '%r6'}, {{$a, $b}}; mov.b{2 * bits} {{$c, _}}, {'%d6' if r == 'r' else '%r6'}; sub.u{bits} $d, $c, $b;", r, r * 3, INT))
    for mode in ("up", "down", "bfly", "idx"):
        for clamp in ("31", "0", "7", "6175", "2055"):
            out.append((f"shfl.sync.{mode}.b32 %r8|%p1, $a, $b, {clamp}, 0xffffffff; selp.b32 $x, 1, 0, %p1; add.u32 $d, %r8, $x;", "r", "rr", INT))
    out.append(("and.b32 $a, $a, 3; match.any.sync.b32 $d, $a, 0xffffffff;", "r", "r", INT))
    for name in ("add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"):
        op(f"redux.sync.{name}", "r", "r", INT, True)
        text, *rest = out.pop()
        out.append((text.replace("$a;", "$a, 0xffffffff;"), *rest))
    return out + video() + later()


def video():
    """Video instructions."""
    out = []
    types = [f"{a}32.{b}32.{c}32" for a in "us" for b in "us" for c in "us"]
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for ty in types:
            out.append((f"{name}.{ty} $d, $a, $b;", "r", "rr", INT))
            out.append((f"{name}.{ty}.sat $d, $a, $b;", "r", "rr", INT))
        for ty in ("u32.u32.u32", "s32.s32.s32", "s32.u32.s32", "u32.s32.u32"):
            out.append((f"{name}.{ty} $d, $a.b1, $b.h1;", "r", "rr", INT))
            out.append((f"{name}.{ty}.sat $d.h1, $a.b0, $b.b3, $c;", "r", "rrr", INT))
            out.append((f"{name}.{ty}.sat $d.b2, $a.h0, $b.h1, $c;", "r", "rrr", INT))
            out.append((f"{name}.{ty} $d.h0, $a, $b, $c;", "r", "rrr", INT))
            for second in ("add", "min", "max"):
                out.append((f"{name}.{ty}.{second} $d, $a, $b, $c;", "r", "rrr", INT))
                out.append((f"{name}.{ty}.sat.{second} $d, $a.b2, $b.h0, $c;", "r", "rrr", INT))
    for name in ("vshl", "vshr"):
        for mode in ("clamp", "wrap"):
            for ty in ("u32.u32.u32", "s32.s32.u32", "s32.u32.u32", "u32.s32.u32"):
                out.append((f"{name}.{ty}.{mode} $d, $a, $b;", "r", "rr", SHIFT))
                out.append((f"{name}.{ty}.sat.{mode} $d, $a.h1, $b.b0;", "r", "rr", SHIFT))
                out.append((f"{name}.{ty}.sat.{mode} $d.b1, $a.b3, $b, $c;", "r", "rrr", SHIFT))
                out.append((f"{name}.{ty}.{mode}.add $d, $a, $b, $c;", "r", "rrr", SHIFT))
    for cmp in ("eq", "ne", "lt", "le", "gt", "ge"):
        for ty in ("u32.u32", "s32.s32", "u32.s32"):
            out.append((f"vset.{ty}.{cmp} $d, $a, $b;", "r", "rr", INT))
            out.append((f"vset.{ty}.{cmp} $d.b3, $a.b0, $b.h1, $c;", "r", "rrr", INT))
            out.append((f"vset.{ty}.{cmp}.add $d, $a, $b, $c;", "r", "rrr", INT))
    out.append(("vset.s32.s32.lt.max $d, $a, $b, $c;", "r", "rrr", INT))
    out.append(("vset.u32.u32.lt.min $d, $a, $b, $c;", "r", "rrr", INT))
    for ty in types:
        for scale in ("", ".shr7", ".shr15"):
            out.append((f"vmad.{ty}{scale} $d, $a.b1, $b.h0, $c;", "r", "rrr", INT))
            out.append((f"vmad.{ty}.sat{scale} $d, $a.h1, $b.h1, $c;", "r", "rrr", INT))
        out.append((f"vmad.{ty}.po.sat $d, $a.b3, $b.b2, $c;", "r", "rrr", INT))
    out.append(("vmad.s32.s32.s32.sat $d, -$a.h0, $b.h0, $c;", "r", "rrr", INT))
    out.append(("vmad.s32.u32.u32.shr7 $d, $a.h0, -$b.h1, $c;", "r", "rrr", INT))
    out.append(("vmad.s32.s32.s32 $d, $a.b0, $b.b1, -$c;", "r", "rrr", INT))
    for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
        for count, mask, a, b in ((2, "h1", "h13", "h02"), (4, "b310", "b7610", "b0415")):
            for ty in types:
                out.append((f"{name}{count}.{ty} $d, $a, $b, $c;", "r", "rrr", INT))
                out.append((f"{name}{count}.{ty}.sat $d, $a, $b, $c;", "r", "rrr", INT))
                out.append((f"{name}{count}.{ty}.add $d, $a, $b, $c;", "r", "rrr", INT))
            out.append((f"{name}{count}.s32.s32.s32.sat $d.{mask}, $a.{a}, $b.{b}, $c;", "r", "rrr", INT))
            out.append((f"{name}{count}.u32.u32.u32.add $d.{mask}, $a.{a}, $b.{b}, $c;", "r", "rrr", INT))
    for count, mask in ((2, "h0"), (4, "b20")):
        for cmp in ("eq", "ne", "lt", "le", "gt", "ge"):
            for ty in ("u32.u32", "s32.s32", "s32.u32"):
                out.append((f"vset{count}.{ty}.{cmp} $d, $a, $b, $c;", "r", "rrr", INT))
                out.append((f"vset{count}.{ty}.{cmp}.add $d.{mask}, $a, $b, $c;", "r", "rrr", INT))
    return out


def later():
    """Instructions of later versions, and rare forms."""
    out = []
    out.append(("mad24.hi.sat.s32 $d, $a, $b, $c;", "r", "rrr", INT))
    out.append(("add.cc.u32 %r5, $a, $b; addc.u16 $d, %h1, %h2;", "h", "rr", INT))
    out.append(("sub.cc.u32 %r5, $a, $b; subc.s16 $d, %h1, %h2;", "h", "rr", INT))
    out.append(("add.cc.u32 %r5, $a, $b; madc.hi.u16 $d, %h1, %h2, %h3;", "h", "rr", INT))
    for combine in ("or", "and"):
        for table in (0x80, 0x96):
            out.append((f"lop3.{combine}.b32 %r8|%p1, $a, $b, $c, {table}, %p3; selp.b32 $d, %r8, 5, %p1;", "r", "rrr", INT))
    for t in ("f32", "f16", "f16x2", "bf16", "bf16x2"):
        r, table = ("h" if t in ("f16", "bf16") else "r"), (F32 if t == "f32" else F16)
        for name in ("min", "max"):
            for mods in (".xorsign.abs", ".NaN.xorsign.abs"):
                out.append((f"{name}{mods}.{t} $d, $a, $b;", r, r * 2, table))
    for t, r in (("f16", "h"), ("f16x2", "r")):
        for name in ("add", "sub", "mul"):
            for mods in (".ftz", ".sat", ".rn.ftz.sat"):
                out.append((f"{name}{mods}.{t} $d, $a, $b;", r, r * 2, F16))
        for mods in (".ftz", ".sat", ".ftz.sat", ".ftz.relu"):
            out.append((f"fma.rn{mods}.{t} $d, $a, $b, $c;", r, r * 3, F16))
        for name in ("min", "max", "min.ftz.NaN", "max.ftz", "abs.ftz", "neg.ftz"):
            name = name if "." in name else name + ".ftz"
            count = 1 if name[:3] in ("abs", "neg") else 2
            out.append((f"{name}.{t} " + ", ".join(["$d", "$a", "$b"][: count + 1]) + ";", r, r * count, F16))
    out.append(("setp.lt.ftz.f16 %p1, $a, $b; selp.b16 $d, $b, $c, %p1;", "h", "hhh", F16))
    out.append(("setp.ge.f16x2 %p1, $a, $b; selp.b32 $d, $b, $c, %p1;", "r", "rrr", F16))
    for cmp in ("eq", "neu", "num"):
        out.append((f"setp.{cmp}.and.bf16x2 %p1|%p2, $a, $b, %p3; selp.b32 $x, $b, $c, %p1; selp.b32 $d, $x, $a, %p2;", "r", "rrr", F16))
    for text, convert in (("tanh.approx.f16", "cvt.f32.f16"), ("ex2.approx.f16", "cvt.f32.f16"), ("tanh.approx.bf16", "cvt.f32.bf16"), ("ex2.approx.ftz.bf16", "cvt.f32.bf16")):
        out.append((f"~~{text} %h6, $a; {convert} $d, %h6;", "r", "h", F16))
        out.append((f"~~{text}x2 %r5, $a; mov.b32 {{_, %h6}}, %r5; {convert} $d, %h6;", "r", "r", F16))
    for t in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            out.append((f"cvt.rn.satfinite{relu}.{t}.f32 $d, $a, $b;", "h", "rr", F32))
            out.append((f"cvt.rn.satfinite{relu}.{t}.f16x2 $d, $a;", "h", "r", F16))
            for table in (INT, F32, F64, F16, SHIFT):
                out.append((f"cvt.rn{relu}.f16x2.{t} $d, $a;", "r", "h", table))
    for mods in (".rna", ".rn", ".rz", ".rn.relu", ".rz.relu", ".rna.satfinite"):
        out.append((f"cvt{mods}.tf32.f32 $d, $a; and.b32 $d, $d, 0xffffe000;", "r", "r", F32))
    for mods in (".rn.satfinite", ".rn.relu.satfinite", ".rz.satfinite"):
        for t in ("f16", "bf16"):
            out.append((f"cvt{mods}.{t}.f32 $d, $a;", "h", "r", F32))
            out.append((f"cvt{mods}.{t}x2.f32 $d, $a, $b;", "r", "rr", F32))
    for to in ("u16", "s16"):
        out.append((f"cvt.pack.sat.{to}.s32 $d, $a, $b;", "r", "rr", INT))
    for to in ("u2", "s2", "u4", "s4", "u8", "s8"):
        out.append((f"cvt.pack.sat.{to}.s32.b32 $d, $a, $b, $c;", "r", "rrr", INT))
    for mode in ("rn", "rz", "rm", "rp"):
        for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
            out.append((f"cvt.{mode}.bf16.{t} $d, $a;", "h", {"16": "h", "32": "r", "64": "d"}[t[1:]], INT))
        out.append((f"cvt.{mode}.bf16.f64 $d, $a;", "h", "d", F64))
        out.append((f"cvt.{mode}.f16.f32 $d, $a;", "h", "r", F32))
        out.append((f"cvt.{mode}.bf16.f32 $d, $a;", "h", "r", F32))
        out.append((f"cvt.{mode}.f16.bf16 $d, $a;", "h", "h", F16))
        out.append((f"cvt.{mode}.bf16.f16 $d, $a;", "h", "h", F16))
        out.append((f"cvt.{mode}i.s32.bf16 $d, $a;", "r", "h", F16))
        out.append((f"cvt.{mode}i.u64.bf16 $d, $a;", "d", "h", F16))
        out.append((f"cvt.{mode}i.bf16.bf16 $d, $a;", "h", "h", F16))
    out.append(("cvt.f64.bf16 $d, $a;", "d", "h", F16))
    out.append(("cvt.ftz.f32.bf16 $d, $a;", "r", "h", F16))
    out.append(("cvt.ftz.f32.f16 $d, $a;", "r", "h", F16))
    out.append(("cvt.rn.ftz.f16.f32 $d, $a;", "h", "r", F32))
    out.append(("cvt.sat.f16.f16 $d, $a;", "h", "h", F16))
    out.append(("cvt.rni.sat.f32.f32 $d, $a;", "r", "r", F32))
    out.append(("~rcp.approx.ftz.f64 $d, $a;", "d", "d", F64))
    out.append(("mov.b128 %q1, {$a, $b}; mov.b128 %q2, %q1; mov.b128 {%d6, $d}, %q2; xor.b64 $d, $d, %d6;", "d", "dd", INT))
    place = "[%d9+@PLACE@]"
    for text in ("add.f32", "add.noftz.f16x2", "add.noftz.bf16x2", "min.s32", "max.u32", "inc.u32", "dec.u32", "xor.b32"):
        table = F32 if text == "add.f32" else F16 if "f16" in text else INT
        out.append((f"st.global.u32 {place}, $a; red.global.{text} {place}, $b; ld.global.u32 $d, {place};", "r", "rr", table))
    for text in ("add.noftz.f16", "add.noftz.bf16"):
        out.append((f"st.global.u16 {place}, $a; atom.global.{text} %h6, {place}, $b; ld.global.u16 $d, {place};", "h", "hh", F16))
    out.append((f"st.global.u16 {place}, $a; atom.global.cas.b16 %h6, {place}, $a, $b; ld.global.u16 $d, {place};", "h", "hh", F16))
    out.append((f"st.global.u64 {place}, $a; red.global.add.v2.f32 {place}, {{%r2, %r3}}; ld.global.u64 $d, {place};", "d", "d", F32))
    for text in ("add", "min", "max"):
        for t in ("f16x2", "bf16x2"):
            out.append((f"st.global.u64 {place}, $a; red.global.{text}.noftz.v2.{t} {place}, {{%r2, %r3}}; ld.global.u64 $d, {place};", "d", "d", F16))
    out.append(("alloca.u64 %d6, 32, 16; st.local.u64 [%d6+8], $a; stacksave.u64 %d7; alloca.u64 %d10, 8, 8; st.local.u64 [%d10], $b; stackrestore.u64 %d7; ld.local.u64 $d, [%d6+8];", "d", "dd", INT))
    return out + unusual()


def unusual():
    """Forms of which assemblers make something else than the PTX manual says."""
    out = []
    types = [f"{a}32.{b}32.{c}32" for a in "us" for b in "us" for c in "us"]
    for ty in types:
        for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
            for second in ("min", "max"):
                out.append((f"{name}.{ty}.{second} $d, $a, $b, $c;", "r", "rrr", INT))
                out.append((f"{name}.{ty}.sat.{second} $d, $a, $b, $c;", "r", "rrr", INT))
            for part in ("h0", "h1", "b0", "b3"):
                out.append((f"{name}.{ty}.sat $d.{part}, $a, $b, $c;", "r", "rrr", INT))
            out.append((f"{name}.{ty} $d.h1, $a, $b, $c;", "r", "rrr", INT))
        for mods in (".shr7", ".sat", ".sat.shr15", ".po.sat.shr7"):
            out.append((f"vmad.{ty}{mods} $d, $a, $b, $c;", "r", "rrr", INT))
        for operands in ("-$a, $b, $c", "$a, $b, -$c"):
            out.append((f"vmad.{ty}.sat.shr7 $d, {operands};", "r", "rrr", INT))
    for name in ("vshl", "vshr"):
        for ty in ("u32.u32.u32", "s32.s32.u32", "s32.u32.u32", "u32.s32.u32"):
            for second in ("min", "max"):
                out.append((f"{name}.{ty}.clamp.{second} $d, $a, $b, $c;", "r", "rrr", SHIFT))
                out.append((f"{name}.{ty}.sat.clamp.{second} $d, $a, $b, $c;", "r", "rrr", SHIFT))
            for part in ("h0", "h1", "b0"):
                out.append((f"{name}.{ty}.sat.wrap $d.{part}, $a, $b, $c;", "r", "rrr", SHIFT))
    for ty in ("u32.u32", "s32.s32", "u32.s32", "s32.u32"):
        for second in ("min", "max"):
            out.append((f"vset.{ty}.lt.{second} $d, $a, $b, $c;", "r", "rrr", INT))
        out.append((f"vset.{ty}.lt $d.h1, $a, $b, $c;", "r", "rrr", INT))
    for ty in ("u16", "s16"):
        for part in ("lo", "hi"):
            out.append((f"add.cc.u32 %r5, $a, $b; madc.{part}.{ty} $d, %h1, %h2, %h3;", "h", "rr", INT))
    for name in ("rcp", "rsqrt"):
        out.append((f"~{name}.approx.ftz.f64 $d, $a;", "d", "d", F64))
    out.append(("~rsqrt.approx.f64 $d, $a;", "d", "d", F64))
    return out


def line(text, d, sources, table):
    mark = "~" * (len(text) - len(text.lstrip("~")))
    text = text.lstrip("~").replace("$d", f"%{d}4").replace("$x", "%r5").replace("$y", "%r6")
    for i, r in enumerate(sources):
        text = text.replace("$" + "abc"[i], f"%{r}{i + 1}")
    text += {"h": " cvt.u64.u16 %d5, %h4;", "r": " cvt.u64.u32 %d5, %r4;", "d": " mov.b64 %d5, %d4;"}[d]
    return f"{mark}{table * THREADS * 24} {text}"


def kernel(template, index, line):
    table, text = line.lstrip("~").split(" ", 1)
    place = str(index * THREADS * 8)
    return (template.replace("@INDEX@", str(index)).replace("@TABLE@", table).replace("@TEXT@", text)
            .replace("@PLACE@", place))


def main():
    path = lambda name: os.path.join(HERE, name)
    names = [line(*item) for item in instructions()]
    words = inputs()
    if "record" not in sys.argv:
        open(path("instructions.in"), "wb").write(struct.pack(f"<{len(words)}Q", *words))
        open(path("instructions.txt"), "w").write("".join(name + "\n" for name in names))
        return
    head = ".version 8.5\n.target sm_90\n.address_size 64\n"
    template = open(path("instruction.template")).read()
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        code = getattr(cuda, name)(*args)
        assert code == 0, (name, code)

    call("cuInit", 0)
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    log = ctypes.create_string_buffer(1 << 16)
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    size = len(names) * THREADS * 8
    call("cuMemAlloc_v2", ctypes.byref(source), len(words) * 8)
    call("cuMemAlloc_v2", ctypes.byref(target), size)
    packed = struct.pack(f"<{len(words)}Q", *words)
    call("cuMemcpyHtoD_v2", source, packed, len(packed))
    args = (ctypes.c_void_p * 2)(ctypes.addressof(source), ctypes.addressof(target))
    for index, item in enumerate(names):
        one = (head + kernel(template, index, item)).encode()
        if cuda.cuModuleLoadDataEx(ctypes.byref(module), one, 2, options, values):
            print(item, log.value.decode(), file=sys.stderr)
            continue
        call("cuModuleGetFunction", ctypes.byref(function), module, f"k{index}".encode())
        call("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, args, None)
    call("cuCtxSynchronize")
    result = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", result, target, ctypes.c_size_t(size))
    open(os.path.join(os.environ.get("OUT", HERE), "instructions.out"), "wb").write(result.raw)


main()
