// Element-wise kernels: set, multiply, copy.

extern "C" __global__ void fill(unsigned n, float value, float* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = value;
    }
}

extern "C" __global__ void scale(unsigned n, float factor, float* values)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        values[i] *= factor;
    }
}

extern "C" __global__ void copy_words(unsigned n, const unsigned* in, unsigned* out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i];
    }
}
