// Reductions with warp shuffles: a sum of whole numbers, a sum of floats, and the place of the
// largest element. Blocks have whole warps, at most 32 of them.

static __device__ long long warp_sum(long long value)
{
    for (int distance = 16; distance > 0; distance >>= 1) {
        value += __shfl_down_sync(0xffffffff, value, distance);
    }
    return value;
}

// Adds the sum of `count` elements to `total`, which must start as 0.
extern "C" __global__ void reduce_sum(unsigned count, const int* in, unsigned long long* total)
{
    __shared__ long long warps[32];
    long long sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        sum += in[i];
    }
    sum = warp_sum(sum);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        warps[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < blockDim.x / 32 ? warps[lane] : 0);
        if (lane == 0) {
            atomicAdd(total, (unsigned long long)sum);
        }
    }
}

// Adds the sum of `count` floats, read four at a time, to `total`, which must start as 0.
extern "C" __global__ void reduce_floats(unsigned fours, const float4* in, float* total)
{
    float sum = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < fours; i += gridDim.x * blockDim.x) {
        float4 four = in[i];
        sum += (four.x + four.y) + (four.z + four.w);
    }
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(total, sum);
    }
}

// For each block, the largest of its elements and the first place where it is.
extern "C" __global__ void reduce_largest(unsigned count, const float* in, float* largest, unsigned* place)
{
    __shared__ float values[32];
    __shared__ unsigned places[32];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < count ? in[i] : -3.402823466e38f;
    unsigned at = i;
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int step = 0; step < 2; step++) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            float other = __shfl_down_sync(0xffffffff, value, distance);
            unsigned other_at = __shfl_down_sync(0xffffffff, at, distance);
            if (other > value || (other == value && other_at < at)) {
                value = other;
                at = other_at;
            }
        }
        if (step == 1) {
            break;
        }
        if (lane == 0) {
            values[warp] = value;
            places[warp] = at;
        }
        __syncthreads();
        if (warp > 0) {
            return;
        }
        value = values[lane < warps ? lane : 0];
        at = places[lane < warps ? lane : 0];
    }
    if (lane == 0) {
        largest[blockIdx.x] = value;
        place[blockIdx.x] = at;
    }
}
