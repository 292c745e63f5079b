// Kernels that use more of the toolkit's headers, and more of C++: copies in the background through
// a pipeline, barriers in shared memory, groups of the threads that are there, a merge sort,
// complex numbers, 128-bit integers, objects of the heap with virtual functions, recursion.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/block/block_merge_sort.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/complex>
#include <cuda_fp8.h>

namespace groups = cooperative_groups;

// Each part of 128 elements in reverse order, one block of 128 threads for all of them.
extern "C" __global__ void pipeline(unsigned parts, const int* in, int* out)
{
    __shared__ int buffers[2][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    groups::thread_block block = groups::this_thread_block();
    auto copies = cuda::make_pipeline(block, &state);
    for (unsigned ahead = 0, part = 0; part < parts; part++) {
        for (; ahead < parts && ahead < part + 2; ahead++) {
            copies.producer_acquire();
            cuda::memcpy_async(block, buffers[ahead % 2], in + ahead * 128, sizeof(int) * 128, copies);
            copies.producer_commit();
        }
        copies.consumer_wait();
        out[part * 128 + threadIdx.x] = buffers[part % 2][127 - threadIdx.x];
        copies.consumer_release();
    }
}

// Rounds of an exchange with the next thread of the block, which wait at a barrier object.
extern "C" __global__ void barrier(unsigned rounds, unsigned* out)
{
    extern __shared__ unsigned values[];
    __shared__ cuda::barrier<cuda::thread_scope_block> meeting;
    if (threadIdx.x == 0) {
        init(&meeting, blockDim.x);
    }
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (unsigned round = 0; round < rounds; round++) {
        unsigned next = values[(threadIdx.x + 1) % blockDim.x];
        meeting.arrive_and_wait();
        values[threadIdx.x] += next;
        meeting.arrive_and_wait();
    }
    out[threadIdx.x] = values[threadIdx.x];
}

// One warp: the sum over the threads that took a branch with this one, its place among them, and
// the sum up to it of tiles of eight.
extern "C" __global__ void coalesced(const unsigned* in, uint3* out)
{
    unsigned value = in[threadIdx.x];
    uint3 found = make_uint3(0, 0, 0);
    if (value % 3 == 0) {
        groups::coalesced_group there = groups::coalesced_threads();
        found.x = groups::reduce(there, value, groups::plus<unsigned>());
        found.y = there.thread_rank();
    } else {
        groups::coalesced_group there = groups::labeled_partition(groups::coalesced_threads(), value % 3);
        found.x = groups::reduce(there, value, groups::plus<unsigned>());
        found.y = there.thread_rank();
    }
    found.z = groups::inclusive_scan(groups::tiled_partition<8>(groups::this_thread_block()), value);
    out[threadIdx.x] = found;
}

struct Less {
    __device__ bool operator()(double a, double b) const { return a < b; }
};

// Sorts 256 elements with 64 threads.
extern "C" __global__ void merge_sort(const double* in, double* out)
{
    typedef cub::BlockMergeSort<double, 64, 4> Sort;
    __shared__ typename Sort::TempStorage storage;
    double keys[4];
    for (unsigned i = 0; i < 4; i++) {
        keys[i] = in[threadIdx.x * 4 + i];
    }
    Sort(storage).Sort(keys, Less());
    for (unsigned i = 0; i < 4; i++) {
        out[threadIdx.x * 4 + i] = keys[i];
    }
}

extern "C" __global__ void complex_numbers(unsigned n, const cuda::std::complex<double>* in, cuda::std::complex<double>* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = cuda::std::exp(in[i]) * cuda::std::sqrt(in[i]) / (in[i] + 2.0);
    }
}

extern "C" __global__ void wide_integers(unsigned n, const __int128* a, const __int128* b, __int128* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[2 * i] = a[i] * b[i];
        out[2 * i + 1] = b[i] == 0 ? 0 : a[i] / b[i] + a[i] % b[i];
    }
}

// Each float as the nearest of eight bits, with four bits of exponent and with five, and back.
extern "C" __global__ void eighths(unsigned n, const float* in, unsigned char* bits, float2* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        __nv_fp8_e4m3 precise(in[i]);
        __nv_fp8_e5m2 wide(in[i]);
        bits[i] = precise.__x;
        out[i] = make_float2(float(precise), float(wide));
    }
}

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual unsigned area() const = 0;
};

struct Square : Shape {
    unsigned side;
    __device__ Square(unsigned side) : side(side) {}
    __device__ unsigned area() const { return side * side; }
};

struct Pair : Shape {
    Shape* first;
    Shape* second;
    __device__ Pair(Shape* first, Shape* second) : first(first), second(second) {}
    __device__ ~Pair()
    {
        delete first;
        delete second;
    }
    __device__ unsigned area() const { return first->area() + second->area(); }
};

static __device__ Shape* tree(unsigned depth, unsigned side)
{
    if (depth == 0) {
        return new Square(side);
    }
    return new Pair(tree(depth - 1, side), tree(depth - 1, side + 1));
}

// The area of a tree of shapes on the heap, of a depth of its own for each thread.
extern "C" __global__ void shapes(unsigned n, unsigned* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Shape* shape = tree(i % 4, i);
        out[i] = shape->area();
        delete shape;
    }
}
