// Four kernels that every compiler of CUDA C++ takes without headers: element by element, a sum, a
// softmax of rows, a product of matrices. Blocks of `sum` and `softmax` have 128 threads, blocks of
// `matmul` 16 by 16.

#define ALL 0xffffffffu

extern "C" __global__ void saxpy(unsigned n, float a, const float* __restrict__ x, float* __restrict__ y)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}

// Adds the sum of `n` elements to `total`, which must start as 0.
extern "C" __global__ void sum(unsigned n, const int* __restrict__ in, int* total)
{
    __shared__ int warps[4];
    int sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        sum += in[i];
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_down_sync(ALL, sum, distance);
    }
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(total, warps[0] + warps[1] + warps[2] + warps[3]);
    }
}

extern "C" __global__ void softmax(unsigned columns, const float* __restrict__ in, float* __restrict__ out)
{
    __shared__ float shared[128];
    const float* row = in + blockIdx.x * columns;
    unsigned thread = threadIdx.x;
    float largest = row[0];
    for (unsigned i = thread; i < columns; i += 128) {
        largest = fmaxf(largest, row[i]);
    }
    shared[thread] = largest;
    __syncthreads();
    for (unsigned half = 64; half > 0; half /= 2) {
        if (thread < half) {
            shared[thread] = fmaxf(shared[thread], shared[thread + half]);
        }
        __syncthreads();
    }
    largest = shared[0];
    __syncthreads();
    float sum = 0.0f;
    for (unsigned i = thread; i < columns; i += 128) {
        float power = expf(row[i] - largest);
        out[blockIdx.x * columns + i] = power;
        sum += power;
    }
    shared[thread] = sum;
    __syncthreads();
    for (unsigned half = 64; half > 0; half /= 2) {
        if (thread < half) {
            shared[thread] += shared[thread + half];
        }
        __syncthreads();
    }
    sum = shared[0];
    for (unsigned i = thread; i < columns; i += 128) {
        out[blockIdx.x * columns + i] /= sum;
    }
}

// Square matrices of `n` rows.
extern "C" __global__ void matmul(unsigned n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c)
{
    __shared__ float a_tile[16][16];
    __shared__ float b_tile[16][16];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned start = 0; start < n; start += 16) {
        a_tile[y][x] = row < n && start + x < n ? a[row * n + start + x] : 0.0f;
        b_tile[y][x] = start + y < n && column < n ? b[(start + y) * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            sum += a_tile[y][i] * b_tile[i][x];
        }
        __syncthreads();
    }
    if (row < n && column < n) {
        c[row * n + column] = sum;
    }
}
