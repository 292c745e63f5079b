// Pi by darts: the share of random points of a square that lie in a quarter circle, with the
// numbers of the generator Philox 4x32-10 (Salmon and others, 2011). Points have 31 bits a
// coordinate and are judged in whole numbers.

static __device__ uint4 philox(uint4 counter, uint2 key)
{
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xd2511f53, counter.x), low0 = 0xd2511f53 * counter.x;
        unsigned high1 = __umulhi(0xcd9e8d57, counter.z), low1 = 0xcd9e8d57 * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9e3779b9;
        key.y += 0xbb67ae85;
    }
    return counter;
}

// The four numbers of each of `count` counters.
extern "C" __global__ void philox_numbers(unsigned count, unsigned long long seed, uint4* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = philox(make_uint4(i, 0, 0, 0), make_uint2((unsigned)seed, (unsigned)(seed >> 32)));
    }
}

static __device__ bool is_hit(unsigned x, unsigned y)
{
    unsigned long long a = x >> 1, b = y >> 1;
    return a * a + b * b < 1ull << 62;
}

// Each thread throws `rounds` times two darts; `hits` starts as 0.
extern "C" __global__ void monte_carlo_pi(unsigned rounds, unsigned long long seed, unsigned long long* hits)
{
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned own = 0;
    for (unsigned round = 0; round < rounds; round++) {
        uint4 four = philox(make_uint4(thread, round, 0, 0), make_uint2((unsigned)seed, (unsigned)(seed >> 32)));
        own += is_hit(four.x, four.y);
        own += is_hit(four.z, four.w);
    }
    // One addition for all threads of the block.
    __shared__ unsigned sum;
    if (threadIdx.x == 0) {
        sum = 0;
    }
    __syncthreads();
    atomicAdd(&sum, own);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(hits, (unsigned long long)sum);
    }
}
