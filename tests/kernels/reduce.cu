// Sums over a block in shared memory of fixed and of launch-time size. The block is a power of two,
// at most 256 threads for the fixed one.

static __device__ void sum(unsigned n, const unsigned* in, unsigned* out, unsigned* shared)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            shared[threadIdx.x] += shared[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = shared[0];
    }
}

extern "C" __global__ void sum_static(unsigned n, const unsigned* in, unsigned* out)
{
    __shared__ unsigned shared[256];
    sum(n, in, out, shared);
}

// Needs 4 bytes of dynamic shared memory a thread.
extern "C" __global__ void sum_dynamic(unsigned n, const unsigned* in, unsigned* out)
{
    extern __shared__ unsigned dynamic[];
    sum(n, in, out, dynamic);
}
