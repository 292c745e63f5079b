// A product of matrices in tiles of 16 by 16, which blocks of 16 by 16 threads keep in shared
// memory. `a` has `m` rows of `k`, `b` has `k` rows of `n`.

static const unsigned TILE = 16;

template <typename T>
static __device__ void multiply(unsigned m, unsigned n, unsigned k, const T* a, const T* b, T* c)
{
    __shared__ T a_tile[TILE][TILE];
    __shared__ T b_tile[TILE][TILE];
    unsigned row = blockIdx.y * TILE + threadIdx.y;
    unsigned column = blockIdx.x * TILE + threadIdx.x;
    T sum = 0;
    for (unsigned start = 0; start < k; start += TILE) {
        unsigned a_column = start + threadIdx.x, b_row = start + threadIdx.y;
        a_tile[threadIdx.y][threadIdx.x] = row < m && a_column < k ? a[row * k + a_column] : T(0);
        b_tile[threadIdx.y][threadIdx.x] = b_row < k && column < n ? b[b_row * n + column] : T(0);
        __syncthreads();
#pragma unroll
        for (unsigned i = 0; i < TILE; i++) {
            sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[row * n + column] = sum;
    }
}

extern "C" __global__ void matmul_floats(unsigned m, unsigned n, unsigned k, const float* a, const float* b, float* c)
{
    multiply<float>(m, n, k, a, b, c);
}

extern "C" __global__ void matmul_doubles(unsigned m, unsigned n, unsigned k, const double* a, const double* b, double* c)
{
    multiply<double>(m, n, k, a, b, c);
}

// Of bytes in fours, each row of `a` and each column of `b` of `k` fours, with sums of four
// products.
extern "C" __global__ void matmul_bytes(unsigned m, unsigned n, unsigned k, const int* a, const int* b, int* c)
{
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) {
        return;
    }
    int sum = 0;
    for (unsigned i = 0; i < k; i++) {
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a[row * k + i]), "r"(b[column * k + i]));
    }
    c[row * n + column] = sum;
}
