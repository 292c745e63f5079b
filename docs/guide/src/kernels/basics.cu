// The kernels of the guide and of the numbered examples.

extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

// y += a * x
extern "C" __global__ void saxpy(unsigned n, float a, const float* x, float* y)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i];
    }
}

// x *= factor
extern "C" __global__ void scale(unsigned n, float factor, float* x)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] *= factor;
    }
}

// sum = a + b
extern "C" __global__ void add(unsigned n, const float* a, const float* b, float* sum)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        sum[i] = a[i] + b[i];
    }
}

// Counts a round. The loop goes on while rounds are left. One thread.
extern "C" __global__ void count_down(unsigned* left, unsigned long long go_on)
{
    *left -= 1;
    cudaGraphSetConditional(go_on, *left > 0);
}

// Takes the branch whose number is in memory. One thread.
extern "C" __global__ void choose(const unsigned* number, unsigned long long branch)
{
    cudaGraphSetConditional(branch, *number);
}

// Moves the elements of each block round by one place, and forgets a barrier. At most 256 threads.
extern "C" __global__ void rotate_wrongly(float* x)
{
    __shared__ float shared[256];
    shared[threadIdx.x] = x[threadIdx.x];
    // Here __syncthreads() is missing.
    x[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}
