"""The kernels of `numba-*.ptx` but for `numba-debug.ptx`, optimised; no GPU is needed.

    pip install numba-cuda==0.30.4 nvidia-nvvm==13.0.* nvidia-cuda-nvrtc==13.0.* nvidia-cuda-runtime==13.0.*
    python3 numba_tiles.py

Each kernel has a file of its own, as numba compiles them.
"""
import math
import re

from numba import cuda, types


def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def reduction(x, total):
    """Blocks of 128 threads."""
    shared = cuda.shared.array(128, types.float64)
    thread = cuda.threadIdx.x
    sum = 0.0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        sum += x[i]
    shared[thread] = sum
    cuda.syncthreads()
    half = 64
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        cuda.atomic.add(total, 0, shared[0])


def softmax(x, out):
    """One warp a row."""
    row = cuda.blockIdx.x
    lane = cuda.laneid
    largest = -math.inf
    for i in range(lane, x.shape[1], 32):
        largest = max(largest, x[row, i])
    for mask in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, mask))
    sum = types.float32(0.0)
    for i in range(lane, x.shape[1], 32):
        power = math.exp(x[row, i] - largest)
        out[row, i] = power
        sum += power
    for mask in (16, 8, 4, 2, 1):
        sum += cuda.shfl_xor_sync(0xFFFFFFFF, sum, mask)
    for i in range(lane, x.shape[1], 32):
        out[row, i] /= sum


def matmul(a, b, c):
    """Blocks of 8 by 8 threads; all sizes are multiples of 8."""
    left = cuda.shared.array((8, 8), types.float32)
    right = cuda.shared.array((8, 8), types.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    sum = types.float32(0.0)
    for start in range(0, a.shape[1], 8):
        left[y, x] = a[row, start + x]
        right[y, x] = b[start + y, column]
        cuda.syncthreads()
        for i in range(8):
            sum += left[y, i] * right[i, x]
        cuda.syncthreads()
    c[row, column] = sum


def complex_squares(z, out):
    """How many steps of z * z + c stay near 0, as for Mandelbrot's set."""
    i = cuda.grid(1)
    if i < z.size:
        value = 0j
        steps = 0
        while steps < 50 and abs(value) <= 2.0:
            value = value * value + z[i]
            steps += 1
        out[i] = steps


FLOATS, TABLE = types.float32[::1], types.float32[:, ::1]
KERNELS = [
    (saxpy, types.void(types.float32, FLOATS, FLOATS)),
    (reduction, types.void(types.float64[::1], types.float64[::1])),
    (softmax, types.void(TABLE, TABLE)),
    (matmul, types.void(TABLE, TABLE, TABLE)),
    (complex_squares, types.void(types.complex128[::1], types.int64[::1])),
]

if __name__ == "__main__":
    for kernel, signature in KERNELS:
        options = {"device": False, "abi": "numba", "cc": (8, 0), "output": "ptx"}
        ptx, _ = cuda.compile(kernel, signature, **options)
        name = re.search(r"\.entry (\w+)\(", ptx)[1]
        with open(f"numba-{kernel.__name__}.ptx", "w") as file:
            file.write(ptx.replace(name, kernel.__name__))
