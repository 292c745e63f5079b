// Heat on a plate, step by step, until it has settled.
//
// The plate is `height` rows of `width` cells; cells on the border keep their value. The arithmetic
// is spelled out, each operation rounded on its own, so that a processor that does the same
// operations in the same order gets the same bits.

// Threads of a block that looks for the largest number; a power of two.
static const unsigned BLOCK = 256;

// What a cell gains in a step. On the border nothing.
static __device__ float gain(unsigned width, unsigned height, float coefficient, const float* plate, unsigned cell)
{
    unsigned x = cell % width, y = cell / width;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        return 0.0f;
    }
    float sides = __fadd_rn(plate[cell - 1], plate[cell + 1]);
    float ends = __fadd_rn(plate[cell - width], plate[cell + width]);
    float flow = __fsub_rn(__fadd_rn(sides, ends), __fmul_rn(4.0f, plate[cell]));
    return __fmul_rn(coefficient, flow);
}

// One explicit step of the five-point stencil, from one plate into another.
extern "C" __global__ void heat_step(unsigned width, unsigned height, float coefficient, const float* from, float* to)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        unsigned cell = y * width + x;
        to[cell] = __fadd_rn(from[cell], gain(width, height, coefficient, from, cell));
    }
}

// The largest of a block's numbers, none of which is negative, for its first thread.
static __device__ float largest_of_block(float number)
{
    __shared__ float numbers[BLOCK];
    numbers[threadIdx.x] = number;
    __syncthreads();
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            numbers[threadIdx.x] = fmaxf(numbers[threadIdx.x], numbers[threadIdx.x + half]);
        }
        __syncthreads();
    }
    return numbers[0];
}

// The largest change that a step would make, for each block the largest of its own cells. One
// dimension, `BLOCK` threads in a block.
extern "C" __global__ void heat_changes(unsigned width, unsigned height, float coefficient, const float* plate, float* largest)
{
    unsigned cell = blockIdx.x * BLOCK + threadIdx.x;
    float change = cell < width * height ? fabsf(gain(width, height, coefficient, plate, cell)) : 0.0f;
    float found = largest_of_block(change);
    if (threadIdx.x == 0) {
        largest[blockIdx.x] = found;
    }
}

// The largest of `count` numbers. One block of `BLOCK` threads.
extern "C" __global__ void heat_residual(unsigned count, const float* numbers, float* residual)
{
    float largest = 0.0f;
    for (unsigned i = threadIdx.x; i < count; i += BLOCK) {
        largest = fmaxf(largest, numbers[i]);
    }
    float found = largest_of_block(largest);
    if (threadIdx.x == 0) {
        *residual = found;
    }
}
