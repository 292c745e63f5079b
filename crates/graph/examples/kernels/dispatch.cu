// A machine of few instructions for a row of numbers. What an instruction does, it does by several
// kernels.

extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

// Threads of a block that sums; a power of two.
static const unsigned BLOCK = 128;

// Takes the next instruction of `count` and sets the condition to its number; past the last one, to
// one that no branch has. One thread.
extern "C" __global__ void fetch(unsigned count, const unsigned* instructions, unsigned* next, unsigned long long branch)
{
    unsigned instruction = 0xffffffff;
    if (*next < count) {
        instruction = instructions[*next];
        *next += 1;
    }
    cudaGraphSetConditional(branch, instruction);
}

// Numbers from 1 on.
extern "C" __global__ void count_up(unsigned n, unsigned* numbers)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        numbers[i] = i + 1;
    }
}

// numbers * factor + summand, without what does not fit.
extern "C" __global__ void scale(unsigned n, unsigned factor, unsigned summand, unsigned* numbers)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        numbers[i] = numbers[i] * factor + summand;
    }
}

// The same numbers from the last to the first.
extern "C" __global__ void turn_round(unsigned n, const unsigned* from, unsigned* to)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        to[i] = from[n - 1 - i];
    }
}

// Each number becomes the sum of those up to it, as far as its block goes; the block's whole sum
// goes to `sums`. `BLOCK` threads in a block.
extern "C" __global__ void sum_blocks(unsigned n, unsigned* numbers, unsigned* sums)
{
    __shared__ unsigned shared[BLOCK];
    unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    shared[threadIdx.x] = i < n ? numbers[i] : 0;
    __syncthreads();
    for (unsigned distance = 1; distance < BLOCK; distance *= 2) {
        unsigned before = threadIdx.x >= distance ? shared[threadIdx.x - distance] : 0;
        __syncthreads();
        shared[threadIdx.x] += before;
        __syncthreads();
    }
    if (i < n) {
        numbers[i] = shared[threadIdx.x];
    }
    if (threadIdx.x == BLOCK - 1) {
        sums[blockIdx.x] = shared[threadIdx.x];
    }
}

// Adds to each number the sums of the blocks before its own. `BLOCK` threads in a block.
extern "C" __global__ void add_sums(unsigned n, const unsigned* sums, unsigned* numbers)
{
    unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    unsigned before = 0;
    for (unsigned block = 0; block < blockIdx.x; block += 1) {
        before += sums[block];
    }
    if (i < n) {
        numbers[i] += before;
    }
}
