"""The kernels of `triton-*.ptx`; no GPU is needed.

    pip install triton==3.9.0
    python3 triton_kernels.py
"""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    sum = tl.load(x + i, mask=inside, other=0.0) + tl.load(y + i, mask=inside, other=0.0)
    tl.store(out + i, sum, mask=inside)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    start = tl.program_id(0) * n
    row = tl.load(x + start + i, mask=i < n, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + start + i, powers / tl.sum(powers, axis=0), mask=i < n)


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    value = tl.load(x + i, mask=inside, other=0)
    tl.atomic_add(bins + (value & 7), 1, mask=inside)


if __name__ == "__main__":
    floats, words = {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"x": "*i32", "bins": "*i32", "n": "i32"}
    three = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    for kernel, signature in ((add, three), (softmax, floats), (count, words)):
        source = ASTSource(kernel, {**signature, "BLOCK": "constexpr"}, {"BLOCK": 256})
        made = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": 2})
        with open(f"triton-{kernel.__name__}.ptx", "w") as file:
            file.write(made.asm["ptx"])
