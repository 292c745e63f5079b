"""Compiles `basics.cu` with several versions of NVRTC, to `basics-nvrtc-*.ptx`; no GPU is needed.

    python3 nvrtc.py
"""
import ctypes
import glob
import os
import subprocess
import sys
import tempfile

# Package, version, architecture, further options.
COMPILERS = [
    ("nvidia-cuda-nvrtc-cu11", "11.7.99", "compute_52", ["--std=c++17"]),
    ("nvidia-cuda-nvrtc-cu11", "11.8.89", "compute_75", ["--use_fast_math"]),
    ("nvidia-cuda-nvrtc-cu12", "12.4.127", "compute_80", ["--fmad=false"]),
    ("nvidia-cuda-nvrtc-cu12", "12.9.86", "compute_90", ["--generate-line-info"]),
    ("nvidia-cuda-nvrtc", "13.0.88", "compute_90", ["--maxrregcount=32"]),
]


def compile(library, source, options):
    # It is found by name alone, which the wheel's folder does not permit.
    for builtins in glob.glob(library.rsplit("/", 1)[0] + "/libnvrtc-builtins.so.*"):
        ctypes.CDLL(builtins)
    nvrtc = ctypes.CDLL(library)

    def check(result):
        if result:
            raise SystemExit(f"{library} answered {result}")

    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"basics.cu", 0, None, None))
    listed = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    check(nvrtc.nvrtcCompileProgram(program, len(options), listed))
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx))
    # Line information names the folder.
    return ptx.value.replace(os.getcwd().encode() + b"/", b"")


if len(sys.argv) > 2:
    # In a process for each compiler.
    library, path, *options = sys.argv[1:]
    open(path, "wb").write(compile(library, open("basics.cu", "rb").read(), options))
else:
    for package, version, architecture, options in COMPILERS:
        with tempfile.TemporaryDirectory() as folder:
            install = ["pip", "install", "-q", "--no-deps", "--target", folder, f"{package}=={version}"]
            subprocess.run([sys.executable, "-m", *install], check=True)
            (library,) = glob.glob(f"{folder}/nvidia/**/libnvrtc.so.*", recursive=True)
            path = f"basics-nvrtc-{'.'.join(version.split('.')[:2])}.ptx"
            options = [f"--gpu-architecture={architecture}", *options]
            subprocess.run([sys.executable, __file__, library, path, *options], check=True)
