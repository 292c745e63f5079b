"""Measures CUDA libraries of Python: the same operations as the benchmark, by the names of its rows.

`cargo xtask bench --peers` runs this with the kernels, as PTX, on standard input. Each line that
this prints is a JSON object: an operation with its samples, or why a library is absent. A sample is
the time of one operation, in nanoseconds, averaged over a batch.
"""

import importlib.metadata
import json
import sys
import tempfile
import time

N = 32
LAUNCH = "launch, built per call"
GRAPH_LAUNCH = "graph launch"
CAPTURE = "capture of 8 launches"
CAPTURE_INSTANTIATED = "capture of 8 launches, instantiated"


def samples(operation, wait, is_quick):
    """Nanoseconds for an operation, of each of many batches. The waits do not count."""
    batch, seconds, least = (5, 0, 3) if is_quick else (200, 2, 20)
    for _ in range(batch):
        operation()
    wait()
    found = []
    end = time.perf_counter() + seconds
    while len(found) < least or time.perf_counter() < end:
        start = time.perf_counter_ns()
        for _ in range(batch):
            operation()
        found.append((time.perf_counter_ns() - start) / batch)
        wait()
    return found


def cuda_core(ptx):
    import numpy
    from cuda.core import Device, LaunchConfig, ObjectCode, launch

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(ptx).get_kernel("saxpy")
    config = LaunchConfig(grid=1, block=N)
    x = device.allocate(4 * N, stream=stream)
    y = device.allocate(4 * N, stream=stream)

    def one(target=stream):
        launch(target, config, kernel, numpy.uint32(N), numpy.float32(2), x, y)

    def capture(launches=8):
        builder = device.create_graph_builder().begin_building("thread_local")
        for _ in range(launches):
            one(builder)
        return builder.end_building().complete()

    graph = capture(1)
    yield LAUNCH, one, stream.sync
    yield GRAPH_LAUNCH, lambda: graph.launch(stream), stream.sync
    yield CAPTURE_INSTANTIATED, capture, stream.sync


def cupy_(ptx):
    import cupy
    import numpy

    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        kernel = cupy.RawModule(path=file.name).get_function("saxpy")
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.use()
    x, y = cupy.zeros(N, cupy.float32), cupy.zeros(N, cupy.float32)

    def one():
        kernel((1,), (N,), (numpy.uint32(N), numpy.float32(2), x, y))

    def capture(launches=8):
        stream.begin_capture()
        for _ in range(launches):
            one()
        return stream.end_capture()

    graph = capture(1)
    yield LAUNCH, one, stream.synchronize
    yield GRAPH_LAUNCH, lambda: graph.launch(stream), stream.synchronize
    yield CAPTURE_INSTANTIATED, capture, stream.synchronize


def warp(_):
    import warp as wp

    wp.config.quiet = True
    wp.init()

    @wp.kernel
    def saxpy(n: wp.uint32, a: wp.float32, x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32)):
        thread = wp.tid()
        if wp.uint32(thread) < n:
            y[thread] = a * x[thread] + y[thread]

    device = wp.get_cuda_device(0)
    stream = wp.Stream(device)
    x = wp.zeros(N, dtype=wp.float32, device=device)
    y = wp.zeros(N, dtype=wp.float32, device=device)

    def one():
        wp.launch(saxpy, dim=N, inputs=[N, 2.0, x, y], stream=stream)

    def capture(launches=8):
        with wp.ScopedCapture(stream=stream, force_module_load=False) as scope:
            for _ in range(launches):
                one()
        return scope.graph

    def wait():
        wp.synchronize_stream(stream)

    one()
    graph = capture(1)
    # Newer versions make the executable at the first launch.
    is_instantiated = getattr(graph, "graph_exec", graph) is not None
    yield LAUNCH, one, wait
    yield GRAPH_LAUNCH, lambda: wp.capture_launch(graph, stream=stream), wait
    yield CAPTURE_INSTANTIATED if is_instantiated else CAPTURE, capture, wait


# The names of the libraries, and of their packages.
LIBRARIES = [
    ("cuda.core", ["cuda-core"], cuda_core),
    ("cupy", ["cupy-cuda13x", "cupy-cuda12x", "cupy"], cupy_),
    ("warp", ["warp-lang"], warp),
]


def version(packages):
    for package in packages:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return None


def report(out, **fields):
    print(json.dumps(fields), file=out, flush=True)


def main():
    # What libraries print goes elsewhere.
    out, sys.stdout = sys.stdout, sys.stderr
    is_quick = "--quick" in sys.argv[1:]
    ptx = sys.stdin.buffer.read()
    for peer, packages, operations in LIBRARIES:
        found = version(packages)
        if found is None:
            report(out, peer=peer, absent="this Python does not have it")
            continue
        try:
            for operation, run, wait in operations(ptx):
                times = samples(run, wait, is_quick)
                report(out, peer=peer, version=found, operation=operation, samples_ns=times)
        except Exception as error:  # One library's trouble is not the others'.
            report(out, peer=peer, absent=f"version {found}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
