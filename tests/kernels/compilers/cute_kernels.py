"""The kernels of `cute-*.ptx`; no GPU is needed.

    pip install nvidia-cutlass-dsl==4.8.1
    CUTE_DSL_ARCH=sm_80 CUTE_DSL_KEEP=ptx python3 cute_kernels.py

Each kernel has a file of its own, as the compiler writes them.
"""
import re

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_ptr


@cute.kernel
def saxpy(n: cutlass.Int32, a: cutlass.Float32, x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < n:
        y[i] = a * x[i] + y[i]


@cute.kernel
def softmax(columns: cutlass.Int32, x: cute.Tensor, out: cute.Tensor):
    """One warp a row."""
    row, lane = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    largest = -cutlass.Float32.inf
    for i in range(lane, columns, 32):
        largest = cute.arch.fmax(largest, x[row, i])
    for mask in cutlass.range_constexpr(5):
        largest = cute.arch.fmax(largest, cute.arch.shuffle_sync_bfly(largest, offset=1 << mask))
    sum = cutlass.Float32(0.0)
    for i in range(lane, columns, 32):
        sum += cute.math.exp(x[row, i] - largest)
    for mask in cutlass.range_constexpr(5):
        sum += cute.arch.shuffle_sync_bfly(sum, offset=1 << mask)
    for i in range(lane, columns, 32):
        out[row, i] = cute.math.exp(x[row, i] - largest) / sum


@cute.kernel
def matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """`a` has rows of 64 16-bit floats, `b` is transposed. Each warp makes 16 by 8 elements."""
    row, column, _ = cute.arch.block_idx()
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))
    own = mma.get_slice(cute.arch.thread_idx()[0])
    left = own.partition_A(cute.local_tile(a, (16, 64), (row, 0)))
    right = own.partition_B(cute.local_tile(b, (8, 64), (column, 0)))
    out = own.partition_C(cute.local_tile(c, (16, 8), (row, column)))
    left_part, right_part = mma.make_fragment_A(left), mma.make_fragment_B(right)
    sum = mma.make_fragment_C(out)
    sum.fill(0.0)
    cute.autovec_copy(left, left_part)
    cute.autovec_copy(right, right_part)
    cute.gemm(mma, sum, left_part, right_part, sum)
    cute.autovec_copy(sum, out)


def list_of(pointer, n):
    return cute.make_tensor(pointer, cute.make_layout(n))


def table(pointer, rows, columns):
    return cute.make_tensor(pointer, cute.make_layout((rows, columns), stride=(columns, 1)))


@cute.jit
def launch_saxpy(n: cutlass.Int32, a: cutlass.Float32, x: cute.Pointer, y: cute.Pointer):
    saxpy(n, a, list_of(x, n), list_of(y, n)).launch(grid=[n, 1, 1], block=[128, 1, 1])


@cute.jit
def launch_softmax(rows: cutlass.Int32, columns: cutlass.Int32, x: cute.Pointer, out: cute.Pointer):
    softmax(columns, table(x, rows, columns), table(out, rows, columns)).launch(grid=[rows, 1, 1], block=[32, 1, 1])


@cute.jit
def launch_matmul(m: cutlass.Int32, n: cutlass.Int32, a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    matmul(table(a, m, 64), table(b, n, 64), table(c, m, n)).launch(grid=[m // 16, n // 8, 1], block=[32, 1, 1])


def pointer(type):
    return make_ptr(type, 16, cute.AddressSpace.gmem, assumed_align=16)


if __name__ == "__main__":
    single, half = cutlass.Float32, cutlass.Float16
    for function, arguments in (
        (launch_saxpy, (100, cutlass.Float32(0.5), pointer(single), pointer(single))),
        (launch_softmax, (10, 10, pointer(single), pointer(single))),
        (launch_matmul, (16, 16, pointer(half), pointer(half), pointer(single))),
    ):
        ptx = cute.compile(function, *arguments).__ptx__
        name = function.__name__.removeprefix("launch_")
        mangled = re.search(r"\.entry (\w+)\(", ptx)[1]
        with open(f"cute-{name}.ptx", "w") as file:
            file.write(ptx.replace(mangled, name).rstrip("\0"))
