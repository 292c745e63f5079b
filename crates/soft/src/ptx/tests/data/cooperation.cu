// Threads working together: shared memory, barriers, shuffles, votes and atomics.

#define TILE 16

__constant__ int weights[4] = {3, 5, 7, 11};
__device__ unsigned long long launches;
__device__ int *weights_at[2] = {0, 0};

extern "C" __global__ void transpose(const float *in, float *out, int width, int height) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void block_sum(const float *in, float *out, int n) {
    __shared__ float warp_sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? in[i] : 0.0f;
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) == 0) warp_sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? warp_sums[threadIdx.x] : 0.0f;
        for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}

extern "C" __global__ void dynamic_sum(const int *in, int *out) {
    extern __shared__ int cells[];
    cells[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (unsigned d = blockDim.x / 2; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) cells[threadIdx.x] += cells[threadIdx.x + d];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = cells[0] * weights[blockIdx.x & 3];
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], local[b]);
    if (threadIdx.x == 0) atomicAdd(&launches, 1ull);
}

extern "C" __global__ void votes(const int *in, unsigned *out) {
    int v = in[threadIdx.x];
    unsigned odd = __ballot_sync(0xffffffffu, v & 1);
    int every = __all_sync(0xffffffffu, v >= 0), any = __any_sync(0xffffffffu, v > 100);
    int count = __syncthreads_count(v & 1);
    int all = __syncthreads_and(v >= 0), some = __syncthreads_or(v > 100);
    unsigned other = __shfl_sync(0xffffffffu, v, (threadIdx.x + 1) & 7, 8);
    unsigned up = __shfl_up_sync(0xffffffffu, v, 3);
    unsigned *o = out + threadIdx.x * 8;
    o[0] = odd; o[1] = every; o[2] = any; o[3] = count; o[4] = all; o[5] = some; o[6] = other; o[7] = up;
}

extern "C" __global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], t); atomicSub(&i[1], t); atomicMin(&i[2], -t); atomicMax(&i[3], t);
    atomicAnd(&u[0], ~(1u << (t & 31))); atomicOr(&u[1], 1u << (t & 31)); atomicXor(&u[2], t * 2654435761u);
    atomicInc(&u[3], 6u); atomicDec(&u[4], 6u); atomicExch(&u[5], 42u);
    unsigned seen = u[6];
    for (;;) { unsigned was = atomicCAS(&u[6], seen, seen + 3u); if (was == seen) break; seen = was; }
    atomicAdd(&l[0], (unsigned long long)t << 20); atomicMax(&l[1], (unsigned long long)t * t); atomicCAS(&l[2], 7ull, 9ull);
    atomicAdd(&f[0], 0.5f * t); atomicAdd(&d[0], 0.25 * t);
    u[7 + t] = atomicAdd(&u[7 + gridDim.x * blockDim.x], 1u) + 1u;
}

extern "C" __global__ void early_exit(int *out) {
    __shared__ int turn;
    if (threadIdx.x >= 40) return;
    if (threadIdx.x == 39) turn = 123;
    __syncthreads();
    out[threadIdx.x] = turn;
}
