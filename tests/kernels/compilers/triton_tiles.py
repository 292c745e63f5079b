"""The kernels of `triton-VERSION-*.ptx`, for two versions of Triton and two of devices; no GPU is needed.

    pip install triton==3.9.0 # and triton==3.2.0
    TRITON_DISABLE_LINE_INFO=1 python3 triton_tiles.py
"""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """`a` has `m` rows of `k` 16-bit floats, `b` has `k` rows of `n`."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    sum = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        inside = start + depth < k
        left_mask = (rows[:, None] < m) & inside[None, :]
        right_mask = inside[:, None] & (columns[None, :] < n)
        left = tl.load(a + rows[:, None] * k + (start + depth)[None, :], mask=left_mask, other=0.0)
        right = tl.load(b + (start + depth)[:, None] * n + columns[None, :], mask=right_mask, other=0.0)
        sum = tl.dot(left, right, sum)
    tl.store(c + rows[:, None] * n + columns[None, :], sum, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def layer_norm(x, weight, bias, out, n, epsilon, BLOCK: tl.constexpr):
    """One row a program."""
    start = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    inside = i < n
    row = tl.load(x + start + i, mask=inside, other=0.0)
    mean = tl.sum(row, axis=0) / n
    centred = tl.where(inside, row - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + epsilon)
    factor = tl.load(weight + i, mask=inside, other=0.0)
    offset = tl.load(bias + i, mask=inside, other=0.0)
    tl.store(out + start + i, centred * scale * factor + offset, mask=inside)


@triton.jit
def attention(q, k, v, out, length, scale, M: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr):
    """FlashAttention over 16-bit floats, causal; rows of `WIDTH`."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    width = tl.arange(0, WIDTH)
    query = tl.load(q + rows[:, None] * WIDTH + width[None, :], mask=rows[:, None] < length, other=0.0)
    largest = tl.full((M,), -float("inf"), dtype=tl.float32)
    powers = tl.zeros((M,), dtype=tl.float32)
    sum = tl.zeros((M, WIDTH), dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * M, N):
        keys = start + tl.arange(0, N)
        key = tl.load(k + keys[None, :] * WIDTH + width[:, None], mask=keys[None, :] < length, other=0.0)
        score = tl.dot(query, key) * scale
        seen = (keys[None, :] <= rows[:, None]) & (keys[None, :] < length)
        score = tl.where(seen, score, -float("inf"))
        now = tl.maximum(largest, tl.max(score, axis=1))
        power = tl.exp(score - now[:, None])
        shrink = tl.exp(largest - now)
        powers = powers * shrink + tl.sum(power, axis=1)
        value = tl.load(v + keys[:, None] * WIDTH + width[None, :], mask=keys[:, None] < length, other=0.0)
        sum = tl.dot(power.to(tl.float16), value, sum * shrink[:, None])
        largest = now
    tl.store(out + rows[:, None] * WIDTH + width[None, :], sum / powers[:, None], mask=rows[:, None] < length)


@triton.jit
def prefix(x, out, total, n, BLOCK: tl.constexpr):
    """Sums up to each element of a program's block, and the sum of all blocks."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, tl.cumsum(value, axis=0), mask=i < n)
    tl.atomic_add(total, tl.sum(value, axis=0))


@triton.jit
def tma_matmul(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The product of tensors that the launch describes, whose boxes are copied in the background."""
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    sum = tl.zeros((M, N), dtype=tl.float32)
    for start in tl.range(0, k, K):
        sum = tl.dot(a.load([row, start]), b.load([start, column]), sum)
    c.store([row, column], sum.to(tl.float16))


TENSOR = "tensordesc<fp16[64,64]>"
# For devices of capability 9.0 and the newer version.
DESCRIBED = (tma_matmul, {"a": TENSOR, "b": TENSOR, "c": TENSOR, "k": "i32"}, {"M": 64, "N": 64, "K": 64}, [])

KERNELS = [
    (
        matmul,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32"},
        {"M": 64, "N": 32, "K": 32},
        ["a", "b", "c", "n", "k"],
    ),
    (
        layer_norm,
        {"x": "*fp32", "weight": "*fp32", "bias": "*fp32", "out": "*fp32", "n": "i32", "epsilon": "fp32"},
        {"BLOCK": 256},
        [],
    ),
    (
        attention,
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "length": "i32", "scale": "fp32"},
        {"M": 64, "N": 32, "WIDTH": 32},
        ["q", "k", "v", "out"],
    ),
    (prefix, {"x": "*i32", "out": "*i32", "total": "*i32", "n": "i32"}, {"BLOCK": 256}, []),
]


def compiled(kernel, signature, constants, divisible, capability):
    """For arguments in `divisible`, multiples of 16 are given, as Triton finds out at each launch."""
    version = triton.__version__[:3]
    names = kernel.arg_names
    if version >= "3.3":
        signature = {**signature, **{name: "constexpr" for name in constants}}
        attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in divisible}
    else:
        from triton.backends.compiler import AttrsDescriptor

        places = [names.index(name) for name in divisible]
        attributes = AttrsDescriptor.from_dict(
            {"arg_properties": {"tt.divisibility": places}, "cls": "AttrsDescriptor"}
        )
    source = ASTSource(kernel, signature, constants, attributes)
    options = {"num_warps": 4, "num_stages": 3}
    if version >= "3.3":
        # Without it the newest version that Triton's own assembler takes.
        options["ptx_version"] = 88
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


if __name__ == "__main__":
    for capability in (80, 90):
        # The others are the same for both.
        kernels = KERNELS if capability == 80 else KERNELS[::2]
        if capability == 90 and triton.__version__ >= "3.9":
            kernels.append(DESCRIBED)
        for kernel, signature, constants, divisible in kernels:
            made = compiled(kernel, signature, constants, divisible, capability)
            version = ".".join(triton.__version__.split(".")[:2])
            path = f"triton-{version}-sm{capability}-{kernel.__name__}.ptx"
            with open(path, "w") as file:
                file.write(made.asm["ptx"])
            print(path, "shared memory:", made.metadata.shared)
