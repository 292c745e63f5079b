// An inclusive scan: each block scans its part, the blocks' sums are scanned by one block, and each
// block adds the sum of all parts before its own. Blocks have 256 threads.

static const unsigned THREADS = 256;

// The sums of the block's values up to each thread's.
static __device__ unsigned block_scan(unsigned value)
{
    __shared__ unsigned sums[THREADS / 32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        unsigned before = __shfl_up_sync(0xffffffff, value, distance);
        if (lane >= distance) {
            value += before;
        }
    }
    __syncthreads();
    if (lane == 31) {
        sums[warp] = value;
    }
    __syncthreads();
    unsigned before = 0;
    for (unsigned i = 0; i < warp; i++) {
        before += sums[i];
    }
    return before + value;
}

extern "C" __global__ void scan_parts(unsigned count, const unsigned* in, unsigned* out, unsigned* sums)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    unsigned sum = block_scan(i < count ? in[i] : 0);
    if (i < count) {
        out[i] = sum;
    }
    if (threadIdx.x == THREADS - 1) {
        sums[blockIdx.x] = sum;
    }
}

// Scans the `parts` sums in place; one block.
extern "C" __global__ void scan_sums(unsigned parts, unsigned* sums)
{
    __shared__ unsigned last;
    unsigned carry = 0;
    for (unsigned start = 0; start < parts; start += THREADS) {
        unsigned i = start + threadIdx.x;
        unsigned sum = carry + block_scan(i < parts ? sums[i] : 0);
        if (i < parts) {
            sums[i] = sum;
        }
        if (threadIdx.x == THREADS - 1) {
            last = sum;
        }
        __syncthreads();
        carry = last;
    }
}

extern "C" __global__ void scan_add(unsigned count, unsigned* out, const unsigned* sums)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (blockIdx.x > 0 && i < count) {
        out[i] += sums[blockIdx.x - 1];
    }
}
