// Heat on a plate: one explicit step of the five-point stencil, from one plate into another.
//
// The plate is `height` rows of `width` cells. Cells on the border keep their value. The arithmetic
// is spelled out, each operation rounded on its own, so that a processor that does the same
// operations in the same order gets the same bits.

extern "C" __global__ void heat_step(unsigned width, unsigned height, float coefficient, const float* in, float* out)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    unsigned cell = y * width + x;
    float here = in[cell];
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[cell] = here;
        return;
    }
    float sides = __fadd_rn(in[cell - 1], in[cell + 1]);
    float ends = __fadd_rn(in[cell - width], in[cell + width]);
    float flow = __fsub_rn(__fadd_rn(sides, ends), __fmul_rn(4.0f, here));
    out[cell] = __fadd_rn(here, __fmul_rn(coefficient, flow));
}

// The largest difference between two plates of `count` cells, as the bits of a float in `largest`,
// which must start as 0: floats that are not negative are ordered as their bits are.
extern "C" __global__ void heat_difference(unsigned count, const float* first, const float* second, unsigned* largest)
{
    __shared__ unsigned block_largest;
    if (threadIdx.x == 0) {
        block_largest = 0;
    }
    __syncthreads();
    unsigned cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell < count) {
        float difference = fabsf(__fsub_rn(first[cell], second[cell]));
        atomicMax(&block_largest, __float_as_uint(difference));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax(largest, block_largest);
    }
}
