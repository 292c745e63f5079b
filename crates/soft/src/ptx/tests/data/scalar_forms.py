"""Lists forms of instructions, and asks an assembler which are valid.

    python3 scalar_forms.py PTXAS        writes scalar_forms.txt

A line of scalar_forms.txt is `valid` or `invalid`, then the text of a body for the kernel in scalar_form.template.
"""
import concurrent.futures, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INTS = [f"{s}{w}" for w in (16, 32, 64) for s in "us"]
REG = {"8": "h", "16": "h", "32": "r", "64": "d"}


def reg(ty, index):
    if ty == "pred":
        return f"%p{index}"
    if ty.endswith("x2") or ty == "tf32":
        return f"%h{index}" if ty.startswith("e") else f"%r{index}"
    width = "".join(c for c in ty if c.isdigit())
    return f"%{REG[width]}{index}"


def forms():
    out = []

    def add(*texts):
        out.extend(texts)

    def op(name, *types):
        add(f"{name} " + ", ".join(reg(ty, i + 1) for i, ty in enumerate(types)) + ";")

    # Integers.
    for ty in INTS + ["u16x2", "s16x2", "b32", "u8", "s8"]:
        same = "u16" if ty.endswith("8") else ty
        for name in ("add", "sub", "mul", "mul.lo", "mul.hi", "div", "rem", "min", "max", "add.sat", "sub.sat", "min.relu", "max.relu", "add.cc", "sub.cc", "addc", "subc", "addc.cc", "subc.cc"):
            op(f"{name}.{ty}", same, same, same)
        for name in ("mad.lo", "mad.hi", "mad.lo.sat", "mad.hi.sat", "mad.lo.cc", "mad.hi.cc", "madc.lo", "madc.hi", "madc.lo.cc", "madc.hi.cc", "sad", "mul24.lo", "mad24.lo", "mad24.hi", "mad24.lo.sat", "mad24.hi.sat"):
            op(f"{name}.{ty}", *[same] * (3 if name.startswith("mul") else 4))
        for name in ("abs", "neg"):
            op(f"{name}.{ty}", same, same)
        if ty in ("u16", "s16", "u32", "s32"):
            double = ty[0] + str(2 * int(ty[1:]))
            op(f"mul.wide.{ty}", double, ty, ty)
            op(f"mad.wide.{ty}", double, ty, ty, double)
    for ty in ("b16", "b32", "b64", "u32", "s32", "u64", "pred"):
        for name in ("and", "or", "xor"):
            op(f"{name}.{ty}", ty, ty, ty)
        op(f"not.{ty}", ty, ty)
        op(f"cnot.{ty}", ty, ty)
        if ty == "pred":
            continue
        op(f"popc.{ty}", "u32", ty)
        op(f"clz.{ty}", "u32", ty)
        op(f"brev.{ty}", ty, ty)
        op(f"bfind.{ty}", "u32", ty)
        op(f"bfind.shiftamt.{ty}", "u32", ty)
        op(f"bfe.{ty}", ty, ty, "u32", "u32")
        op(f"bfi.{ty}", ty, ty, ty, "u32", "u32")
        for name in ("shl", "shr"):
            op(f"{name}.{ty}", ty, ty, "u32")
        for mode in ("wrap", "clamp"):
            op(f"shf.l.{mode}.{ty}", ty, ty, ty, "u32")
            op(f"szext.{mode}.{ty}", ty, ty, "u32")
            op(f"bmsk.{mode}.{ty}", ty, "u32", "u32")
        op(f"selp.{ty}", ty, ty, ty, "pred")
        op(f"slct.{ty}.s32", ty, ty, ty, "s32")
        op(f"slct.{ty}.f32", ty, ty, ty, "f32")
        op(f"slct.ftz.{ty}.f32", ty, ty, ty, "f32")
    op("selp.f64", "f64", "f64", "f64", "pred")
    op("selp.f16", "f16", "f16", "f16", "pred")
    op("selp.f16x2", "f16x2", "f16x2", "f16x2", "pred")
    op("fns.b32", "b32", "b32", "b32", "s32")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        op(f"prmt.b32{mode}", "b32", "b32", "b32", "b32")
    add("lop3.b32 %r1, %r2, %r3, %r4, 0x96;", "lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x96, %p2;", "lop3.and.b32 %r1|%p1, %r2, %r3, %r4, 0x96, !%p2;", "lop3.or.b32 _|%p1, %r2, %r3, %r4, 0x96, %p2;", "lop3.xor.b32 %r1|%p1, %r2, %r3, %r4, 1, %p2;", "lop3.or.b32 %r1, %r2, %r3, %r4, 1, %p2;")
    for a in "us":
        for b in "us":
            op(f"dp4a.{a}32.{b}32", "u32", "u32", "u32", "u32")
            op(f"dp2a.lo.{a}32.{b}32", "u32", "u32", "u32", "u32")
            op(f"dp2a.hi.{a}32.{b}32", "u32", "u32", "u32", "u32")
    op("dp2a.u32.u32", "u32", "u32", "u32", "u32")

    # Floats.
    for ty in ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2"):
        for name in ("add", "sub", "mul"):
            for mods in ("", ".rn", ".rz", ".rm", ".ftz", ".sat", ".rn.ftz.sat", ".relu"):
                op(f"{name}{mods}.{ty}", ty, ty, ty)
        for mods in ("", ".rn", ".rp", ".rn.ftz", ".rn.sat", ".rn.ftz.sat", ".rn.relu", ".rn.ftz.relu", ".rn.sat.relu"):
            op(f"fma{mods}.{ty}", ty, ty, ty, ty)
            op(f"mad{mods}.{ty}", ty, ty, ty, ty)
        for name in ("min", "max"):
            for mods in ("", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.NaN.xorsign.abs", ".abs", ".rn", ".sat"):
                op(f"{name}{mods}.{ty}", ty, ty, ty)
            op(f"{name}.{ty}", ty, ty, ty, ty)
        for name in ("abs", "neg"):
            for mods in ("", ".ftz"):
                op(f"{name}{mods}.{ty}", ty, ty)
        for name in ("div", "rcp", "sqrt", "rsqrt"):
            for mods in ("", ".rn", ".rz", ".rm", ".rp", ".rn.ftz", ".approx", ".approx.ftz", ".full", ".full.ftz"):
                op(f"{name}{mods}.{ty}", *[ty] * (3 if name == "div" else 2))
        for name in ("sin", "cos", "lg2", "ex2", "tanh"):
            for mods in ("", ".approx", ".approx.ftz"):
                op(f"{name}{mods}.{ty}", ty, ty)
        for kind in "finite infinite number notanumber normal subnormal".split():
            op(f"testp.{kind}.{ty}", "pred", ty)
        op(f"copysign.{ty}", ty, ty, ty)

    # Comparisons.
    types = ["b16", "b32", "b64"] + INTS + ["f32", "f64", "f16", "bf16"]
    for ty in types:
        for cmp in "eq lt lo hs equ gtu num".split():
            op(f"setp.{cmp}.{ty}", "pred", ty, ty)
            add(f"setp.{cmp}.xor.{ty} %p1|%p2, {reg(ty, 1)}, {reg(ty, 2)}, !%p3;")
            op(f"setp.{cmp}.ftz.{ty}", "pred", ty, ty)
            for to in ("u32", "s32", "f32", "u16", "s16", "f16", "bf16", "b32", "f64"):
                op(f"set.{cmp}.{to}.{ty}", to, ty, ty)
        op(f"set.lt.and.u32.{ty}", "u32", ty, ty, "pred")
        op(f"set.lt.ftz.u32.{ty}", "u32", ty, ty)
    for ty in ("f16x2", "bf16x2"):
        for cmp in "eq lt equ num".split():
            add(f"setp.{cmp}.{ty} %p1|%p2, %r1, %r2;", f"setp.{cmp}.ftz.{ty} %p1|%p2, %r1, %r2;", f"setp.{cmp}.and.{ty} %p1|%p2, %r1, %r2, %p3;", f"setp.{cmp}.{ty} %p1, %r1, %r2;")
            for to in ("f16x2", "bf16x2", "u32", "s32", "u16", "f32"):
                op(f"set.{cmp}.{to}.{ty}", to, ty, ty)
                op(f"set.{cmp}.ftz.{to}.{ty}", to, ty, ty)

    # Conversions.
    all_types = ["u8", "s8"] + INTS + ["f16", "bf16", "f32", "f64"]
    for to in all_types:
        for source in all_types:
            for mods in ("", ".sat", ".rn", ".rz", ".rp", ".rni", ".rzi", ".rni.sat", ".rn.sat", ".ftz", ".rn.ftz", ".rzi.ftz", ".rn.relu", ".rz.relu", ".rn.satfinite", ".rn.relu.satfinite"):
                op(f"cvt{mods}.{to}.{source}", to, source)
    for to in ("f16x2", "bf16x2", "e4m3x2", "e5m2x2"):
        for mods in ("", ".rn", ".rz", ".rp", ".rn.relu", ".rz.relu", ".rn.satfinite", ".rn.satfinite.relu", ".rn.relu.satfinite", ".rz.satfinite", ".rn.ftz", ".rn.sat"):
            op(f"cvt{mods}.{to}.f32", to, "f32", "f32")
            for source in ("e4m3x2", "e5m2x2", "f16x2", "bf16x2"):
                op(f"cvt{mods}.{to}.{source}", to, source)
    for mods in ("", ".rna", ".rn", ".rz", ".rn.relu", ".rz.relu", ".rna.relu", ".rna.satfinite", ".rn.satfinite", ".rz.satfinite", ".rn.relu.satfinite", ".rn.satfinite.relu"):
        op(f"cvt{mods}.tf32.f32", "tf32", "f32")
    for to in ("u16", "s16"):
        op(f"cvt.pack.sat.{to}.s32", "b32", "s32", "s32")
    for to in ("u2", "s2", "u4", "s4", "u8", "s8", "u16"):
        op(f"cvt.pack.sat.{to}.s32.b32", "b32", "s32", "s32", "b32")
    add("cvt.pack.u16.s32 %r1, %r2, %r3;", "cvt.rn.f32.u32 %r1, 7;", "cvt.u16.u32 %r1, %r2;", "cvt.u32.u16 %r1, %r2;", "cvt.f32.f16 %r1, %r2;")

    # Video instructions.
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        add(f"{name}.u32.u32.s32 %r1, %r2, %r3;", f"{name}.s32.u32.s32.sat %r1, %r2.b0, %r3.h1;", f"{name}.s32.u32.u32.add %r1, %r2.b3, %r3.h0, %r4;", f"{name}.s32.s32.u32.sat.max %r1, %r2, %r3, %r4;", f"{name}.u32.u32.u32.min %r1, %r2, %r3, %r4;", f"{name}.s32.s32.s32.sat %r1.h1, %r2.b0, %r3.b2, %r4;", f"{name}.u32.u32.u32 %r1.b2, %r2.b0, 7, %r4;", f"{name}.u32.u32 %r1, %r2, %r3;", f"{name}.u32.u32.u32.add %r1.b0, %r2, %r3, %r4;", f"{name}.u32.u32.u32 %r1.b0, %r2, %r3;")
    for name in ("vshl", "vshr"):
        add(f"{name}.u32.u32.u32.clamp %r1, %r2, %r3;", f"{name}.s32.s32.u32.sat.wrap %r1, %r2.h1, %r3.b1;", f"{name}.s32.s32.u32.wrap.add %r1, %r2, %r3, %r4;", f"{name}.u32.u32.u32.sat.clamp %r1.h0, %r2, %r3, %r4;", f"{name}.u32.u32.u32 %r1, %r2, %r3;", f"{name}.u32.u32.s32.clamp %r1, %r2, %r3;", f"{name}.u32.u32.u32.sat.clamp.min %r1, %r2, %r3, %r4;")
    add("vset.u32.s32.lt %r1, %r2, %r3;", "vset.s32.s32.ge.max %r1, %r2.b1, %r3.h0, %r4;", "vset.u32.u32.ne %r1.b3, %r2, %r3, %r4;", "vset.u32.u32.eq.add %r1, %r2, %r3, %r4;")
    add("vmad.u32.u32.u32 %r1, %r2, %r3, %r4;", "vmad.s32.s32.s32.sat %r1, %r2.b0, -%r3.h1, %r4;", "vmad.s32.u32.s32.po.sat.shr7 %r1, %r2, %r3, %r4;", "vmad.s32.s32.u32.shr15 %r1, %r2.h0, %r3.b1, -%r4;", "vmad.s32.s32.s32 %r1, -%r2, %r3, %r4;", "vmad.s32.s32.s32 %r1, -%r2, -%r3, %r4;")
    for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
        add(f"{name}2.u32.u32.u32 %r1, %r2, %r3, %r4;", f"{name}2.s32.s32.s32.sat %r1, %r2, %r3, %r4;", f"{name}2.s32.u32.s32.add %r1.h1, %r2.h13, %r3.h02, %r4;", f"{name}2.u32.u32.u32 %r1.h10, %r2.h10, %r3.h32, %r4;", f"{name}2.u32.s32.u32.sat.add %r1, %r2, %r3, %r4;")
        add(f"{name}4.u32.u32.u32 %r1, %r2, %r3, %r4;", f"{name}4.s32.s32.s32.sat %r1.b20, %r2, %r3, %r4;", f"{name}4.u32.u32.u32.add %r1, %r2, %r3, %r4;", f"{name}4.s32.s32.u32.add %r1.b310, %r2.b7610, %r3.b0123, %r4;", f"{name}4.u32.u32.u32 %r1.b3210, %r2, %r3, %r4;")
    add("vset2.u32.u32.lt %r1, %r2, %r3, %r4;", "vset2.s32.u32.ge.add %r1.h0, %r2.h11, %r3, %r4;", "vset4.u32.u32.eq %r1, %r2, %r3, %r4;", "vset4.s32.s32.ne.add %r1.b31, %r2.b0000, %r3, %r4;", "vset4.u32.u32 %r1, %r2, %r3, %r4;")

    # Memory.
    loads = ["", ".weak", ".volatile", ".relaxed.cta", ".relaxed.sys", ".acquire.gpu", ".acquire.cluster", ".mmio.relaxed.sys", ".relaxed", ".acquire", ".weak.gpu", ".release.gpu"]
    for mods in loads:
        for space in ("", ".global", ".shared", ".shared::cta", ".shared::cluster", ".local", ".const", ".param", ".param::entry", ".param::func"):
            base = {"": "%d1", ".global": "%d1", ".local": "loc", ".const": "con", ".param": "out", ".param::entry": "out", ".param::func": "out"}.get(space, "sha")
            add(f"ld{mods}{space}.u32 %r1, [{base}];")
    for mods in ("", ".weak", ".volatile", ".relaxed.gpu", ".release.sys", ".release.cluster", ".mmio.relaxed.sys", ".acquire.gpu", ".relaxed"):
        for space in ("", ".global", ".shared", ".shared::cta", ".shared::cluster", ".local", ".const", ".param", ".param::func"):
            base = {"": "%d1", ".global": "%d1", ".local": "loc", ".const": "con", ".param": "arg", ".param::func": "arg"}.get(space, "sha")
            add(f"{{ .param .b32 arg; st{mods}{space}.u32 [{base}], %r1; }}")
    for cache in (".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"):
        add(f"ld.global{cache}.u32 %r1, [%d1];", f"st.global{cache}.u32 [%d1], %r1;", f"ld{cache}.u32 %r1, [%d1];", f"ld.weak.global{cache}.u32 %r1, [%d1];")
    for evict in (".L1::evict_normal", ".L1::evict_unchanged", ".L1::evict_first", ".L1::evict_last", ".L1::no_allocate", ".L2::evict_last", ".L2::evict_first", ".L2::evict_normal"):
        add(f"ld.global{evict}.u32 %r1, [%d1];", f"st.global{evict}.u32 [%d1], %r1;", f"ld.global.nc{evict}.u32 %r1, [%d1];")
    for size in (".L2::64B", ".L2::128B", ".L2::256B"):
        add(f"ld.global{size}.u32 %r1, [%d1];", f"ld.global.nc{size}.v4.f32 {{%r1, %r2, %r3, %r4}}, [%d1];", f"ld.global.nc.L1::no_allocate{size}.u32 %r1, [%d1];")
    add("ld.global.L2::cache_hint.u32 %r1, [%d1], %d2;", "st.global.L2::cache_hint.v2.u32 [%d1], {%r1, %r2}, %d2;", "ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v2.b64 {%d1, %d2}, [%d1], %d3;", "ld.global.L1::no_allocate.L2::cache_hint.L2::128B.f64 %d2, [%d1], %d3;", "ld.global.nc.cg.u32 %r1, [%d1];", "ld.global.nc.ca.b8 %h1, [%d1];", "ld.const.nc.u32 %r1, [con];", "ldu.global.u32 %r1, [%d1];", "ldu.u32 %r1, [%d1];", "ldu.global.v4.f32 {%r1, %r2, %r3, %r4}, [%d1];", "ld.shared.u32 %r1, [%r2];", "ld.global.u32 %r1, [%d1].unified;", "ld.unified.u32 %r1, [%d1];", "st.global.v2.u32 [%d1+8].unified, {%r1, %r2};", "ld.global.v2.u8 {%h1, %h2}, [%d1];", "ld.global.v4.u64 {%d1, %d2, %d3, %d4}, [%d1];", "ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];", "ld.global.b128 %q1, [%d1];", "ld.shared.b128 %q1, [sha];", "st.global.b128 [%d1], %q1;", "ld.global.v2.b128 {%q1, %q2}, [%d1];", "mov.b128 %q1, {%d1, %d2};", "mov.b128 {%d1, %d2}, %q1;", "mov.b128 %q1, %q2;", "mov.b128 %q1, 0;", "mov.b128 {%d1, _}, %q1;", "ld.relaxed.sys.global.b128 %q1, [%d1];", "ld.volatile.global.b128 %q1, [%d1];", "st.release.gpu.global.b128 [%d1], %q1;", "st.shared.v2.b64 [sha], {%d1, %d2};", "mov.b64 {%r1, %r2}, %d1;", "mov.b64 %d1, {%h1, %h2, %h3, %h4};", "mov.b32 %r1, {%h1, %h2};", "mov.b32 {%h1, _}, %r1;", ".reg .b8 %b<5>; mov.b32 %r1, {%b1, %b2, %b3, %b4};", ".reg .b8 %b<5>; mov.b32 {%b1, %b2, %b3, %b4}, %r1;", ".reg .b8 %b<5>; mov.b16 %h1, {%b1, %b2};", "ld.global.pred %p1, [%d1];", "mov.pred %p1, %p2;", "add.b128 %q1, %q1, %q2;", "and.b128 %q1, %q1, %q2;", "selp.b128 %q1, %q1, %q2, %p1;")
    for space in ("", ".global", ".local"):
        for level in (".L1", ".L2"):
            add(f"prefetch{space}{level} [%d1];")
    add("prefetch.global.L2::evict_last [%d1];", "prefetch.global.L2::evict_normal [%d1+16];", "prefetch.L2::evict_last [%d1];", "prefetchu.L1 [%d1];", "prefetchu.L2 [%d1];", "prefetch.const.tensormap [%d1];", "prefetch.tensormap [%d1];", "prefetch.param.tensormap [out];", "prefetch.shared.L1 [sha];", "prefetch.global.L1 %d1;", "prefetch.L1;")
    add("applypriority.global.L2::evict_normal [%d1], 128;", "applypriority.L2::evict_normal [%d1], 128;", "applypriority.global.L2::evict_normal [%d1], 64;", "applypriority.global.L2::evict_last [%d1], 128;", "discard.global.L2 [%d1], 128;", "discard.L2 [%d1], 128;", "discard.global.L2 [%d1], 32;", "discard.global.L1 [%d1], 128;", "discard.global.L2 [%d1];")
    add("createpolicy.fractional.L2::evict_last.b64 %d1, 0.5;", "createpolicy.fractional.L2::evict_last.b64 %d1;", "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d1, 1.0;", "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %d1, %r1;", "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d1, [%d2], 0x100000, 0x200000;", "createpolicy.range.L2::evict_last.b64 %d1, [%d2], %r1, %r2;", "createpolicy.cvt.L2.b64 %d1, %d2;", "createpolicy.range.L2::evict_last.b64 %d1, %d2, %r1, %r2;", "createpolicy.fractional.b64 %d1;", "createpolicy.fractional.L2::evict_last.b32 %r1;", "createpolicy.cvt.L2.b64 %d1, 0x10F0000000000000;")
    for space in ("global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func"):
        add(f"isspacep.{space} %p1, %d1;", f"cvta.{space}.u64 %d1, %d2;", f"cvta.to.{space}.u64 %d1, %d2;", f"cvta.{space}.u32 %r1, %r2;")
    add("isspacep.global %p1, %r1;")
    for scope in ("", ".cta", ".gpu", ".sys", ".cluster"):
        for order in ("", ".relaxed", ".acquire", ".release", ".acq_rel", ".volatile", ".sc"):
            add(f"atom{order}{scope}.global.add.u32 %r1, [%d1], %r2;", f"red{order}{scope}.global.add.u32 [%d1], %r2;")
    for name in ("add", "min", "max", "and", "or", "xor", "exch", "inc", "dec"):
        for ty in ("b16", "b32", "b64", "u16", "u32", "u64", "s32", "s64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"):
            noftz = ".noftz" if "f16" in ty else ""
            for space in (".global", ".shared", ""):
                base = "sha" if space == ".shared" else "%d1"
                add(f"atom{space}.{name}{noftz}.{ty} {reg(ty, 1)}, [{base}], {reg(ty, 2)};", f"red{space}.{name}{noftz}.{ty} [{base}], {reg(ty, 2)};")
    for ty in ("b16", "b32", "b64", "u32", "s32", "u64", "f32"):
        add(f"atom.global.cas.{ty} {reg(ty, 1)}, [%d1], {reg(ty, 2)}, {reg(ty, 3)};", f"atom.acq_rel.sys.shared::cta.cas.{ty} {reg(ty, 1)}, [sha], {reg(ty, 2)}, {reg(ty, 3)};")
    add("atom.global.cas.b128 %q1, [%d1], %q2, %q3;", "atom.global.exch.b128 %q1, [%d1], %q2;", "atom.relaxed.gpu.global.cas.b128 %q1, [%d1], %q2, %q3;", "atom.shared.cas.b128 %q1, [sha], %q2, %q3;", "red.global.cas.b32 [%d1], %r1, %r2;", "atom.exch.b128 %q1, [%d1], %q2;", "atom.global.add.b128 %q1, [%d1], %q2;", "atom.global.add.f16 %h1, [%d1], %h2;", "red.global.add.f16x2 [%d1], %r2;")
    for vec, count in ((".v2", 2), (".v4", 4), (".v8", 8)):
        for ty in ("f32", "f16", "bf16", "f16x2", "bf16x2", "u32"):
            for name in ("add", "min", "max"):
                a = "{" + ", ".join(reg(ty, i + 1) for i in range(count)) + "}"
                b = "{" + ", ".join(reg(ty, i + 9) for i in range(count)) + "}"
                noftz = ".noftz" if "f16" in ty else ""
                add(f"atom.global{vec}.{ty}.{name}{noftz} {a}, [%d1], {b};", f"atom.global.{name}{noftz}{vec}.{ty} {a}, [%d1], {b};", f"red.relaxed.gpu.global.{name}{noftz}{vec}.{ty} [%d1], {b};", f"atom.{name}{noftz}{vec}.{ty} {a}, [%d1], {b};")
    add("red.global.v4.f32.add [%d1], {%r1, %r2, %r3, %r4};", "red.shared.add.v2.f32 [sha], {%r1, %r2};", "atom.global.L2::cache_hint.add.u32 %r1, [%d1], %r2, %d2;", "red.global.add.L2::cache_hint.f32 [%d1], %r2, %d2;", "red.global.add.noftz.L2::cache_hint.f16x2 [%d1], %r2, %d2;", "atom.add.u32 %r1, [%d1], 1;", "atom.shared.add.u32 _, [sha], 1;", "atom.const.add.u32 %r1, [con], 1;", "atom.local.add.u32 %r1, [loc], 1;", "atom.shared::cluster.add.u32 %r1, [sha], 1;", "atom.global.add.sys.u32 %r1, [%d1], 1;", "atom.global.gpu.relaxed.add.u32 %r1, [%d1], 1;")
    for sem in ("", ".sc", ".acq_rel", ".acquire", ".release", ".relaxed"):
        for scope in ("", ".cta", ".cluster", ".gpu", ".sys"):
            add(f"fence{sem}{scope};")
    add("membar.cta;", "membar.gl;", "membar.sys;", "membar.gpu;", "membar;", "membar.proxy.alias;", "fence.proxy.alias;", "fence.proxy.async;", "fence.proxy.async.global;", "fence.proxy.async.shared::cta;", "fence.proxy.async.shared::cluster;", "fence.proxy.async.shared::{cta,cluster};", "fence.mbarrier_init.release.cluster;", "fence.mbarrier_init.release.cta;", "fence.proxy.tensormap::generic.release.gpu;", "fence.proxy.tensormap::generic.acquire.sys [%d1], 128;", "fence.proxy.tensormap::generic.acquire.gpu [%d1], 64;", "fence.proxy.tensormap::generic.acquire.gpu;", "fence.acquire.sync_restrict::shared::cluster.cluster;", "fence.release.sync_restrict::shared::cta.cluster;", "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", "fence.acq_rel.gpu %r1;", "fence.foo;")
    add("alloca.u64 %d1, 64, 16;", "alloca.u64 %d1, %d2;", "alloca.u64 %d1, %d2, 8;", "alloca.u32 %r1, %r2;", "stacksave.u64 %d1;", "stackrestore.u64 %d1;", "stacksave.u32 %r1;", "alloca.u64 %d1, %d2, 3;", "alloca.b64 %d1, %d2;")

    # Warps, blocks and special registers.
    for name in ("add.u32", "add.s32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "min.f32", "max.f32", "max.abs.f32", "max.NaN.f32", "min.abs.NaN.f32", "add.f32", "add.b32", "and.u32"):
        add(f"redux.sync.{name} %r1, %r2, 0xffffffff;", f"redux.{name} %r1, %r2, -1;")
    for ty in ("b32", "b64", "u32"):
        add(f"match.any.sync.{ty} %r1, {reg(ty, 2)}, -1;", f"match.all.sync.{ty} %r1|%p1, {reg(ty, 2)}, %r3;", f"match.all.sync.{ty} %r1, {reg(ty, 2)}, %r3;", f"match.any.sync.{ty} %r1|%p1, {reg(ty, 2)}, %r3;", f"match.all.sync.{ty} _|%p1, {reg(ty, 2)}, %r3;", f"match.any.{ty} %r1, {reg(ty, 2)};")
    add("elect.sync %r1|%p1, -1;", "elect.sync _|%p1, 0xffffffff;", "elect.sync %r1, -1;", "elect %r1|%p1, -1;", "activemask.b32 %r1;", "activemask.u32 %r1;", "activemask %r1;")
    for mode in ("up", "down", "bfly", "idx"):
        add(f"shfl.sync.{mode}.b32 %r1|%p1, %r2, %r3, 31, -1;", f"shfl.sync.{mode}.b32 %r1, %r2, 1, %r4, %r5;", f"shfl.{mode}.b32 %r1, %r2, 1, 31;", f"shfl.sync.{mode}.b32 _|%p1, %r2, %r3, 31, -1;", f"shfl.sync.{mode}.u32 %r1, %r2, 1, 31, -1;")
    for mode in ("all", "any", "uni"):
        add(f"vote.sync.{mode}.pred %p1, %p2, -1;", f"vote.sync.{mode}.pred %p1, !%p2, %r1;", f"vote.{mode}.pred %p1, %p2;")
    add("vote.sync.ballot.b32 %r1, %p1, -1;", "vote.sync.ballot.b32 %r1, !%p1, %r2;", "vote.ballot.b32 %r1, %p1;", "vote.sync.ballot.pred %p1, %p2, -1;")
    add("nanosleep.u32 100;", "nanosleep.u32 %r1;", "nanosleep.u64 %d1;", "nanosleep.s32 1;", "nanosleep 1;", "pmevent 1;", "pmevent.mask 3;", "pmevent %r1;", "pmevent.mask;", "brkpt;", "trap;", "exit;", "setmaxnreg.inc.sync.aligned.u32 64;", "setmaxnreg.dec.sync.aligned.u32 24;", "setmaxnreg.dec.sync.aligned.u32 25;", "setmaxnreg.dec.sync.aligned.u32 16;", "setmaxnreg.dec.sync.aligned.u32 264;", "setmaxnreg.dec.sync.u32 24;", "setmaxnreg.inc.sync.aligned.u32 %r1;", "trap 1;")
    for name in ("clock", "clock_hi", "globaltimer_lo", "globaltimer_hi", "envreg0", "envreg1", "envreg2", "envreg31", "envreg32", "nsmid", "smid", "laneid", "warpid", "nwarpid", "lanemask_eq", "lanemask_gt", "dynamic_smem_size", "total_smem_size", "aggr_smem_size", "cluster_ctarank", "cluster_nctarank", "cluster_ctaid.x", "cluster_nctaid.z", "clusterid.y", "nclusterid.x", "tid.w", "pm0", "pm7", "pm8", "reserved_smem_offset_begin", "reserved_smem_offset_0", "reserved_smem_offset_1", "reserved_smem_offset_cap", "reserved_smem_offset_2", "nowhere"):
        add(f"mov.u32 %r1, %{name};", f"mov.b32 %r1, %{name};", f"add.u32 %r1, %r1, %{name};")
    for name in ("clock64", "globaltimer", "gridid", "current_graph_exec", "pm0_64", "pm7_64"):
        add(f"mov.u64 %d1, %{name};")
    add("mov.u32 %r1, %gridid;", "mov.pred %p1, %is_explicit_cluster;", "mov.u32 %r1, WARP_SZ;", "mov.u16 %h1, %tid.x;", "mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;", "mov.u32 %tid.x, %r1;", "mov.u32 %r1, %clock64;")
    add("getctarank.shared::cluster.u32 %r1, %r2;", "getctarank.u64 %r1, %d1;", "getctarank.shared::cluster.u32 %r1, sha;", "getctarank.shared::cluster.u64 %r1, %d1;", "getctarank.u32 %r1, %r2;", "getctarank.u64 %d2, %d1;", "mapa.shared::cluster.u32 %r1, %r2, 0;", "mapa.u64 %d1, %d2, %r1;", "mapa.shared::cluster.u64 %d1, %d2, %r1;", "mapa.shared::cluster.u32 %r1, sha, %r2;", "mapa.shared::cluster.u32 %r1, sha+4, 0;", "mapa.u64 %d1, sha, 0;", "mapa.u32 %r1, %r2, 0;", "mapa.shared::cluster.u32 %r1, %r2, %d1;")
    add("barrier.cluster.arrive;", "barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait.acquire;", "barrier.cluster.wait;", "barrier.cluster.wait.aligned;", "bar.sync 0;", "bar.arrive 1, 64;", "bar.red.popc.u32 %r1, 0, %p1;", "barrier.sync 0;", "barrier.sync.aligned 0, 32;", "barrier.cta.red.and.pred %p1, 0, !%p2;", "bar.warp.sync -1;", "bar.cta.sync 0;", "barrier.cta.arrive.aligned 3, 64;", "griddepcontrol.wait;", "griddepcontrol.launch_dependents;")
    return out


def text(template, body, target="sm_90a", version="8.5"):
    return template.replace("@VERSION@", version).replace("@TARGET@", target).replace("@BODY@", body)


def main():
    ptxas = sys.argv[1]
    template = open(os.path.join(HERE, "scalar_form.template")).read()
    bodies = list(dict.fromkeys(forms()))

    def is_valid(body):
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text(template, body))
            file.flush()
            return subprocess.run([ptxas, "-O0", "-arch=sm_90a", "-o", "/dev/null", file.name], capture_output=True).returncode == 0

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(is_valid, bodies))
    with open(os.path.join(HERE, "scalar_forms.txt"), "w") as file:
        for body, verdict in zip(bodies, verdicts):
            file.write(f"{'valid' if verdict else 'invalid'} {body}\n")


main()
