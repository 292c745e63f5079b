// A product by tensor cores, with the toolkit's `mma.h`.
#include <cuda_fp16.h>
#include <mma.h>

// One warp a tile of 16 by 16; `n` and `k` are multiples of 16. Blocks are one warp.
extern "C" __global__ void wmma_matmul(unsigned n, unsigned k, const __half* a, const __half* b, float* c)
{
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, row_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (unsigned start = 0; start < k; start += 16) {
        load_matrix_sync(left, a + blockIdx.y * 16 * k + start, k);
        load_matrix_sync(right, b + start * n + blockIdx.x * 16, n);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, mem_row_major);
}
