"""The kernels of `warp.ptx`; no GPU is needed.

    pip install warp-lang==1.10.1 numpy
    python3 warp_kernels.py
"""
import glob
import re
import sys
import tempfile

import warp as wp

wp.config.enable_backward = False


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def total(x: wp.array(dtype=wp.int32), sum: wp.array(dtype=wp.int32)):
    wp.atomic_add(sum, 0, x[wp.tid()])


@wp.kernel
def softmax(x: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    row = wp.tid()
    largest = x[row, 0]
    for i in range(x.shape[1]):
        largest = wp.max(largest, x[row, i])
    sum = float(0.0)
    for i in range(x.shape[1]):
        sum += wp.exp(x[row, i] - largest)
    for i in range(x.shape[1]):
        out[row, i] = wp.exp(x[row, i] - largest) / sum


@wp.kernel
def rotate(turn: wp.quat, by: wp.mat33, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    out[i] = by * wp.quat_rotate(turn, points[i])


@wp.kernel
def matmul(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    row, column = wp.tid()
    sum = wp.tile_zeros(shape=(16, 16), dtype=float)
    for start in range(0, a.shape[1] // 16):
        left = wp.tile_load(a, shape=(16, 16), offset=(row * 16, start * 16))
        right = wp.tile_load(b, shape=(16, 16), offset=(start * 16, column * 16))
        wp.tile_matmul(left, right, sum)
    wp.tile_store(c, sum, offset=(row * 16, column * 16))


@wp.kernel
def noise(seed: int, out: wp.array(dtype=float)):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    out[i] = wp.randn(state) + wp.sin(float(i))


if __name__ == "__main__":
    wp.init()
    with tempfile.TemporaryDirectory() as folder:
        module = sys.modules["__main__"]
        wp.compile_aot_module(module, arch=80, module_dir=folder, use_ptx=True, strip_hash=True)
        (ptx,) = glob.glob(f"{folder}/*.ptx")
        text = open(ptx).read().rstrip("\0")
        for meta in glob.glob(f"{folder}/*.meta"):
            print(open(meta).read())
    # Thousands of constants of the headers are in no kernel.
    head, entry, kernels = text.partition(".visible .entry")
    used = set(re.findall(r"\w+", kernels))

    def is_needed(line):
        variable = re.match(r"\..*?(\w+)(?:\[\d*\])*(?: = .*)?;$", line)
        return variable is None or variable[1] in used

    kept = [line for line in head.splitlines(keepends=True) if is_needed(line.rstrip())]
    with open("warp.ptx", "w") as file:
        file.write("".join(kept) + entry + kernels)
