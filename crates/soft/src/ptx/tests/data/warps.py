"""Lists instructions of whole warps, and records on a GPU what they compute.

    python3 warps.py           writes warps.txt and warps.in
    python3 warps.py record    runs them through libcuda and writes warps.out (in $OUT, if that is set)

Each line of warps.txt has the type of the results (f16, f32, f64, or bits), how far they may be away, the threads,
the bytes of the results, and the text of a kernel made from warps.template.
"""
import ctypes, os, random, struct, sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = 4096
# Exponent bits, fraction bits, and the lowest bit in a register.
FLOATS = {"f16": (5, 10, 0), "bf16": (8, 7, 0), "tf32": (8, 10, 13), "f32": (8, 23, 0), "f64": (11, 52, 0), "e4m3": (4, 3, 0), "e5m2": (5, 2, 0)}
WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "s32": 32, "b1": 1}
TABLES = ["ints"] + list(FLOATS) + [name + " edges" for name in FLOATS]


def table(rng, name):
    """Random bits; floats lie between 1/16 and 4, and some of the edges are 0, subnormal, infinite or NaN."""
    kind, *edges = name.split()
    if kind == "ints":
        return rng.randbytes(TABLE)
    exponent_bits, fraction_bits, low = FLOATS[kind]
    most = (1 << exponent_bits) - 1
    words = []
    for _ in range(TABLE * 8 // WIDTH[kind]):
        exponent, fraction = most // 2 - 4 + rng.randrange(6), rng.getrandbits(fraction_bits)
        chance = rng.random() if edges else 1
        if chance < 0.1:
            exponent, fraction = 0, rng.choice([0, 0, 1, fraction])
        elif chance < 0.12:
            exponent, fraction = most, rng.choice([0, (1 << fraction_bits) - 1])
        elif chance < 0.2:
            fraction = 0
        bits = rng.getrandbits(1) << exponent_bits + fraction_bits | exponent << fraction_bits | fraction
        words.append(bits << low | rng.getrandbits(low))
    width = WIDTH[kind] // 8
    return b"".join(word.to_bytes(width, "little") for word in words)


def place(kind, edges=""):
    name = f"{kind} {edges}" if edges and kind in FLOATS else kind if kind in FLOATS else "ints"
    return TABLES.index(name) * TABLE


def registers(kind, elements):
    """Register name, type and bytes of a fragment, and how many registers it has."""
    if kind == "f64":
        return "xyzw", "f64", 8, elements
    return "abcd", "b32", 4, elements * WIDTH[kind] // 32


def names(kind, which, count):
    return "{" + ", ".join(f"%{registers(kind, 1)[0][which]}{i}" for i in range(count)) + "}"


def store(kind, count, threads=32):
    _, ty, size, _ = registers(kind, 1)
    name = registers(kind, 1)[0][3]
    text = f" mad.wide.u32 %p9, %thread, {count * size}, %to;"
    text += "".join(f" st.global.{ty} [%p9+{i * size}], %{name}{i};" for i in range(count))
    return text, threads * count * size


def format_of(kind, k, a):
    """Results and how far they may be away: sums of products below 16."""
    if kind == "s32":
        return "bits 0"
    if kind == "f64":
        return "f64 1e-12"
    narrow = a in ("e4m3", "e5m2")
    if kind == "f16":
        return "f16 0.6"
    return "f32 0.2" if narrow else "f32 3e-4"


def mma(out, shape, d, a, b, c, suffix="", layouts="row.col", edges="", quads=False):
    m, n, k = shape
    share = 8 if quads else 32
    text, lists = "", []
    for which, (kind, elements, at) in enumerate([(a, m * k // share, 0), (b, k * n // share, 64), (c, m * n // share, 96)]):
        letters, ty, size, count = registers(kind, elements)
        for i in range(count):
            text += f"ld.global.{ty} %{letters[which]}{i}, [%p10+{place(kind, edges) + at + i * size}]; "
        lists.append(names(kind, which, count))
    count = registers(d, m * n // share)[3]
    before, after = (suffix, "") if suffix == ".satfinite" else ("", suffix)
    text += f"mma.sync.aligned.m{m}n{n}k{k}.{layouts}{before}.{d}.{a}.{b}.{c}{after} {names(d, 3, count)}, {lists[0]}, {lists[1]}, {lists[2]};"
    end, size = store(d, count)
    out.append((format_of(d, k, a), 32, size, text + end))


def products(out):
    for edges in ("", "edges"):
        for k in (8, 16):
            mma(out, (16, 8, k), "f16", "f16", "f16", "f16", edges=edges)
            mma(out, (16, 8, k), "f32", "f16", "f16", "f32", edges=edges)
            mma(out, (16, 8, k), "f32", "bf16", "bf16", "f32", edges=edges)
            mma(out, (16, 8, k // 2), "f32", "tf32", "tf32", "f32", edges=edges)
        for a in ("e4m3", "e5m2"):
            for b in ("e4m3", "e5m2"):
                mma(out, (16, 8, 32), "f32", a, b, "f32", edges=edges)
        for shape in ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)):
            mma(out, shape, "f64", "f64", "f64", "f64", edges=edges)
        for layouts in ("row.col", "row.row", "col.col", "col.row"):
            for d, c in (("f16", "f16"), ("f32", "f16"), ("f32", "f32")):
                mma(out, (8, 8, 4), d, "f16", "f16", c, layouts=layouts, edges=edges, quads=True)
    for suffix in ("", ".satfinite"):
        for sizes, shapes in ((("s8", "u8"), ((8, 8, 16), (16, 8, 16), (16, 8, 32))), (("s4", "u4"), ((8, 8, 32), (16, 8, 32), (16, 8, 64)))):
            for shape in shapes:
                for a in sizes:
                    mma(out, shape, "s32", a, sizes[0], "s32", suffix)
                mma(out, shape, "s32", sizes[0], sizes[1], "s32", suffix)
    for suffix in (".xor.popc", ".and.popc"):
        for shape in ((8, 8, 128), (16, 8, 128), (16, 8, 256)):
            mma(out, shape, "s32", "b1", "b1", "s32", suffix)


TO_SHARED = "mov.u32 %r1, s; mad.lo.u32 %r2, %thread, 16, %r1; ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%p10]; st.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7}; bar.warp.sync -1; "


def transfers(out):
    for trans in ("", ".trans"):
        for count in (1, 2, 4):
            end, size = store("s32", count)
            # The rows in an order of their own.
            row = "xor.b32 %r3, %thread, 5; mad.lo.u32 %r3, %r3, 16, %r1; "
            text = TO_SHARED + row + f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {names('s32', 3, count)}, [%r3];"
            out.append(("bits 0", 32, size, text + end))
            loads = "".join(f"ld.global.u32 %a{i}, [%p10+{4 * i}]; " for i in range(count))
            text = TO_SHARED + row + loads + f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r3], {names('s32', 0, count)}; bar.warp.sync -1; "
            text += "ld.shared.v4.u32 {%d0, %d1, %d2, %d3}, [%r2];"
            end, size = store("s32", 4)
            out.append(("bits 0", 32, size, text + end))
    end, size = store("s32", 1)
    out.append(("bits 0", 32, size, "ld.global.u32 %a0, [%p10]; movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;" + end))


def wmma(out, shape, d, a, c, types, counts, layouts):
    m, n, k = shape
    name = f"m{m}n{n}k{k}"
    stride = lambda kind, rows, columns, layout: (columns if layout == "row" else rows) + 128 // WIDTH[kind]
    lists = [names(kind, which, count) for which, (kind, count) in enumerate(zip((a, a, c), counts))]
    text = ""
    for which, (kind, rows, columns, at) in enumerate([(a, m, k, 0), (a, k, n, 2048), (c, m, n, 0)]):
        text += f"wmma.load.{'abc'[which]}.sync.aligned.{layouts[which]}.{name}.global.{kind} {lists[which]}, [%from+{place(kind) + at}], {stride(kind, rows, columns, layouts[which])}; "
    d_list = names(d, 3, registers(d, m * n // 32)[3])
    text += f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{name}.{types} {d_list}, {lists[0]}, {lists[1]}, {lists[2]}; "
    text += f"wmma.store.d.sync.aligned.{layouts[3]}.{name}.global.{d} [%to], {d_list}, {n if layouts[3] == 'row' else m};"
    out.append((format_of(d, k, a), 32, m * n * WIDTH[d] // 8, text))


def fragments(out):
    for layouts in (("row", "col", "row", "row"), ("col", "row", "col", "row"), ("row", "row", "row", "col"), ("col", "col", "col", "col")):
        for shape in ((16, 16, 16), (32, 8, 16), (8, 32, 16)):
            m, n, _ = shape
            wmma(out, shape, "f32", "f16", "f32", "f32.f32", (8, 8, 8), layouts)
            wmma(out, shape, "f16", "f16", "f16", "f16.f16", (8, 8, 4), layouts)
            wmma(out, shape, "f32", "bf16", "f32", "f32.bf16.bf16.f32", (m // 4, n // 4, 8), layouts)
            for kind in ("s8", "u8"):
                wmma(out, shape, "s32", kind, "s32", f"s32.{kind}.{kind}.s32", (m // 8, n // 8, 8), layouts)
        wmma(out, (16, 16, 8), "f32", "tf32", "f32", "f32.tf32.tf32.f32", (4, 4, 8), layouts)
        wmma(out, (8, 8, 4), "f64", "f64", "f64", "rn.f64.f64.f64.f64", (1, 1, 2), layouts)


def barriers(out):
    """One thread; the results are predicates and counts, since states have formats of their own."""
    test = lambda d, how: f"mbarrier.{how}; selp.u32 %d{d}, 1, 0, %q1; "
    parity = lambda d, bit: test(d, f"test_wait.parity.shared.b64 %q1, [s], {bit}")
    state = lambda d, p: test(d, f"test_wait.shared.b64 %q1, [s], {p}")
    first = "setp.ne.u32 %q2, %thread, 0; @%q2 ret; mov.u32 %r1, s; "
    text = first + "mbarrier.init.shared.b64 [s], 3; " + parity(0, 0) + parity(1, 1)
    text += "mbarrier.arrive.shared.b64 %p1, [s]; mbarrier.arrive.noComplete.shared.b64 %p2, [s], 1; " + state(2, "%p1")
    text += "mbarrier.arrive.shared.b64 %p3, [s]; " + state(3, "%p1") + state(4, "%p2") + parity(5, 0) + parity(6, 1)
    text += "mbarrier.pending_count.b64 %d7, %p1; mbarrier.pending_count.b64 %d8, %p2; "
    text += "mbarrier.arrive_drop.shared.b64 %p4, [s]; mbarrier.arrive.shared.b64 %p5, [s], 2; " + state(9, "%p5")
    text += "mbarrier.arrive.shared.b64 %p6, [s], 2; " + state(10, "%p6") + "mbarrier.pending_count.b64 %d11, %p6; "
    end, size = store("s32", 12, 1)
    out.append(("bits 0", 1, size, text + end))
    text = first + "mbarrier.init.shared.b64 [s], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [s], 100; "
    text += "mbarrier.arrive.expect_tx.shared.b64 _, [s], 20; " + parity(0, 0)
    text += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [s], 119; " + parity(1, 0)
    text += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [s], 1; " + parity(2, 0)
    text += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [s], 8; mbarrier.arrive.shared.b64 %p1, [s]; " + parity(3, 1)
    text += "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [s], 9; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [s], 1; " + parity(4, 1)
    end, size = store("s32", 5, 1)
    out.append(("bits 0", 1, size, text + end))


def copies(out):
    wait = "W: mbarrier.try_wait.parity.shared.b64 %q1, [s+1024], 0; @!%q1 bra W; "
    load = "ld.shared.v4.u32 {%d0, %d1, %d2, %d3}, [%r2];"
    end, size = store("s32", 4)
    own = "mov.u32 %r1, s; mad.lo.u32 %r2, %thread, 16, %r1; and.b32 %r3, %thread, 15; setp.gt.u32 %q2, %thread, 20; "
    for operands in ("16", "16, %r3", "16, %q2"):
        text = own + f"cp.async.cg.shared.global [%r2], [%p10], {operands}; cp.async.commit_group; cp.async.wait_group 0; " + load
        out.append(("bits 0", 32, size, text + end))
    begin = "setp.eq.u32 %q3, %thread, 0; @%q3 mbarrier.init.shared.b64 [s+1024], {}; bar.sync 0; "
    for noinc, count in (("", 32), (".noinc", 64)):
        text = own + begin.format(count) + f"cp.async.ca.shared.global [%r2], [%p10], 8; cp.async.ca.shared.global [%r2+8], [%p10+64], 8; cp.async.mbarrier.arrive{noinc}.shared.b64 [s+1024]; "
        text += "mbarrier.arrive.shared.b64 _, [s+1024]; " + wait + load
        out.append(("bits 0", 32, size, text + end))
    text = own + begin.format(1) + "fence.proxy.async; @%q3 mbarrier.arrive.expect_tx.shared.b64 _, [s+1024], 512; "
    text += "@%q3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%from+32], 512, [s+1024]; " + wait + load
    out.append(("bits 0", 32, size, text + end))
    for op, kind in (("add.u32", "ints"), ("min.s32", "ints"), ("xor.b32", "ints"), ("add.u64", "ints"), ("add.noftz.f16", "f16"), ("max.bf16", "bf16"), ("add.f32", "f32")):
        words = " ".join(f"ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%p10+{place(kind) + at}]; {to}" for at, to in
                         ((0, "st.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7};"), (32, "mad.wide.u32 %p8, %thread, 16, %to; st.global.v4.u32 [%p8], {%r4, %r5, %r6, %r7};")))
        text = own + words + " fence.proxy.async; bar.sync 0; setp.eq.u32 %q3, %thread, 0; "
        text += f"@%q3 cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%to], [s], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
        out.append((("f16 0" if "f16" in op and "bf16" not in op else "bits 0"), 32, 512, text))


def groups(out):
    """`wgmma`: shared memory is filled from the table of `a`, in another order in each quarter."""
    cases = [("f32", "f16", 16), ("f16", "f16", 16), ("f32", "bf16", 16), ("f32", "tf32", 8), ("f32", "e4m3", 32), ("f32", "e5m2", 32), ("s32", "s8", 32), ("s32", "u8", 32)]
    modes = {0: (128, 256), 3: (16, 256), 2: (16, 512), 1: (16, 1024)}
    turned_modes = {0: (1024, 128), 3: (512, 256), 2: (1024, 512), 1: (1024, 1024)}
    for d, a, k in cases:
        every = (d, a) == ("f32", "f16")
        for mode in modes if every else [2]:
            for a_turn, b_turn in [(0, 0), (1, 0), (0, 1)] if every else [(0, 0)]:
                for in_registers in (False, True) if not a_turn else (False,):
                    n = {0: 8, 3: 16, 2: 32, 1: 64}[mode] if b_turn else 16
                    describe = lambda turn, at: at // 16 | (turned_modes if turn else modes)[mode][0] // 16 << 16 | (turned_modes if turn else modes)[mode][1] // 16 << 32 | mode << 62
                    text = "mov.u32 %r1, s; mov.u32 %r3, %thread; FILL: mul.lo.u32 %r4, %r3, 5; shr.u32 %r5, %r3, 10; add.u32 %r4, %r4, %r5; and.b32 %r4, %r4, 1023; "
                    text += f"mad.wide.u32 %p1, %r4, 4, %from; ld.global.u32 %r6, [%p1+{place(a)}]; mad.lo.u32 %r7, %r3, 4, %r1; st.shared.u32 [%r7], %r6; "
                    text += "add.u32 %r3, %r3, 128; setp.lt.u32 %q1, %r3, 4096; @%q1 bra FILL; fence.proxy.async; bar.sync 0; "
                    text += f"cvt.u64.u32 %p2, %r1; shr.u64 %p2, %p2, 4; add.u64 %p3, %p2, {describe(a_turn, 0)}; add.u64 %p4, %p2, {describe(b_turn, 8192)}; "
                    if in_registers:
                        text += f"mad.wide.u32 %p5, %thread, 16, %from; ld.global.v4.u32 {{%a0, %a1, %a2, %a3}}, [%p5+{place(a)}]; "
                    count = n * 16 // 32 * WIDTH[d] // 32
                    text += "".join(f"mov.b32 %d{i}, 0; " for i in range(count)) + "setp.eq.u32 %q2, %thread, 999; "
                    options = "" if d == "s32" else ", 1, 1"
                    if k == 16:
                        options += f", {b_turn}" if in_registers else f", {a_turn}, {b_turn}"
                    source = "{%a0, %a1, %a2, %a3}" if in_registers else "%p3"
                    text += f"wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{a} {names('s32', 3, count)}, {source}, %p4, %q2{options}; "
                    text += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
                    end, size = store("s32", count, 128)
                    out.append((format_of(d, k, a), 128, size, text + end))


def instructions():
    out = []
    for part in (products, transfers, fragments, barriers, copies, groups):
        part(out)
    # Results begin at multiples of 64 bytes.
    return [f"{how} {threads} {(size + 63) // 64 * 64} {text}" for how, threads, size, text in out]


HEAD = ".version 8.5\n.target sm_90a\n.address_size 64\n"


def kernels(lines):
    """Name, threads and text of each kernel, and the bytes of all results."""
    template = open(os.path.join(HERE, "warps.template")).read()
    all, at = [], 0
    for index, line in enumerate(lines):
        _, _, threads, size, text = line.split(" ", 4)
        text = template.replace("@INDEX@", str(index)).replace("@PLACE@", str(at)).replace("@TEXT@", text)
        all.append((f"k{index}", int(threads), HEAD + text))
        at += int(size)
    return all, at


def main():
    path = lambda name: os.path.join(HERE, name)
    lines = instructions()
    rng = random.Random(11)
    words = b"".join(table(rng, name) for name in TABLES)
    if "record" not in sys.argv:
        open(path("warps.in"), "wb").write(words)
        open(path("warps.txt"), "w").write("".join(line + "\n" for line in lines))
        return
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
    all, size = kernels(lines)
    call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(len(words)))
    call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(size))
    call("cuMemsetD8_v2", target, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    call("cuMemcpyHtoD_v2", source, words, ctypes.c_size_t(len(words)))
    args = (ctypes.c_void_p * 2)(ctypes.addressof(source), ctypes.addressof(target))
    for (name, threads, text), line in zip(all, lines):
        if cuda.cuModuleLoadDataEx(ctypes.byref(module), text.encode(), 2, options, values):
            print(line, log.value.decode(), file=sys.stderr)
            continue
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, args, None)
        if cuda.cuCtxSynchronize():
            sys.exit(f"this ended with a fault: {line}")
    result = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", result, target, ctypes.c_size_t(size))
    open(os.path.join(os.environ.get("OUT", HERE), "warps.out"), "wb").write(result.raw)


if __name__ == "__main__":
    main()
