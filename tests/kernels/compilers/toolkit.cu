// Kernels that use the headers of the CUDA toolkit: cooperative groups, 16-bit floats, and the
// block-wide algorithms of CUB.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace groups = cooperative_groups;

// Adds the sum of `n` elements to `total`, which must start as 0; blocks of whole warps.
extern "C" __global__ void groups_sum(unsigned n, const int* in, int* total)
{
    groups::grid_group grid = groups::this_grid();
    groups::thread_block_tile<32> warp = groups::tiled_partition<32>(groups::this_thread_block());
    int sum = 0;
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) {
        sum += in[i];
    }
    sum = groups::reduce(warp, sum, groups::plus<int>());
    if (warp.thread_rank() == 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device>(*total).fetch_add(sum, cuda::memory_order_relaxed);
    }
}

// The largest element of each aligned group of eight.
extern "C" __global__ void groups_largest(unsigned n, const unsigned* in, unsigned* out)
{
    groups::thread_block_tile<8> tile = groups::tiled_partition<8>(groups::this_thread_block());
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned largest = groups::reduce(tile, i < n ? in[i] : 0u, groups::greater<unsigned>());
    if (tile.thread_rank() == 0 && i < n) {
        out[i / 8] = largest;
    }
}

// `out` = `a` * `b` + `c` in pairs of 16-bit floats, and the sum as a brain float.
extern "C" __global__ void halves(unsigned pairs, const __half2* a, const __half2* b, const __half2* c, __half2* out,
    __nv_bfloat16* sums)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) {
        __half2 both = __hfma2(a[i], b[i], c[i]);
        out[i] = both;
        sums[i] = __float2bfloat16(__low2float(both) + __high2float(both));
    }
}

// Sorts each block's 256 keys, in blocks of 64 threads.
extern "C" __global__ void cub_sort(const unsigned* in, unsigned* out)
{
    typedef cub::BlockRadixSort<unsigned, 64, 4> Sort;
    __shared__ Sort::TempStorage storage;
    unsigned keys[4];
    for (unsigned i = 0; i < 4; i++) {
        keys[i] = in[blockIdx.x * 256 + threadIdx.x * 4 + i];
    }
    Sort(storage).Sort(keys);
    for (unsigned i = 0; i < 4; i++) {
        out[blockIdx.x * 256 + threadIdx.x * 4 + i] = keys[i];
    }
}

// Sums of each block's 256 elements up to each, and of all of them, in blocks of 128 threads.
extern "C" __global__ void cub_scan(const int* in, int* out, int* totals)
{
    typedef cub::BlockScan<int, 128> Scan;
    typedef cub::BlockReduce<int, 128> Reduce;
    __shared__ union {
        Scan::TempStorage scan;
        Reduce::TempStorage reduce;
    } storage;
    int values[2] = {in[blockIdx.x * 256 + threadIdx.x * 2], in[blockIdx.x * 256 + threadIdx.x * 2 + 1]};
    int sums[2];
    Scan(storage.scan).InclusiveSum(values, sums);
    out[blockIdx.x * 256 + threadIdx.x * 2] = sums[0];
    out[blockIdx.x * 256 + threadIdx.x * 2 + 1] = sums[1];
    __syncthreads();
    int total = Reduce(storage.reduce).Sum(values[0] + values[1]);
    if (threadIdx.x == 0) {
        totals[blockIdx.x] = total;
    }
}
