// A radix sort of keys with values, four bits a pass, from the lowest digit up. A pass counts the
// digits of each block, scans the counts, and moves each pair to its place; pairs with the same
// digit keep their order. Blocks have 128 threads.

static const unsigned THREADS = 128;
static const unsigned WARPS = THREADS / 32;
static const unsigned DIGITS = 16;

static __device__ unsigned digit_of(unsigned key, unsigned shift)
{
    return key >> shift & (DIGITS - 1);
}

// `counts` has the blocks' counts of digit 0, then those of digit 1, and so on.
extern "C" __global__ void radix_count(unsigned count, unsigned shift, const unsigned* keys, unsigned* counts)
{
    __shared__ unsigned found[DIGITS];
    if (threadIdx.x < DIGITS) {
        found[threadIdx.x] = 0;
    }
    __syncthreads();
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        atomicAdd(&found[digit_of(keys[i], shift)], 1);
    }
    __syncthreads();
    if (threadIdx.x < DIGITS) {
        counts[threadIdx.x * gridDim.x + blockIdx.x] = found[threadIdx.x];
    }
}

// Replaces each of the `length` counts by the sum of those before it; one block.
extern "C" __global__ void radix_scan(unsigned length, unsigned* counts)
{
    __shared__ unsigned sums[2][THREADS];
    unsigned carry = 0;
    for (unsigned start = 0; start < length; start += THREADS) {
        unsigned i = start + threadIdx.x;
        unsigned own = i < length ? counts[i] : 0;
        unsigned from = 0;
        sums[from][threadIdx.x] = own;
        __syncthreads();
        for (unsigned distance = 1; distance < THREADS; distance *= 2) {
            unsigned before = threadIdx.x >= distance ? sums[from][threadIdx.x - distance] : 0;
            sums[1 - from][threadIdx.x] = sums[from][threadIdx.x] + before;
            from = 1 - from;
            __syncthreads();
        }
        if (i < length) {
            counts[i] = carry + sums[from][threadIdx.x] - own;
        }
        carry += sums[from][THREADS - 1];
        __syncthreads();
    }
}

// Writes no place beyond `count`, whatever `starts` holds.
extern "C" __global__ void radix_scatter(unsigned count, unsigned shift, const unsigned* starts, const unsigned* keys,
    const unsigned* values, unsigned* sorted_keys, unsigned* sorted_values)
{
    __shared__ unsigned found[WARPS][DIGITS];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane < DIGITS) {
        found[warp][lane] = 0;
    }
    __syncwarp();
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    bool is_inside = i < count;
    unsigned key = is_inside ? keys[i] : 0;
    unsigned digit = digit_of(key, shift);
    // The threads of the warp with the same digit, found bit by bit.
    unsigned same = __ballot_sync(0xffffffff, is_inside);
    for (unsigned bit = 0; bit < 4; bit++) {
        bool is_set = digit >> bit & 1;
        unsigned set = __ballot_sync(0xffffffff, is_set);
        same &= is_set ? set : ~set;
    }
    unsigned rank = __popc(same & ((1u << lane) - 1));
    if (is_inside && rank == 0) {
        found[warp][digit] = __popc(same);
    }
    __syncthreads();
    if (is_inside) {
        for (unsigned before = 0; before < warp; before++) {
            rank += found[before][digit];
        }
        unsigned place = starts[digit * gridDim.x + blockIdx.x] + rank;
        if (place < count) {
            sorted_keys[place] = key;
            sorted_values[place] = values[i];
        }
    }
}
