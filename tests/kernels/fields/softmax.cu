// The softmax of each row: one block a row, of whole warps, at most 32 of them.

static const float LOWEST = -3.402823466e38f;

struct Largest {
    static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ float of(float a, float b) { return a + b; }
};

template <typename Operation>
static __device__ float over_block(float value, float neutral, float* warps)
{
    for (int mask = 16; mask > 0; mask >>= 1) {
        value = Operation::of(value, __shfl_xor_sync(0xffffffff, value, mask));
    }
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? warps[threadIdx.x % 32] : neutral;
    for (int mask = 16; mask > 0; mask >>= 1) {
        value = Operation::of(value, __shfl_xor_sync(0xffffffff, value, mask));
    }
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax(unsigned columns, const float* in, float* out)
{
    __shared__ float warps[32];
    const float* row = in + (size_t)blockIdx.x * columns;
    float* result = out + (size_t)blockIdx.x * columns;
    float largest = LOWEST;
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) {
        largest = fmaxf(largest, row[i]);
    }
    largest = over_block<Largest>(largest, LOWEST, warps);
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) {
        sum += expf(row[i] - largest);
    }
    sum = over_block<Sum>(sum, 0.0f, warps);
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x) {
        result[i] = expf(row[i] - largest) / sum;
    }
}
