"""The kernel of `numba-debug.ptx`, compiled with debug information and without optimisation; no GPU is needed.

    pip install numba-cuda==0.30.4 nvidia-nvvm==13.0.* nvidia-cuda-nvrtc==13.0.* nvidia-cuda-runtime==13.0.*
    python3 numba_kernels.py > numba-debug.ptx
"""
import re

import numpy as np
from numba import cuda, types

TABLE = np.array([3, 5, 7], dtype=np.uint32)


def kernel(out):
    """Eight words, and a line."""
    own = cuda.local.array(4, types.uint32)
    block = cuda.shared.array(6, types.uint32)
    table = cuda.const.array_like(TABLE)
    for i in range(len(own)):
        own[i] = 10 + i
    for i in range(len(block)):
        block[i] = 100 + i
    for values, at in ((own, 0), (block, 1)):
        sum = 0
        for value in values:
            sum += value
        out[at] = sum
    out[2] = table[0] + table[1] * table[2]
    pair = (own[1], block[2])
    out[3] = pair[0] * 1000 + pair[1]
    cuda.atomic.add(block, 0, 5)
    cuda.atomic.add(out, 4, 7)
    out[5] = block[0]
    tail = out[6:8]
    for i in range(len(tail)):
        tail[i] = 40 + i
    print("numba", own[0], block[0], 0.5)


if __name__ == "__main__":
    signature = types.void(types.Array(types.uint32, 1, "C"))
    options = {"device": False, "abi": "numba", "debug": True, "opt": False, "cc": (7, 5), "output": "ptx"}
    ptx, _ = cuda.compile(kernel, signature, **options)
    name = re.search(r"\.entry (\w+)\(", ptx)[1]
    print(ptx.replace(name, "numba_kernel"), end="")
